"""The trees that ``p4gen route tree`` compares for a group, by name."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from p4gen.plan.route.exact import fastest
from p4gen.plan.route.fabric import Fabric, Shape
from p4gen.plan.route.greedy import quick
from p4gen.plan.route.planfile import TreePlan
from p4gen.plan.route.present import as_shape, one_root, present

ALGORITHMS: Final = ("lcs", "one-root", "quick", "aro")
"""``lcs``: the manager's default, from the lowest common switch. ``one-root``: shortest paths to one root, where leaves
that do not aggregate forward. ``quick``: a search without a solver. ``aro``: the optimum, or the best found."""


@dataclass(frozen=True)
class Compared:
    """A group's trees by algorithm, None where one has none; and the best of all as a plan."""

    fabric: Fabric
    shapes: dict[str, Shape | None]
    seconds: dict[str, float]
    plan: TreePlan

    @property
    def present_is_best(self) -> bool:
        """Whether no tree is faster than the manager's default."""
        shape = self.shapes["lcs"]
        return shape is not None and shape.rate(self.fabric) >= self.plan.bound * (1 - 1e-9)


def compare(fabric: Fabric, pipelines: int, ports: int, limit: float) -> Compared:
    """The trees of all algorithms. Among equally fast ones the manager's default is planned, then the smaller one.

    Raises ``InputError`` if there cannot be a tree, ``FailedError`` if none was found.
    """
    fabric.check()
    shapes: dict[str, Shape | None] = {}
    seconds: dict[str, float] = {}
    began = time.monotonic()
    per_pipeline = dict.fromkeys(fabric.topology.switches, ports // pipelines)
    tree = present(fabric, per_pipeline)
    for name in ALGORITHMS:
        match name:
            case "lcs":
                shapes[name] = None if tree is None else as_shape(tree)
            case "one-root":
                shapes[name] = one_root(fabric)
            case "quick":
                shapes[name] = quick(fabric)
            case _:
                found = fastest(fabric, limit)
                shapes[name] = found.shape
        seconds[name], began = time.monotonic() - began, time.monotonic()
    known = {name: shape for name, shape in shapes.items() if shape is not None}
    rates = {name: shape.rate(fabric) for name, shape in known.items()}
    top = max(rates.values()) * (1 - 1e-9)
    chosen = next(name for name in ("lcs", "aro", "quick", "one-root") if rates.get(name, 0.0) >= top)
    bound = max(found.bound, rates[chosen])
    plan = TreePlan(fabric.topology, fabric.ranks, fabric.inc, known[chosen], pipelines, ports, bound, chosen)
    plan.check()
    return Compared(fabric, shapes, seconds, plan)
