"""Compiled functions, whose machine code is kept as long as no source that it may depend on changes.

Numba itself looks only at the file of each function: it would go on using code for another layout of records.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache

import p4gen
from p4gen import stored

_P = ParamSpec("_P")
_R = TypeVar("_R")
_SOURCES: Final = ("compiled", "host/transport", "rocev2", "layout", "model/jit")
"""Packages whose constants are in the machine code."""


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """``function`` in machine code, which is made at the first call, or taken from the cache of an earlier process."""
    made: Any = njit(function)
    if _folder() is not None:
        made._cache = _Cache(function)  # type: ignore[no-untyped-call]
    return made


def is_kept(function: Callable[..., Any]) -> bool:
    """Whether the machine code of a compiled function is in the cache. Otherwise its first call takes seconds."""
    folder, made = _folder(), function.py_func  # type: ignore[attr-defined]
    name = f"{made.__module__.rpartition('.')[2]}.{made.__qualname__}-*"
    return folder is not None and any(Path(folder).glob(name))


@functools.cache
def _digest() -> str:
    root = Path(p4gen.__file__).parent
    return stored.key(path.read_text() for name in _SOURCES for path in sorted((root / name).glob("*.py")))


@functools.cache
def _folder() -> str | None:
    """The folder of these sources' machine code; None if it cannot be written."""
    folder = stored.cache_folder("numba") / _digest()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return None
    return str(folder) if os.access(folder, os.W_OK) else None


class _Locator:
    """Where Numba keeps the machine code of a function, and when it is valid."""

    def __init__(self, line: int) -> None:
        self._line = line

    @classmethod
    def from_function(cls, function: Any, _file: str) -> _Locator:
        return cls(function.__code__.co_firstlineno)

    def ensure_cache_path(self) -> None:
        """Nothing to do: the folder is there."""

    def get_cache_path(self) -> str | None:
        return _folder()

    def get_source_stamp(self) -> str:
        return _digest()

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Files(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # type: ignore[list-item]  # noqa: RUF012 - as Numba has it


class _Cache(FunctionCache):
    _impl_class = _Files
