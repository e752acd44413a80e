"""Packages that p4gen discovers at run time: its own, those of installed packages, and folders that the user names.

``Registry`` is for one kind of them: families of programs, architectures. Each is a Python package with a constant that
describes it, and with facets: modules that implement p4gen's interfaces (``Facet``). p4gen's own are the packages in
one folder; an installed package announces its own by an entry point; a folder of the user's is named on the command
line, or in an environment variable with several, separated like PATH, which processes that p4gen starts inherit.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import re
import sys
import traceback
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import ClassVar, Generic, Protocol, TypeVar

from p4gen.errors import Diagnostic, InputError, P4genError, Pos


class Plugin(Protocol):
    """The attributes of all plug-ins."""

    @property
    def name(self) -> str:
        """The name that users give."""

    @property
    def package(self) -> str:
        """The dotted name of its Python package."""

    @property
    def base(self) -> Plugin | None:
        """The plug-in on which it builds."""


@dataclass(frozen=True)
class Facet:
    """An interface to plug-ins that some part of p4gen declares; ``module`` is the module that provides it.

    A plug-in's package has a module of that name with a constant ``FACET``.
    """

    module: ClassVar[str]


T = TypeVar("T", bound=Plugin)
F = TypeVar("F", bound=Facet)


@dataclass(eq=False)
class Registry(Generic[T]):
    """The plug-ins of one kind. ``home`` is the package of p4gen's own, ``constant`` their description's name."""

    kind: type[T]
    one: str
    many: str
    article: str
    home: str
    constant: str
    folders: str
    """Environment variable with the user's folders."""
    prefix: str
    """Prefix of the names of packages in users' folders."""
    _found: dict[str, T] | None = field(default=None, init=False)

    def all(self) -> dict[str, T]:
        """All plug-ins by name, p4gen's own first. Raises ``InputError`` if one cannot be loaded."""
        if self._found is None:
            self._found = self._search()
        return self._found

    def forget(self) -> None:
        """Search again on the next access."""
        self._found = None

    def add_folder(self, path: Path) -> T:
        """Register the plug-in in a folder, for this process and those that it starts.

        Raises ``InputError`` if there is none, or another one has its name.
        """
        added = self._in_folder(path)
        before = os.environ.get(self.folders, "")
        places = [place for place in before.split(os.pathsep) if place]
        if str(path.resolve()) not in places:
            os.environ[self.folders] = os.pathsep.join([*places, str(path.resolve())])
            self.forget()
        try:
            return self.all()[added.name]
        except InputError:
            os.environ[self.folders] = before
            raise

    def folder_of(self, plugin: T) -> Path | None:
        """The folder of a plug-in that the user named; None for one that is installed."""
        own = plugin.package.startswith(self.prefix)
        return Path(sys.modules[plugin.package].__path__[0]) if own else None

    def _search(self) -> dict[str, T]:
        folder = importlib.import_module(self.home)
        own = [f"{self.home}.{module.name}" for module in pkgutil.iter_modules(folder.__path__) if module.ispkg]
        modules = [importlib.import_module(name) for name in own]
        # A package without the constant is none of this kind: a paper without programs of its own.
        found = [self._described(module, module.__name__) for module in modules if hasattr(module, self.constant)]
        announced = entry_points(group=f"p4gen.{self.many}")
        found += [self._checked(entry.load(), f"entry point {entry.value}") for entry in announced]
        found += [self._in_folder(Path(place)) for place in os.environ.get(self.folders, "").split(os.pathsep) if place]
        by_name: dict[str, T] = {}
        for one in found:
            if one.name in by_name:
                raise InputError(
                    f"there are two {self.many} called {one.name}: in {by_name[one.name].package} and in {one.package}"
                )
            by_name[one.name] = one
        return by_name

    def _in_folder(self, path: Path) -> T:
        folder = path.resolve()
        start = folder / "__init__.py"
        if not start.is_file():
            raise InputError(Diagnostic(str(path), f"not {self.article} {self.one}: it has no __init__.py"))
        name = self.prefix + re.sub(r"\W", "_", folder.name)
        module = sys.modules.get(name)
        if module is None:
            spec = importlib.util.spec_from_file_location(name, start, submodule_search_locations=[str(folder)])
            assert spec is not None
            assert spec.loader is not None
            module = sys.modules[name] = importlib.util.module_from_spec(spec)
            try:
                spec.loader.exec_module(module)
            except Exception as error:
                del sys.modules[name]
                if isinstance(error, P4genError):
                    raise
                raise import_failed(folder, error) from error
        elif list(module.__path__) != [str(folder)]:
            raise InputError(
                Diagnostic(str(path), f"another {self.one}'s folder has the same name: {module.__path__[0]}")
            )
        return self._described(module, str(path / "__init__.py"))

    def _described(self, module: ModuleType, where: str) -> T:
        return self._checked(getattr(module, self.constant, None), where)

    def _checked(self, found: object, where: str) -> T:
        if not isinstance(found, self.kind):
            what = f"{self.kind.__module__}.{self.kind.__name__}"
            raise InputError(Diagnostic(where, f"{self.constant} is not {self.article} {what}"))
        return found


def answers(plugin: Plugin, kind: type[Facet]) -> bool:
    """Whether a plug-in, or the one that it builds on, has the facet."""
    found = importlib.util.find_spec(f"{plugin.package}.{kind.module}") is not None
    return found or (plugin.base is not None and answers(plugin.base, kind))


def facet(plugin: Plugin, kind: type[F], one: str) -> F:
    """The facet of a plug-in, which is ``one`` of its kind; its module is imported only now.

    Raises ``InputError`` if neither the plug-in nor the one on which it builds provides it.
    """
    name = f"{plugin.package}.{kind.module}"
    place = importlib.util.find_spec(name)
    if place is None:
        if plugin.base is None:
            raise InputError(f"the {one} {plugin.name} has no {kind.module}.py: it does not provide {kind.__name__}")
        return facet(plugin.base, kind, one)
    try:
        module = importlib.import_module(name)
    except P4genError:
        raise
    except Exception as error:
        raise import_failed(Path(str(place.origin)).parent, error) from error
    found = getattr(module, "FACET", None)
    if not isinstance(found, kind):
        raise InputError(f"{name}.FACET is not a {kind.__name__}")
    return found


def import_failed(folder: Path, error: Exception) -> InputError:
    """The error for a package in ``folder`` that cannot be imported: the position, and the cause."""
    reason = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    if isinstance(error, SyntaxError) and error.filename:
        where = Pos(error.filename, error.lineno or 1, error.offset or 1)
        return InputError(Diagnostic(where, f"{type(error).__name__}: {error.msg}"))
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if folder in Path(frame.filename).parents]
    if not places:
        return InputError(Diagnostic(str(folder), reason))
    last = places[-1]
    return InputError(Diagnostic(Pos(last.filename, last.lineno or 1, (last.colno or 0) + 1), reason))
