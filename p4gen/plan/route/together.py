"""Trees of several jobs planned together, on any topology (ARO §III, MJMT, with p4gen's switches).

Maximised is formula (3): the least of the jobs' rates, each in parts of the job's weight, and a little of their sum. As
in ``stripes``, the rates of known trees are a linear program whose dual prices links, and the cheapest tree of each job
at these prices is added until there is none that is worth more than it costs. No trees, however many a job has, are
better than the value then. The plan takes as many of the trees found as each job may have.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from p4gen.plan.route.exact import cheapest, fastest
from p4gen.plan.route.fabric import Fabric, Shape
from p4gen.plan.route.greedy import quick
from p4gen.plan.route.program import ANY, Program
from p4gen.plan.route.stripes import Striped, cost_of
from p4gen.plan.route.tasks import MU

_ENOUGH: Final = 1e-6
_ROUNDS: Final = 50
_SOLVER_S: Final = 60.0


@dataclass(frozen=True)
class Job:
    """Ranks that are to have a tree, or several that divide each call's data among them."""

    name: str
    fabric: Fabric
    weight: float = 1.0
    """Its share: with twice the weight of another, it is to have twice the rate. Formula (3)'s β is its inverse."""
    trees: int = 1
    """The most trees."""


@dataclass(frozen=True)
class Together:
    """The trees of all jobs with their rates, and the value that no trees exceed, in bit/s."""

    jobs: tuple[Job, ...]
    trees: tuple[Striped, ...]
    bound: float

    @property
    def value(self) -> float:
        """Formula (3), in bit/s."""
        return value(self.jobs, [each.rate for each in self.trees])


def value(jobs: Sequence[Job], rates: Sequence[float]) -> float:
    """Formula (3): the least of the rates in parts of the jobs' weights, and a thousandth of their sum."""
    shares = [rate / job.weight for job, rate in zip(jobs, rates, strict=True)]
    return min(shares) + MU * sum(shares)


def plan_together(jobs: Sequence[Job], limit: float = 60.0) -> Together:
    """The best trees that are found within about ``limit`` seconds.

    Raises as ``fastest`` does, for a job that can have no tree.
    """
    end = time.monotonic() + limit
    known = _alone(jobs, limit / 4)
    bound = ANY
    for _ in range(_ROUNDS):
        reached, prices, worth = _prices(jobs, known)
        dearest, more = 1.0, False
        for job, shapes, least in zip(jobs, known, worth, strict=True):
            left = end - time.monotonic()
            found = cheapest(job.fabric, prices, left) if left > 0 else None
            if found is None:
                dearest = ANY
                break
            shape, cost = found
            dearest = max(dearest, least / max(cost, _ENOUGH * least))
            if shape not in shapes and cost_of(job.fabric, shape, prices) < least * (1 - _ENOUGH):
                shapes.append(shape)
                more = True
        bound = min(bound, reached * dearest)
        if not more or dearest == ANY:
            break
    plan = Together(tuple(jobs), _rated(jobs, known), bound)
    return replace(plan, bound=max(bound, plan.value))


def _alone(jobs: Sequence[Job], limit: float) -> list[list[Shape]]:
    """Trees to begin with: each job's fastest alone, and beside those of the jobs before it."""
    known: list[list[Shape]] = []
    busy: Counter[str] = Counter()
    for job in jobs:
        shapes = [fastest(job.fabric, limit / len(jobs)).shape]
        beside = quick(replace(job.fabric, busy=dict(busy)))
        if beside is not None and beside not in shapes:
            shapes.append(beside)
        busy += shapes[-1].loads(job.fabric)
        known.append(shapes)
    return known


def _unit(jobs: Sequence[Job]) -> float:
    return max(max(job.fabric.bandwidths.values()) for job in jobs)


def _prices(jobs: Sequence[Job], known: Sequence[Sequence[Shape]]) -> tuple[float, dict[str, float], list[float]]:
    """The value of these trees, as many as each job likes, in bit/s; the cost of a flow over each link; and what a tree
    of each job may cost: the dual of their rates."""
    unit, bandwidths, program = _unit(jobs), jobs[0].fabric.bandwidths, Program()
    loads = [[shape.loads(job.fabric) for shape in shapes] for job, shapes in zip(jobs, known, strict=True)]
    names = sorted({name for some in loads for each in some for name in each})
    columns = {name: program.column(0, ANY, bandwidths[name] / unit) for name in names}
    worth = [program.column(0, ANY) for _ in jobs]
    program.row(1, ANY, [(column, 1.0) for column in worth])
    for job, own, some in zip(jobs, worth, loads, strict=True):
        for each in some:
            costs = [(columns[name], float(flows)) for name, flows in each.items()]
            program.row(MU / job.weight, ANY, [*costs, (own, -1 / job.weight)])
    found = program.minimise(_SOLVER_S)
    assert found is not None  # high prices will do
    prices = {name: found.values[column] for name, column in columns.items()}
    return (
        found.bound * unit,
        prices,
        [(found.values[own] + MU) / job.weight for own, job in zip(worth, jobs, strict=True)],
    )


def _rated(jobs: Sequence[Job], known: Sequence[Sequence[Shape]]) -> tuple[Striped, ...]:
    """The best rates of as many of the trees as each job may have."""
    unit, program = _unit(jobs), Program()
    least = program.column(0, ANY, -1.0)
    links: dict[str, list[tuple[int, float]]] = {}
    rates: list[list[int]] = []
    for job, shapes in zip(jobs, known, strict=True):
        mine, used = [], []
        for shape in shapes:
            alone = shape.rate(job.fabric) / unit
            mine.append(program.column(0, alone, -MU / job.weight))
            used.append(program.column(0, 1, whole=True))
            program.at_most([(mine[-1], 1.0), (used[-1], -alone)])
            for name, flows in shape.loads(job.fabric).items():
                links.setdefault(name, []).append((mine[-1], float(flows)))
        program.at_most([(column, 1.0) for column in used], job.trees)
        program.at_most([(least, 1.0), *((column, -1 / job.weight) for column in mine)])
        rates.append(mine)
    for name, load in links.items():
        program.at_most(load, jobs[0].fabric.bandwidths[name] / unit)
    found = program.minimise(_SOLVER_S)
    assert found is not None  # no rates at all will do
    return tuple(
        _striped(job, shapes, [found.values[column] * unit for column in mine])
        for job, shapes, mine in zip(jobs, known, rates, strict=True)
    )


def _striped(job: Job, shapes: Sequence[Shape], rates: Sequence[float]) -> Striped:
    top = max(rates)
    chosen = sorted((n for n, rate in enumerate(rates) if rate > _ENOUGH * top), key=lambda n: -rates[n])
    return Striped(
        job.fabric, tuple(shapes[n] for n in chosen), tuple(rates[n] for n in chosen), job.fabric.limit_together
    )
