"""Simulation of collectives on a virtual network; results are checked against NumPy."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from typing_extensions import override

from p4gen.errors import Diagnostic, InputError, Option
from p4gen.groups.ranks import host_config
from p4gen.host.collectives.arrays import agreement
from p4gen.host.collectives.commlib import Communicator, GroupConfig, Invocation
from p4gen.host.transport.clock import SECOND, duration_text
from p4gen.host.transport.rc import QueuePair
from p4gen.net.collectives.check import problems
from p4gen.net.collectives.config import Call, SimConfig, Work
from p4gen.net.collectives.diagnosis import Diagnosis, diagnose
from p4gen.net.collectives.running import RankTask, RunningGroup
from p4gen.net.collectives.state import group_reader
from p4gen.net.collectives.values import Member, draw
from p4gen.net.job import Job, Stuck
from p4gen.net.order import RunOrder
from p4gen.net.result import LinkUse, RunResult
from p4gen.net.world.faults import Faults
from p4gen.net.world.network import Network
from p4gen.p4.compile import program_from
from p4gen.plan.placement.network import Placement, place
from p4gen.plan.placement.placed import GroupRequest, PlacedGroup
from p4gen.program.compilation import compile_spec
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.message import Collective

C = TypeVar("C", bound=CollectiveSpec)
__all__ = ["Call", "LinkUse", "SimConfig", "SimResult", "Simulation", "Work", "simulate"]


@dataclass(frozen=True, kw_only=True)
class SimResult(RunResult):
    """The result of a run of groups. Times are in ps."""

    config: SimConfig
    last_result: int | None
    """Time from the first rank's start until the last result arrived; None when none did (EPIC §K)."""
    throughput: float
    """Algorithm throughput in bit/s: the data of all calls divided by the time (EPIC §7.1); 0 when the run did not
    end."""
    diagnosis: Diagnosis | None = None

    @property
    def correct(self) -> bool:
        """Whether every rank's result equals NumPy's."""
        return not self.errors and self.diagnosis is None


Users = Mapping[tuple[str, int], Sequence[QueuePair]]
"""By a switch and its context: the queue pairs of the ranks that it serves."""


def in_use(users: Users) -> Callable[[str, int], bool]:
    """Whether ranks have sent anything to a switch's context."""
    return lambda switch, context: any(pair.requester.high for pair in users[switch, context])


def first_draws(config: SimConfig) -> tuple[random.Random, tuple[int, ...]]:
    """The first PSN of each group, and the generator of what is drawn next."""
    chance, given = random.Random(f"{config.seed} hosts"), config.initial_psn  # noqa: S311 - to be repeatable
    return chance, tuple(chance.randrange(1 << 24) if given is None else given for _ in config.jobs)


def check_order(spec: CollectiveSpec, faults: Faults) -> None:
    """Raises ``InputError`` if a program needs packets in order, and faults of links change it."""
    if spec.needs_order and any(impairment.disorders for impairment in faults.impairments):
        raise InputError(
            f"{spec.program} takes an older PSN for a newer one: links must keep the order of packets, so none may be "
            "reordered, and a duplicate must follow at once"
        )


@dataclass(frozen=True)
class Site:
    """Where groups run: the network and its configuration, the programs' spec, and the groups themselves."""

    network: Network
    placement: Placement
    spec: CollectiveSpec
    groups: Sequence[PlacedGroup]


class Simulation(Job[RankTask, SimResult]):
    """A simulation of one configuration, on a network of its own or at a ``site`` with others, which has the ticks.
    ``text`` makes the program's text if it is not the generated one, as with a fault.

    Raises ``InputError``, before any packet is sent, when the program cannot serve the configuration.
    """

    def __init__(
        self, config: SimConfig, text: Callable[[CollectiveSpec], str] | None = None, *, site: Site | None = None
    ) -> None:
        self.config = config
        chance, psns = first_draws(config)
        at = site or self._site(config.requests(psns), text)
        self.placement, self.spec = at.placement, at.spec
        spec = at.spec
        super().__init__(at.network, dict.fromkeys(config.topology.switches, spec), config.timeout)
        for nic in self.network.nics.values():
            nic.checks_icrc = spec.icrc.right
        values = np.random.default_rng(config.seed)
        self.groups: list[RunningGroup] = []
        for number, (work, placed) in enumerate(zip(config.jobs, at.groups, strict=True)):
            hosts = placed.request.ranks
            members = self._members(placed, work.pace)
            drawn = [draw(call, spec, len(hosts), values, overflowing=config.overflowing) for call in work.calls]
            ranks = [
                RankTask(f"group {number} rank {rank}", member, work.calls, [each[rank] for each in drawn])
                for rank, member in enumerate(members)
            ]
            name = f"group {number}, " if len(config.jobs) > 1 else ""
            self.groups.append(RunningGroup(number, work, placed, ranks, name))
            for rank in range(len(hosts)):
                self.network.loop.at(config.start + chance.randrange(config.skew + 1), self._begin, (number, rank))
        self.tasks = [task for group in self.groups for task in group.ranks]
        if spec.wants_ticks and config.ticks and site is None:
            self.start_ticks(self.placement.edges, spec.architecture.cpu_port, in_use(self.users()))

    def _site(self, requests: list[GroupRequest], text: Callable[[CollectiveSpec], str] | None) -> Site:
        """A network of its own."""
        config = self.config
        spec = config.fit_program(requests)
        check_order(spec, config.faults)
        topology = config.topology
        placement = place(topology, spec, requests, trees=config.trees)
        program = compile_spec(spec).program if text is None else program_from(text(spec), f"{spec.program}.p4")
        programs = dict.fromkeys(topology.switches, program)
        network = Network(
            topology, placement, programs, config.faults, config.seed, config.engine, payload=spec.payload_bytes
        )
        return Site(network, placement, spec, placement.groups)

    @property
    @override
    def title(self) -> str:
        config = self.config
        calls = sorted({f"{c.collective} of {c.size:,} bytes" if c.size else str(c.collective) for c in config.calls})
        sizes = sorted({len(hosts) for hosts in config.hosts})
        groups = f"{len(config.jobs)} groups of " if len(config.jobs) > 1 else ""
        ranks, program = " or ".join(map(str, sizes)), config.program.program
        return f"{', '.join(calls)}, {groups}{ranks} ranks on {config.topology.name}, {program}, {config.nic_recovery}"

    def _members(self, placed: PlacedGroup, pace: int | None) -> Sequence[Member]:
        """The communicators of a group, by rank."""
        hosts = placed.request.ranks
        nics = self.network.nics
        found = [Communicator(nics[host], self._group(placed, rank, pace)) for rank, host in enumerate(hosts)]
        for mine, offered in zip(found, placed.request.memories, strict=False):
            if mine.memory is None or (mine.memory.address, mine.memory.rkey) != (offered.address, offered.rkey):
                raise InputError("ranks of groups register their memory first (verb write): name other hosts for flows")
        return found

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
            priority=config.priority,
        )

    def users(self) -> Users:
        """The users of all contexts of the groups."""
        pairs: dict[tuple[str, int], Sequence[QueuePair]] = {}
        nics = self.network.nics
        for group in self.groups:
            for channel in group.placed.channels:
                hosts = group.placed.request.ranks
                mine = [nics[host].pairs[end.qp] for host, end in zip(hosts, channel.ends, strict=True)]
                for node, context in channel.contexts.items():
                    pairs[node.switch, context.context] = mine
        return pairs

    @override
    def longest_wait(self) -> int:
        reader, switches = group_reader(self.spec), self.network.switches
        if reader is None or self.ticker is None:
            return 0
        return max((reader.wait(self.spec, switches[e.switch], e) for e in self.placement.edges), default=0)

    def _begin(self, which: tuple[int, int]) -> None:
        number, rank = which
        self.groups[number].ranks[rank].start()

    @property
    def invocations(self) -> Iterator[Invocation]:
        """The calls made so far, by group and rank."""
        return (call for task in self.tasks for call in task.made)

    @override
    def progress(self) -> tuple[int, int]:
        """The number of messages sent and received so far, and that of all messages."""
        calls = list(self.invocations)
        return sum(i.messages_sent + i.messages_received for i in calls), sum(i.messages for i in calls)

    @override
    def result(self, stuck: Stuck | None) -> SimResult:
        config, calls = self.config, list(self.invocations)
        diagnosis = None if stuck is None else diagnose(self, deadlocked=stuck.deadlocked)
        start = min((i.started for i in calls if i.started is not None), default=0)
        ends = [i.finished for i in calls if i.finished is not None]
        results = [i.last_result for i in calls if i.last_result is not None]
        duration = (max(ends) if stuck is None else self.network.loop.now) - start
        errors = tuple(
            problem
            for group in self.groups
            for problem in problems(
                group.name, self.spec, group.work.calls, group.values, [rank.made for rank in group.ranks]
            )
        )
        failed = tuple(task.problem for task in self.tasks if task.problem)
        ended = stuck is None and not failed
        rate = sum(call.size for call in config.calls) * 8 * SECOND / max(1, duration)
        last_result = max(results) - start if results else None
        found = SimResult(
            config=config,
            errors=errors,
            stuck=failed if stuck is None or diagnosis is None else (*stuck.circle, *diagnosis.lines()),
            lines=self._summary(rate, duration) if ended else (),
            verdict=f"every rank's result {agreement(config.program.dtype)}"
            if any(call.size for call in config.calls)
            else "synchronised",
            last_result=last_result,
            throughput=rate if ended else 0.0,
            diagnosis=diagnosis,
            **self.counted(duration),
        )
        values: dict[str, float | int | str | None] = {
            "topology": config.topology.name,
            "program": config.program.program,
            "collective": ", ".join(sorted({str(call.collective) for call in config.calls})),
            "size": max(call.size for call in config.calls),
            "correct": found.correct,
            "gbps": round(found.throughput / 1e9, 3),
            "seconds_to_last_result": None if last_result is None else last_result / SECOND,
        }
        return replace(found, values=values)

    def _summary(self, rate: float, duration: int) -> tuple[str]:
        config, each = self.config, duration // self.config.repeat
        throughput = f"algorithm throughput {rate / 1e9:.2f} Gb/s, " if config.size else ""
        rhythm = f" ({SECOND / each:,.0f} a second)" if config.collective is Collective.BARRIER else ""
        return (f"{throughput}completion time {duration_text(each)}{rhythm}",)


def simulate(config: SimConfig, progress: Callable[[int, int], None] | None = None) -> SimResult:
    """Simulate a configuration. ``progress(done, total)`` is called as messages are done."""
    return Simulation(config).run(progress)


def group_run(order: RunOrder[C]) -> SimConfig:
    """The configuration for an order: groups of all ranks, with their calls. Raises ``InputError``."""
    collective, size = Collective(order.collective), order.size
    if collective is Collective.BARRIER:
        if size:
            raise InputError(Diagnostic(Option("size"), "a barrier has no data"))
        size = 0
    config = SimConfig(
        order.topology,
        order.program,
        collective,
        SimConfig.size if size is None else size,
        order.repeat,
        order.faults,
        order.seed,
        order.recovery,
        SimConfig.timeout if order.timeout is None else order.timeout,
        order.retry_count,
        dcqcn=order.dcqcn,
        engine=order.engine,
        root=order.root,
        sync=order.sync,
    )
    jobs = order.groups or config.jobs
    return replace(config, work=jobs * order.concurrent) if len(jobs) * order.concurrent > 1 or order.groups else config
