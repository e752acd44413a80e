"""GRID, which ARO is compared with (§V-A): each worker's data is added once on its way, by any part of a switch.

Its program (J. Fang et al., "GRID: Gradient Routing With In-Network Aggregation for Distributed Training", ToN 31(5),
2023) is that of its authors' sample code, with the capacity of 3200 that ARO names: rates are at most 1, a switch takes
3200 of them, and the server 100. So all workers have their full rate with nearly every choice of aggregators, and the
relaxed program does not decide among them.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple, TypeVar

from typing_extensions import override

from p4gen.errors import FailedError
from p4gen.plan.route.instance import Instance
from p4gen.plan.route.plan import Plan
from p4gen.plan.route.program import Program

_Key = TypeVar("_Key")

SERVER_TAKES: Final = 100.0
"""Flows that the relaxed program lets enter the server."""

Node = tuple[str, int]
"""The place where a worker's data is added: ("leaf", number), ("spine", number), or ``SERVER``."""
SERVER: Final[Node] = ("server", 0)


class Route(NamedTuple):
    """A worker's way to the server."""

    worker: tuple[int, int]
    """Its leaf and port."""
    node: Node
    """The place where its data is added."""
    spine: int | None
    """None under the server's leaf, unless a spine adds."""


@dataclass(frozen=True)
class SingleAggregation(Plan):
    """A plan in which a flow that has been added to others is not added again; ``up`` is of its routes."""

    routes: tuple[Route, ...] = ()

    @override
    def down(self, instance: Instance) -> dict[int, int]:
        return _counted(
            (route.spine, _below_spine(instance, route)) for route in self.routes if route.spine is not None
        )

    @override
    def last(self, instance: Instance) -> int:
        return len({_at_server(instance, route) for route in self.routes})

    @override
    def problems(self, instance: Instance) -> Iterator[str]:
        """Workers without a route or with several, and places that cannot add a worker's data, a sentence each."""
        count = Counter(route.worker for route in self.routes)
        yield from (f"worker {worker} has {count[worker]} routes" for worker in instance.workers if count[worker] != 1)
        for route in self.routes:
            if route.node not in candidates(instance, route.worker[0]):
                yield f"{route.node[0]}{route.node[1]} cannot add what worker {route.worker} sends"

    @override
    def paths(self, instance: Instance) -> dict[tuple[int, int], tuple[str, ...]]:
        """The switches on each worker's way."""
        end = f"leaf{instance.server[0]}"
        return {
            route.worker: (end,) if route.spine is None else (f"leaf{route.worker[0]}", f"spine{route.spine}", end)
            for route in self.routes
        }


def _above_leaf(instance: Instance, route: Route) -> Hashable:
    """The flow in which a worker's data leaves its leaf: one for each of its pipelines if the leaf adds."""
    leaf, port = route.worker
    return ("leaf", leaf, instance.fabric.leaf_pipeline(port)) if route.node == ("leaf", leaf) else route.worker


def _below_spine(instance: Instance, route: Route) -> Hashable:
    """The flow in which a worker's data leaves its spine."""
    if route.node == ("spine", route.spine):
        return ("spine", route.spine, instance.fabric.spine_pipeline(route.worker[0]))
    return _above_leaf(instance, route)


def _at_server(instance: Instance, route: Route) -> Hashable:
    """The flow in which a worker's data arrives at the server."""
    if route.node != ("leaf", instance.server[0]):
        return _below_spine(instance, route)
    by = instance.fabric.leaf_pipeline(route.worker[1]) if route.spine is None else instance.entry(route.spine)
    return ("leaf", instance.server[0], by)


def _counted(flows: Iterable[tuple[_Key, Hashable]]) -> dict[_Key, int]:
    return dict(Counter(key for key, _ in set(flows)))


def candidates(instance: Instance, leaf: int) -> list[Node]:
    """The places that may add the data of a worker under a leaf: the server, its leaf and the server's if they
    aggregate, and all spines that do."""
    leaves = sorted({leaf, instance.server[0]} & instance.aggregating_leaves)
    spines = sorted(instance.aggregating_spines)
    return [SERVER, *(("leaf", number) for number in leaves), *(("spine", number) for number in spines)]


def shares(instance: Instance) -> Mapping[int, Mapping[Node, float]]:
    """The relaxed program's solution: for each leaf, the parts of a worker's data that its candidates add.

    Among all optima it is the one in their middle, where an interior-point method ends. Each candidate has an equal
    part, as far as the server takes so many flows: a worker's part for the server counts as it is, an aggregator's flow
    as the largest part of it.
    """
    found: dict[int, dict[Node, float]] = {}
    for leaf in instance.by_leaf:
        nodes = candidates(instance, leaf)
        found[leaf] = dict.fromkeys(nodes, 1 / len(nodes))
    direct = sum(len(ports) * found[leaf][SERVER] for leaf, ports in instance.by_leaf.items())
    fraction = min(1.0, (SERVER_TAKES - len(instance.aggregating_leaves | instance.aggregating_spines)) / direct)
    for parts in found.values():
        rest = parts[SERVER] * (1 - max(0.0, fraction))
        for node in parts:
            parts[node] += -rest if node == SERVER else rest / (len(parts) - 1)
    return found


def grid(instance: Instance, seed: int, limit: float = 60.0) -> Plan:
    """GRID: aggregators are drawn by the relaxed program's shares. Then the best routes to them are found as if
    aggregators had one pipeline, and evaluated with their pipelines. Raises ``FailedError`` if no routes are found
    within ``limit`` seconds."""
    began = time.monotonic()
    source = random.Random(seed)  # noqa: S311 - a simulation
    parts = shares(instance)
    chosen: dict[tuple[int, int], Node] = {}
    for worker in sorted(instance.workers):
        nodes = parts[worker[0]]
        chosen[worker] = source.choices(list(nodes), list(nodes.values()))[0]
    routes = tuple(_routed(instance, chosen, limit))
    up = _counted(
        ((route.worker[0], route.spine), _above_leaf(instance, route)) for route in routes if route.spine is not None
    )
    return SingleAggregation("grid", up, None, time.monotonic() - began, routes)


def _routed(instance: Instance, chosen: Mapping[tuple[int, int], Node], limit: float) -> Iterator[Route]:
    """Ways to the aggregators and on that leave the fewest flows on the fullest link, if aggregators had one pipeline.
    Data that the leaf adds goes on as one flow."""
    program = Program()
    fabric, end = instance.fabric, instance.server[0]
    arriving = len(set(chosen.values()) - {SERVER}) + sum(node == SERVER for node in chosen.values())
    fullest = program.column(arriving, len(chosen), 1.0)
    free: dict[int, list[list[tuple[int, int]]]] = {}
    fixed = Counter((worker[0], node[1]) for worker, node in chosen.items() if node[0] == "spine")
    used = {spine for _, spine in fixed}
    for leaf, workers in groupby(chosen, key=lambda worker: worker[0]):
        anywhere = [worker for worker in workers if chosen[worker][0] != "spine"]
        if leaf == end:
            yield from (Route(worker, chosen[worker], None) for worker in anywhere)
            continue
        added = [worker for worker in anywhere if chosen[worker] == ("leaf", leaf)]
        free[leaf] = [added] * bool(added) + [[worker] for worker in anywhere if worker not in added]
    yield from (Route(worker, node, node[1]) for worker, node in chosen.items() if node[0] == "spine")
    columns = {
        (leaf, spine): program.column(0, len(flows), whole=True)
        for leaf, flows in free.items()
        for spine in range(fabric.spines)
    }
    for leaf, flows in free.items():
        program.row(len(flows), len(flows), [(columns[leaf, spine], 1.0) for spine in range(fabric.spines)])
    for (leaf, spine), column in columns.items():
        program.at_most([(column, 1.0), (fullest, -1.0)], -float(fixed[leaf, spine]))
    for spine in range(fabric.spines):
        into = [(columns[leaf, spine], 1.0) for leaf in free]
        program.at_most([*into, (fullest, -1.0)], -float(spine in used))
    found = program.minimise(limit)
    if found is None:
        raise FailedError(f"GRID's routes were not found within {limit:g} s")
    for leaf, flows in free.items():
        over = (spine for spine in range(fabric.spines) for _ in range(int(found.values[columns[leaf, spine]])))
        for flow, spine in zip(flows, over, strict=True):
            yield from (Route(worker, chosen[worker], spine) for worker in flow)
