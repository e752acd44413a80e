"""Collectives of families whose ranks write to each other's memory, as a lab runs them.

The family says which there are, what users give for them, and what NumPy says of their results (``LabWrites``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from p4gen.errors import InputError
from p4gen.families import Facet, family_of
from p4gen.host.transport.nic import Nic
from p4gen.manager.ranks.writes import Writer
from p4gen.net.runs import FamilyOption
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import TopologySpec


class Plan(Protocol):
    """A call that a group can make."""

    @property
    def title(self) -> str:
        """What it is, in a line."""
        ...

    @property
    def size(self) -> int:
        """Bytes, for reports."""
        ...

    @property
    def packets(self) -> int:
        """Packets of each rank that others' memory must have room for."""
        ...

    @property
    def draw(self) -> Callable[[np.random.Generator], Any]:
        """The function that draws all ranks' data; the result is what ranks make."""
        ...


class CheckedWriter(Writer, Protocol):
    """A rank that compares results, and its memory, with what NumPy says."""

    def make(self, drawn: Any) -> None:
        """Start a call that ``Plan.draw`` has given."""

    def problem(self, drawn: Any) -> str:
        """What is wrong with its result, or with any byte of the memory; "" if nothing is."""
        ...


Changed = Callable[[], None]
Asked = tuple[str, int | None, Mapping[str, str]]
"""What a user says of a call: the collective, bytes if it is one of a size, and options."""


@dataclass(frozen=True)
class LabWrites(Facet):
    """What labs need of a family whose ranks write to each other's memory."""

    module: ClassVar[str] = "lab"

    sized: tuple[str, ...]
    """The collectives for which users give a number of bytes."""
    others: Mapping[str, Mapping[str, FamilyOption]]
    """The others, each with its options."""
    example: str
    """One of them, as users type it."""
    fitted: Callable[[Any, TopologySpec], Any]
    """The program with room for a group of all ranks, unless its spec says otherwise."""
    plan: Callable[[Any, int, str, int | None, Mapping[str, Any]], Plan]
    """From program, number of ranks, collective, bytes, and the options' values. Raises ``InputError``."""
    samples: Callable[[Any, int, int], Sequence[Asked]]
    """Calls of every kind, from program, number of ranks, and about how many bytes; the first is one of that size."""
    rank: Callable[[Any, int, int, int, Nic, Changed], CheckedWriter]
    """From program, rank, number of ranks, packets of each that memory has room for, NIC, and what to call when a call
    may have ended."""

    @property
    def collectives(self) -> tuple[str, ...]:
        """Names of all collectives."""
        return (*self.sized, *self.others)


def writes_of(spec: ProgramSpec) -> LabWrites:
    """What a program's family tells of its writes. Raises ``InputError`` if it tells nothing."""
    return family_of(spec).facet(LabWrites)


@dataclass(frozen=True)
class WriteCall:
    """One call, as a user has given it."""

    collective: str
    size: int
    """Bytes, for reports; also what was given if the collective is one of a size."""
    options: tuple[tuple[str, str], ...] = ()
    """Names and values, as they were given."""
    root: int = 0
    """None of these collectives has a root."""

    @classmethod
    def of(
        cls, spec: ProgramSpec, ranks: int, collective: str, size: int | None, options: Mapping[str, str]
    ) -> WriteCall:
        """A call that this many ranks can make. Raises ``InputError`` if they cannot."""
        found = cls(collective, size or 0, tuple(options.items()))
        return cls(collective, found.plan(spec, ranks).size, found.options)

    def plan(self, spec: ProgramSpec, ranks: int) -> Plan:
        """What the family says of it. Raises ``InputError`` if the program cannot serve it."""
        family = writes_of(spec)
        known = family.others.get(self.collective, {})
        values: dict[str, Any] = {name: option.parse(option.default) for name, option in known.items()}
        for name, text in self.options:
            if name not in known:
                raise InputError(f"{self.collective} has no option {name}; it has {', '.join(known) or 'none'}")
            try:
                values[name] = known[name].read(text)
            except ValueError as error:
                raise InputError(f"{name}: {error}") from None
        size = self.size if self.collective in family.sized else None
        return family.plan(spec, ranks, self.collective, size, values)
