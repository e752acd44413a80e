"""A collective over a virtual network, from a topology and a program's spec to results checked against NumPy."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from p4gen.errors import InputError
from p4gen.host.clock import MS, NS, SECOND, US
from p4gen.host.commlib import Array, Communicator, Connection, GroupConfig, Invocation
from p4gen.host.control import Collective
from p4gen.host.dcqcn import DcqcnConfig
from p4gen.host.verbs import QpConfig, Recovery
from p4gen.inc import compose
from p4gen.manager.placement import GroupRequest, place
from p4gen.model import EngineName
from p4gen.net.diagnosis import Diagnosis, diagnose
from p4gen.net.faults import Faults
from p4gen.net.network import Network
from p4gen.p4 import ir
from p4gen.p4.compile import compile_text
from p4gen.render import render
from p4gen.spec import DType, Op, ProgramSpec
from p4gen.spec.topology import TopologySpec

SERVED = frozenset({Collective.ALLREDUCE, Collective.BARRIER})
"""What Mode-II programs of this version work out."""
STEP = 20_000
"""Events between two looks at the progress."""
PATIENCE = 50
"""Timeouts without any progress after which a run is given up."""


@dataclass(frozen=True)
class SimConfig:
    """One run. ``size`` is each rank's data in bytes; times are in ps."""

    topology: TopologySpec
    program: ProgramSpec
    collective: Collective = Collective.ALLREDUCE
    size: int = 1 << 20
    repeat: int = 1
    """Invocations, one after the other."""
    faults: Faults = field(default_factory=Faults)
    seed: int = 0
    recovery: Recovery = Recovery.SELECTIVE_REPEAT
    timeout: int = 50 * US
    """Retransmission timer; 0 switches it off."""
    retry_count: int | None = None
    ack_every: int = 32
    dcqcn: DcqcnConfig | None = None
    initial_psn: int | None = None
    """Drawn from the seed by default."""
    skew: int = 0
    """Ranks begin at random times within this span."""
    engine: EngineName = "interp"
    overflowing: bool = False
    """Values so large that sums leave their range: of one sign in each column, so that order does not matter."""


@dataclass(frozen=True)
class LinkUse:
    """One direction of a link in a run."""

    name: str
    packets: int
    bytes: int
    utilisation: float
    """Share of the run's time in which it was transmitting."""
    marked: int


@dataclass(frozen=True)
class SimResult:
    """What came of a run; times in ps."""

    config: SimConfig
    ended: bool
    correct: bool
    errors: tuple[str, ...]
    """What ranks reported, and where results are wrong."""
    duration: int
    """From the first rank's start to the last one's end."""
    sent: int
    resent: int
    timeouts: int
    naks: int
    drops: Counter[str] = field(repr=False)
    """By ``where module.reason``; contributions that wait in their slots are no drops."""
    links: tuple[LinkUse, ...] = field(repr=False)
    packet_hops: int
    """Packets over links, each counted on each link."""
    events: int
    cnps: int
    diagnosis: Diagnosis | None = None

    @property
    def ok(self) -> bool:
        """It ended, and every rank has what NumPy has."""
        return self.ended and self.correct

    @property
    def throughput(self) -> float:
        """Algorithm throughput in bit/s: a rank's data over the time (EPIC §7.1); 0 when it did not end."""
        if not self.ended or not self.duration:
            return 0.0
        return self.config.size * self.config.repeat * 8 * SECOND / self.duration


@lru_cache(maxsize=16)
def program_of(spec: ProgramSpec) -> ir.Program:
    """The generated program of a spec, compiled."""
    return compile_text(render(compose(spec)).text, f"{spec.program}.p4").program


class Simulation:
    """A run. Raises ``InputError`` when the program cannot serve what is asked for, before a packet is sent."""

    def __init__(self, config: SimConfig) -> None:
        self.config = config
        spec, topology = config.program, config.topology
        if config.collective not in SERVED:
            raise InputError(f"{config.collective}: Mode-{spec.mode} programs serve {', '.join(sorted(SERVED))}")
        if config.repeat < 1:
            raise InputError("a collective runs once at least")
        if config.size % 4 or (config.size == 0) != (config.collective is Collective.BARRIER):
            raise InputError(f"{config.size} bytes: a positive multiple of 4, or 0 for a barrier")
        chance = random.Random(f"{config.seed} hosts")  # noqa: S311 - a simulation, to be repeatable
        self.initial_psn = chance.randrange(1 << 24) if config.initial_psn is None else config.initial_psn
        ranks = topology.rank_hosts
        group = GroupRequest(ranks, collectives=frozenset({config.collective}), first_psn=self.initial_psn)
        self.placement = place(topology, spec, [group])
        self.network = Network(topology, self.placement, program_of(spec), config.faults, config.seed, config.engine)
        self.communicators = [
            Communicator(self.network.nics[host], self._group(rank)) for rank, host in enumerate(ranks)
        ]
        self._values = self._draw_values()
        self.invocations: list[list[Invocation]] = [[] for _ in ranks]
        for rank in range(len(ranks)):
            self.network.loop.at(chance.randrange(config.skew + 1), self._begin, rank)

    def _group(self, rank: int) -> GroupConfig:
        config, spec = self.config, self.config.program
        qp = QpConfig(
            mtu=spec.payload_bytes,
            initial_psn=self.initial_psn,
            recovery=config.recovery,
            # EPIC's flow control (§4.2): W messages of M packets, and not one more, or slots would be overrun.
            max_outstanding=spec.window * spec.message,
            ack_every=config.ack_every,
            timeout_ps=config.timeout,
            retry_count=config.retry_count,
            rnr_retry=None,
            dcqcn=config.dcqcn,
        )
        channels = self.placement.groups[0].channels
        return GroupConfig(
            rank,
            len(self.config.topology.rank_hosts),
            {c.key: Connection(c.ends[rank].qp, c.ends[rank].peer, qp) for c in channels},
            spec.window,
            spec.message,
            spec.dtype,
            spec.op,
            spec.overflow,
        )

    def _draw_values(self) -> list[Array]:
        """Each rank's data. Sums stay in range unless overflow is asked for."""
        config, spec = self.config, self.config.program
        ranks, elements = len(config.topology.rank_hosts), config.size // 4
        draw = np.random.default_rng(config.seed)
        dtype = np.dtype(str(spec.dtype))
        info = np.iinfo(dtype)
        low, high = int(info.min), int(info.max)
        if config.overflowing:
            signs = draw.integers(0, 2, elements) * 2 - 1 if spec.dtype is DType.INT32 else 1
            return [(draw.integers(0, high // 2, elements) * signs).astype(dtype) for _ in range(ranks)]
        if spec.op is Op.SUM:
            low, high = -(-low // ranks), high // ranks
        return [draw.integers(low, high, elements, dtype, endpoint=True) for _ in range(ranks)]

    def _begin(self, rank: int) -> None:
        communicator = self.communicators[rank]
        for _ in range(self.config.repeat):
            if self.config.collective is Collective.BARRIER:
                self.invocations[rank].append(communicator.barrier())
            else:
                self.invocations[rank].append(communicator.all_reduce(self._values[rank]))

    # --- running ---

    @property
    def messages(self) -> int:
        """Messages that all ranks together have sent and received when all is done."""
        spec = self.config.program
        packets = -(-self.config.size // spec.payload_bytes)
        each = 1 + -(-packets // spec.message)
        return 2 * each * self.config.repeat * len(self.communicators)

    def run(self, progress: Callable[[int], None] | None = None) -> SimResult:
        """Run to the end, or until it is plain that there is none; ``progress`` gets messages done so far."""
        loop = self.network.loop
        stall = PATIENCE * max(self.config.timeout, 20 * US) + MS
        done_before, since = -1, 0
        while True:
            loop.run(count=STEP)
            if self._finished():
                break
            if loop.idle:
                return self._result(diagnose(self, deadlocked=True))
            done = sum(c.pair.requester.una + c.pair.responder.expected for c in self.communicators)
            if done != done_before:
                done_before, since = done, loop.now
            elif loop.now - since > stall:
                return self._result(diagnose(self, deadlocked=False))
            if progress is not None:
                progress(sum(i.messages_sent + i.messages_received for mine in self.invocations for i in mine))
        return self._result(None)

    def _finished(self) -> bool:
        return all(mine and all(i.done for i in mine) for mine in self.invocations)

    # --- results ---

    def reference(self) -> Array:
        """What NumPy makes of all ranks' values."""
        spec = self.config.program
        total = self._values[0].astype(np.int64)
        for values in self._values[1:]:
            if spec.op is Op.SUM:
                total += values
            else:
                (np.minimum if spec.op is Op.MIN else np.maximum)(total, values, out=total)
        dtype = self._values[0].dtype
        if spec.saturating:
            info = np.iinfo(dtype)
            np.clip(total, info.min, info.max, out=total)
        return total.astype(dtype)

    def _check(self) -> tuple[str, ...]:
        problems = []
        reduces = self.config.collective is Collective.ALLREDUCE
        wanted: Array | None = None
        for rank, mine in enumerate(self.invocations):
            for number, invocation in enumerate(mine):
                at = f"rank {rank}, {invocation.collective} {number}"
                if invocation.error is not None:
                    problems.append(f"{at}: {invocation.error}")
                elif invocation.done and reduces:
                    wanted = self.reference() if wanted is None else wanted
                    got = invocation.result()
                    assert got is not None
                    wrong = np.flatnonzero(got != wanted)
                    if len(wrong):
                        i = int(wrong[0])
                        problems.append(f"{at}: element {i} is {got[i]}, not {wanted[i]}; {len(wrong)} are wrong")
        if not reduces:
            problems += self._released_too_soon()
        return tuple(problems)

    def _released_too_soon(self) -> list[str]:
        """A barrier holds when none ends before all have begun."""
        problems = []
        for number, every in enumerate(zip(*self.invocations, strict=False)):
            begun = max(i.started if i.started is not None else 1 << 62 for i in every)
            for rank, invocation in enumerate(every):
                if invocation.finished is not None and invocation.error is None and invocation.finished < begun:
                    problems.append(f"rank {rank} left barrier {number} before all had reached it")
        return problems

    def _result(self, diagnosis: Diagnosis | None) -> SimResult:
        network = self.network
        mine = [i for invocations in self.invocations for i in invocations]
        starts = [i.started for i in mine if i.started is not None]
        ends = [i.finished for i in mine if i.finished is not None]
        ended = self._finished()
        duration = (max(ends) if ended else network.loop.now) - min(starts, default=0)
        senders = [c.pair.requester.stats for c in self.communicators]
        errors = self._check()
        span = max(duration, NS)
        return SimResult(
            config=self.config,
            ended=ended and not any(i.error for i in mine),
            correct=not errors and ended,
            errors=errors,
            duration=duration,
            sent=sum(s.sent for s in senders),
            resent=sum(s.resent for s in senders),
            timeouts=sum(s.timeouts for s in senders),
            naks=sum(s.naks for s in senders),
            drops=self.drops(),
            links=tuple(
                LinkUse(d.name, d.packets, d.bytes, d.busy / span, d.marked) for d in network.directions.values()
            ),
            packet_hops=sum(d.packets for d in network.directions.values()),
            events=network.loop.handled,
            cnps=sum(s.cnps for s in senders),
            diagnosis=diagnosis,
        )

    def drops(self) -> Counter[str]:
        """Packets lost so far: on links, in switches by module and reason, at NICs."""
        found: Counter[str] = Counter()
        for (direction, reason), count in self.network.drops.items():
            found[f"{direction} {reason}"] += count
        for name in self.network.switches:
            for reason, count in self.switch_drops(name).items():
                found[f"{name} {reason}"] += count
            if lost := self.network.nodes[name].lost_ports:
                found[f"{name} port_without_link"] += lost
        for host, nic in self.network.nics.items():
            for reason, count in nic.dropped.items():
                found[f"{host} nic.{reason}"] += count
        return found

    def switch_drops(self, name: str) -> Counter[str]:
        """Packets that a switch's program took out, by module and reason."""
        found: Counter[str] = Counter()
        reasons = compose(self.config.program).drops
        switch = self.network.switches[name]
        for gress in ("ingress", "egress"):
            cells = switch.counters(f"Inc{gress.capitalize()}.drops")
            for drop in reasons:
                if drop.module.gress == gress and drop.drop.reason != "absorbed" and cells[drop.index].packets:
                    found[f"{drop.module.name}.{drop.drop.reason}"] += cells[drop.index].packets
        return found


def simulate(config: SimConfig, progress: Callable[[int], None] | None = None) -> SimResult:
    """Set a run up and run it."""
    return Simulation(config).run(progress)
