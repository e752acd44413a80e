"""Simulation of collectives on a virtual network; results are checked against NumPy."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from p4gen.errors import InputError
from p4gen.groups.ranks import host_config
from p4gen.host.collectives.commlib import Communicator, GroupConfig, Invocation
from p4gen.host.transport.clock import SECOND
from p4gen.host.transport.rc import QueuePair
from p4gen.net.collectives.check import problems
from p4gen.net.collectives.config import Call, SimConfig, Work
from p4gen.net.collectives.diagnosis import Diagnosis, diagnose
from p4gen.net.collectives.state import group_reader
from p4gen.net.collectives.values import Member, draw, invoke
from p4gen.net.result import LinkUse, RunResult, counted
from p4gen.net.running import RunningGroup
from p4gen.net.world.freezing import Frozen, freeze, restore
from p4gen.net.world.network import Network
from p4gen.net.world.patience import Patience, nothing
from p4gen.net.world.ticks import Ticker
from p4gen.p4.compile import program_from
from p4gen.plan.placement.network import place
from p4gen.plan.placement.placed import PlacedGroup
from p4gen.program.compilation import compile_spec
from p4gen.switch.drops import losses
from p4gen.vocabulary import CollectiveSpec

__all__ = ["Call", "LinkUse", "SimConfig", "SimResult", "Simulation", "Work", "simulate"]

STEP = 20_000
"""Number of events between two checks of the progress."""


@dataclass(frozen=True, kw_only=True)
class SimResult(RunResult):
    """The result of a run of groups. Times are in ps."""

    config: SimConfig
    ended: bool
    correct: bool
    last_result: int | None
    """Time from the first rank's start until the last result arrived; None when none did (EPIC §K)."""
    events: int
    diagnosis: Diagnosis | None = None

    @property
    def ok(self) -> bool:
        """Whether the run ended and every rank's result equals NumPy's."""
        return self.ended and self.correct

    @property
    def throughput(self) -> float:
        """Algorithm throughput in bit/s: the data of all calls divided by the time (EPIC §7.1); 0 when the run did not
        end."""
        if not self.ended or not self.duration:
            return 0.0
        return sum(call.size for job in self.config.jobs for call in job.calls) * 8 * SECOND / self.duration

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data."""
        return super().to_dict() | {
            "topology": self.config.topology.name,
            "program": self.config.program.program,
            "collective": str(self.config.collective),
            "size": self.config.size,
            "ended": self.ended,
            "correct": self.correct,
            "gbps": round(self.throughput / 1e9, 3),
            "seconds_to_last_result": None if self.last_result is None else self.last_result / SECOND,
            "diagnosis": self.diagnosis.lines() if self.diagnosis is not None else None,
        }


class Simulation:
    """A simulation of one configuration. Raises ``InputError`` when the program cannot serve it, before a packet is
    sent. ``text`` is the program's text if it is not the generated one: one with a fault."""

    STATE: ClassVar = ()

    def __init__(self, config: SimConfig, text: Callable[[CollectiveSpec], str] | None = None) -> None:
        self.config = config
        chance = random.Random(f"{config.seed} hosts")  # noqa: S311 - a simulation, to be repeatable
        first = config.initial_psn
        psns = tuple(chance.randrange(1 << 24) if first is None else first for _ in config.jobs)
        requests = config.requests(psns)
        self.spec = spec = config.fitted(requests)
        if spec.needs_order and any(impairment.disorders for impairment in config.faults.impairments):
            raise InputError(
                f"{spec.program} takes an older PSN for a newer one: links must keep the order of packets, so none may "
                "be reordered, and a duplicate must follow at once"
            )
        topology = config.topology
        self.placement = place(topology, spec, requests, trees=config.trees)
        program = compile_spec(spec).program if text is None else program_from(text(spec), f"{spec.program}.p4")
        programs = dict.fromkeys(topology.switches, program)
        self.network = Network(topology, self.placement, programs, config.faults, config.seed, config.engine)
        for nic in self.network.nics.values():
            nic.checks_icrc = spec.icrc.right
        values = np.random.default_rng(config.seed)
        self.groups: list[RunningGroup] = []
        for number, (work, placed) in enumerate(zip(config.jobs, self.placement.groups, strict=True)):
            hosts = placed.request.ranks
            group = RunningGroup(
                number,
                work,
                placed,
                self._members(placed, work.pace),
                [draw(call, spec, len(hosts), values, overflowing=config.overflowing) for call in work.calls],
                [[] for _ in hosts],
                f"group {number}, " if len(config.jobs) > 1 else "",
            )
            self.groups.append(group)
            for rank in range(len(hosts)):
                self.network.loop.at(chance.randrange(config.skew + 1), self._begin, (number, rank))
        self._ticker = self._start_ticks() if spec.wants_ticks and config.ticks else None
        pairs = list(self.pairs)
        self._patience = Patience(
            self.network.loop,
            config.timeout,
            lambda: sum(pair.requester.una + pair.responder.expected for pair in pairs),
            self._longest_wait if self._ticker is not None else nothing,
        )

    def _members(self, placed: PlacedGroup, pace: int | None) -> Sequence[Member]:
        """The communicators of a group, by rank."""
        hosts = placed.request.ranks
        nics = self.network.nics
        return [Communicator(nics[host], self._group(placed, rank, pace)) for rank, host in enumerate(hosts)]

    def _group(self, placed: PlacedGroup, rank: int, pace: int | None) -> GroupConfig:
        config = self.config
        return host_config(
            self.spec,
            rank,
            len(placed.request.ranks),
            {channel.key: (channel.ends[rank].qp, channel.ends[rank].peer) for channel in placed.channels},
            placed.request.first_psn,
            config.sync,
            timeout_ps=config.timeout,
            ack_every=config.ack_every,
            recovery=config.nic_recovery,
            retry_count=config.retry_count,
            dcqcn=config.dcqcn,
            pace=pace,
            flow=config.flow,
            window=config.rank_window,
        )

    def _start_ticks(self) -> Ticker:
        pairs: dict[tuple[str, int], list[QueuePair]] = {}
        for group in self.groups:
            for channel in group.placed.channels:
                mine = [c.channels[channel.key].pair for c in group.communicators if isinstance(c, Communicator)]
                for node, context in channel.contexts.items():
                    pairs[node.switch, context.context] = mine
        network, latency = self.network, self.config.topology.switch_latency

        def used(switch: str, context: int) -> bool:
            return any(pair.requester.high for pair in pairs[switch, context])

        def sent() -> int:
            return sum(direction.packets for direction in network.directions.values())

        port = self.spec.architecture.cpu_port
        return Ticker(network.nodes, self.placement.edges, network.loop, used, self._longest_wait, sent, latency, port)

    def _longest_wait(self) -> int:
        """That of the switches' timers, ps; 0 if none runs."""
        reader, switches = group_reader(self.spec), self.network.switches
        if reader is None:
            return 0
        return max((reader.wait(self.spec, switches[e.switch], e) for e in self.placement.edges), default=0)

    def _begin(self, which: tuple[int, int]) -> None:
        number, rank = which
        group = self.groups[number]
        for call, values in zip(group.work.calls, group.values, strict=True):
            group.invocations[rank].append(invoke(group.communicators[rank], call, values[rank]))

    @property
    def pairs(self) -> Iterator[QueuePair]:
        """The queue pairs of all ranks."""
        return (pair for group in self.groups for communicator in group.communicators for pair in communicator.pairs)

    @property
    def invocations(self) -> Iterator[Invocation]:
        """The calls made so far."""
        return (call for group in self.groups for mine in group.invocations for call in mine)

    # --- freezing ---

    def parts(self) -> dict[str, object]:
        """The parts that have state, by name."""
        found: dict[str, object] = {"simulation": self, "patience": self._patience, **self.network.parts()}
        if self._ticker is not None:
            found["ticker"] = self._ticker
        for group in self.groups:
            found[f"group {group.number}"] = group
            for rank, member in enumerate(group.communicators):
                found |= {f"group {group.number} rank {rank} {name}": part for name, part in member.parts().items()}
        return found

    def freeze(self) -> Frozen:
        """The present state: time, events, links, hosts, switches, random generators. It does not change when the run
        goes on."""
        return freeze(self.parts())

    def restore(self, frozen: Frozen) -> None:
        """Return to a state of this simulation, or of another one with the same ``config``. Not allowed during ``run``.
        Invocations are made anew. Raises ``ValueError`` for a state with other parts."""
        restore(self.parts(), frozen)

    # --- running ---

    def run(self, progress: Callable[[int, int], None] | None = None) -> SimResult:
        """Run until all ranks are done or no more progress is possible. ``progress`` is called with the number of
        messages done and the number of all messages."""
        loop = self.network.loop
        while True:
            loop.run(count=STEP - loop.handled % STEP)
            if self._finished():
                break
            if loop.idle:
                return self._result(diagnose(self, deadlocked=True))
            if self._patience.over():
                return self._result(diagnose(self, deadlocked=False))
            if progress is not None:
                calls = list(self.invocations)
                progress(sum(i.messages_sent + i.messages_received for i in calls), sum(i.messages for i in calls))
        return self._result(None)

    def _finished(self) -> bool:
        return all(group.done(rank) for group in self.groups for rank in range(len(group.communicators)))

    # --- results ---

    def _result(self, diagnosis: Diagnosis | None) -> SimResult:
        network = self.network
        calls = list(self.invocations)
        start = min((i.started for i in calls if i.started is not None), default=0)
        ends = [i.finished for i in calls if i.finished is not None]
        results = [i.last_result for i in calls if i.last_result is not None]
        ended = self._finished()
        duration = (max(ends) if ended else network.loop.now) - start
        errors = tuple(
            problem
            for group in self.groups
            for problem in problems(group.name, self.spec, group.work.calls, group.values, group.invocations)
        )
        return SimResult(
            config=self.config,
            ended=ended and not any(i.error for i in calls),
            correct=not errors and ended,
            errors=errors,
            last_result=max(results) - start if results else None,
            events=network.loop.handled,
            diagnosis=diagnosis,
            **counted(network, self.pairs, self.drops(), duration),
        )

    def drops(self) -> Counter[str]:
        """Number of packets lost so far: on links, in switches by module and reason, at NICs."""
        return self.network.lost({name: self.switch_drops(name) for name in self.network.switches})

    def switch_drops(self, name: str) -> Counter[str]:
        """Number of packets that a switch's program dropped, by module and reason."""
        return losses(self.spec, self.network.switches[name].counters)


def simulate(config: SimConfig, progress: Callable[[int, int], None] | None = None) -> SimResult:
    """Simulate a configuration."""
    return Simulation(config).run(progress)
