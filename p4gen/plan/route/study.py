"""Mean throughput over random instances, by algorithm."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from p4gen.plan.route.baselines import aggregation_tree, random_spine
from p4gen.plan.route.expansion import solve_expanded
from p4gen.plan.route.grid import grid
from p4gen.plan.route.instance import Instance, LeafSpine, draw
from p4gen.plan.route.plan import Plan
from p4gen.plan.route.pruning import ALPHA, solve_accelerated, solve_accelerated_jointly
from p4gen.plan.route.several import jointly
from p4gen.plan.route.solve import optimum, solve_raw
from p4gen.plan.route.tasks import Joint, Tasks, draw_tasks, optimise_rates


@dataclass(frozen=True)
class Effort:
    """The limits of algorithms: their time, and the parts that they leave out."""

    limit: float = 60.0
    """Seconds that a solver has."""
    alpha: float = ALPHA
    """APP: the share of the aggregating spines that a task keeps."""
    steps: int = 100
    """QSR: rates are whole multiples of a link's bandwidth divided by this."""


ALGORITHMS: Final[Mapping[str, Callable[[Instance, int, Effort], Plan]]] = {
    "random": lambda instance, seed, _: random_spine(instance, seed),
    "grid": lambda instance, seed, effort: grid(instance, seed, effort.limit),
    "aggtree": lambda instance, seed, _: aggregation_tree(instance, seed),
    "aro-raw": lambda instance, _, effort: solve_raw(instance, effort.limit),
    "aro-app": lambda instance, _, effort: solve_accelerated(instance, effort.limit, alpha=effort.alpha, staged=False),
    "aro-sro": lambda instance, _, effort: solve_accelerated(instance, effort.limit, pruned=False),
    "aro-acc": lambda instance, _, effort: solve_accelerated(instance, effort.limit, alpha=effort.alpha),
    "aro": lambda instance, _, effort: optimum(instance, effort.limit),
}
"""By name: a function of an instance, and a seed for random choices."""
USUAL: Final = ("random", "grid", "aggtree", "aro-acc", "aro")
"""The algorithms that are compared by default, as in the paper (§IV-A)."""
PAPER: Final = {"random": 7.92, "grid": 1.75, "aggtree": 8.76, "aro": 26.33}
"""Figure 7a's means in Gb/s: 24 x 24 x 24, 200 workers, 20 % of the switches aggregate, 4 pipelines, 30 instances."""
_OWN_SEEDS: Final = 10**6
"""Added to the seed of an instance for an algorithm's own random choices."""


@dataclass(frozen=True)
class Setting:
    """The parameters from which the instances of one point of a figure are drawn."""

    fabric: LeafSpine = field(default_factory=LeafSpine)
    workers: int = 200
    """Workers of each job."""
    ina: float = 0.2
    """The share of the switches that aggregate."""
    jobs: int = 1
    tasks: int = 1
    """Tasks of each job."""
    effort: Effort = field(default_factory=Effort)

    @property
    def aggregators(self) -> int:
        """The number of switches that aggregate; the servers' leaves do."""
        return max(self.jobs * self.tasks, int(self.ina * (self.fabric.leaves + self.fabric.spines)))


@dataclass(frozen=True)
class Solved:
    """An instance, and the plans of some algorithms for it."""

    seed: int
    instance: Instance
    plans: Mapping[str, Plan]


@dataclass(frozen=True)
class Summary:
    """An algorithm's results; rates in Gb/s, of ARO in hundredths of the bandwidth, as QSR has them."""

    mean: float
    error: float
    """Standard error of the mean."""
    worst_gap: float | None
    """The largest gap to the bound; None if the algorithm proves none."""
    slowest: float
    """Seconds of the slowest instance."""


def solve(
    fabric: LeafSpine, workers: int, aggregators: int, seed: int, algorithms: Sequence[str], effort: Effort
) -> Solved:
    """One instance, and the plans of algorithms for it."""
    instance = draw(fabric, workers, aggregators, seed)
    return Solved(seed, instance, {name: ALGORITHMS[name](instance, seed + _OWN_SEEDS, effort) for name in algorithms})


def summary(solved: Sequence[Solved], algorithm: str) -> Summary:
    """An algorithm's mean over instances."""
    plans = [(each.instance, each.plans[algorithm]) for each in solved]
    whole = algorithm.startswith("aro")
    rates = [plan.throughput(instance, whole=whole) / 1e9 for instance, plan in plans]
    gaps = [plan.gap(instance) for instance, plan in plans]
    known = [gap for gap in gaps if gap is not None]
    error = statistics.stdev(rates) / math.sqrt(len(rates)) if len(rates) > 1 else 0.0
    slowest = max(plan.seconds for _, plan in plans)
    return Summary(statistics.mean(rates), error, max(known) if len(known) == len(gaps) else None, slowest)


# --- several tasks ---


def _overlaid(name: str, algorithm: Callable[[Instance, int], Plan], tasks: Tasks, seed: int) -> Joint:
    plans = tuple(algorithm(instance, seed + task) for task, instance in enumerate(tasks.instances))
    return optimise_rates(tasks, Joint(name, plans, ()))


JOINT_ALGORITHMS: Final[Mapping[str, Callable[[Tasks, int, Effort], Joint]]] = {
    "random": lambda tasks, seed, _: _overlaid("random", random_spine, tasks, seed),
    "grid": lambda tasks, seed, _: _overlaid("grid", grid, tasks, seed),
    "aggtree": lambda tasks, seed, _: _overlaid("aggtree", aggregation_tree, tasks, seed),
    "aro-raw": lambda tasks, seed, effort: solve_expanded(tasks, effort.limit, seed=seed),
    "aro-qsr": lambda tasks, seed, effort: solve_expanded(tasks, effort.limit, steps=effort.steps, seed=seed),
    "aro-app": lambda tasks, seed, effort: solve_accelerated_jointly(
        tasks, seed, effort.limit, alpha=effort.alpha, staged=False
    ),
    "aro-sro": lambda tasks, seed, effort: solve_accelerated_jointly(tasks, seed, effort.limit, pruned=False),
    "aro-acc": lambda tasks, seed, effort: solve_accelerated_jointly(tasks, seed, effort.limit, alpha=effort.alpha),
    "aro": lambda tasks, seed, effort: jointly(tasks, seed, effort.limit),
}
"""By name, as ``ALGORITHMS``: the baselines route each task by itself, and their plans share the links (§V-B)."""


@dataclass(frozen=True)
class JointSolved:
    """Tasks with the plans of some algorithms."""

    seed: int
    tasks: Tasks
    found: Mapping[str, Joint]


@dataclass(frozen=True)
class JointSummary:
    """An algorithm's means over instances, Gb/s, as in Figures 9 and 10."""

    least: float
    """The slowest task's rate of one job; with several jobs, the slowest job's."""
    total: float
    """The total rate of all tasks."""
    worst_gap: float | None
    slowest: float


def solve_jointly(
    fabric: LeafSpine, jobs: int, tasks: int, workers: int, aggregators: int, seed: int,
    algorithms: Sequence[str], effort: Effort,
) -> JointSolved:  # fmt: skip
    """One instance of several tasks, and the plans of algorithms for it."""
    drawn = draw_tasks(fabric, jobs, tasks, workers, aggregators, seed)
    found = {name: JOINT_ALGORITHMS[name](drawn, seed + _OWN_SEEDS, effort) for name in algorithms}
    return JointSolved(seed, drawn, found)


def joint_summary(solved: Sequence[JointSolved], algorithm: str) -> JointSummary:
    """An algorithm's means over instances."""
    each = [(one.tasks, one.found[algorithm]) for one in solved]
    unit = solved[0].tasks.bandwidth / 1e9
    least = [min(tasks.of_jobs(joint.rates) if len(tasks.jobs) > 1 else joint.rates) * unit for tasks, joint in each]
    gaps = [joint.gap(tasks) for tasks, joint in each]
    known = [gap for gap in gaps if gap is not None]
    return JointSummary(
        statistics.mean(least),
        statistics.mean(sum(joint.rates) * unit for _, joint in each),
        max(known) if len(known) == len(gaps) else None,
        max(joint.seconds for _, joint in each),
    )
