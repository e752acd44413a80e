"""The trees of shortest paths to one root: the manager's default, and a baseline of ``p4gen route``."""

from __future__ import annotations

from collections.abc import Mapping

from p4gen.errors import InputError
from p4gen.plan.placement.tree import IncTree, build_tree, by_distance
from p4gen.plan.route.fabric import Fabric, Shape


def present(fabric: Fabric, ports_per_pipeline: Mapping[str, int]) -> IncTree | None:
    """The tree of the policy ``lowest-common-switch``: that of the nearest root at which branches meet only in switches
    that aggregate. None if there is no such root: then the manager refuses the group."""
    for reach in by_distance(fabric.topology, fabric.ranks, fabric.down):
        if reach.switch not in fabric.inc:
            continue
        try:
            tree = build_tree(
                fabric.topology,
                fabric.ranks,
                reach.switch,
                ports_per_pipeline=ports_per_pipeline,
                down=fabric.down,
            )
        except InputError:
            continue
        if all(node.key.switch in fabric.inc for node in tree.nodes):
            return tree
    return None


def as_shape(tree: IncTree) -> Shape:
    """The paths and the root of an IncTree."""
    paths = [
        edge.path[::-1] if edge.far is None else edge.path
        for node in tree.nodes
        for index, edge in enumerate(node.edges)
        if not edge.internal and (edge.far is None or index == node.parent)
    ]
    return Shape(tree.root.key.switch, tuple(paths))


def one_root(fabric: Fabric) -> Shape | None:
    """The fastest tree of shortest paths to one root, where switches that do not aggregate forward: each flow takes the
    first of equally short ways. None if no root is reached by all."""
    found = [shape for root in sorted(fabric.inc) if (shape := _to(fabric, root)) is not None]
    return max(found, key=lambda shape: shape.rate(fabric), default=None)


def _to(fabric: Fabric, root: str) -> Shape | None:
    away = fabric.topology.distances(root, fabric.down)
    paths: list[tuple[str, ...]] = []
    todo = [(host, *_climb(fabric, leaf, away)) for leaf, hosts in fabric.under.items() for host in hosts]
    seen = {root}
    while todo:
        path = todo.pop()
        if path[-1] not in fabric.inc:
            return None
        paths.append(path)
        if path[-1] not in seen:
            seen.add(path[-1])
            todo.append((path[-1], *_climb(fabric, _above(fabric, path[-1], away), away)))
    possible = {way.nodes for ways in fabric.ways.values() for way in ways}
    shape = Shape(root, tuple(paths))
    known = all(len(path) == 2 or (path if path[0] in fabric.inc else path[1:]) in possible for path in paths)
    return shape if known and not list(shape.problems(fabric)) else None


def _above(fabric: Fabric, switch: str, away: Mapping[str, int]) -> str:
    """The first neighbour that is nearer to the root; the switch itself if there is none."""
    links = [link for link in fabric.topology.ports[switch] if link.name not in fabric.down]
    here = away.get(switch, 0)
    return next((link.other(switch) for link in links if away.get(link.other(switch), here) < here), switch)


def _climb(fabric: Fabric, switch: str, away: Mapping[str, int]) -> tuple[str, ...]:
    """The path from a switch toward the root, up to the first switch that aggregates."""
    found = [switch]
    while found[-1] not in fabric.inc and (after := _above(fabric, found[-1], away)) != found[-1]:
        found.append(after)
    return tuple(found)
