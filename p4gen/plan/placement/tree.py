"""IncTrees: the switches that take part in a group's collectives, and their connections (EPIC §3.1).

The tree follows shortest paths from the ranks to the root. A switch at which no two branches meet need not be a node:
an edge of the tree may span several links, and its packets are forwarded like any IPv4. A switch with several
pipelines is a node for each pipeline that has edges, joined by internal edges to the pipeline on the way to the root.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

from p4gen.errors import InputError
from p4gen.vocabulary.message import MAX_RANKS
from p4gen.vocabulary.topology import TopologySpec

NOTHING_DOWN: Final[Mapping[str, str]] = MappingProxyType({})
"""Names of links that are not to be used, each with the reason."""


class NodeKey(NamedTuple):
    """A node's name: a switch, and one of its pipelines."""

    switch: str
    pipeline: int


class Role(StrEnum):
    """The role of a node in AllReduce."""

    LEAF = "leaf"
    """Only ranks are below it."""
    INTERMEDIATE = "intermediate"
    ROOT = "root"
    """It has no parent; a star's only node is one too."""


@dataclass(frozen=True)
class TreeEdge:
    """An edge as one of its two nodes sees it."""

    path: tuple[str, ...]
    """Names from the switch to the other end, both included; of an internal edge the switch alone."""
    port: int | None
    """Where it leaves the switch; None for an internal edge."""
    far: NodeKey | None
    """The node at the other end; None when a rank is there."""
    ranks: frozenset[int]
    """The ranks that are reached through it."""

    @property
    def internal(self) -> bool:
        """Whether it joins two pipelines of one switch."""
        return self.port is None


@dataclass(frozen=True)
class TreeNode:
    """A switch's pipeline in an IncTree: children in the order of their lowest ranks, then the parent."""

    key: NodeKey
    edges: tuple[TreeEdge, ...]
    parent: int | None
    """Index of the edge toward the root; None at the root."""

    @property
    def children(self) -> tuple[TreeEdge, ...]:
        """The edges away from the root."""
        return tuple(edge for i, edge in enumerate(self.edges) if i != self.parent)

    @property
    def role(self) -> Role:
        """The role in AllReduce: root, leaf or intermediate."""
        if self.parent is None:
            return Role.ROOT
        return Role.LEAF if all(edge.far is None for edge in self.children) else Role.INTERMEDIATE

    def toward(self, rank: int) -> int:
        """Index of the edge on the path to a rank."""
        return next(i for i, edge in enumerate(self.edges) if rank in edge.ranks)


@dataclass(frozen=True)
class IncTree:
    """A group's tree: its ranks (names of hosts), and its nodes, each after its parent."""

    ranks: tuple[str, ...]
    nodes: tuple[TreeNode, ...]

    @property
    def root(self) -> TreeNode:
        """The node without a parent."""
        return self.nodes[0]

    @cached_property
    def links(self) -> frozenset[frozenset[str]]:
        """The links that its edges run over, by their ends."""
        paths = (edge.path for node in self.nodes for edge in node.edges)
        return frozenset(frozenset(pair) for path in paths for pair in pairwise(path))

    @cached_property
    def _by_key(self) -> Mapping[NodeKey, TreeNode]:
        return {node.key: node for node in self.nodes}

    def node(self, key: NodeKey) -> TreeNode:
        """A node by name; ``KeyError`` when it takes no part."""
        return self._by_key[key]

    def opposite(self, node: TreeNode, index: int) -> tuple[TreeNode, int]:
        """The other end of an edge between two nodes: the node there, and the edge's index at it."""
        far = node.edges[index].far
        if far is None:
            raise ValueError(f"a rank is at the other end of edge {index} of {node.key}")
        other = self.node(far)
        return other, next(i for i, edge in enumerate(other.edges) if edge.far == node.key)

    def depth(self, switch: str) -> int:
        """How many of the tree's switches are above this one."""
        node = next(node for node in self.nodes if node.key.switch == switch)
        above = set[str]()
        while node.parent is not None:
            node, _ = self.opposite(node, node.parent)
            above.add(node.key.switch)
        return len(above - {switch})

    def first_hop(self, rank: int) -> tuple[TreeNode, int]:
        """The node that a rank sends to, and the index of its edge there."""
        return next(
            (node, i)
            for node in self.nodes
            for i, edge in enumerate(node.edges)
            if edge.far is None and rank in edge.ranks
        )


def build_tree(
    topology: TopologySpec,
    ranks: Sequence[str],
    root: str | None = None,
    *,
    pipelines: int = 1,
    ports: int = 32,
    every_switch: bool = False,
    ports_per_pipeline: Mapping[str, int] | None = None,
    down: Mapping[str, str] = NOTHING_DOWN,
    server: bool = False,
) -> IncTree:
    """The IncTree of ``ranks`` (hosts) below ``root``; by default the topology's root, or the switch nearest to them.

    When all ranks are behind one port of ``root``, the tree's root is the first switch below it where they part.
    With ``every_switch`` all switches on the paths are nodes. ``ports`` and ``pipelines`` are those of the program;
    where switches run different ones, ``ports_per_pipe`` has what they come to. ``down`` has the links that are not to
    be used, by name, each with the reason. With a ``server`` the last rank's switch is the root, those of the other
    ranks are right below it, and there are no other nodes. Raises ``InputError`` with every reason why there is no such
    tree.
    """
    problems = list(tree_problems(topology, ranks, root))
    if problems:
        raise InputError(*problems)
    if server:
        (top,) = (link.other(ranks[-1]) for link in topology.ports[ranks[-1]])
        if root not in (None, top):
            raise InputError(f"{root} is not the switch of {ranks[-1]}, the last rank, which has the server: {top} is")
    else:
        top = root or topology.root or nearest(topology, ranks, down)
    away = topology.distances(top, down)
    lost = [host for host in ranks if host not in away]
    if lost:
        raise InputError(*(no_path(topology, host, top, down) for host in lost))
    per_pipeline = ports_per_pipeline or dict.fromkeys(topology.switches, ports // pipelines)
    if server:
        return tree_along(topology, ranks, top, _racks(topology, ranks, top, down), per_pipeline)
    below = _children(topology, ranks, top, down)
    while len(below[top]) == 1 and below[top][0] in below:
        top = below[top][0]
    return tree_along(topology, ranks, top, _spans(below, top, every_switch), per_pipeline)


def tree_along(
    topology: TopologySpec,
    ranks: Sequence[str],
    root: str,
    paths: Mapping[str, Sequence[tuple[str, ...]]],
    ports_per_pipeline: Mapping[str, int],
) -> IncTree:
    """The IncTree whose edges take these paths. For each switch that is a node, ``paths`` has the paths down to its
    children and to ranks, from the switch to the other end. Switches between the ends only forward."""
    return IncTree(tuple(ranks), tuple(_Builder(topology, ranks, paths, ports_per_pipeline).walk(root)))


def tree_links(tree: IncTree, topology: TopologySpec) -> frozenset[str]:
    """The names of the links that a tree's edges run over."""
    return frozenset(link.name for link in topology.links if frozenset(link.ends) in tree.links)


def nearest(topology: TopologySpec, ranks: Sequence[str], down: Mapping[str, str] = NOTHING_DOWN) -> str:
    """The switch with the fewest links to all ranks together; the first of several, or of all where none has a path
    to every rank."""
    found = by_distance(topology, ranks, down)
    return found[0].switch if found else topology.switches[0]


class Reach(NamedTuple):
    """The distances of a switch from some hosts: links to all of them together, and to the farthest."""

    switch: str
    links: int
    farthest: int


def by_distance(topology: TopologySpec, ranks: Sequence[str], down: Mapping[str, str] = NOTHING_DOWN) -> list[Reach]:
    """The switches that have a path to every rank, those first that have the fewest links to all together."""
    away = [topology.distances(host, down) for host in ranks]
    found = [
        Reach(switch, sum(each[switch] for each in away), max(each[switch] for each in away))
        for switch in topology.switches
        if all(switch in each for each in away)
    ]
    return sorted(found, key=lambda reach: reach.links)


def no_path(topology: TopologySpec, host: str, switch: str, down: Mapping[str, str]) -> str:
    """Why there is no path: everything that is down between the nodes that the host reaches and the rest."""
    reached = topology.distances(host, down)
    cut = dict.fromkeys(
        down[link.name]
        for link in topology.links
        if link.name in down and (link.ends[0] in reached) != (link.ends[1] in reached)
    )
    return f"no path between {host} and {switch}: {', '.join(cut) or 'nothing connects them'}"


def port_to(topology: TopologySpec, switch: str, neighbour: str) -> int:
    """The port of ``switch`` that ``neighbour`` is connected to."""
    return next(port for port, link in enumerate(topology.ports[switch]) if link.other(switch) == neighbour)


def tree_problems(topology: TopologySpec, ranks: Sequence[str], root: str | None) -> Iterator[str]:
    """The errors of the request itself, regardless of failures."""
    if not 1 <= len(ranks) <= MAX_RANKS:
        yield f"{len(ranks)} ranks; a group has 1 to {MAX_RANKS}"
    yield from (f"there is no host '{host}'" for host in dict.fromkeys(ranks) if host not in topology.hosts)
    if len(set(ranks)) != len(ranks):
        yield "a host can be only one rank of a group"
    if root is not None and root not in topology.switches:
        yield f"there is no switch '{root}'"


def _children(topology: TopologySpec, ranks: Sequence[str], root: str, down: Mapping[str, str]) -> dict[str, list[str]]:
    """For each switch on the ranks' paths to the root, the nodes below it, in the order of their lowest ranks."""
    away = topology.distances(root, down)
    found: dict[str, list[str]] = {root: []}
    for host in ranks:
        for node, above in pairwise(_way(topology, host, away, down)):
            siblings = found.setdefault(above, [])
            if node not in siblings:
                siblings.append(node)
    return found


def _way(topology: TopologySpec, host: str, away: Mapping[str, int], down: Mapping[str, str]) -> tuple[str, ...]:
    """A shortest path from a host to the node from which distances are measured."""
    way = [host]
    while away[way[-1]]:
        neighbours = (link.other(way[-1]) for link in topology.ports[way[-1]] if link.name not in down)
        way.append(next(node for node in neighbours if away[node] < away[way[-1]]))
    return tuple(way)


def _racks(
    topology: TopologySpec, ranks: Sequence[str], root: str, down: Mapping[str, str]
) -> dict[str, list[tuple[str, ...]]]:
    """The paths from the root to its own ranks and to the switches of others, and from those to theirs. Raises
    ``InputError`` if packets from one of them to the root may pass another one."""
    away = topology.distances(root, down)
    found: dict[str, list[tuple[str, ...]]] = {root: []}
    for host in ranks:
        _, rack, *above = _way(topology, host, away, down)
        if rack not in found:
            found[rack] = []
            found[root].append((*reversed(above), rack))
        found[rack].append((rack, host))
    for rack in found:
        near = topology.distances(rack, down)
        for other in found.keys() - {rack, root}:
            if near[other] + away[other] == away[rack]:
                raise InputError(f"{other} has ranks, and those of {rack} send through it")
    return found


def _spans(below: Mapping[str, list[str]], root: str, every_switch: bool) -> dict[str, list[tuple[str, ...]]]:
    """The paths from each node down to the next ones and to ranks: switches with one child only are passed through,
    unless ``every_switch`` is a node."""
    found: dict[str, list[tuple[str, ...]]] = {}
    todo = [root]
    while todo:
        node = todo.pop()
        found[node] = []
        for child in below[node]:
            path = [node, child]
            while not every_switch and len(below.get(path[-1], ())) == 1:
                path.append(below[path[-1]][0])
            found[node].append(tuple(path))
            if path[-1] in below:
                todo.append(path[-1])
    return found


class _Builder:
    """Turns the switches at the ends of paths into nodes."""

    def __init__(
        self,
        topology: TopologySpec,
        ranks: Sequence[str],
        paths: Mapping[str, Sequence[tuple[str, ...]]],
        ports_per_pipeline: Mapping[str, int],
    ) -> None:
        self._topology = topology
        self._paths = paths
        self._rank = {host: rank for rank, host in enumerate(ranks)}
        self._everyone = frozenset(range(len(ranks)))
        self._ports_per_pipeline = ports_per_pipeline

    def walk(self, switch: str, up: tuple[str, ...] = (), above: NodeKey | None = None) -> Iterator[TreeNode]:
        """The nodes of a switch and of all below; ``up`` is the path to its parent, the node ``above``."""
        paths = self._paths[switch]
        pipelines: dict[int, list[tuple[str, ...]]] = defaultdict(list)
        for path in paths:
            pipelines[self._pipeline(switch, path)].append(path)
        largest = min(pipelines, key=lambda pipeline: (-len(pipelines[pipeline]), pipeline), default=0)
        main = self._pipeline(switch, up) if up else largest
        main_key = NodeKey(switch, main)
        others = sorted(pipeline for pipeline in pipelines if pipeline != main)
        down = [self._down(path) for path in pipelines.get(main, [])]
        for pipeline in others:
            reached = frozenset[int]().union(*(self._ranks(path[-1]) for path in pipelines[pipeline]))
            down.append(TreeEdge((switch,), None, NodeKey(switch, pipeline), reached))
        down.sort(key=lambda edge: min(edge.ranks))
        under = self._ranks(switch)
        if up:
            parent = TreeEdge(up, port_to(self._topology, switch, up[1]), above, self._everyone - under)
            yield TreeNode(main_key, (*down, parent), len(down))
        else:
            yield TreeNode(main_key, tuple(down), None)
        for pipeline in others:
            mine = tuple(self._down(path) for path in pipelines[pipeline])
            reached = frozenset[int]().union(*(edge.ranks for edge in mine))
            inward = TreeEdge((switch,), None, main_key, self._everyone - reached)
            yield TreeNode(NodeKey(switch, pipeline), (*mine, inward), len(mine))
        for path in paths:
            if path[-1] in self._paths:
                yield from self.walk(path[-1], path[::-1], NodeKey(switch, self._pipeline(switch, path)))

    def _down(self, path: tuple[str, ...]) -> TreeEdge:
        end = path[-1]
        far = NodeKey(end, self._pipeline(end, path[::-1])) if end in self._paths else None
        return TreeEdge(path, port_to(self._topology, path[0], path[1]), far, self._ranks(end))

    def _pipeline(self, switch: str, path: tuple[str, ...]) -> int:
        return port_to(self._topology, switch, path[1]) // self._ports_per_pipeline[switch]

    def _ranks(self, node: str) -> frozenset[int]:
        if node in self._rank:
            return frozenset({self._rank[node]})
        return frozenset[int]().union(*(self._ranks(path[-1]) for path in self._paths[node]))
