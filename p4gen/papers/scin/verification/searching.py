"""What a search of states explores of SCIN: the ranks of a context call one after the other, in place.

Every rank has one buffer for its operands and its results. A rank puts its operand there, arrives, and when it has its
flag, compares the memory and goes on with the next call. Memory is looked at after each event: as long as a call runs,
a packet of a rank is its operand, or the result where the rank gets one; and what a rank has when it has its last flag,
it keeps. ``monitor`` has what a switch is held to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import ClassVar, Final

from typing_extensions import override

from p4gen.errors import InputError
from p4gen.groups.group import SwitchConfig
from p4gen.host.transport.memory import MemoryRegion, ProtectionDomain
from p4gen.host.transport.nic import Nic
from p4gen.host.transport.verbs import QpConfig, Recovery
from p4gen.net.world.faults import Faults
from p4gen.net.world.network import Network
from p4gen.p4.compile import program_from
from p4gen.papers.scin.codes import Status
from p4gen.papers.scin.control import Pattern, PullContext, Role, configuration
from p4gen.papers.scin.headers import FLAG
from p4gen.papers.scin.placing import Place, Plain, tick_of
from p4gen.papers.scin.ranks.hosts import Buffer, Member
from p4gen.papers.scin.ranks.memory import Layout
from p4gen.papers.scin.spec import ScinSpec
from p4gen.papers.scin.verification.monitor import Pulls
from p4gen.papers.scin.verification.operands import MOST_RANKS, operands, pieces, results
from p4gen.verification.parts.hosts import SearchedTask
from p4gen.verification.world import Rules, Scope, World

TOPOLOGY: Final = "star-2"
MOST_PACKETS: Final = 60
"""Of all calls: operands tell them apart."""


class Rank:
    """A rank that makes calls (``p4gen.verification.parts.hosts.SearchedTask``)."""

    STATE: ClassVar = ("_memory", "_wrong")

    def __init__(self, nic: Nic, place: Place, config: QpConfig, scope: PullScope) -> None:
        self.name = f"rank {place.rank}"
        self._rank, self._scope = place.rank, scope
        self._member = Member(nic, scope.program, scope.first_psn)
        self._member.connect(place.ends, config)
        self._member.on_flag = self._call_ended
        calls = [scope.packets_of(call) for call in range(len(scope.calls))]
        gets = scope.pattern.destinations >> self._rank & 1
        forms = list(enumerate(calls))
        self._operands = [operands(scope.form(at), call, self._rank) for at, call in forms]
        sums = [results(scope.form(at), call, scope.pattern.sources) for at, call in forms]
        self._results = sums if gets else self._operands
        self._memory = nic.domain.register(bytearray(Layout(scope.program).size(max(scope.calls))))
        self._wrong = ""

    def parts(self) -> dict[str, object]:
        """The task itself, and its member; queue pairs are parts of the NIC."""
        return {"task": self, "member": self._member}

    def start(self) -> None:
        """Make the first call; each flag begins the next one."""
        self._call()

    @property
    def done(self) -> bool:
        """Whether the rank has the flags of all calls."""
        return len(self._member.statuses) == len(self._scope.calls)

    def forget_times(self) -> None:
        """Set the time of the newest flag to 0."""
        self._member.flagged = 0

    @property
    def problem(self) -> str:
        """What is wrong with the rank, a call or the memory; "" if nothing is."""
        wrong = next(iter(self._member.problems), self._wrong)
        return f"{self.name}: {wrong}" if wrong else self._memory_problem(results=self.done)

    def _call_ended(self) -> None:
        status = self._member.statuses[-1]
        if status is not Status.SUCCESS:
            self._wrong = f"call {self._member.calls} has ended with the status {status}, {status.name.lower()}"
        else:
            self._wrong = self._wrong or self._memory_problem(results=True)
            if not self.done and not self._wrong:
                self._call()

    def _call(self) -> None:
        given, form = self._operands[self._member.calls], self._scope.form(self._member.calls)
        self._memory.buffer[: len(given)] = given
        buffer, packets = Buffer(self._memory), self._scope.calls[self._member.calls]
        pattern = self._scope.pattern
        reads, writes = pattern.sources >> self._rank & 1, pattern.destinations >> self._rank & 1
        self._member.arrive(packets, buffer if reads else None, buffer if writes else None, form.dtype)

    def _memory_problem(self, *, results: bool) -> str:
        """What is wrong with a packet of the memory: while a call runs, a rank may have results already."""
        call = self._member.calls - 1
        if call < 0:
            return ""
        own, total = self._operands[call], self._results[call]
        held = bytes(self._memory.buffer[: len(own)])
        for at, piece in enumerate(pieces(self._scope.form(call), self._scope.calls[call])):
            if held[piece] != total[piece] and (results or held[piece] != own[piece]):
                what = "the result" if results else "its operand or the result"
                return f"{self.name}: call {call + 1}: packet {at + 1} of its memory is not {what}"
        return ""


@dataclass(frozen=True)
class PullScope(Scope):
    """The ranks of a star make calls."""

    program: ScinSpec
    calls: tuple[int, ...] = (3, 1)
    """The packets of each."""
    pattern: Pattern = field(default_factory=lambda: Pattern(0b11, 0b11))
    recovery: Recovery = Recovery.GO_BACK_N
    first_psn: int = 5

    def packets_of(self, call: int) -> range:
        """The numbers of a call's packets."""
        first = sum(self.calls[:call])
        return range(first, first + self.calls[call])

    def form(self, call: int) -> ScinSpec:
        """The program as a call has it: where calls may be exact, the first one is, and every other one."""
        return self.program.exact_form if self.program.exact and call % 2 == 0 else self.program

    @override
    def sound(self) -> PullScope | None:
        if self.fault is None and self.program.variant is None:
            return None
        return replace(self, program=sound(self.program), fault=None)

    @override
    def sentence(self) -> str:
        masks = f"{self.pattern.sources:#b} to {self.pattern.destinations:#b}"
        each = " and ".join(f"{count} packets" if count != 1 else "1 packet" for count in self.calls)
        return f"{self.subject}: ranks call {masks} in place, with {each}; {self.budget.sentence()}"

    @override
    def world(self) -> World:
        topology, spec = self.topology, self.program
        self._check()
        plain = Plain.of(topology, spec)
        switch = plain.switch
        text = self.text(spec)
        programs = {switch: program_from(text, f"{spec.program}.p4")}
        network = Network(topology, plain, programs, Faults(), 1, self.engine, payload=spec.payload)
        for nic in network.nics.values():
            nic.checks_icrc = spec.icrc.right
        ranks = [rank for rank in range(len(topology.rank_hosts)) if self.pattern.participants >> rank & 1]
        places = {rank: plain.place(topology, spec, 0, rank) for rank in ranks}
        flag = self._flag()
        context = PullContext(
            0,
            tuple(place.edge(flag) for place in places.values()),
            self.pattern.sources,
            self.pattern.destinations,
            1,
            self.first_psn,
        )
        held = configuration(spec, [context])
        held.install(network.switches[switch])
        routes = plain.switches[switch]
        config = QpConfig(
            mtu=spec.payload,
            initial_psn=self.first_psn,
            recovery=self.recovery,
            retry_count=None,
            rnr_retry=None,
        )
        return World(
            network,
            {switch: spec},
            plain.mac,
            plain.ip,
            {topology.rank_hosts[rank]: partial(self._tasks, places[rank], config) for rank in ranks},
            Rules(no_drops=True, no_repeats=True),
            self.first_psn,
            {switch: SwitchConfig((*routes.entries, *held.entries), held.multicast_groups, held.clone_sessions)},
            {switch: text},
            [(switch, context.edges[0].port, tick_of(context), f"{switch}, context 0")],
            watches={switch: [self._monitor(list(places.values()))]},
        )

    def _check(self) -> None:
        ranks = len(self.topology.rank_hosts)
        if ranks > MOST_RANKS:
            raise InputError(f"{self.topology.name} has {ranks} ranks; a search of SCIN has {MOST_RANKS} at most")
        program = self.program
        if (program.op, program.dtype) not in (("sum", "int32"), ("sum", "uint32")) and not program.scaled:
            raise InputError(f"a search is of sums of whole numbers or of blocks, not of {program.program}")
        if sum(self.calls) > MOST_PACKETS:
            raise InputError(f"{sum(self.calls)} packets; a search has {MOST_PACKETS} at most")

    @staticmethod
    def _flag() -> MemoryRegion:
        """Where every rank's flag is: the first memory that it registers."""
        return ProtectionDomain().register(bytearray(FLAG.size))

    def _tasks(self, place: Place, config: QpConfig, nic: Nic) -> Sequence[SearchedTask]:
        return [Rank(nic, place, config, self)]

    def _monitor(self, places: Sequence[Place]) -> Pulls:
        sums: list[bytes] = []
        ends: list[int] = []
        for call, packets in enumerate(self.calls):
            form = self.form(call)
            memory = results(form, self.packets_of(call), self.pattern.sources)
            if form.scaled:
                ends += [min(at + form.wave, packets) + len(sums) for at in range(0, packets, form.wave)]
            sums += [memory[piece] for piece in pieces(form, packets)]
        return Pulls(
            self.first_psn,
            sums,
            tuple(accumulate(self.calls)),
            self.pattern.destinations,
            self.program.ordered,
            {end.qp: (place.rank, Role(role)) for place in places for role, end in enumerate(place.near)},
            {end.qp: (place.rank, Role(role)) for place in places for role, end in enumerate(place.far)},
            ends,
        )


def sound(spec: ScinSpec) -> ScinSpec:
    """The program without what falls short in its ``variant``."""
    return ScinSpec.model_validate(spec.model_dump(exclude_unset=True, exclude={"variant"}))
