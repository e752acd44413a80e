"""What differential tests ask of a family of programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from p4gen.difftest.events import Event
from p4gen.families import Facet, family_of
from p4gen.spec import ProgramSpec


class Source(Protocol):
    """Events for two switches. All of them derive from one seed."""

    def setup(self) -> list[Event]:
        """The configuration to begin with."""

    def packets(self) -> Iterator[Event]:
        """Packets for ever, and requests of the control plane between them."""


@dataclass(frozen=True)
class Traffic(Facet):
    """Random traffic that reaches what a family's programs do. Functions take the family's own spec."""

    module: ClassVar[str] = "traffic"

    source: Callable[[Any, int], Source]
    """The events of a seed. Raises ``InputError`` for a program that has no room for any."""
    goes_round: Callable[[Any, bytes], bool]
    """Whether a frame may make the switch recirculate packets, which then meet those that come behind it."""


def traffic_of(spec: ProgramSpec) -> Traffic:
    """The traffic of a spec's family; ``InputError`` if it has none."""
    return family_of(spec).facet(Traffic)
