"""How fast trees are beside each other: the rate that a tree's most crowded link leaves each flow."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from p4gen.plan.placement.tree import IncTree
from p4gen.vocabulary.topology import TopologySpec

Ends = frozenset[str]
"""A link, by its two ends."""


def flows(tree: IncTree) -> Counter[Ends]:
    """The number of edges of a tree over each link; results come back over the same links."""
    found: Counter[Ends] = Counter()
    for node in tree.nodes:
        for edge in node.children:  # each edge is seen once, from its upper end
            found.update(map(frozenset, zip(edge.path, edge.path[1:], strict=False)))
    return found


class Crowd:
    """The trees that share a fabric with a tree whose rate is sought. Each of their edges counts as one flow."""

    def __init__(self, topology: TopologySpec, others: Iterable[IncTree]) -> None:
        self._topology = topology
        self._bandwidth: dict[Ends, float] = {
            frozenset(link.ends): topology.setting(link, "bandwidth") for link in topology.links
        }
        self._flows: Counter[Ends] = Counter()
        for tree in others:
            self._flows.update(flows(tree))

    def rate(self, trees: Sequence[IncTree], rates: Sequence[float] = ()) -> float:
        """The rate of each rank, in bit/s, if links are shared equally among all flows over them. The flows of one tree
        are equally fast; those of several trees are in proportion to their ``rates``, and no faster."""
        mine: Counter[Ends] = Counter()
        loads: defaultdict[Ends, float] = defaultdict(float)
        for tree, rate in zip(trees, rates or (1.0,), strict=True):
            for ends, count in flows(tree).items():
                mine[ends] += count
                loads[ends] += count * rate
        share = {ends: self._bandwidth[ends] * count / (count + self._flows[ends]) for ends, count in mine.items()}
        part = min((bandwidth / loads[ends] for ends, bandwidth in share.items()), default=float("inf"))
        return sum(rates) * min(1.0, part) if rates else part

    def most(self, ranks: Sequence[str]) -> float:
        """The rate, in bit/s, that no tree of these hosts can exceed, because all of them use the hosts' own links."""
        return min(max(self._alone(frozenset(link.ends)) for link in self._topology.ports[host]) for host in ranks)

    def _alone(self, ends: Ends) -> float:
        return self._bandwidth[ends] / (1 + self._flows[ends])
