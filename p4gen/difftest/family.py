"""What a family of programs supplies for differential tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from p4gen.difftest.events import Event
from p4gen.families import Facet, family_of
from p4gen.spec import ProgramSpec


class Source(Protocol):
    """Events for two switches, all derived from one seed."""

    def setup(self) -> list[Event]:
        """The initial configuration."""

    def packets(self) -> Iterator[Event]:
        """An endless sequence of packets, with control-plane requests among them."""


@dataclass(frozen=True)
class Traffic(Facet):
    """Random traffic that covers the behaviour of a family's programs. Functions take the family's own spec."""

    module: ClassVar[str] = "traffic"

    source: Callable[[Any, int], Source]
    """The source of events for a seed. Raises ``InputError`` for a program that is too small for any traffic."""
    goes_round: Callable[[Any, bytes], bool]
    """Whether a frame may cause the switch to recirculate packets, which can then interleave with later frames."""


def traffic_of(spec: ProgramSpec) -> Traffic:
    """The traffic of a spec's family. Raises ``InputError`` if it has none."""
    return family_of(spec).facet(Traffic)
