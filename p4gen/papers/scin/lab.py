"""SCIN in labs: a rank on a host's NIC in real time, and the calls that users ask for at the prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, cast

import numpy as np
from typing_extensions import override

from p4gen.errors import InputError
from p4gen.groups.group import Memory
from p4gen.host.collectives.arrays import check_root
from p4gen.host.transport.memory import MemoryRegion
from p4gen.host.transport.nic import VerbsNic
from p4gen.host.transport.rc import QueuePair, VerbsPair
from p4gen.host.transport.verbs import QpConfig
from p4gen.labs.calls import ROOT, ROOTED, Asked, LabMembers
from p4gen.labs.hosts.ranks import CheckedRank, MemoryRanks
from p4gen.labs.steps import group_steps
from p4gen.manager.api import RankConfig
from p4gen.net.runs import FamilyOption, yes_or_no
from p4gen.papers.scin.codes import Status
from p4gen.papers.scin.control import Pattern, flag_offset, memory_size, pattern_of, roles
from p4gen.papers.scin.ranks.calls import Drawn, PullCall, draw, form, sized
from p4gen.papers.scin.ranks.collectives import Communicator, Operand
from p4gen.papers.scin.ranks.hosts import Member
from p4gen.papers.scin.ranks.memory import Layout
from p4gen.papers.scin.ranks.options import OPTIONS, QUANTISE
from p4gen.papers.scin.running import check_waves, fitted
from p4gen.papers.scin.spec import ScinSpec
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec

_IN_PLACE: Final = "in_place"
_QUANTISE: Final = yes_or_no("of a program whose calls may be exact: whether the call is quantised", "yes")
_GROUPS: Final = 2
"""Groups of all ranks that a lab's program has room for."""
_ROOTED: Final = (Collective.REDUCE, Collective.BROADCAST)


class Rank(CheckedRank):
    """A rank of a group of the manager. What it offers are its flags: the memory that is read and written to it names
    when it arrives."""

    def __init__(
        self, spec: ScinSpec, rank: int, size: int, _packets: int, nic: VerbsNic, changed: Callable[[], None]
    ) -> None:
        self._spec, self._rank, self._size, self._nic, self._changed = spec, rank, size, nic, changed
        self._flags = nic.domain.register(bytearray(memory_size(size)), remote_read=False, remote_atomic=False)
        self._members: dict[Pattern, Member] = {}
        self._buffers: list[Operand] = []
        """The operand of the last call, and its result if that is apart."""
        self._before, self._taken = 0, 0
        """PSNs that connections had taken before the last call, and those that it takes."""

    @property
    @override
    def memory(self) -> Memory:
        return Memory(self._flags.address, self._flags.rkey, len(self._flags.buffer))

    @property
    @override
    def pairs(self) -> Iterator[VerbsPair]:
        return (pair for member in list(self._members.values()) for pair in member.pairs)

    @property
    @override
    def problems(self) -> list[str]:
        # A call that was aborted is the last one of its context.
        found = [problem for member in self._members.values() for problem in member.problems]
        status = self._communicator.status
        if status is not Status.SUCCESS:
            found.append(f"the switch has ended the call with the status {status}, {status.name.lower()}")
        return found

    @property
    @override
    def done(self) -> bool:
        return self._communicator.done

    @override
    def progress(self) -> float:
        # Of what is read of the operand, and of what is written, with the flags.
        return min((self._arrived() - self._before) / self._taken, 1.0) if self._taken else 0.0

    @property
    @override
    def place(self) -> tuple[int, int, ScinSpec]:
        return self._rank, self._size, self._spec

    @override
    def connect(self, config: RankConfig, timeout_ps: int) -> None:
        qp = QpConfig(
            mtu=self._spec.payload,
            initial_psn=config.first_psn,
            timeout_ps=timeout_ps,
            adaptive=True,
            retry_count=None,
            rnr_retry=None,
        )
        for channel in config.channels:
            at = flag_offset(channel.key, self._size)
            member = Member(self._nic, self._spec, config.first_psn, self._flags, at)
            member.on_flag = member.troubled = self._changed
            far = channel.peer
            member.connect(
                {role: (channel.qp + role, replace(far, qp=far.qp + role)) for role in roles(self._spec)}, qp
            )
            self._members[pattern_of(channel.key, self._size)] = member

    @override
    def disconnect(self) -> None:
        members, self._members = self._members, {}
        for member in members.values():
            member.disconnect()
        self._forget()
        self._before = self._taken = 0
        self._flags.buffer[:] = bytes(len(self._flags.buffer))

    @override
    def close(self) -> None:
        self._nic.domain.deregister(self._flags)

    @override
    def make(self, drawn: Drawn) -> None:
        self._forget()
        call, rank = drawn.call, self._communicator
        self._buffers = [rank.register(drawn.values[self._rank], call.operand_parts)]
        if not call.in_place:
            empty = np.zeros(call.result_elements, Layout(drawn.spec).type)
            self._buffers.append(rank.register(empty, call.result_parts))
        self._before, self._taken = self._arrived(), call.taken(self._rank, self._buffers[0].packets, drawn.spec)
        call.start(rank, self._buffers[0], self._result)

    @override
    def problem(self, drawn: Drawn) -> str:
        return drawn.problem(self._rank, self._buffers[0], self._result)

    @property
    def _result(self) -> Operand | None:
        return self._buffers[1] if len(self._buffers) > 1 else None

    @property
    def _communicator(self) -> Communicator:
        return Communicator(self._rank, self._size, self._spec, self._nic.domain, self._members)

    def _arrived(self) -> int:
        """The packets that have arrived; 0 on a NIC that does not say."""
        return sum(cast("QueuePair", pair).responder.expected for pair in self.pairs if self._nic.compiled)

    def _forget(self) -> None:
        """Nobody reads or writes the memory of the last call any more."""
        regions: list[MemoryRegion] = [held.region for held in self._buffers]
        for region in regions:
            self._nic.domain.deregister(region)
        self._buffers.clear()


@dataclass(frozen=True)
class Plan:
    """A call that can be made (``p4gen.labs.calls.Plan``)."""

    spec: ScinSpec
    call: PullCall
    size: int
    packets: int = 0

    @property
    def held(self) -> int:
        """Bytes that each host holds: all ranks' data, and the results to compare with."""
        return 2 * self.call.ranks * self.size

    @property
    def title(self) -> str:
        """The call in one line, as in "allreduce of 65,536 bytes, 4 ranks"."""
        what = f"{self.call.name} of {self.size:,} bytes" if self.size else self.call.name
        return f"{what}, {self.call.ranks} ranks"

    def draw(self, chance: np.random.Generator) -> Drawn:
        """Draw the operands of all ranks."""
        return draw(self.call, self.spec, chance)


def _plan(spec: ScinSpec, ranks: int, collective: str, size: int | None, options: Mapping[str, Any]) -> Plan:
    if ranks < 2:
        raise InputError(f"{collective}: at least two hosts are needed")
    root = options.get(ROOT, 0)
    check_root(root, ranks)
    everybody = (1 << ranks) - 1
    spec = form(spec, "yes" if options.get(QUANTISE, True) else "no")
    asked = PullCall(collective, ranks, 0, root, Pattern(everybody, everybody), options.get(_IN_PLACE, True))
    return Plan(spec, sized(asked, size or 0, spec), size or 0)


def _fitted(spec: ScinSpec, topology: TopologySpec) -> ScinSpec:
    check_waves(spec)
    ranks = len(topology.rank_hosts)
    return fitted(spec, topology, min(_GROUPS * (1 + 2 * ranks), 256))


def _samples(spec: ScinSpec, ranks: int, size: int) -> list[Asked]:
    unit = ranks * spec.unit_bytes
    whole, last = max(size // unit, 1) * unit, {ROOT: str(ranks - 1), _IN_PLACE: "no"}
    rooted: list[Asked] = [(name, whole, options) for name in _ROOTED for options in ({}, last)]
    return [
        (Collective.ALLREDUCE, whole, {}),
        *rooted,
        (Collective.BARRIER, None, {}),
        (Collective.REDUCE_SCATTER, whole, {}),
        (Collective.ALLGATHER, whole, {_IN_PLACE: "no"}),
        *[(Collective.ALLREDUCE, whole, {QUANTISE: how}) for how in ("no", "yes") if spec.exact],
    ]


_COLLECTIVES: Final[Mapping[str, Mapping[str, FamilyOption]]] = {
    str(each): dict(ROOTED if each in _ROOTED else {})
    | ({_IN_PLACE: OPTIONS[_IN_PLACE], QUANTISE: _QUANTISE} if each is not Collective.BARRIER else {})
    for each in Collective
}
FACET: LabMembers[ScinSpec] = LabMembers(
    collectives=_COLLECTIVES,
    sized=frozenset(_COLLECTIVES) - {Collective.BARRIER},
    example="run allreduce 64K; run reduce 64K root 2",
    fitted=_fitted,
    plan=_plan,
    samples=_samples,
    ranks=partial(MemoryRanks, Rank),
    steps=group_steps,
)
