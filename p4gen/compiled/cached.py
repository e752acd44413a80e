"""Compiled functions, whose machine code is kept as long as no source that it may depend on changes.

Numba itself looks only at the file of each function: it would go on using code for another layout of records.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from numba import njit, typeof
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.runtime.nrt import rtsys

import p4gen
from p4gen import stored

_P = ParamSpec("_P")
_R = TypeVar("_R")
_SOURCES: Final = {
    "compiled": ("compiled", "host/transport", "rocev2", "layout", "model/jit", "packetio"),
    "verification/search": ("verification/search",),
}
"""By package: the packages whose constants are in its machine code."""


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """``function`` in machine code, which is made at the first call, or taken from the cache of an earlier process."""
    return _kept(function, {})


def compiled_with(**options: Any) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """The same with options of ``numba.njit``."""
    return functools.partial(_kept, options=options)


def _kept(function: Callable[_P, _R], options: dict[str, Any]) -> Callable[_P, _R]:
    made: Any = njit(**options)(function)
    if _folder(_package(function)) is not None:
        made._cache = _Cache(function)  # type: ignore[no-untyped-call]
    return made


def load(function: Callable[..., Any], *arguments: Any) -> None:
    """Have the machine code of a compiled function for such arguments, without calling it. Forks have it, too."""
    function.compile(tuple(map(typeof, arguments)))  # type: ignore[attr-defined]


def is_kept(function: Callable[..., Any]) -> bool:
    """Whether the machine code of a compiled function is in the cache. Otherwise its first call takes seconds."""
    made = function.py_func  # type: ignore[attr-defined]
    folder = _folder(_package(made))
    name = f"{made.__module__.rpartition('.')[2]}.{made.__qualname__}-*"
    return folder is not None and any(Path(folder).glob(name))


def _package(function: Callable[..., Any]) -> str:
    return function.__module__.partition(".")[2].rpartition(".")[0].replace(".", "/")


@functools.cache
def _digest(package: str) -> str:
    root = Path(p4gen.__file__).parent
    return stored.key(path.read_text() for name in _SOURCES[package] for path in sorted((root / name).glob("*.py")))


@functools.cache
def _folder(package: str) -> str | None:
    """The folder of a package's machine code; None if it cannot be written."""
    folder = stored.cache_folder("numba") / _digest(package)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return None
    return str(folder) if os.access(folder, os.W_OK) else None


class _Locator:
    """Where Numba keeps the machine code of a function, and when it is valid."""

    def __init__(self, package: str, line: int) -> None:
        self._package, self._line = package, line

    @classmethod
    def from_function(cls, function: Any, _file: str) -> _Locator:
        return cls(_package(function), function.__code__.co_firstlineno)

    def ensure_cache_path(self) -> None:
        """Nothing to do: the folder is there."""

    def get_cache_path(self) -> str | None:
        return _folder(self._package)

    def get_source_stamp(self) -> str:
        return _digest(self._package)

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Files(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012 - as Numba has it


class _Cache(FunctionCache):
    _impl_class = _Files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code for a signature; None if it has to be made. Before, Numba would load all that can be
        compiled, which takes longer than everything else."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
