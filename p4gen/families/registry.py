"""The known families: p4gen's own, those of installed packages, and folders that the user names.

p4gen's own are the packages in this folder. An installed package announces a ``Family`` by an entry point of the
group ``p4gen.families``. A user's folder (``--family PATH``, or ``P4GEN_FAMILIES`` with several) is a Python
package whose ``FAMILY`` is one; ``p4gen new`` writes such a folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from p4gen.families.family import Family
from p4gen.plugins import Registry
from p4gen.vocabulary.program import ProgramSpec

FOLDERS: Final = "P4GEN_FAMILIES"
"""Environment variable with folders of families, separated like PATH; processes that p4gen starts inherit it."""

_registry: Final = Registry(
    Family,
    one="family",
    many="families",
    article="a",
    home="p4gen.papers",
    constant="FAMILY",
    folders=FOLDERS,
    prefix="p4gen_family_",
)


def families() -> dict[str, Family]:
    """All families by name, p4gen's own first. Raises ``InputError`` if one cannot be loaded."""
    return _registry.all()


def forget() -> None:
    """Search for families again when they are asked for next."""
    _registry.forget()


def family_of(spec: ProgramSpec) -> Family:
    """The family that ``spec.family`` names. Raises ``InputError`` if a family cannot be loaded."""
    return families()[spec.family]


def add_folder(path: Path) -> Family:
    """Register a family in a folder, here and for processes that this one starts.

    Raises ``InputError`` if there is none, or another one has its name.
    """
    return _registry.add_folder(path)


def folder_of(family: Family) -> Path | None:
    """The folder of a family that the user named; None for one that is installed."""
    return _registry.folder_of(family)
