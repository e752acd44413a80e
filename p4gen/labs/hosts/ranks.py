"""What a host of a lab is in its groups: in those that the manager has, or at the ends of connections.

A program's family says which of the three it is (``p4gen.labs.calls.LabMembers``); a host's daemon has calls made by
any of them (``p4gen.labs.hosts.tasks``).
"""

from __future__ import annotations

import time
import weakref
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from typing_extensions import override

from p4gen.errors import FailedError
from p4gen.host.collectives.alltoall import AllToAll, AllToAllConfig, Exchange
from p4gen.host.collectives.arrays import Array
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.ring import Ring, RingConfig
from p4gen.host.transport.clock import SECOND
from p4gen.host.transport.nic import VerbsNic
from p4gen.host.transport.realtime import Station
from p4gen.manager.api import GroupState
from p4gen.manager.ranks.calls import CallResult
from p4gen.manager.ranks.host import Host
from p4gen.manager.ranks.member import Member
from p4gen.manager.ranks.memory import MemoryRank
from p4gen.net.collectives.check import difference
from p4gen.net.collectives.config import Call
from p4gen.net.collectives.values import invoke
from p4gen.records import from_plain, to_plain
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.message import Collective

COUNTERS: Final = ("sent", "resent", "timeouts", "naks", "cnps")
"""Counters of queue pairs."""


@dataclass(frozen=True)
class PreparedCall:
    """A rank's part in a call whose data are drawn."""

    begin: Callable[[float], Future[CallResult]]
    """Begins the call; the future raises ``FailedError``, also when so many seconds have passed."""
    problem: Callable[[Any], str]
    """What is wrong with the result's value; "" if nothing is."""


class Ranks(ABC):
    """The ranks that a host is, by the names of their groups."""

    @abstractmethod
    def enter(self, group: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Do what comes before the group is there. Returns what the manager has to know."""

    @abstractmethod
    def join(self, group: str, generation: int, timeout: float) -> None:
        """Wait until calls can be made, in this generation or a later one. Raises ``FailedError`` after ``timeout``
        seconds."""

    @abstractmethod
    def leave(self, group: str) -> None:
        """Undo ``enter``, if the manager does not do so."""

    @abstractmethod
    def size(self, group: str) -> int:
        """The number of the group's ranks."""

    @abstractmethod
    def prepared(self, group: str, drawn: Any, size: int) -> PreparedCall:
        """The host's part in a call that a plan has drawn. ``size`` is what counters say of it, in bytes."""

    @abstractmethod
    def progress(self, group: str) -> float:
        """The part of the current call that is done, from 0 to 1."""

    @abstractmethod
    def counters(self) -> dict[str, dict[str, Any]]:
        """The counters and the state of each group, as plain data by the group's name."""


@dataclass(frozen=True)
class DrawnArrays:
    """A call with all ranks' arrays, and their results by NumPy."""

    call: Call | None
    """None: an AlltoAll."""
    values: Sequence[Array]
    results: Sequence[Array | None]


class GroupRanks(Ranks):
    """Ranks of groups whose switches take part in CommLib's collectives."""

    def __init__(self, spec: ProgramSpec, host: Host, _nic: Station) -> None:
        self._spec, self._host = spec, host

    @override
    def enter(self, group: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    @override
    def leave(self, group: str) -> None:
        """If the manager has not created the group, take the memory back."""
        self._host.withdraw(group)

    @override
    def join(self, group: str, generation: int, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        member = self._host.follower(group, timeout)
        while member.state is not GroupState.ACTIVE or member.generation < generation:
            if time.monotonic() > deadline:
                raise FailedError(f"{self._host.name} knows no active generation of {group}: {member.reason}")
            time.sleep(0.005)

    @override
    def size(self, group: str) -> int:
        size = self._host.follower(group).size
        assert size is not None
        return size

    @override
    def prepared(self, group: str, drawn: DrawnArrays, size: int) -> PreparedCall:
        member, call = self._host.member(group), drawn.call
        assert call is not None
        assert member.rank is not None
        data = None if call.collective is Collective.BARRIER else drawn.values[member.rank]
        begin = partial(member.begin, call.collective, data, call.root, call.op)
        return PreparedCall(begin, partial(difference, wanted=drawn.results[member.rank]))

    @override
    def progress(self, group: str) -> float:
        member = self._host.members().get(group)
        return member.progress() if member is not None else 0.0

    @override
    def counters(self) -> dict[str, dict[str, Any]]:
        found = {}
        for name, member in self._host.members().items():
            report = member.report()
            found[name] = {
                field: getattr(report, field) for field in ("rank", "invocations", "data_bytes", *COUNTERS)
            } | {"generation": member.generation, "state": str(member.state), "completed": member.completed}
            if isinstance(member, Member):
                found[name]["trees"] = {str(n): sent for n, sent in enumerate(member.sent_by_tree())}
        return found


class CheckedRank(MemoryRank, Protocol):
    """A rank that compares results, and its memory, with what NumPy says."""

    def make(self, drawn: Any) -> None:
        """Start a call that a plan has drawn."""

    def problem(self, drawn: Any) -> str:
        """What is wrong with its result, or with any byte of the memory; "" if nothing is."""
        ...


MakeRank = Callable[[Any, int, int, int, VerbsNic, Callable[[], None]], CheckedRank]
"""From program, rank, number of ranks, packets of each that memory has room for, NIC, and what to call when a call may
have ended."""


class MemoryRanks(GroupRanks):
    """Ranks of groups whose switches address their memory, which is offered before the manager creates the group."""

    def __init__(self, make: MakeRank, spec: ProgramSpec, host: Host, nic: Station) -> None:
        super().__init__(spec, host, nic)
        self._make = make

    @override
    def enter(self, group: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        rank, size, packets = (int(fields[name]) for name in ("rank", "size", "packets"))
        make = partial(self._make, self._spec, rank, size, packets)
        memory: dict[str, Any] = to_plain(self._host.offer(group, make, float(fields["timeout"])).memory)
        return memory

    @override
    def prepared(self, group: str, drawn: Any, size: int) -> PreparedCall:
        def begin(patience: float) -> Future[CallResult]:
            member = self._host.memory_member(group)
            return member.begin(lambda rank: rank.make(drawn), lambda rank: rank.problem(drawn), size, patience)

        return PreparedCall(begin, str)


class ConnectionEnds(Ranks):
    """Ranks of rings and AlltoAlls, whose connections the host itself has. Switches only forward."""

    def __init__(self, _spec: ProgramSpec, _host: Host, nic: Station) -> None:
        self._nic = nic
        self._members: dict[str, Ring | AllToAll] = {}
        self._waiting: dict[str, Future[CallResult]] = {}

    @override
    def enter(self, group: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Create the queue pairs, with the configuration of a ring or of an AlltoAll."""

        def create() -> None:
            ended = partial(self._ended, group)
            if "ring" in fields:
                self._members[group] = Ring(self._nic.nic, from_plain(RingConfig, fields["ring"]), ended)
            else:
                config = from_plain(AllToAllConfig, fields["alltoall"])
                self._members[group] = AllToAll(self._nic.nic, config, ended)

        self._nic.loop.run_there(create)
        return {}

    @override
    def join(self, group: str, generation: int, timeout: float) -> None:
        """Connections are there at once."""

    @override
    def leave(self, group: str) -> None:
        member = self._members.pop(group, None)
        if member is not None:
            self._nic.loop.run_there(member.destroy)

    @override
    def size(self, group: str) -> int:
        return self._members[group].config.size

    @override
    def prepared(self, group: str, drawn: DrawnArrays, size: int) -> PreparedCall:
        member, call, loop = self._members[group], drawn.call, self._nic.loop
        values = drawn.values[member.config.rank]

        def start(patience: float) -> None:
            if isinstance(member, AllToAll):
                member.exchange(values)
            else:
                assert call is not None
                invoke(member, call, values)
            loop.at(loop.now + int(patience * SECOND), _overdue, (weakref.ref(self._waiting[group]), patience))

        def begin(patience: float) -> Future[CallResult]:
            future = self._waiting[group] = Future()
            loop.call_soon_threadsafe(start, patience)
            return future

        return PreparedCall(begin, partial(difference, wanted=drawn.results[member.config.rank]))

    @override
    def progress(self, group: str) -> float:
        member, waiting = self._members.get(group), self._waiting.get(group)
        if member is None or waiting is None or waiting.done():
            return 0.0
        if isinstance(member, AllToAll):
            return member.progress()
        return member.current.progress if member.current is not None else 0.0

    @override
    def counters(self) -> dict[str, dict[str, Any]]:
        found = {}
        for name, member in list(self._members.items()):
            counts: Counter[str] = Counter(dict.fromkeys(COUNTERS, 0))
            for pair in member.pairs.values() if isinstance(member, AllToAll) else member.pairs:
                counts.update(pair.counts())
            found[name] = {"rank": member.config.rank, **counts}
        return found

    def _ended(self, group: str, run: Exchange | Invocation) -> None:
        future = self._waiting.get(group)
        if future is None or future.done():
            return
        if run.error is not None:
            future.set_exception(FailedError(str(run.error)))
            return
        assert run.started is not None
        assert run.finished is not None
        future.set_result(CallResult(run.result(), run.started, run.finished))


def _overdue(which: tuple[weakref.ref[Future[CallResult]], float]) -> None:
    reference, seconds = which
    future = reference()
    if future is not None and not future.done():
        why = "others have not called it, or packets are lost"
        future.set_exception(FailedError(f"it has not ended in {seconds:g} s: {why}"))
