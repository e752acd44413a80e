"""Several tasks at once on a leaf-spine fabric: instances, plans, and the rates that plans allow (ARO §III, §V).

Task i has its parameter server under leaf i, which aggregates. The tasks of a job have the same workers, which send to
all of its servers: a worker's link carries one flow of each.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from p4gen.errors import FailedError, InputError
from p4gen.plan.route.instance import Instance, LeafSpine
from p4gen.plan.route.plan import Plan
from p4gen.plan.route.program import Program

_ROOM: Final = 1e-7
MU: Final = 0.001
"""The weight of the sum of all jobs' rates beside the least of them (§V-A)."""


@dataclass(frozen=True)
class Tasks:
    """Tasks on one fabric; rates are in bit/s, as shares of a link's bandwidth where it is said."""

    instances: tuple[Instance, ...]
    """Each task by itself."""
    jobs: tuple[tuple[int, ...], ...]
    """The numbers of each job's tasks."""

    @cached_property
    def bandwidth(self) -> float:
        """The bandwidth of each link, bit/s."""
        return self.instances[0].fabric.bandwidth

    def value(self, rates: Sequence[float]) -> float:
        """The value to be maximised: one job's rate (SJMT), or the least job's and a little of all (MJMT)."""
        of_jobs = self.of_jobs(rates)
        return of_jobs[0] if len(of_jobs) == 1 else min(of_jobs) + MU * sum(of_jobs)

    def of_jobs(self, rates: Sequence[float]) -> list[float]:
        """The rate of each job: its data is divided among its tasks."""
        return [sum(rates[task] for task in tasks) for tasks in self.jobs]

    def objective(self, program: Program, rates: Sequence[int]) -> None:
        """Let a program maximise ``value``; ``rates`` are the columns of the tasks' rates, as shares."""
        several = len(self.jobs) > 1
        for tasks in self.jobs:
            program.at_most([(rates[task], 1.0) for task in tasks], 1.0)
            for task in tasks:
                program.costs[rates[task]] = -MU if several else -1.0
        if several:
            least = program.column(0, 1, -1.0)
            for tasks in self.jobs:
                program.at_most([(least, 1.0), *((rates[task], -1.0) for task in tasks)])


@dataclass(frozen=True)
class Joint:
    """Plans of all tasks together."""

    algorithm: str
    plans: tuple[Plan, ...]
    rates: tuple[float, ...]
    """The rate of each task, as a share of the bandwidth."""
    bound: float | None = None
    """The largest value that any plans have; None if nothing was proven."""
    seconds: float = 0.0

    def gap(self, tasks: Tasks) -> float | None:
        """By how much the best plans could be better, as a share of their value; None if nothing was proven."""
        return None if self.bound is None else max(0.0, 1 - tasks.value(self.rates) / self.bound)


def draw_tasks(fabric: LeafSpine, jobs: int, tasks: int, workers: int, aggregators: int, seed: int) -> Tasks:
    """Random jobs of so many tasks, each job with workers of its own; ``aggregators`` switches aggregate, among them
    the leaves of all servers.

    Raises ``InputError`` if there are not so many switches or hosts.
    """
    count, total = jobs * tasks, fabric.leaves + fabric.spines
    if count > fabric.leaves:
        raise InputError(f"{count} tasks have their servers under as many leaves; there are {fabric.leaves}")
    if not count <= aggregators <= total:
        raise InputError(f"{aggregators} aggregators; with the servers' leaves it is {count} to {total}")
    places = fabric.leaves * fabric.hosts - count
    if not 1 <= jobs * workers <= places:
        raise InputError(f"{jobs * workers} workers; the fabric has room for 1 to {places}")
    source = random.Random(seed)  # noqa: S311 - a simulation
    rest = [("leaf", leaf) for leaf in range(count, fabric.leaves)]
    rest += [("spine", spine) for spine in range(fabric.spines)]
    chosen = [*(("leaf", leaf) for leaf in range(count)), *source.sample(rest, aggregators - count)]
    servers = [(leaf, source.randrange(fabric.hosts)) for leaf in range(count)]
    free = [(leaf, port) for leaf in range(fabric.leaves) for port in range(fabric.hosts)]
    hosts = source.sample([host for host in free if host not in servers], jobs * workers)
    return Tasks(
        tuple(
            Instance(
                fabric,
                frozenset(number for kind, number in chosen if kind == "leaf"),
                frozenset(number for kind, number in chosen if kind == "spine"),
                servers[job * tasks + task],
                tuple(hosts[job * workers : (job + 1) * workers]),
            )
            for job in range(jobs)
            for task in range(tasks)
        ),
        tuple(tuple(range(job * tasks, (job + 1) * tasks)) for job in range(jobs)),
    )


def optimise_rates(tasks: Tasks, joint: Joint, limit: float = 60.0, *, steps: int | None = None) -> Joint:
    """The plans with the best rates for which links have room: a linear program. With ``steps``, rates are whole
    multiples of the bandwidth divided by it (QSR). Raises ``FailedError`` if there is no solution within ``limit``
    seconds."""
    program = Program()
    rates = [
        program.column(0, 1 / plan.fullest(instance))
        for instance, plan in zip(tasks.instances, joint.plans, strict=True)
    ]
    if steps is not None:
        for rate in rates:
            program.row(0, 0, [(program.column(0, steps, whole=True), 1.0), (rate, -float(steps))])
    loads: dict[tuple[int, int], Counter[int]] = {}
    for task, plan in enumerate(joint.plans):
        for link, flows in plan.up.items():
            loads.setdefault(link, Counter())[rates[task]] += flows
    for load in loads.values():
        program.at_most(load.items(), 1.0)
    tasks.objective(program, rates)
    found = program.minimise(limit)
    if found is not None:  # of equally good rates, those whose slowest task is the fastest
        costs = dict(enumerate(program.costs))
        program.at_most(costs.items(), sum(cost * found.values[column] for column, cost in costs.items()) + _ROOM)
        program.costs = [0.0] * len(program.costs)
        least = program.column(0, 1, -1.0)
        for rate in rates:
            program.at_most([(least, 1.0), (rate, -1.0)])
        found = program.minimise(limit)
    if found is None:
        raise FailedError("no rates were found for these plans")
    return replace(joint, rates=tuple(found.values[column] for column in rates))


def overloads(tasks: Tasks, joint: Joint) -> list[str]:
    """Violations of constraint (10): links that carry more than their bandwidth, a sentence each."""
    loads: dict[str, float] = {}

    def add(link: str, load: float) -> None:
        loads[link] = loads.get(link, 0.0) + load

    for instance, plan, rate in zip(tasks.instances, joint.plans, joint.rates, strict=True):
        end = f"leaf{instance.server[0]}"
        for (leaf, spine), flows in plan.up.items():
            add(f"leaf{leaf} to spine{spine}", flows * rate)
        for spine, flows in plan.down(instance).items():
            add(f"spine{spine} to {end}", flows * rate)
        add(f"{end} to its server", plan.last(instance) * rate)
    for number, rate in enumerate(tasks.of_jobs(joint.rates)):
        add(f"workers of job {number}", rate)
    return [f"{link}: {load:.3f} of its bandwidth" for link, load in sorted(loads.items()) if load > 1 + 1e-6]
