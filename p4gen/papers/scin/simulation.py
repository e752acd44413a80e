"""Groups of SCIN on the virtual network: hosts around a switch that runs the program, links with faults, ticks."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from p4gen.arch.ports import CPU_PORT
from p4gen.errors import InputError
from p4gen.host.collectives.arrays import array_type
from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import QpConfig, Recovery, Resumption
from p4gen.model import EngineName
from p4gen.net.job import DrivenJob, Task
from p4gen.net.world.faults import Faults
from p4gen.net.world.network import Network
from p4gen.papers.scin.codes import Status
from p4gen.papers.scin.control import Pattern, PullContext, configuration
from p4gen.papers.scin.placing import Plain, tick_of
from p4gen.papers.scin.ranks.collectives import Communicator
from p4gen.papers.scin.ranks.hosts import Buffer, Member
from p4gen.papers.scin.spec import ScinSpec
from p4gen.papers.scin.words import WATCHED
from p4gen.program.compilation import compile_spec
from p4gen.vocabulary import DType
from p4gen.vocabulary.topology import TopologySpec

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class PullConfig:
    """A run: a star whose switch runs the program of ``spec``, with a context for each pattern."""

    topology: TopologySpec
    spec: ScinSpec
    patterns: tuple[Pattern, ...]
    faults: Faults = field(default_factory=Faults)
    recovery: Recovery = Recovery.GO_BACK_N
    resumption: Resumption = Resumption.STRICT
    tick: int = 20 * US
    """Time between ticks, ps."""
    timeout: int = 100 * US
    """The NICs' retransmission timer, ps, which repeats arrivals."""
    retry_count: int | None = None
    """Timeouts after which a NIC gives up; None: never."""
    seed: int = 1
    engine: EngineName = "interp"


class PullSimulation(DrivenJob[Task]):
    """Contexts of all ranks of a star. Raises ``InputError`` if the program cannot serve them."""

    def __init__(self, config: PullConfig) -> None:
        self.config = config
        topology, spec = config.topology, config.spec
        plain = Plain.of(topology, spec)
        switch = plain.switch
        programs = {switch: compile_spec(spec).program}
        network = Network(
            topology,
            plain,
            programs,
            config.faults,
            config.seed,
            config.engine,
            payload=spec.written_mtu,
        )
        super().__init__(network, {switch: spec}, config.timeout)
        for nic in self.network.nics.values():
            nic.checks_icrc = spec.icrc.right
        self._hosts, self._switch = topology.rank_hosts, switch
        self._chance = random.Random(f"{config.seed} PSNs")  # noqa: S311 - a simulation, to be repeatable
        self.members: list[dict[int, Member]] = []
        """The ranks of each context."""
        self.first_psns: list[int] = []
        """Those of the contexts."""
        self._until: Callable[[], bool] = self._all_flagged
        contexts = [self._context(number, pattern, plain) for number, pattern in enumerate(config.patterns)]
        configuration(spec, contexts).install(self.network.switches[switch])
        self._ticks = [tick_of(context) for context in contexts]
        self.network.loop.at(config.tick, self._round)

    def _context(self, number: int, pattern: Pattern, plain: Plain) -> PullContext:
        spec = self.config.spec
        first_psn = self._chance.randrange(1 << 24)
        self.first_psns.append(first_psn)
        config = QpConfig(
            mtu=spec.payload,
            initial_psn=first_psn,
            recovery=self.config.recovery,
            timeout_ps=self.config.timeout,
            retry_count=self.config.retry_count,
            rnr_retry=None,
            resumption=self.config.resumption,
        )
        edges, members = [], {}
        for rank, host in enumerate(self._hosts):
            if not (pattern.sources | pattern.destinations) >> rank & 1:
                continue
            member = members[rank] = Member(self.network.nics[host], spec, first_psn)
            place = plain.place(self.config.topology, spec, number, rank)
            member.connect(place.ends, config)
            edges.append(place.edge(member.flag))
        self.members.append(members)
        return PullContext(number, tuple(edges), pattern.sources, pattern.destinations, 1, first_psn)

    def _round(self, _: object) -> None:
        loop, deliver = self.network.loop, self.network.nodes[self._switch].port(CPU_PORT)
        for frame in self._ticks:
            deliver(loop.now, frame)
        if any(not member.done for members in self.members for member in members.values()):
            loop.at(loop.now + self.config.tick, self._round)
            self._ticking = True
        else:
            self._ticking = False

    _ticking = True

    def wake(self) -> None:
        """Have ticks go on, since a rank is about to arrive. They end when no rank waits for a flag."""
        super().wake()
        if not self._ticking:
            self._ticking = True
            self.network.loop.at(self.network.loop.now + self.config.tick, self._round)

    def communicators(self, contexts: range) -> list[Communicator]:
        """A group of all ranks, whose calls are those of these contexts."""
        patterns = {self.config.patterns[context]: self.members[context] for context in contexts}
        found = []
        for rank, host in enumerate(self._hosts):
            mine = {pattern: members[rank] for pattern, members in patterns.items() if rank in members}
            domain = self.network.nics[host].domain
            found.append(Communicator(rank, len(self._hosts), self.config.spec, domain, mine))
        return found

    def register(self, rank: int, array: Array) -> Buffer:
        """Register a rank's array, which calls then read and write in place, in network byte order."""
        return Buffer(self.network.nics[self._hosts[rank]].domain.register(array.data.cast("B")))

    def packets(self, array: Array) -> int:
        """How many packets an array has. Raises ``InputError`` unless they are whole ones."""
        count, rest = divmod(array.size, self.config.spec.lanes)
        if rest or array.itemsize != self.config.spec.element_bytes:
            raise InputError(f"{array.nbytes} bytes are no whole packets of {self.config.spec.payload}")
        return count

    def start(
        self,
        context: int,
        packets: int,
        sources: Mapping[int, Buffer],
        results: Mapping[int, Buffer],
        late: Mapping[int, int] | None = None,
    ) -> None:
        """All ranks of a context arrive at a call, some of them ``late``, by this time in ps."""
        loop = self.network.loop
        for rank, member in self.members[context].items():
            call = _Arrival(member, packets, sources.get(rank), results.get(rank))
            if late and late.get(rank):
                loop.at(loop.now + late[rank], call.make)
            else:
                call.make(None)
        self.wake()

    def settle(self, until: Callable[[], bool] | None = None) -> int:
        """Run until all ranks have the flags of all calls, or as long as ``until`` is false. Returns the time, ps.

        Raises ``InputError``, with the reason, for a run that does not end, and for errors of connections.
        """
        self._until = until or self._all_flagged
        return self.finished()

    @override
    def advance(self) -> bool:
        return self._until()

    def _all_flagged(self) -> bool:
        return all(member.done for members in self.members for member in members.values())

    @override
    def failures(self) -> Sequence[str]:
        """Errors of connections: what they carried does not come any more."""
        return [problem for members in self.members for member in members.values() for problem in member.problems]

    @override
    def longest_wait(self) -> int:
        """For how long the switch has waited for something new, ps: until it acts, it waits as long again at most."""
        switch = self.network.switches[self._switch]
        counts = (WATCHED.unpack(switch.register("watched", at))["count"] for at in range(len(self.config.patterns)))
        return max(counts, default=0) * self.config.tick

    def timed_call(self, context: int, packets: int, data: Mapping[int, Buffer]) -> int:
        """A call in place, which must succeed. Returns the time until the last rank has its flag, ps.

        Raises ``InputError`` as ``call`` does.
        """
        members, began = self.members[context], self.network.loop.now
        self.start(context, packets, data, data)
        self.settle()
        self._succeeded(context)
        return max(member.flagged for member in members.values()) - began

    def _succeeded(self, context: int) -> None:
        found = {member.statuses[-1] for member in self.members[context].values()}
        if found != {Status.SUCCESS}:
            raise InputError(f"the call has ended with {', '.join(sorted(status.name.lower() for status in found))}")

    def call(
        self, context: int, operands: Sequence[Array], *, in_place: bool = False, late: Mapping[int, int] | None = None
    ) -> list[Array | None]:
        """A call of a context with the arrays of all ranks; returns what each has got, None if it is no destination.

        Raises ``InputError`` if a rank's flag says that the call was aborted, and as ``settle`` does.
        """
        pattern = self.config.patterns[context]
        size, dtype = self.config.spec.element_bytes, array_type(DType(self.config.spec.dtype))
        ranks = range(len(self._hosts))
        held = [operands[rank].astype(dtype).view(f"u{size}").astype(f">u{size}") for rank in ranks]
        got = held if in_place else [np.zeros_like(array) for array in held]
        sources = {rank: self.register(rank, held[rank]) for rank in ranks if pattern.sources >> rank & 1}
        results = sources if in_place else {}
        results = {
            rank: results.get(rank) or self.register(rank, got[rank])
            for rank in ranks
            if pattern.destinations >> rank & 1
        }
        self.start(context, self.packets(held[0]), sources, results, late)
        self.settle()
        self._succeeded(context)
        return [got[rank].astype(f"u{size}").view(dtype) if rank in results else None for rank in ranks]


@dataclass(frozen=True)
class _Arrival:
    """A rank's part in a call that is about to begin."""

    member: Member
    packets: int
    source: Buffer | None
    result: Buffer | None

    def make(self, _: object) -> None:
        """Have the rank arrive at its next call."""
        self.member.arrive(self.packets, self.source, self.result)
