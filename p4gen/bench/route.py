"""How the time of routing grows with the fabric: one task on leaf-spine fabrics of 24 to 240 leaves and spines.

With s times the leaves there are s times the spines, hosts of each leaf and workers, as in ARO's Figure 11 (§IV-C).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from p4gen.plan.route.instance import LeafSpine
from p4gen.plan.route.study import Effort, Setting, solve

SIDE: Final = 24
"""Leaves, spines, and hosts of each leaf, at scale 1."""
WORKERS: Final = 100


@dataclass(frozen=True)
class RouteCost:
    """The cost of one plan; seconds are of processor time."""

    algorithm: str
    switches: int
    hosts: int
    workers: int
    fullest: int
    """Flows on the fullest link."""
    gap: float | None
    cpu: float


def measure_route(algorithm: str, scale: int, seed: int, limit: float) -> RouteCost:
    """Route a task by an algorithm, and time it; a solver has ``limit`` seconds."""
    side = SIDE * scale
    setting = Setting(LeafSpine(side, side, side), WORKERS * scale)
    began = time.process_time()
    solved = solve(setting.fabric, setting.workers, setting.aggregators, seed, [algorithm], Effort(limit))
    cpu = time.process_time() - began
    plan = solved.plans[algorithm]
    return RouteCost(
        algorithm, 2 * side, side * side, setting.workers, plan.fullest(solved.instance), plan.gap(solved.instance), cpu
    )
