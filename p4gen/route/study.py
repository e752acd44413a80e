"""ARO's Figure 7a: mean throughput of one task over random instances, by algorithm."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from p4gen.route.baselines import aggregation_tree, random_spine
from p4gen.route.instance import Instance, LeafSpine, draw
from p4gen.route.plan import Plan
from p4gen.route.solve import accelerated, optimum

ALGORITHMS: Final[Mapping[str, Callable[[Instance, int, float], Plan]]] = {
    "random": lambda instance, seed, _limit: random_spine(instance, seed),
    "aggtree": lambda instance, seed, _limit: aggregation_tree(instance, seed),
    "aro-acc": lambda instance, _seed, limit: accelerated(instance, limit),
    "aro": lambda instance, _seed, limit: optimum(instance, limit),
}
"""By name: an instance, a seed for what chooses at random, and the seconds that a solver has."""
PAPER: Final = {"random": 7.92, "aggtree": 8.76, "aro": 26.33}
"""Figure 7a's means in Gb/s: 24 x 24 x 24, 200 workers, 20 % of the switches aggregate, 4 pipelines, 30 instances."""
_OWN_SEEDS: Final = 10**6
"""Added to the seed of an instance for what an algorithm draws."""


@dataclass(frozen=True)
class Solved:
    """An instance with the plans of some algorithms."""

    seed: int
    instance: Instance
    plans: Mapping[str, Plan]


@dataclass(frozen=True)
class Summary:
    """An algorithm's results; rates in Gb/s, in hundredths of the bandwidth, as QSR has them."""

    mean: float
    error: float
    """Standard error of the mean."""
    worst_gap: float | None
    """The largest gap to the bound; None if the algorithm proves none."""
    slowest: float
    """Seconds of the slowest instance."""


def solve(
    fabric: LeafSpine, workers: int, aggregators: int, seed: int, algorithms: Sequence[str], limit: float
) -> Solved:
    """One instance, and the plans of algorithms for it."""
    instance = draw(fabric, workers, aggregators, seed)
    return Solved(seed, instance, {name: ALGORITHMS[name](instance, seed + _OWN_SEEDS, limit) for name in algorithms})


def summary(solved: Sequence[Solved], algorithm: str) -> Summary:
    """An algorithm's mean over instances."""
    plans = [(each.instance, each.plans[algorithm]) for each in solved]
    rates = [plan.throughput(instance, whole=True) / 1e9 for instance, plan in plans]
    gaps = [plan.gap(instance) for instance, plan in plans]
    known = [gap for gap in gaps if gap is not None]
    error = statistics.stdev(rates) / math.sqrt(len(rates)) if len(rates) > 1 else 0.0
    slowest = max(plan.seconds for _, plan in plans)
    return Summary(statistics.mean(rates), error, max(known) if len(known) == len(gaps) else None, slowest)
