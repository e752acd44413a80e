"""The groups for which switches aggregate, and how long: EPIC's four settings (§6.2, §L.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from p4gen.plan.flow.fabric import FatTree, Tree
from p4gen.plan.flow.jobs import Call


@dataclass(frozen=True)
class Policy:
    """The condition under which a group gets its tree's switches."""

    inc: bool = True
    """Whether switches aggregate at all."""
    disjoint: bool = False
    """Whether a tree is granted only if no link of it is in another granted tree. Otherwise a slot of every switch is
    needed."""
    for_life: bool = True
    """Whether a grant lasts until the job ends; otherwise until the collective has ended."""


POLICIES: Final = {
    "ring": Policy(inc=False),
    "edge-disjoint": Policy(disjoint=True),
    "spatial": Policy(),
    "temporal": Policy(for_life=False),
}
"""Setting 0 to 3 of §L.2."""


class Grants:
    """The resources of granted groups: links of disjoint trees, or a slot of each switch."""

    def __init__(self, fabric: FatTree, policy: Policy, slots: int) -> None:
        self.policy = policy
        self._taken = np.zeros(len(fabric.capacity), bool)
        self._free = np.full(fabric.switches, slots)

    def take(self, tree: Tree) -> bool:
        """Grant a whole tree if possible. Returns whether it is granted."""
        if not self.policy.inc:
            return False
        if self.policy.disjoint:
            if self._taken[tree.at].any():
                return False
            self._taken[tree.at] = True
            return True
        if self._free[tree.nodes].min() <= 0:
            return False
        self._free[tree.nodes] -= 1
        return True

    def release(self, tree: Tree) -> None:
        """Free the resources of a granted tree."""
        if self.policy.disjoint:
            self._taken[tree.at] = False
        else:
            self._free[tree.nodes] += 1


@dataclass(frozen=True)
class Volume:
    """The data that a call moves over each link of its tree, as a multiple of a rank's contribution.

    ``paper``: an AllReduce moves 2 with aggregation in switches, 4 with rings: both directions of a link share its
    capacity, and rings are long. Otherwise each direction has its own: 1, and 2·(K - 1)/K in a ring of K. Half of a
    ring's are a ReduceScatter's and an AllGather's, which fill one direction in switches, too.
    """

    paper: bool = True

    def factor(self, call: Call, ranks: int, granted: bool) -> float:
        """The multiple for a group."""
        both = 2.0 if self.paper else 1.0
        if granted or call is Call.EXCHANGE:
            return both
        ring = 2.0 if self.paper else 2.0 * (ranks - 1) / ranks
        return both * ring / (2.0 if call is Call.HALF else 1.0)

    def inside(self, call: Call, ranks: int, granted: bool) -> float:
        """The multiple within a server's scale-up network, each of whose directions has its own capacity in the paper,
        too: an AllReduce's is 2 there, and 1 if the network aggregates (docs/policies.md)."""
        return self.factor(call, ranks, granted) / (2.0 if self.paper else 1.0)
