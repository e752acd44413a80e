"""The possible places of a group's IncTree on one of p4gen's topologies: ranks, switches that aggregate, and ways
between them.

The rules are those of ARO (§III), with the behaviour of p4gen's switches. A switch that aggregates and lies on a flow's
way adds the flow. A way is a shortest path. Internal edges join a switch's pipelines, so that one flow leaves each
switch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from p4gen.errors import InputError
from p4gen.plan.placement.tree import NOTHING_DOWN, tree_problems
from p4gen.vocabulary.topology import TopologySpec

MOST_HOSTS: Final = 250
MOST_WAYS: Final = 64
"""Ways looked at between two nodes."""


class Way(NamedTuple):
    """A path from a rank's leaf or a switch to a switch that aggregates; the switches between only forward."""

    nodes: tuple[str, ...]
    links: tuple[str, ...]
    """The names of the links."""

    @property
    def end(self) -> str:
        """The switch that aggregates."""
        return self.nodes[-1]


@dataclass(frozen=True)
class Fabric:
    """A topology, a group's ranks, and the switches that may be nodes of its tree."""

    topology: TopologySpec
    ranks: tuple[str, ...]
    inc: frozenset[str]
    """Switches that aggregate."""
    down: Mapping[str, str] = field(default_factory=lambda: NOTHING_DOWN)
    """Links that cannot be used, by name, each with the reason."""
    busy: Mapping[str, int] = field(default_factory=dict)
    """Flows of other groups, by the link's name."""
    fan_in: int = 32
    """Most edges of a node."""
    spare: Mapping[str, float] = field(default_factory=dict)
    """Bit/s that links have left for trees, by the link's name, where that is not their whole bandwidth."""

    def check(self) -> None:
        """Raises ``InputError`` with every reason why there cannot be a tree."""
        problems = list(tree_problems(self.topology, self.ranks, None))
        problems += [f"there is no switch '{name}'" for name in sorted(self.inc - set(self.topology.switches))]
        if len(self.topology.hosts) > MOST_HOSTS:
            problems.append(f"{len(self.topology.hosts)} hosts; trees are planned for {MOST_HOSTS} at most")
        if not self.inc:
            problems.append("no switch aggregates")
        if problems:
            raise InputError(*problems)
        lost = [leaf for leaf in self.forwarding if not self.ways[leaf]]
        if lost:
            raise InputError(
                f"from {', '.join(lost)}, no switch that aggregates is reached over a path that results take back"
            )

    @cached_property
    def between(self) -> Mapping[tuple[str, str], str]:
        """The name of the link that can be used between two nodes."""
        up = [link for link in self.topology.links if link.name not in self.down]
        return {ends: link.name for link in up for ends in (link.ends, link.ends[::-1])}

    @cached_property
    def bandwidths(self) -> Mapping[str, float]:
        """Bit/s, by the link's name."""
        whole = {link.name: float(self.topology.setting(link, "bandwidth")) for link in self.topology.links}
        return {**whole, **self.spare}

    @cached_property
    def under(self) -> Mapping[str, tuple[str, ...]]:
        """The ranks under each leaf that has any."""
        found: dict[str, list[str]] = {}
        for host in self.ranks:
            found.setdefault(self.topology.ports[host][0].other(host), []).append(host)
        return {leaf: tuple(hosts) for leaf, hosts in found.items()}

    @cached_property
    def forwarding(self) -> tuple[str, ...]:
        """Leaves with ranks that do not aggregate: each rank's flow leaves them by itself."""
        return tuple(leaf for leaf in self.under if leaf not in self.inc)

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Leaves with ranks that aggregate: nodes of every tree."""
        return tuple(leaf for leaf in self.under if leaf in self.inc)

    @cached_property
    def ways(self) -> Mapping[str, tuple[Way, ...]]:
        """The ways to switches that aggregate, from each leaf in ``forwarding`` and from each of these switches."""
        found: dict[str, list[Way]] = {start: [] for start in (*self.forwarding, *sorted(self.inc))}
        for end in sorted(self.inc):
            away = self.topology.distances(end, self.down)
            for start, ways in found.items():
                if start == end or start not in away:
                    continue
                for number, nodes in enumerate(self._shortest(start, end, away)):
                    if number == MOST_WAYS:
                        break
                    if start in self.inc or self._comes_back(nodes):
                        ways.append(Way(nodes, tuple(self.between[pair] for pair in pairwise(nodes))))
        return {start: tuple(ways) for start, ways in found.items()}

    def _shortest(self, start: str, end: str, away: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
        if start == end:
            yield (end,)
            return
        for link in self.topology.ports[start]:
            after = link.other(start)
            if link.name in self.down or away.get(after, len(away)) >= away[start]:
                continue
            if after == end or after not in self.inc:
                yield from ((start, *rest) for rest in self._shortest(after, end, away))

    def _comes_back(self, nodes: tuple[str, ...]) -> bool:
        """Whether results to a rank under the first node take the same way. A switch on the way has the rank's address
        once, for all traffic, and divides it over equally short paths."""
        host = self.under[nodes[0]][0]
        for before, here in pairwise(nodes[:-1]):
            ports = self.topology.next_ports(here, host, self.down)
            if [self.topology.ports[here][port].other(here) for port in ports] != [before]:
                return False
        return True

    def rate(self, loads: Mapping[str, int]) -> float:
        """Bit/s of each flow, if every link divides itself among its flows and those of other groups."""
        return min(self.bandwidths[name] / (count + self.busy.get(name, 0)) for name, count in loads.items())

    @cached_property
    def limit(self) -> float:
        """The rate that no tree exceeds: that of several trees, and the rate at which the links of forwarding leaves
        carry whole flows."""
        found = [self.limit_together]
        for leaf in self.forwarding:
            first = {way.links[0] for way in self.ways[leaf]}
            if first:
                most = -(-len(self.under[leaf]) // len(first))
                found.append(max(self.bandwidths[name] for name in first) / most)
        return min(found)

    @cached_property
    def limit_together(self) -> float:
        """The rate that no trees exceed together: that of the ranks' links, and of the links of forwarding leaves."""
        found = [self.rate({self.between[host, leaf]: 1}) for leaf, hosts in self.under.items() for host in hosts]
        for leaf in self.forwarding:
            first = {way.links[0] for way in self.ways[leaf]}
            found.append(sum(self.bandwidths[name] for name in first) / len(self.under[leaf]))
        return min(found)


@dataclass(frozen=True)
class Shape:
    """A tree without its program: paths between ranks and the switches that are nodes, and the root."""

    root: str
    paths: tuple[tuple[str, ...], ...]
    """The paths of the edges, away from the ranks: each ends at a switch that is a node."""

    @cached_property
    def below(self) -> Mapping[str, tuple[tuple[str, ...], ...]]:
        """For each node the paths down to the next nodes and to ranks."""
        at: dict[str, list[tuple[str, ...]]] = {}
        for path in self.paths:
            at.setdefault(path[0], []).append(path)
            at.setdefault(path[-1], []).append(path[::-1])
        inner = {path[-1] for path in self.paths} | {self.root}
        found: dict[str, tuple[tuple[str, ...], ...]] = {}
        todo = [(self.root, "")]
        while todo:
            node, above = todo.pop()
            if node in found or node not in inner:
                continue
            found[node] = tuple(path for path in at.get(node, ()) if path[-1] != above)
            todo += [(path[-1], node) for path in found[node]]
        return found

    def loads(self, fabric: Fabric) -> Counter[str]:
        """Flows over each link, by its name: as many in either direction."""
        return Counter(fabric.between[pair] for path in self.paths for pair in pairwise(path))

    def rate(self, fabric: Fabric) -> float:
        """The rate of every flow, in bit/s."""
        return fabric.rate(self.loads(fabric))

    def depth(self, root: str) -> int:
        """Links from a root to the farthest rank."""
        away = {root: 0}
        todo = [root]
        below = Shape(root, self.paths).below
        while todo:
            node = todo.pop()
            for path in below.get(node, ()):
                away[path[-1]] = away[node] + len(path) - 1
                todo.append(path[-1])
        return max(away.values())

    def problems(self, fabric: Fabric) -> Iterator[str]:
        """Why it is not a tree of the fabric: missing links, ranks that are left out, circles, full nodes."""
        nodes = {path[-1] for path in self.paths} | {self.root}
        for path in self.paths:
            for one, other in pairwise(path):
                if (one, other) not in fabric.between:
                    yield f"there is no link between {one} and {other}"
        yield from (f"{node} does not aggregate" for node in sorted(nodes - fabric.inc))
        ends = Counter(path[0] for path in self.paths)
        for host in fabric.ranks:
            if ends[host] != 1:
                yield f"rank {host} has {ends[host]} edges"
        if len(self.paths) != len(fabric.ranks) + len(nodes) - 1 or set(self.below) != nodes:
            yield "its edges make no tree"
        sizes = Counter(end for path in self.paths for end in (path[0], path[-1]) if end in nodes)
        for node, count in sorted(sizes.items()):
            if count == 1 and len(self.paths) > 1:
                yield f"{node} has one edge only"
            if count > fabric.fan_in:
                yield f"{node} has {count} edges; the program takes {fabric.fan_in} (fan_in)"
