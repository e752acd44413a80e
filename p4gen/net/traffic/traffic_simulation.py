"""A run of traffic between hosts (``p4gen.net.traffic.traffic``)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from p4gen.host.collectives.alltoall import AllToAll, Exchange
from p4gen.host.collectives.arrays import Array, reduced
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.ring import Ring
from p4gen.host.transport.clock import NS, SECOND, duration_text
from p4gen.host.transport.verbs import Recovery
from p4gen.net.collectives.check import difference
from p4gen.net.traffic.series import Sample
from p4gen.net.traffic.stuck import stuck
from p4gen.net.traffic.traffic import Pattern, TrafficConfig
from p4gen.net.traffic.wiring import Members, Track, Wiring, members
from p4gen.net.world.freezing import Frozen, freeze, restore
from p4gen.net.world.network import Network
from p4gen.net.world.patience import Patience
from p4gen.plan.placement.placer import Names
from p4gen.plan.placement.plain import place_plain
from p4gen.program.compilation import compile_spec
from p4gen.switch.drops import losses
from p4gen.vocabulary import Op

STEP: Final = 20_000
"""Events between two checks of the progress."""


@dataclass(frozen=True)
class FlowResult:
    """One direction of a connection in a run: packets, and times in ps."""

    name: str
    group: int
    sent: int
    resent: int
    lost: int
    """Its data packets that links dropped."""
    naks: int
    """That its sender got."""
    timeouts: int
    cnps: int
    bytes: int
    """Bytes sent, including the overhead on the wire."""
    duration: int
    """From the flow's start until all of it had arrived; in a collective until the group had ended."""
    throughput: float
    """Payload over the time until all of it had arrived, bit/s; 0 for a direction that is part of a collective."""

    @property
    def rate(self) -> float:
        """Average sending rate on the wire, bit/s."""
        return self.bytes * 8 * SECOND / self.duration if self.duration else 0.0

    @property
    def spurious(self) -> float:
        """Share of packets sent again although no link had dropped them."""
        return max(0, self.resent - self.lost) / self.sent if self.sent else 0.0


@dataclass(frozen=True)
class TrafficResult:
    """The result of a run; times in ps."""

    config: TrafficConfig = field(repr=False)
    ended: bool
    errors: tuple[str, ...]
    duration: int
    """From the first host's start to the last one's end."""
    groups: tuple[int, ...]
    """The same for each group."""
    flows: tuple[FlowResult, ...]
    drops: Counter[str] = field(repr=False)
    """By ``where module.reason``."""
    packet_hops: int
    events: int
    samples: tuple[Sample, ...] = field(repr=False, default=())
    findings: tuple[str, ...] = ()
    """Why it has not ended, a line each."""

    @property
    def ok(self) -> bool:
        """Whether all groups have ended and all received data is right."""
        return self.ended and not self.errors

    def total(self, name: str) -> int:
        """The sum of a counter over all flows."""
        return sum(getattr(flow, name) for flow in self.flows)

    @property
    def spurious(self) -> float:
        """Share of packets sent again although no link had dropped them, of all flows."""
        return max(0, self.total("resent") - self.total("lost")) / max(1, self.total("sent"))

    @property
    def rate(self) -> float:
        """Mean of the flows' sending rates on the wire, bit/s."""
        return sum(flow.rate for flow in self.flows) / len(self.flows)

    @property
    def throughput(self) -> float:
        """Mean of the flows' throughputs, bit/s."""
        return sum(flow.throughput for flow in self.flows) / len(self.flows)


class TrafficSimulation:
    """A run. Raises ``InputError`` when it cannot be carried out, before a packet is sent."""

    STATE: ClassVar = ("samples", "_runs", "_sample_at", "_begun")

    def __init__(self, config: TrafficConfig) -> None:
        config.check()
        self.config = config
        topology = config.topology
        chance = random.Random(f"{config.seed} hosts")  # noqa: S311 - a simulation, to be repeatable
        wiring = Wiring(config, Names.of(topology), chance)
        ends = [wiring.ends(traffic) for traffic in config.traffic]
        stars = [
            [wiring.connect(t.hosts[0], other, used=False) for other in t.hosts[1:]]
            if t.pattern is Pattern.ALLREDUCE
            else []
            for t in config.traffic
        ]
        self.specs = {switch: config.spec_of(switch) for switch in topology.switches}
        registered = wiring.connections if config.registers else ()
        self.placement = place_plain(topology, self.specs, registered, config.epoch)
        programs = {switch: compile_spec(spec).program for switch, spec in self.specs.items()}
        self.network = Network(topology, self.placement, programs, config.faults, config.seed, config.engine)
        for switch, registers in self.placement.queues.items():
            self.network.nodes[switch].keep_lengths(registers)
        self.network.reports_losses = config.recovery is Recovery.ORACLE
        values = np.random.default_rng(config.seed)
        pattern = chance.randbytes(2 * config.message)
        self.members: list[Members] = []
        self.tracks: list[Track] = []
        for number, traffic in enumerate(config.traffic):
            made, tracks = members(
                number, traffic, ends[number], stars[number], self.network.nics, config, values, pattern
            )
            self.members.append(made)
            self.tracks += tracks
        self.samples: list[Sample] = []
        self._runs: dict[tuple[int, int], Exchange | Invocation] = {}
        """What members of collectives are doing, by group and rank."""
        self._begun: dict[tuple[int, int], int] = {}
        self._sample_at = config.interval
        self._patience = Patience(self.network.loop, config.timeout, self._arrived)
        for number, made in enumerate(self.members):
            for rank in range(len(made.flows or made.values)):
                self.network.loop.at(chance.randrange(config.skew + 1), self._begin, (number, rank))

    def _begin(self, which: tuple[int, int]) -> None:
        number, rank = which
        made = self.members[number]
        self._begun[which] = self.network.loop.now
        if made.flows:
            made.flows[rank].start(None)
        elif made.alltoall:
            self._runs[which] = made.alltoall[rank].exchange(made.values[rank])
        else:
            self._runs[which] = made.rings[rank].all_reduce(made.values[rank], Op.SUM)

    # --- freezing ---

    def parts(self) -> dict[str, object]:
        """Everything that has state, by name."""
        found: dict[str, object] = {"simulation": self, "patience": self._patience, **self.network.parts()}
        for number, made in enumerate(self.members):
            found |= {f"group {number} flow {i}": flow for i, flow in enumerate(made.flows)}
            collective: list[AllToAll | Ring] = [*made.alltoall, *made.rings]
            for rank, member in enumerate(collective):
                found |= {f"group {number} rank {rank} {name}": part for name, part in member.parts().items()}
        return found

    def freeze(self) -> Frozen:
        """The present state: time, events, links, hosts, switches, chance. What happens later does not change it."""
        return freeze(self.parts())

    def restore(self, frozen: Frozen) -> None:
        """Back to a state of this simulation, or of another with the same ``config``; not while it runs.

        ``ValueError`` for a state of a simulation with other parts."""
        restore(self.parts(), frozen)

    # --- running ---

    def run(self, progress: Callable[[int, int], None] | None = None) -> TrafficResult:
        """Run to the end, or until it is plain that there is none; ``progress`` gets packets that have arrived, and
        packets there are, as far as they are known."""
        loop, interval = self.network.loop, self.config.interval
        while not self._finished():
            if loop.idle:
                return self._result(f"deadlock: no packet is in flight and no timer runs, at {duration_text(loop.now)}")
            count = STEP - loop.handled % STEP  # checks are at the same events, wherever a run continues from
            loop.run(until=self._sample_at if interval else None, count=count)
            if interval and loop.now >= self._sample_at:
                self._sample()
            if self._patience.over():
                return self._result(f"no packet has made progress since {duration_text(self._patience.since)}")
            if progress is not None:
                progress(self._arrived(), sum(track.source.requester.end for track in self.tracks))
        return self._result(None)

    def _arrived(self) -> int:
        return sum(track.destination.responder.expected for track in self.tracks)

    def _sample(self) -> None:
        for track in self.tracks:
            requester = track.source.requester
            stats, rate = requester.stats, requester.rate
            limit = float(track.line_rate) if rate is None else rate.rate
            self.samples.append(Sample(self._sample_at, track.name, stats.sent, stats.resent, stats.bytes, limit))
        self._sample_at += self.config.interval

    def _ends(self, number: int) -> Iterator[int | None]:
        """When the members of a group ended; None for those that have not."""
        made = self.members[number]
        for rank, flow in enumerate(made.flows):
            yield flow.finished if (number, rank) in self._begun else None
        for rank in range(len(made.values)):
            run = self._runs.get((number, rank))
            yield None if run is None else run.finished

    def _finished(self) -> bool:
        return all(end is not None for number in range(len(self.members)) for end in self._ends(number))

    # --- results ---

    def _result(self, problem: str | None) -> TrafficResult:
        network, ended = self.network, self._finished()
        durations = tuple(self._duration(number) for number in range(len(self.members)))
        errors = tuple(self._errors()) + (() if problem is None else (problem,))
        return TrafficResult(
            config=self.config,
            ended=ended,
            errors=errors,
            duration=max(durations),
            groups=durations,
            flows=tuple(self._flow(track) for track in self.tracks),
            drops=self.drops(),
            packet_hops=sum(direction.packets for direction in network.directions.values()),
            events=network.loop.handled,
            samples=tuple(self.samples),
            findings=() if ended else tuple(stuck(self.tracks, network, self.placement, self.specs)),
        )

    def _flow(self, track: Track) -> FlowResult:
        stats = track.source.requester.stats
        flow = next((f for f in self.members[track.group].flows if f.source is track.source), None)
        duration, throughput = self._duration(track.group), 0.0
        if flow is not None and flow.started is not None:
            end = self.network.loop.now if flow.arrived_at is None else flow.arrived_at
            duration = max(NS, end - flow.started)
            throughput = flow.size * 8 * SECOND / duration if flow.finished is not None and not flow.problem else 0.0
        lost = self.network.lost_requests[track.source.peer.ip, track.source.peer.qp]
        return FlowResult(
            track.name, track.group, stats.sent, stats.resent, lost, stats.naks, stats.timeouts, stats.cnps,
            stats.bytes, duration, throughput,
        )  # fmt: skip

    def _duration(self, number: int) -> int:
        """From the start of a group's first member to the end of the last one, or to now."""
        now = self.network.loop.now
        last = max((now if end is None else end for end in self._ends(number)), default=0)
        return last - min((at for (group, _), at in self._begun.items() if group == number), default=last)

    def _errors(self) -> Iterator[str]:
        for number, made in enumerate(self.members):
            name = f"group {number}, " if len(self.members) > 1 else ""
            tracks = [track.name for track in self.tracks if track.group == number]
            for flow, track in zip(made.flows, tracks, strict=False):
                if flow.problem:
                    yield f"{name}{track}: {flow.problem}"
            wanted = self._wanted(made)
            for rank, should in enumerate(wanted):
                run = self._runs.get((number, rank))
                if run is None or not run.done:
                    continue
                at = f"{name}rank {rank}, {made.traffic.pattern}"
                if run.error is not None:
                    yield f"{at}: {run.error}"
                elif wrong := difference(run.result(), should):
                    yield f"{at}: {wrong}"

    @staticmethod
    def _wanted(made: Members) -> list[Array]:
        """Every rank's result by NumPy."""
        if made.rings:
            total = reduced(Op.SUM, made.values, saturating=True)  # their sums do not overflow
            return [total] * len(made.rings)
        if made.alltoall:
            ranks = len(made.alltoall)
            blocks = np.stack(made.values).reshape(ranks, ranks, -1)
            return list(blocks.transpose(1, 0, 2).reshape(ranks, -1))
        return []

    def drops(self) -> Counter[str]:
        """Packets lost so far: on links, in switches by module and reason, at NICs."""
        switches = self.network.switches
        return self.network.lost({name: losses(spec, switches[name].counters) for name, spec in self.specs.items()})
