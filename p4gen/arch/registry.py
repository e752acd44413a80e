"""The known architectures: p4gen's own, those of installed packages, and folders that the user names.

p4gen's own are the packages in this folder. An installed package announces an ``Architecture`` by an entry point of the
group ``p4gen.architectures``. A user's folder (``--arch PATH``, or ``P4GEN_ARCHS`` with several) is a Python package
whose ``ARCHITECTURE`` is one.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from p4gen.arch.architecture import Architecture
from p4gen.plugins import Registry

FOLDERS: Final = "P4GEN_ARCHS"
"""Environment variable with folders of architectures, separated like PATH; processes that p4gen starts inherit it."""

registry: Final = Registry[Architecture](
    Architecture,  # type: ignore[type-abstract]
    one="architecture",
    many="architectures",
    article="an",
    home="p4gen.chips",
    constant="ARCHITECTURE",
    folders=FOLDERS,
    prefix="p4gen_arch_",
)


def architectures() -> dict[str, Architecture]:
    """All architectures by name, p4gen's own first. Raises ``InputError`` if one cannot be loaded."""
    return registry.all()


def architecture(name: str) -> Architecture:
    """The architecture of that name, which must be known."""
    return registry.all()[name]


def of_package(main: str | None, declared: str = "", blocks: Collection[str] | None = None) -> Architecture | None:
    """The architecture of programs whose ``main`` instantiates that package, None if p4gen knows none.

    Several architectures may have a package of that name. The package's ``@pkginfo`` names the right one; without it,
    the first counts. With ``blocks``, the blocks of a program, the architecture must have these: a package with other
    blocks belongs to another architecture.
    """
    found = [arch for arch in registry.all().values() if main in (arch.main, *arch.mains)]
    if blocks is not None:
        found = [arch for arch in found if arch.has_blocks(blocks)]
    return next((arch for arch in found if arch.name == declared), found[0] if found else None)


def add_folder(path: Path) -> Architecture:
    """Register an architecture in a folder, for this process and those that it starts.

    Raises ``InputError`` if there is none, or another one has its name.
    """
    return registry.add_folder(path)


def folder_of(arch: Architecture) -> Path | None:
    """The folder of an architecture that the user named; None for one that is installed."""
    return registry.folder_of(arch)
