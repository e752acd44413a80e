"""Calls of a lab's hosts: what a user asks for, and what the program's family says of it (``LabMembers``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol

import numpy as np

from p4gen.errors import InputError
from p4gen.experiments.nccltests import BandwidthTable
from p4gen.families import Facet, OwnSpec, family_of
from p4gen.host.transport.realtime import Station
from p4gen.inputs import quote
from p4gen.labs.hosts.ranks import Ranks
from p4gen.manager.ranks.host import Host
from p4gen.net.runs import FamilyOption
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import TopologySpec

if TYPE_CHECKING:
    from p4gen.labs.job import Wanted


class Plan(Protocol):
    """A call that hosts can make."""

    @property
    def title(self) -> str:
        """The call in one line, as in "allreduce of 64K, 4 ranks"."""
        ...

    @property
    def size(self) -> int:
        """The size of the call in bytes, as reports give it."""
        ...

    @property
    def packets(self) -> int:
        """Packets of each rank that memory must have room for, if ranks offer some."""
        ...

    @property
    def held(self) -> int:
        """Bytes that each host holds for it: all ranks' data, and the results to compare with."""
        ...

    def draw(self, chance: np.random.Generator) -> Any:
        """Draw all ranks' data; the result is what ranks make (``p4gen.labs.hosts.ranks.Ranks.prepared``)."""
        ...


ALLTOALL: Final = "alltoall"
ROOT: Final = "root"
"""The option of collectives that have a root; on the command line ``--root``."""
Asked = tuple[str, int | None, Mapping[str, str]]
"""What a user says of a call: the collective, bytes if it is one of a size, and options."""
Step = tuple[str, Callable[[Any], str]]
"""A step of a suite: its name, in which ``{faults}`` stands for those that hosts' links have, and its function of the
suite (``p4gen.labs.runs.suite.Suite``), which returns a note, or raises ``P4genError``."""


@dataclass(frozen=True)
class LabMembers(Facet, Generic[OwnSpec]):
    """What labs need of a family: what hosts call, and how."""

    module: ClassVar[str] = "lab"

    collectives: Mapping[str, Mapping[str, FamilyOption]]
    """All collectives, each with its options."""
    sized: frozenset[str]
    """Those for which users give a number of bytes."""
    example: str
    """Some commands, as users type them."""
    plan: Callable[[OwnSpec, int, str, int | None, Mapping[str, Any]], Plan]
    """From program, number of ranks, collective, bytes, and the options' values. Raises ``InputError``."""
    samples: Callable[[OwnSpec, int, int], Sequence[Asked]]
    """Calls of every kind, from program, number of ranks, and about how many bytes; the first is one of that size."""
    ranks: Callable[[OwnSpec, Host, Station], Ranks]
    """What a host is in its groups."""
    steps: Callable[[], Sequence[Step]]
    """Loads the steps of the suite, in order. Each restores the lab's state."""
    aligning: str = ""
    """The collective after which a call begins at all ranks at the same time; "" if there is none."""
    fitted: Callable[[OwnSpec, TopologySpec], OwnSpec] = lambda spec, _topology: spec
    """The program with room for a group of all ranks, unless its spec says otherwise."""


def members_of(spec: ProgramSpec) -> LabMembers[Any]:
    """What a program's family says of its labs. Raises ``InputError`` if it says nothing."""
    return family_of(spec).facet(LabMembers)


@dataclass(frozen=True)
class CallOrder:
    """A call, as a user has given it."""

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
    ) -> CallOrder:
        """A call that this many ranks can make. Raises ``InputError`` if they cannot."""
        known = members_of(spec).collectives
        if collective not in known:
            raise InputError(f"{spec.program} has no {collective}; there are {', '.join(known)}")
        found = cls(collective, size or 0, tuple(options.items()))
        return cls(collective, found.plan(spec, ranks).size, found.options)

    @classmethod
    def wanted(cls, spec: ProgramSpec, wanted: Wanted, ranks: int) -> CallOrder:
        """A scenario's call. Raises ``InputError`` if so many ranks cannot make it, or there is not enough memory."""
        family, name = members_of(spec), wanted.collective
        root = {ROOT: str(wanted.root)} if wanted.root or ROOT in family.collectives.get(name, {}) else {}
        size = wanted.size if name in family.sized else None
        found = cls.of(spec, ranks, name, size, root | dict(wanted.given))
        check_memory(found, found.plan(spec, ranks), ranks, wanted.room)
        return found

    def plan(self, spec: ProgramSpec, ranks: int) -> Plan:
        """What the family says of it. Raises ``InputError`` if the program cannot serve it."""
        family = members_of(spec)
        known = family.collectives[self.collective]
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


def calls_by_size(spec: ProgramSpec, wanted: Wanted, ranks: int) -> tuple[BandwidthTable, list[CallOrder]]:
    """The scenario's table of bandwidths, still empty, and the call of each of its sizes.

    Raises ``InputError`` for what the program cannot serve, and if there is not enough memory.
    """
    table = BandwidthTable(spec, wanted.collective, ranks, wanted.root)
    assert wanted.sizes is not None
    sizes = table.sizes(*wanted.sizes)
    return table, [CallOrder.wanted(spec, replace(wanted, size=size), ranks) for size in sizes]


def size_text(size: int) -> str:
    """``64K``, ``1M``; bytes where neither fits."""
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


def rank_number(text: str) -> int:
    """The value of the option ``root``. Raises ``ValueError``."""
    if not text.isdecimal():
        raise ValueError(f"a rank such as 2, not {quote(text)}")
    return int(text)


ROOTED: Final[Mapping[str, FamilyOption]] = {ROOT: FamilyOption("the root rank", "0", rank_number)}
"""The options of collectives that have a root, and no other."""


def check_memory(call: CallOrder, plan: Plan, ranks: int, room: int | None = None) -> None:
    """Raises ``InputError`` when there is not enough memory for a call: all hosts are on this machine, or each has
    ``room`` bytes of its own."""
    needed, free = (plan.held * ranks, free_memory()) if room is None else (plan.held, room)
    if needed > free:
        raise InputError(
            f"{call.collective} of {call.size:,} bytes: every rank draws all ranks' data; with the expected "
            f"results that takes {needed >> 20:,} MiB; {free >> 20:,} MiB are free for it, so "
            f"{call.size * free // needed >> 10:,}K is the limit here"
        )


def free_memory() -> int:
    """Half of the memory that is free now, in bytes."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 512
    return 1 << 30
