"""What a family of programs supplies for differential tests."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol

from p4gen.difftest.across import Across
from p4gen.difftest.events import Event, Request
from p4gen.families import Facet, OwnSpec, family_of
from p4gen.vocabulary import ProgramSpec


class Source(Protocol):
    """Random events for two switches, all derived from one seed."""

    def setup(self) -> list[Event]:
        """The initial configuration."""

    def packets(self) -> Iterator[Event]:
        """An endless sequence of packets, with control-plane requests among them."""


@dataclass(frozen=True)
class Traffic(Facet, Generic[OwnSpec]):
    """Random traffic that covers the behaviour of a family's programs."""

    module: ClassVar[str] = "traffic"

    source: Callable[[OwnSpec, int], Source]
    """The source of events for a seed. Raises ``InputError`` for a program that is too small for any traffic."""
    across: Callable[[OwnSpec, OwnSpec, int], Across] | None = None
    """Traffic for programs of two architectures: the reference's spec, that of a program which may lack capabilities,
    and the seed. None: such programs cannot be compared."""
    goes_round: Callable[[OwnSpec, bytes], bool] = lambda _spec, _frame: False
    """Whether a frame may cause the switch to recirculate packets, which can then interleave with later frames."""


def traffic_of(spec: ProgramSpec) -> Traffic[Any]:
    """The traffic of a spec's family; for a program of two families, that of both, mixed. Raises ``InputError`` if one
    has none."""
    own = family_of(spec).facet(Traffic)
    if spec.beside is None:
        return own
    other = family_of(spec.beside).facet(Traffic)
    return Traffic(
        source=lambda spec, seed: _Mixed(own.source(spec, seed), other.source(spec.beside, seed), seed),
        goes_round=lambda spec, frame: own.goes_round(spec, frame) or other.goes_round(spec.beside, frame),
    )


class _Mixed:
    """The events of two sources in random order. Of two entries with one key, the switches have the first source's."""

    def __init__(self, first: Source, second: Source, seed: int) -> None:
        self._sources = first, second
        self._random = random.Random(f"{seed} mixed")  # noqa: S311 - tests are to be repeated

    def setup(self) -> list[Event]:
        """Both initial configurations; of two entries with one key, the first source's."""
        return list({_key(event): event for source in reversed(self._sources) for event in source.setup()}.values())

    def packets(self) -> Iterator[Event]:
        """Events of both sources, equally many on average."""
        each = [source.packets() for source in self._sources]
        while True:
            yield next(self._random.choice(each))


def _key(event: Event) -> object:
    if isinstance(event, Request):
        return event.entry.table, tuple(sorted((name, repr(match)) for name, match in event.entry.match.items()))
    return event
