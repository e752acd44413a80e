"""A run of traffic between hosts (``p4gen.net.traffic.traffic``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from typing_extensions import override

from p4gen.host.collectives.arrays import Array, reduced
from p4gen.host.transport.clock import NS, SECOND
from p4gen.host.transport.verbs import Recovery
from p4gen.net.collectives.check import difference
from p4gen.net.job import Job, Stuck
from p4gen.net.result import RunResult
from p4gen.net.traffic.series import Sample
from p4gen.net.traffic.stuck import stuck
from p4gen.net.traffic.traffic import Pattern, TrafficConfig
from p4gen.net.traffic.wiring import HostTask, Members, Track, Wiring, members
from p4gen.net.world.network import Network
from p4gen.plan.placement.plain import PlainPlacement, place_plain
from p4gen.program.compilation import compile_spec
from p4gen.vocabulary import Op, ProgramSpec


@dataclass(frozen=True)
class FlowResult:
    """One direction of a connection in a run: packets, and times in ps."""

    name: str
    group: int
    sent: int
    resent: int
    lost: int
    """The flow's data packets that links dropped."""
    naks: int
    """Number of NAKs that its sender received."""
    timeouts: int
    cnps: int
    bytes: int
    """Bytes sent, including the overhead on the wire."""
    duration: int
    """The time from the flow's start until all of it had arrived; in a collective until the group had ended."""
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


@dataclass(frozen=True, kw_only=True)
class TrafficResult(RunResult):
    """The result of a run; times in ps."""

    config: TrafficConfig = field(repr=False)
    groups: tuple[int, ...]
    """From the start of each group's first host to the end of its last one."""
    flows: tuple[FlowResult, ...]
    samples: tuple[Sample, ...] = field(repr=False, default=())

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

    @property
    def data_rate(self) -> float:
        """Mean rate of the data of flows, or of each host's array in collectives, bit/s; 0 if they have not ended."""
        if self.config.traffic[0].pattern.flows:
            return self.throughput
        done = zip(self.config.traffic, self.groups, strict=True) if self.ok else ()
        return sum(each.size * 8 * SECOND / time for each, time in done) / len(self.groups)


@dataclass(frozen=True)
class Site:
    """Where traffic runs: its connections, the network, and how that is configured."""

    wiring: Wiring
    network: Network
    placement: PlainPlacement
    specs: Mapping[str, ProgramSpec]

    @classmethod
    def of(cls, config: TrafficConfig) -> Site:
        """A network of its own. Raises ``InputError`` when programs cannot serve the traffic."""
        config.check()
        topology, wiring = config.topology, Wiring(config)
        specs = {switch: config.spec_of(switch) for switch in topology.switches}
        placement = place_plain(topology, specs, wiring.connections if config.registers else (), config.epoch)
        programs = {switch: compile_spec(spec).program for switch, spec in specs.items()}
        network = Network(topology, placement, programs, config.faults, config.seed, config.engine, payload=config.mtu)
        network.keep_lengths(placement.queues)
        return cls(wiring, network, placement, specs)


class TrafficSimulation(Job[HostTask, TrafficResult]):
    """A run of traffic, on a network of its own or at a ``site`` with others. Raises ``InputError``, before any packet
    is sent, when it cannot be carried out."""

    STATE: ClassVar = ("samples", "_sample_at")

    def __init__(self, config: TrafficConfig, site: Site | None = None) -> None:
        self.config = config
        site = site or Site.of(config)
        self.placement = site.placement
        super().__init__(site.network, site.specs, config.timeout)
        chance, ends = site.wiring.chance, site.wiring.ends
        self.network.reports_losses = config.recovery is Recovery.ORACLE
        values = np.random.default_rng(config.seed)
        pattern = chance.randbytes(2 * config.message)
        self.members: list[Members] = []
        self.tracks: list[Track] = []
        for number, traffic in enumerate(config.traffic):
            made, tracks = members(number, traffic, ends[number], self.network.nics, config, values, pattern)
            self.members.append(made)
            self.tracks += tracks
        self.tasks = [task for made in self.members for task in made.tasks]
        self.samples: list[Sample] = []
        self._sample_at = config.interval
        for number, made in enumerate(self.members):
            for rank in range(len(made.tasks)):
                self.network.loop.at(config.start + chance.randrange(config.skew + 1), self._begin, (number, rank))

    @property
    @override
    def title(self) -> str:
        config = self.config
        first, groups = config.traffic[0], f"{len(config.traffic)} groups of " if len(config.traffic) > 1 else ""
        return (
            f"{first.pattern} of {first.size:,} bytes, {groups}{len(first.hosts)} hosts on {config.topology.name}, "
            f"{config.program.program}, {config.recovery}, {'DCQCN' if config.dcqcn else 'no congestion control'}"
        )

    def _begin(self, which: tuple[int, int]) -> None:
        number, rank = which
        self.members[number].tasks[rank].start()

    # --- running ---

    @property
    @override
    def until(self) -> int | None:
        """The time of the next sample, ps; None without samples."""
        return self._sample_at if self.config.interval else None

    @override
    def advance(self) -> bool:
        if self.config.interval and self.network.loop.now >= self._sample_at:
            self._sample()
        return self.done

    @override
    def progress(self) -> tuple[int, int]:
        """Packets that have arrived, and all packets as far as they are known."""
        arrived = sum(track.destination.responder.expected for track in self.tracks)
        return arrived, sum(track.source.requester.end for track in self.tracks)

    def _sample(self) -> None:
        for track in self.tracks:
            requester = track.source.requester
            stats, rate = requester.stats, requester.rate
            limit = float(track.line_rate) if rate is None else rate.rate
            self.samples.append(Sample(self._sample_at, track.name, stats.sent, stats.resent, stats.bytes, limit))
        self._sample_at += self.config.interval

    # --- results ---

    @override
    def result(self, why: Stuck | None) -> TrafficResult:
        durations = tuple(self._duration(made) for made in self.members)
        findings = () if why is None else stuck(self.tracks, self.network, self.placement, self.specs)
        return TrafficResult(
            config=self.config,
            errors=tuple(self._errors()),
            stuck=() if why is None else (*why.reasons, *findings),
            verdict="everything has arrived as it was sent",
            groups=durations,
            flows=tuple(self._flow(track) for track in self.tracks),
            samples=tuple(self.samples),
            **self.counted(max(durations)),
        )

    def _flow(self, track: Track) -> FlowResult:
        made, stats = self.members[track.group], track.source.requester.stats
        flow = next((f for f in made.flows if f.source is track.source), None)
        duration, throughput = self._duration(made), 0.0
        if flow is not None and flow.started is not None:
            endless, packets = self.config.endless, track.destination.responder.expected
            end = self.network.loop.now if flow.arrived_at is None or endless else flow.arrived_at
            duration = max(NS, end - flow.started)
            ended = endless or flow.finished is not None
            size = packets * self.config.mtu if endless else flow.size
            throughput = size * 8 * SECOND / duration if ended and not flow.problem else 0.0
        lost = self.network.lost_requests[track.source.peer.ip, track.source.peer.qp]
        return FlowResult(
            track.name, track.group, stats.sent, stats.resent, lost, stats.naks, stats.timeouts, stats.cnps,
            stats.bytes, duration, throughput,
        )  # fmt: skip

    def _duration(self, made: Members) -> int:
        """The time, in ps, from the start of a group's first member to the end of the last one, or to now."""
        now = self.network.loop.now
        last = max((now if task.finished is None else task.finished for task in made.tasks), default=0)
        return last - min((task.started for task in made.tasks if task.started is not None), default=last)

    def _errors(self) -> Iterator[str]:
        for number, made in enumerate(self.members):
            name = f"group {number}, " if len(self.members) > 1 else ""
            tracks = [track.name for track in self.tracks if track.group == number]
            for flow, track in zip(made.flows, tracks, strict=False):
                if flow.problem:
                    yield f"{name}{track}: {flow.problem}"
            for rank, (member, wanted) in enumerate(zip(made.exchanges, self._expected_results(made), strict=True)):
                at = f"{name}rank {rank}, {made.traffic.pattern}"
                if member.problem:
                    yield f"{at}: {member.problem}"
                elif member.done and (wrong := difference(member.result(), wanted)):
                    yield f"{at}: {wrong}"

    @staticmethod
    def _expected_results(made: Members) -> list[Array]:
        """Every rank's result by NumPy."""
        ranks = len(made.exchanges)
        if not ranks:
            return []
        if made.traffic.pattern is Pattern.ALLTOALL:
            blocks = np.stack(made.values).reshape(ranks, ranks, -1)
            return list(blocks.transpose(1, 0, 2).reshape(ranks, -1))
        total = reduced(Op.SUM, made.values, saturating=True)  # their sums do not overflow
        return [total] * ranks
