"""The simulator: jobs alternate between computation and collectives, whose rates are max-min fair (EPIC §L.1).

An event is the end of a computation or of collectives, a job's submission, or a failure. Time goes from one event to
the next without steps. The same input gives the same result: everything random is in the input.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

from p4gen.errors import FailedError, InputError
from p4gen.plan.flow.fabric import FatTree, Tree
from p4gen.plan.flow.fairness import FairRates
from p4gen.plan.flow.jobs import Call, Job, Phase
from p4gen.plan.flow.placing import Places, Placing, Routes
from p4gen.plan.flow.policies import Grants, Policy, Volume

_SAME = 1e-9
"""Relative to the time of an event: collectives that end within it end together."""


@dataclass(frozen=True)
class Failure:
    """Links that are down from ``at`` to ``until`` (seconds); None for ever."""

    what: str
    links: tuple[int, ...]
    at: float
    until: float | None = None


@dataclass(frozen=True)
class Setting:
    """The parameters of a simulation, without the jobs."""

    fabric: FatTree
    policy: Policy
    slots: int = 8
    """Groups that a switch can serve at the same time."""
    volume: Volume = field(default_factory=Volume)
    placing: Placing = field(default_factory=Placing)
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True)
class JobResult:
    """The outcome of a job; times in seconds."""

    name: str
    gpus: int
    submitted: float
    began: float
    ended: float
    calls: int
    """Number of collectives of its groups, without those inside servers."""
    granted: int
    """Number of these collectives that switches aggregated."""

    @property
    def jct(self) -> float:
        """Seconds from the job's beginning to its end, without the time for which it waited for GPUs."""
        return self.ended - self.began


@dataclass(frozen=True)
class Result:
    """The outcomes of all jobs, in the order in which they were given."""

    outcomes: tuple[JobResult, ...]
    ended: float
    events: int
    moved: int
    """Number of collectives that failures moved to other links."""

    @property
    def mean_jct(self) -> float:
        """The mean job completion time in seconds."""
        return float(np.mean([outcome.jct for outcome in self.outcomes]))

    @property
    def share_granted(self) -> float:
        """The share of collectives that switches aggregated, of those between servers."""
        calls = sum(outcome.calls for outcome in self.outcomes)
        return sum(outcome.granted for outcome in self.outcomes) / calls if calls else 0.0

    def percentile(self, share: float) -> float:
        """The job completion time that ``share`` (0 to 1) of the jobs do not exceed."""
        return float(np.quantile([outcome.jct for outcome in self.outcomes], share))


@dataclass
class _Running:
    job: Job
    index: int
    hosts: tuple[int, ...]
    began: float
    trees: list[Tree]
    held: list[bool]
    step: int = 0
    """Number of phases begun."""
    open: int = 0
    """Collectives of the current phase that have not ended."""
    calls: int = 0
    granted: int = 0


@dataclass(eq=False)
class _Flow:
    running: _Running
    group: int
    volume: float
    """Bytes that each of its links carries for the whole of it."""
    granted: bool
    order: int
    """Flows that begin later have greater ones."""


class Simulation:
    """Jobs on a fabric. ``progress`` is called with the number of jobs that have ended and the time in seconds.

    Raises ``InputError`` for a job that needs more GPUs than the fabric has.
    """

    def __init__(
        self, setting: Setting, jobs: Sequence[Job], progress: Callable[[int, float], None] = lambda _done, _now: None
    ) -> None:
        for job in jobs:
            if job.gpus > setting.fabric.gpus:
                raise InputError(f"job {job.name} takes {job.gpus} GPUs; the fabric has {setting.fabric.gpus}")
        self._setting, self._jobs, self._progress = setting, jobs, progress
        self._now = 0.0
        self._grants = Grants(setting.fabric, setting.policy, setting.slots, jobs)
        self._places = Places(setting.fabric, setting.placing)
        self._routes = Routes(setting.fabric, setting.placing)
        self._down = np.zeros(len(setting.fabric.capacity), np.int64)
        self._cut = False
        """Whether any link is down."""
        self._waiting: deque[tuple[int, Job]] = deque()
        self._running: dict[int, _Running] = {}
        self._outcomes: dict[int, JobResult] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = count()
        self._count = self._moved = 0
        self._fair = FairRates(setting.fabric.capacity)
        """The rates of flows in bytes/s, by their numbers."""
        self._flows: dict[int, _Flow] = {}
        """By number, in the order in which they have begun."""
        self._left = np.full(len(self._fair.rates), np.inf)
        """By number: bytes that a flow still has to move; infinite where there is no flow."""
        self._fresh: list[_Flow] = []
        """Flows that begin at this moment."""

    def run(self) -> Result:
        """Run all jobs to their end. Raises ``FailedError`` if failures leave jobs that can never end."""
        for index, job in enumerate(self._jobs):
            self._at(job.start, self._submitted(index, job))
        for failure in self._setting.failures:
            self._at(failure.at, self._failed(failure))
        while self._events or self._flows:
            self._advance()
        if len(self._outcomes) < len(self._jobs):
            stuck = next(iter(self._running.values())).job.name if self._running else self._waiting[0][1].name
            raise FailedError(f"job {stuck} and {len(self._jobs) - len(self._outcomes) - 1} more never end: no path")
        outcomes = tuple(self._outcomes[index] for index in range(len(self._jobs)))
        return Result(outcomes, max((o.ended for o in outcomes), default=0.0), self._count, self._moved)

    # --- time ---

    def _at(self, time: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time, next(self._sequence), action))

    def _advance(self) -> None:
        """Go to the next event, and carry out everything that is due then."""
        self._count += 1
        rates = self._fair.rates
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = self._left / rates
        time = min(self._now + float(ends.min()), self._events[0][0] if self._events else np.inf)
        if time == np.inf:
            first = next(iter(self._flows.values()))
            raise FailedError(f"job {first.running.job.name} never ends: its links stay down")
        step = time - self._now
        self._left -= rates * step
        self._now = time
        same = step + _SAME * max(step, time * 1e-6)
        self._end_flows(np.flatnonzero(ends <= same))
        while self._events and self._events[0][0] <= time:
            heapq.heappop(self._events)[2]()
        self._begin_flows()

    def _end_flows(self, ended: NDArray[np.int64]) -> None:
        over = sorted((self._remove(number) for number in ended.tolist()), key=lambda flow: flow.order)
        for flow in over:
            flow.running.open -= 1
            if flow.granted and not self._setting.policy.for_life:
                self._release(flow.running, flow.group)
        for running in {flow.running.index: flow.running for flow in over}.values():
            if not running.open:
                self._next_phase(running)

    def _remove(self, number: int) -> _Flow:
        """Forget a flow, which is returned."""
        self._fair.remove(number)
        self._left[number] = np.inf
        return self._flows.pop(number)

    def _begin_flows(self) -> None:
        """Add the flows that begin now, and compute the rates again that have changed."""
        for flow in self._fresh:
            number = self._fair.add(flow.running.trees[flow.group].at)
            if len(self._left) < len(self._fair.rates):
                self._left = np.concatenate([self._left, np.full(len(self._left), np.inf)])
            self._flows[number], self._left[number] = flow, flow.volume
        self._fresh.clear()
        self._fair.solve()

    # --- jobs ---

    def _submitted(self, index: int, job: Job) -> Callable[[], None]:
        def act() -> None:
            self._waiting.append((index, job))
            self._start_jobs()

        return act

    def _start_jobs(self) -> None:
        """Start waiting jobs in the order of their submission, as long as there are GPUs."""
        while self._waiting:
            index, job = self._waiting[0]
            hosts = self._places.take(job.gpus)
            if hosts is None:
                return
            self._waiting.popleft()
            trees = [self._routes.choose([hosts[rank] for rank in group.ranks], self._down) for group in job.groups]
            running = _Running(job, index, hosts, self._now, trees, [False] * len(trees))
            self._running[index] = running
            self._next_phase(running)

    def _next_phase(self, running: _Running) -> None:
        job = running.job
        while running.step < job.iterations * len(job.phases):
            phase = job.phases[running.step % len(job.phases)]
            if phase.compute > 0:
                self._at(self._now + phase.compute, lambda: self._computed(running))
                return
            running.step += 1
            if self._collectives(running, running.step - 1):
                return
        self._end_job(running)

    def _computed(self, running: _Running) -> None:
        running.step += 1
        if not self._collectives(running, running.step - 1):
            self._next_phase(running)

    def _collectives(self, running: _Running, step: int) -> bool:
        """Begin a phase's collectives. Returns whether there are any."""
        phase = running.job.phases[step % len(running.job.phases)]
        if phase.volume <= 0:
            return False
        for group in phase.groups:
            self._fresh.append(self._flow(running, group, phase))
        running.open += len(phase.groups)
        return bool(phase.groups)

    def _flow(self, running: _Running, group: int, phase: Phase) -> _Flow:
        """Begin a call of a group, in switches if it is a collective and the policy grants them."""
        tree, ranks = running.trees[group], len(running.job.groups[group].ranks)
        setting, number = self._setting, next(self._sequence)
        if not tree.switches:
            aggregated = setting.policy.inc and setting.fabric.scale_up_inc
            factor = setting.volume.inside(phase.call, ranks, aggregated)
            return _Flow(running, group, factor * phase.volume, False, number)
        granted = False
        if phase.call is not Call.EXCHANGE:
            up = not (self._cut and self._down[tree.at].any())
            granted = running.held[group] or (up and self._grants.take(tree, running.index, group))
            running.held[group] = granted and setting.policy.for_life
            running.calls += 1
            running.granted += granted
        return _Flow(running, group, setting.volume.factor(phase.call, ranks, granted) * phase.volume, granted, number)

    def _release(self, running: _Running, group: int) -> None:
        self._grants.release(running.trees[group], running.index, group)

    def _end_job(self, running: _Running) -> None:
        for group, (tree, held) in enumerate(zip(running.trees, running.held, strict=True)):
            self._routes.drop(tree)
            if held:
                self._release(running, group)
        self._grants.end(running.index)
        self._places.give(running.hosts)
        job = running.job
        self._outcomes[running.index] = JobResult(
            job.name, job.gpus, job.start, running.began, self._now, running.calls, running.granted
        )
        del self._running[running.index]
        self._progress(len(self._outcomes), self._now)
        self._start_jobs()

    # --- failures ---

    def _failed(self, failure: Failure) -> Callable[[], None]:
        links = list(failure.links)

        def act() -> None:
            self._down[links] += 1
            self._fair.resize(links, 0.0)
            self._move_away()
            if failure.until is not None:
                self._at(failure.until, repaired)

        def repaired() -> None:
            self._down[links] -= 1
            up = [link for link in links if not self._down[link]]
            self._fair.resize(up, self._setting.fabric.capacity[up])
            self._move_away()

        return act

    def _move_away(self) -> None:
        """Give other trees to groups whose trees have links that are down, where there are any. Their collectives begin
        again there, as calls of a group are repeated when its tree fails (docs/manager.md)."""
        self._cut = bool(self._down.any())
        self._begin_flows()
        for running in self._running.values():
            for group, tree in enumerate(running.trees):
                if self._down[tree.at].any():
                    self._move(running, group)

    def _move(self, running: _Running, group: int) -> None:
        old = running.trees[group]
        hosts = [running.hosts[rank] for rank in running.job.groups[group].ranks]
        self._routes.drop(old)
        new = running.trees[group] = self._routes.choose(hosts, self._down)
        if new == old:
            return
        at = next((n for n, f in self._flows.items() if f.running is running and f.group == group), None)
        if running.held[group] or (at is not None and self._flows[at].granted):
            self._grants.release(old, running.index, group)
        running.held[group] = False
        if at is None:
            return
        phase = running.job.phases[(running.step - 1) % len(running.job.phases)]
        self._remove(at)
        self._fresh.append(self._flow(running, group, phase))
        self._moved += 1
