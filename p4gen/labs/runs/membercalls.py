"""Collectives of families whose switches address the ranks' memory, as a lab runs them.

The family says which there are, what users give for them, and what NumPy says of their results (``LabMembers``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, Protocol

import numpy as np

from p4gen.errors import InputError
from p4gen.families import Facet, OwnSpec, family_of
from p4gen.host.transport.nic import Nic
from p4gen.manager.ranks.memory import MemoryRank
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


class CheckedRank(MemoryRank, Protocol):
    """A rank that compares results, and its memory, with what NumPy says."""

    def make(self, drawn: Any) -> None:
        """Start a call that ``Plan.draw`` has given."""

    def problem(self, drawn: Any) -> str:
        """What is wrong with its result, or with any byte of the memory; "" if nothing is."""
        ...


ROOT: Final = "root"
"""The option of collectives that have a root; on the command line ``--root``."""
Changed = Callable[[], None]
Asked = tuple[str, int | None, Mapping[str, str]]
"""What a user says of a call: the collective, bytes if it is one of a size, and options."""


@dataclass(frozen=True)
class LabMembers(Facet, Generic[OwnSpec]):
    """What labs need of a family whose switches address the ranks' memory."""

    module: ClassVar[str] = "lab"

    collectives: Mapping[str, Mapping[str, FamilyOption]]
    """All collectives, each with its options."""
    sized: frozenset[str]
    """Those for which users give a number of bytes."""
    example: str
    """Some of them, as users type them."""
    fitted: Callable[[OwnSpec, TopologySpec], OwnSpec]
    """The program with room for a group of all ranks, unless its spec says otherwise."""
    plan: Callable[[OwnSpec, int, str, int | None, Mapping[str, Any]], Plan]
    """From program, number of ranks, collective, bytes, and the options' values. Raises ``InputError``."""
    samples: Callable[[OwnSpec, int, int], Sequence[Asked]]
    """Calls of every kind, from program, number of ranks, and about how many bytes; the first is one of that size."""
    rank: Callable[[OwnSpec, int, int, int, Nic, Changed], CheckedRank]
    """From program, rank, number of ranks, packets of each that memory has room for, NIC, and what to call when a call
    may have ended."""


def members_of(spec: ProgramSpec) -> LabMembers[Any]:
    """What a program's family tells of its members. Raises ``InputError`` if it tells nothing."""
    return family_of(spec).facet(LabMembers)


@dataclass(frozen=True)
class MemberCall:
    """One call, as a user has given it."""

    collective: str
    size: int
    """Bytes, for reports; also what was given if the collective is one of a size."""
    options: tuple[tuple[str, str], ...] = ()
    """Names and values, as they were given."""

    @property
    def root(self) -> int:
        """The root rank; 0 if it has none."""
        return int(dict(self.options).get(ROOT, 0))

    @classmethod
    def of(
        cls, spec: ProgramSpec, ranks: int, collective: str, size: int | None, options: Mapping[str, str]
    ) -> MemberCall:
        """A call that this many ranks can make. Raises ``InputError`` if they cannot."""
        found = cls(collective, size or 0, tuple(options.items()))
        return cls(collective, found.plan(spec, ranks).size, found.options)

    def plan(self, spec: ProgramSpec, ranks: int) -> Plan:
        """What the family says of it. Raises ``InputError`` if the program cannot serve it."""
        family = members_of(spec)
        known = family.collectives.get(self.collective, {})
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
