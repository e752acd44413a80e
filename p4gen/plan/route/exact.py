"""The fastest IncTree as an integer program (ARO §III, for p4gen's switches), solved by HiGHS.

Every flow has the same rate r, so a link with y flows takes y/bandwidth seconds for a bit of each rank. The largest of
these is minimised, so nothing is quadratic. A tree carries as many flows either way, so the root does not matter.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from p4gen.errors import FailedError
from p4gen.plan.route.fabric import Fabric, Shape, Way
from p4gen.plan.route.greedy import quick, slim, tidy
from p4gen.plan.route.program import Program

_SECOND_STAGE = 10.0
"""Seconds at most for the smallest of the fastest trees."""


@dataclass(frozen=True)
class Found:
    """A tree, and the proven bound of its rate."""

    shape: Shape
    rate: float
    """Bit/s of each flow."""
    bound: float
    """No tree of the model is faster."""
    algorithm: str
    seconds: float

    @property
    def gap(self) -> float:
        """By how much the best tree could be faster, as a share of its rate; 0 if this is the best."""
        return max(0.0, 1 - self.rate / self.bound)


def fastest(fabric: Fabric, limit: float = 60.0) -> Found:
    """The best tree that is found within ``limit`` seconds; without the solver's help where the quick one reaches the
    limit that the leaves' links set. Raises ``FailedError`` if none was found, ``InputError`` if there cannot be one,
    ``MissingToolError`` if HiGHS is needed and not there."""
    fabric.check()
    began = time.monotonic()
    start = quick(fabric)
    if start is not None and start.rate(fabric) >= fabric.limit * (1 - 1e-9):
        return Found(start, start.rate(fabric), fabric.limit, "quick", time.monotonic() - began)
    model = _Model(fabric, None if start is None else 1 / start.rate(fabric))
    shape, slowest = model.solve(limit)
    best = max((s for s in (start, shape) if s is not None), key=lambda s: s.rate(fabric), default=None)
    if best is None:
        raise FailedError(f"no tree was found within {limit:g} s")
    rate = best.rate(fabric)
    bound = max(rate, min(fabric.limit, _next_rate(fabric, slowest)))
    return Found(best, rate, bound, "quick" if best is start else "exact", time.monotonic() - began)


def cheapest(fabric: Fabric, prices: Mapping[str, float], limit: float) -> tuple[Shape, float] | None:
    """The tree whose flows cost least, at prices of flows over links by their names, that is found within ``limit``
    seconds; and a cost that every tree has at least. None if no tree was found."""
    model = _Model(fabric, None)
    ranks = sum(prices.get(fabric.between[host, leaf], 0.0) for leaf, hosts in fabric.under.items() for host in hosts)
    found = model.at_prices(prices, limit)
    return None if found is None else (found[0], found[1] + ranks)


def _next_rate(fabric: Fabric, seconds: float) -> float:
    """The fastest rate that is a link's bandwidth over a whole number of flows, and needs at least these seconds."""
    if seconds <= 0:
        return fabric.limit
    rates = []
    for bandwidth in set(fabric.bandwidths.values()):
        flows = max(1, -int(-(seconds * bandwidth - 1e-6) // 1))
        rates.append(bandwidth / flows)
    return max(rates)


class _Model:
    """The program: a column for each way that may have flows."""

    def __init__(self, fabric: Fabric, at_most: float | None) -> None:
        self._fabric = fabric
        self._unit = max(fabric.bandwidths.values())
        self._program = program = Program()
        least = self._unit / fabric.limit
        most = len(fabric.ranks) * self._unit / min(fabric.bandwidths.values())
        self._slowest = program.column(least, max(least, most if at_most is None else at_most * self._unit), 1.0)
        self._used = {
            node: program.column(1 if node in fabric.required else 0, 1, whole=True) for node in sorted(fabric.inc)
        }
        self._ways: list[tuple[Way, int]] = []
        for leaf in fabric.forwarding:
            flows = len(fabric.under[leaf])
            mine = [self._way(way, flows) for way in fabric.ways[leaf]]
            program.row(flows, flows, [(column, 1.0) for column in mine])
        self._tree()
        self._loads()
        self._addresses()
        self._full()

    def _way(self, way: Way, most: int) -> int:
        column = self._program.column(0, most, whole=True)
        self._program.at_most([(column, 1.0), (self._used[way.end], -float(most))])
        self._ways.append((way, column))
        return column

    def _tree(self) -> None:
        """Each node but the root has one way to another node, and is farther from the root than that one."""
        program, fabric = self._program, self._fabric
        size = len(self._used)
        first = fabric.required[0] if fabric.required else None
        roots = {
            node: program.column(int(node == first), int(first in (None, node)), whole=True) for node in self._used
        }
        program.row(1, 1, [(column, 1.0) for column in roots.values()])
        level = {node: program.column(0, size) for node in self._used}
        earlier: list[str] = []
        for node, used in self._used.items():
            program.at_most([(roots[node], 1.0), (used, -1.0)])
            if first is None:  # of equal trees, the one whose root comes first
                for other in earlier:
                    program.at_most([(roots[node], 1.0), (self._used[other], 1.0)], 1.0)
            earlier.append(node)
            to: dict[str, list[int]] = defaultdict(list)
            for way in fabric.ways[node]:
                to[way.end].append(self._way(way, 1))
            ways = [(column, 1.0) for columns in to.values() for column in columns]
            program.row(0, 0, [*ways, (used, -1.0), (roots[node], 1.0)])
            for end, columns in to.items():
                program.at_most(
                    [(level[end], 1.0), (level[node], -1.0), *((column, float(size)) for column in columns)], size - 1.0
                )

    def _loads(self) -> None:
        fabric = self._fabric
        over: dict[str, list[int]] = defaultdict(list)
        for way, column in self._ways:
            for name in way.links:
                over[name].append(column)
        for name, columns in over.items():
            share = fabric.bandwidths[name] / self._unit
            busy = float(fabric.busy.get(name, 0))
            self._program.at_most([*((c, 1.0) for c in columns), (self._slowest, -share)], -busy)

    def _addresses(self) -> None:
        """A switch on the way has one next hop to each port of a node that flows come in by."""
        program, fabric = self._program, self._fabric
        choices: dict[tuple[str, str, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for way, column in self._ways:
            between = way.nodes[0] in fabric.inc
            for nodes in (way.nodes, way.nodes[::-1]) if between else (way.nodes,):
                for here, after in pairwise(nodes):
                    if here not in fabric.inc:
                        choices[nodes[-1], nodes[-2], here][after].append(column)
        for hops in choices.values():
            if len(hops) > 1:
                chosen = [program.used([(c, program.high[c]) for c in columns]) for columns in hops.values()]
                program.at_most([(column, 1.0) for column in chosen], 1.0)

    def _full(self) -> None:
        """A node has room for its edges."""
        fabric = self._fabric
        for node, used in self._used.items():
            edges = [(column, 1.0) for way, column in self._ways if way.end == node]
            edges += [(column, 1.0) for way, column in self._ways if way.nodes[0] == node]
            ranks = len(fabric.under.get(node, ()))
            if ranks + sum(self._program.high[column] for column, _ in edges) > fabric.fan_in:
                self._program.at_most([*edges, (used, float(ranks - fabric.fan_in))])

    def solve(self, limit: float) -> tuple[Shape | None, float]:
        """The best tree that was found; of equally fast trees one with few nodes and short ways. Also the seconds for a
        bit that every tree needs at least."""
        program = self._program
        began = time.monotonic()
        found = program.minimise(limit)
        if found is None:
            return None, 0.0
        bound = found.bound / self._unit
        program.high[self._slowest] = max(program.low[self._slowest], found.values[self._slowest] * (1 + 1e-9))
        program.costs = [0.0] * len(program.costs)
        for way, column in self._ways:
            program.costs[column] = float(len(way.links))
        for column in self._used.values():
            program.costs[column] = 1.0
        small = program.minimise(max(0.1, min(_SECOND_STAGE, limit - (time.monotonic() - began))))
        return self._shape((small or found).values), bound

    def at_prices(self, prices: Mapping[str, float], limit: float) -> tuple[Shape, float] | None:
        """The cheapest tree, without its ranks' own links, and a bound of every tree's cost; None if no tree was
        found."""
        program = self._program
        program.costs = [0.0] * len(program.costs)
        for way, column in self._ways:
            program.costs[column] = sum(prices.get(name, 0.0) for name in way.links)
        found = program.minimise(limit)
        return None if found is None else (self._shape(found.values), found.bound)

    def _shape(self, values: Mapping[int, float] | list[float]) -> Shape:
        fabric = self._fabric
        paths: list[tuple[str, ...]] = [(host, leaf) for leaf in fabric.required for host in fabric.under[leaf]]
        left = {leaf: list(fabric.under[leaf]) for leaf in fabric.forwarding}
        for way, column in self._ways:
            for _ in range(round(values[column])):
                start = way.nodes[0]
                paths.append(way.nodes if start in fabric.inc else (left[start].pop(0), *way.nodes))
        return slim(tidy(Shape(paths[0][-1], tuple(paths)), fabric), fabric)
