"""The known families: p4gen's own, those of installed packages, and folders that the user names.

p4gen's own are the packages in this folder. An installed package announces a ``Family`` by an entry point of the
group ``p4gen.families``. A user's folder (``--family PATH``, or ``P4GEN_FAMILIES`` with several) is a Python
package whose ``FAMILY`` is one; ``p4gen new`` writes such a folder.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import re
import sys
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Final

from p4gen.errors import Diagnostic, InputError, P4genError
from p4gen.families.family import Family, import_failed
from p4gen.spec.program import ProgramSpec

GROUP: Final = "p4gen.families"
FOLDERS: Final = "P4GEN_FAMILIES"
"""Environment variable with folders of families, separated like PATH; processes that p4gen starts inherit it."""
_PREFIX: Final = "p4gen_family_"
"""Prefix of the names of packages in users' folders."""


@cache
def families() -> dict[str, Family]:
    """All families by name, p4gen's own first. Raises ``InputError`` if one cannot be loaded."""
    folder = importlib.import_module(__package__)
    own = [f"{__package__}.{module.name}" for module in pkgutil.iter_modules(folder.__path__) if module.ispkg]
    found = [_family_in(importlib.import_module(name), name) for name in own]
    found += [_checked(entry.load(), f"entry point {entry.value}") for entry in entry_points(group=GROUP)]
    found += [_in_folder(Path(place)) for place in os.environ.get(FOLDERS, "").split(os.pathsep) if place]
    by_name: dict[str, Family] = {}
    for family in found:
        if family.name in by_name:
            raise InputError(f"there are two families called {family.name}: in {by_name[family.name].package} "
                             f"and in {family.package}")  # fmt: skip
        by_name[family.name] = family
    return by_name


def family_of(spec: ProgramSpec) -> Family:
    """The family of a spec."""
    return families()[spec.family]


def add_folder(path: Path) -> Family:
    """Register a family in a folder, here and for processes that this one starts.

    Raises ``InputError`` if there is none, or another one has its name.
    """
    family = _in_folder(path)
    before = os.environ.get(FOLDERS, "")
    places = [place for place in before.split(os.pathsep) if place]
    if str(path.resolve()) not in places:
        os.environ[FOLDERS] = os.pathsep.join([*places, str(path.resolve())])
        families.cache_clear()
    try:
        return families()[family.name]
    except InputError:
        os.environ[FOLDERS] = before
        raise


def folder_of(family: Family) -> Path | None:
    """The folder of a family that the user named; None for one that is installed."""
    return Path(sys.modules[family.package].__path__[0]) if family.package.startswith(_PREFIX) else None


def _in_folder(path: Path) -> Family:
    folder = path.resolve()
    start = folder / "__init__.py"
    if not start.is_file():
        raise InputError(Diagnostic(str(path), "not a family: it has no __init__.py"))
    name = _PREFIX + re.sub(r"\W", "_", folder.name)
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
        raise InputError(Diagnostic(str(path), f"another family's folder has the same name: {module.__path__[0]}"))
    return _family_in(module, str(path / "__init__.py"))


def _family_in(module: ModuleType, where: str) -> Family:
    return _checked(getattr(module, "FAMILY", None), where)


def _checked(found: object, where: str) -> Family:
    if not isinstance(found, Family):
        raise InputError(Diagnostic(where, "FAMILY is not a p4gen.families.Family"))
    return found
