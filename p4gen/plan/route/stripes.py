"""Several trees for one group: each carries a part of every call's data (ARO §III, SJMT, with p4gen's switches).

The rates of trees that share links are a linear program, and its dual prices links. Trees are added one after the
other: the cheapest one at these prices, by the integer program of ``exact``, as long as it costs less than the value of
a bit. When there is none, no trees have higher rates in all (column generation).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from p4gen.plan.route.exact import cheapest, fastest
from p4gen.plan.route.fabric import Fabric, Shape
from p4gen.plan.route.program import Program

_ENOUGH: Final = 1e-6
_WORTH: Final = 0.05
"""The share of the rate that a further tree has to add."""


@dataclass(frozen=True)
class Striped:
    """Trees of a group, and the rate of each rank over each of them."""

    fabric: Fabric
    shapes: tuple[Shape, ...]
    rates: tuple[float, ...]
    """Bit/s, with headers."""
    bound: float
    """The highest rate, in all, that any trees have."""
    seconds: float = 0.0

    @cached_property
    def rate(self) -> float:
        """Bit/s of each rank over all trees."""
        return sum(self.rates)

    @property
    def gap(self) -> float:
        """By how much other trees could be faster, as a share of their rate."""
        return max(0.0, 1 - self.rate / self.bound)

    @cached_property
    def loads(self) -> Mapping[str, float]:
        """Bit/s over each link in a direction, by the link's name."""
        found: Counter[str] = Counter()
        for shape, rate in zip(self.shapes, self.rates, strict=True):
            for name, flows in shape.loads(self.fabric).items():
                found[name] += flows * rate  # type: ignore[assignment]
        return found


def striped(fabric: Fabric, most: int, limit: float = 60.0, start: Shape | None = None) -> Striped:
    """Up to ``most`` trees with the highest rates in all that are found within about ``limit`` seconds, and a bound;
    fewer, if one more adds less than a twentieth. ``start``: a good tree, by default the fastest.

    Raises as ``fastest`` does.
    """
    began = time.monotonic()
    shapes, bound = [start or fastest(fabric, limit / 2).shape], fabric.limit_together
    while shapes[0].rate(fabric) < bound * (1 - _ENOUGH):
        value, prices = _prices(fabric, shapes)
        left = limit - (time.monotonic() - began)
        found = cheapest(fabric, prices, left) if left > 0 else None
        if found is None:
            break
        shape, least = found
        bound = min(bound, value / max(least, _ENOUGH))
        if cost_of(fabric, shape, prices) >= 1 - _ENOUGH or shape in shapes:
            break
        shapes.append(shape)
    best = _rated(fabric, shapes, 1)
    for count in range(2, most + 1):
        more = _rated(fabric, shapes, count)
        if sum(more.values()) < sum(best.values()) * (1 + _WORTH):
            break
        best = more
    chosen = sorted(best, key=lambda number: -best[number])
    rates = tuple(best[number] for number in chosen)
    return Striped(
        fabric,
        tuple(shapes[number] for number in chosen),
        rates,
        max(bound, sum(rates)),
        time.monotonic() - began,
    )


def cost_of(fabric: Fabric, shape: Shape, prices: Mapping[str, float]) -> float:
    """The cost of a tree's flows, at prices of flows over links by their names."""
    return sum(flows * prices.get(name, 0.0) for name, flows in shape.loads(fabric).items())


def _prices(fabric: Fabric, shapes: Sequence[Shape]) -> tuple[float, dict[str, float]]:
    """The rate of these trees in all, bit/s, and the cost of a flow over each link: the dual of their rates."""
    unit = max(fabric.bandwidths.values())
    program = Program()
    loads = [shape.loads(fabric) for shape in shapes]
    names = sorted(set().union(*loads))
    columns = {
        name: program.column(0, unit / fabric.bandwidths[name], fabric.bandwidths[name] / unit) for name in names
    }
    for each in loads:
        program.row(1, float(len(names)), [(columns[name], float(flows)) for name, flows in each.items()])
    found = program.minimise(60.0)
    assert found is not None  # prices of 1 each will do
    return found.bound * unit, {name: found.values[column] for name, column in columns.items()}


def _rated(fabric: Fabric, shapes: Sequence[Shape], most: int) -> dict[int, float]:
    """The rates of up to ``most`` of the trees that are highest in all, by the tree's number."""
    unit = max(fabric.bandwidths.values())
    program = Program()
    rates, used = [], []
    links: dict[str, list[tuple[int, float]]] = {}
    for shape in shapes:
        alone = shape.rate(fabric) / unit
        rates.append(program.column(0, alone, -1.0))
        used.append(program.column(0, 1, whole=True))
        program.at_most([(rates[-1], 1.0), (used[-1], -alone)])
        for name, flows in shape.loads(fabric).items():
            links.setdefault(name, []).append((rates[-1], float(flows)))
    program.at_most([(column, 1.0) for column in used], most)
    for name, load in links.items():
        program.at_most(load, fabric.bandwidths[name] / unit)
    found = program.minimise(60.0)
    assert found is not None  # no rates at all will do
    return {n: found.values[rate] * unit for n, rate in enumerate(rates) if found.values[rate] > _ENOUGH}
