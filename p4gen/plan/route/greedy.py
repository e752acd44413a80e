"""A good tree within milliseconds, without a solver: flows take the least loaded way, and nodes are added and removed
as long as that helps. Often it reaches the limit that the ranks' own links set, and is then the optimum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from p4gen.plan.route.fabric import Fabric, Shape, Way

_Cost = tuple[float, int, int]
"""Seconds for a bit of each rank, flows on all links together, nodes."""
_WORST: Final[_Cost] = (float("inf"), 0, 0)


class _Attempt:
    """Flows added one after the other for a given set of nodes."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.loads = Counter(fabric.busy)
        self.paths: list[tuple[str, ...]] = []
        self._next: dict[tuple[str, str, str], str] = {}

    def cost(self, links: Iterable[str]) -> float:
        """The load of the fullest of some links with one flow more."""
        return max((self.loads[name] + 1) / self.fabric.bandwidths[name] for name in links)

    def _routes(self, way: Way, *, both: bool) -> dict[tuple[str, str, str], str]:
        """The routes that switches on the way would need: the neighbour on the way to a switch, by one of its ports."""
        found = {}
        for nodes in (way.nodes, way.nodes[::-1]) if both else (way.nodes,):
            inner = range(1, len(nodes) - 1) if both else range(len(nodes) - 1)
            for i in inner:
                if nodes[i] not in self.fabric.inc:
                    found[nodes[-1], nodes[-2], nodes[i]] = nodes[i + 1]
        return found

    def best(self, ways: Iterable[Way], *, both: bool) -> Way | None:
        """The least loaded way that is possible beside the others."""
        fitting = (
            way
            for way in ways
            if all(self._next.get(at, after) == after for at, after in self._routes(way, both=both).items())
        )
        return min(fitting, key=lambda way: (self.cost(way.links), len(way.links), way.nodes), default=None)

    def add(self, way: Way, *, both: bool, rank: str | None = None) -> None:
        """An edge along a way, from a rank or between two switches."""
        self._next |= self._routes(way, both=both)
        self.loads.update(way.links)
        if rank is not None:
            self.loads[self.fabric.between[rank, way.nodes[0]]] += 1
        self.paths.append(way.nodes if rank is None else (rank, *way.nodes))


def _connect(attempt: _Attempt, nodes: tuple[str, ...]) -> bool:
    """Join the nodes, each by the least loaded way to those that are joined."""
    joined = {nodes[0]}
    while len(joined) < len(nodes):
        ways = [way for node in nodes if node not in joined for way in attempt.fabric.ways[node] if way.end in joined]
        way = attempt.best(ways, both=True)
        if way is None:
            return False
        attempt.add(way, both=True)
        joined.add(way.nodes[0])
    return True


def _assign(attempt: _Attempt, nodes: frozenset[str]) -> bool:
    """Give each rank under a leaf that forwards the least loaded way, and the others their leaf."""
    fabric = attempt.fabric
    for leaf in fabric.required:
        for host in fabric.under[leaf]:
            attempt.add(Way((leaf,), ()), both=False, rank=host)
    ways = {leaf: [way for way in fabric.ways[leaf] if way.end in nodes] for leaf in fabric.forwarding}
    order = sorted(fabric.forwarding, key=lambda leaf: (-len(fabric.under[leaf]), leaf))
    for turn in range(max((len(fabric.under[leaf]) for leaf in order), default=0)):
        for leaf in order:
            if turn < len(fabric.under[leaf]):
                way = attempt.best(ways[leaf], both=False)
                if way is None:
                    return False
                attempt.add(way, both=False, rank=fabric.under[leaf][turn])
    return True


def _try_both(fabric: Fabric, nodes: frozenset[str]) -> tuple[_Cost, Shape | None]:
    """The better result of both orders: joining the nodes first, or the ranks' flows first."""
    found: tuple[_Cost, Shape | None] = (_WORST, None)
    names = tuple(sorted(nodes))
    for first in (True, False):
        attempt = _Attempt(fabric)
        if first:
            done = _connect(attempt, names) and _assign(attempt, nodes)
        else:
            done = _assign(attempt, nodes) and _connect(attempt, names)
        if not done:
            continue
        shape = tidy(Shape(names[0], tuple(attempt.paths)), fabric)
        loads = shape.loads(fabric)
        cost = (1 / fabric.rate(loads), loads.total(), len(shape.below))
        if cost < found[0] and not list(shape.problems(fabric)):
            found = cost, shape
    return found


def tidy(shape: Shape, fabric: Fabric) -> Shape:
    """The tree without nodes that nothing is below, and with the root from which the farthest rank is nearest."""
    paths = list(shape.paths)
    while True:
        ends = Counter(end for path in paths for end in (path[0], path[-1]))
        bare = {node for node, count in ends.items() if count == 1 and node in fabric.inc}
        if not bare or len(paths) == 1:
            break
        paths = [path for path in paths if not bare & {path[0], path[-1]}]
    return _rooted(paths, fabric)


def slim(shape: Shape, fabric: Fabric) -> Shape:
    """The tree without switches that would only pass on one flow: those between two neighbours."""
    paths = list(shape.paths)
    for node in sorted(shape.below):
        mine = [path for path in paths if node in (path[0], path[-1])]
        if len(mine) == 2 and all(len(path) == 2 for path in mine):
            ends = sorted((path[0] if path[-1] == node else path[-1] for path in mine), key=fabric.inc.__contains__)
            if ends[1] in fabric.inc:
                paths = [path for path in paths if path not in mine] + [(ends[0], node, ends[1])]
    return _rooted(paths, fabric)


def _rooted(paths: list[tuple[str, ...]], fabric: Fabric) -> Shape:
    """The tree of these paths, with the root from which the farthest rank is nearest."""
    ends = {end for path in paths for end in (path[0], path[-1])}
    nodes = sorted(ends & fabric.inc, key=fabric.topology.switches.index)
    return min((Shape(node, _toward(node, paths)) for node in nodes), key=lambda shape: shape.depth(shape.root))


def _toward(root: str, paths: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """The paths in their order, each in the direction in which it ends nearer to the root."""
    at: dict[str, list[int]] = {}
    for number, path in enumerate(paths):
        at.setdefault(path[0], []).append(number)
        at.setdefault(path[-1], []).append(number)
    found, todo = dict(enumerate(paths)), [(root, -1)]
    seen = {root}
    while todo:
        node, above = todo.pop()
        for number in at[node]:
            path = paths[number] if paths[number][-1] == node else paths[number][::-1]
            if number == above or path[0] in seen:
                continue
            seen.add(path[0])
            found[number] = path
            todo.append((path[0], number))
    return tuple(found[number] for number in range(len(paths)))


def quick(fabric: Fabric) -> Shape | None:
    """A good tree; None if none was found."""
    starts = [frozenset(fabric.required)] if fabric.required else [frozenset({name}) for name in sorted(fabric.inc)]
    best = min((_try_both(fabric, start) for start in starts), key=lambda found: found[0])
    everything = _try_both(fabric, frozenset(fabric.inc))
    for cost, shape in sorted((best, everything), key=lambda found: found[0]):
        improved = _improved(fabric, cost, shape)
        best = min(best, improved, key=lambda found: found[0])
        if best[1] is not None and best[0][0] <= 1 / fabric.limit * (1 + 1e-9):
            break
    return None if best[1] is None else slim(best[1], fabric)


def _improved(fabric: Fabric, cost: _Cost, shape: Shape | None) -> tuple[_Cost, Shape | None]:
    """Add and remove nodes, the best one at a time, while the tree gets faster, or smaller."""
    if shape is None:
        return cost, shape
    while True:
        nodes = frozenset(shape.below)
        turned = [nodes ^ {name} for name in sorted(fabric.inc) if name not in fabric.required and nodes != {name}]
        found, other = min((_try_both(fabric, each) for each in turned), key=lambda one: one[0], default=(_WORST, None))
        if other is None or found >= cost:
            return cost, shape
        cost, shape = found, other
