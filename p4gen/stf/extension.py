"""STF commands for what only an architecture's switches have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from p4gen.arch import ArchitectureFacet, architectures
from p4gen.plugins import answers


@dataclass(frozen=True)
class Extra:
    """A command: its arguments as in ``p4gen.stf.parser.COMMANDS``, and the function that executes it on a
    ``Commander``. The function's result is the number that ``= HANDLE`` names."""

    arguments: tuple[str, ...]
    run: Callable[..., int | None]


@dataclass(frozen=True)
class StfCommands(ArchitectureFacet):
    """The commands that an architecture adds, by name."""

    module: ClassVar[str] = "stf"

    commands: Mapping[str, Extra]


def extra_commands() -> dict[str, Extra]:
    """The commands of all architectures, by name. Commands of one name have the same arguments in all of them."""
    with_them = (arch for arch in architectures().values() if answers(arch, StfCommands))
    return {name: extra for arch in with_them for name, extra in arch.facet(StfCommands).commands.items()}
