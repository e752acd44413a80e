"""The groups for which switches aggregate, and how long: EPIC's four settings (§6.2, §L.2), and groups that share
switches by their phases (§6.2, "scheduled coordination")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from p4gen.plan.flow.fabric import FatTree, Tree
from p4gen.plan.flow.jobs import Call, Job


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
    staggered: bool = False
    """Whether groups of a job that never call in the same phase share a slot of a switch."""


POLICIES: Final = {
    "ring": Policy(inc=False),
    "edge-disjoint": Policy(disjoint=True),
    "spatial": Policy(),
    "temporal": Policy(for_life=False),
}
"""Setting 0 to 3 of §L.2."""
ALL_POLICIES: Final = POLICIES | {"scheduled": Policy(staggered=True)}


def calls_of(job: Job) -> NDArray[np.int64]:
    """Which groups of a job (rows) call in which of its phases (columns): ones and zeros."""
    found = np.zeros((len(job.groups), len(job.phases)), np.int64)
    for number, phase in enumerate(job.phases):
        found[list(phase.groups), number] = 1
    return found


class Grants:
    """The resources of granted groups: links of disjoint trees, or a slot of each switch. Under a ``staggered`` policy
    a job takes as many slots of a switch as it has groups there in its busiest phase."""

    def __init__(self, fabric: FatTree, policy: Policy, slots: int, jobs: Sequence[Job]) -> None:
        self.policy, self._jobs = policy, jobs
        self._taken = np.zeros(len(fabric.capacity), bool)
        self._free = np.full(fabric.switches, slots)
        self._calls: dict[int, NDArray[np.int64]] = {}
        """By job: ``calls_of``."""
        self._granted: dict[int, NDArray[np.int64]] = {}
        """By job: the granted groups that call in a phase (column) at each switch (row)."""

    def take(self, tree: Tree, job: int, group: int) -> bool:
        """Grant the whole tree of a job's group if possible. Returns whether it is granted."""
        if not self.policy.inc:
            return False
        if self.policy.disjoint:
            if self._taken[tree.at].any():
                return False
            self._taken[tree.at] = True
            return True
        if self.policy.staggered:
            return self._take_phases(tree, job, group)
        if self._free[tree.nodes].min() <= 0:
            return False
        self._free[tree.nodes] -= 1
        return True

    def release(self, tree: Tree, job: int, group: int) -> None:
        """Free the resources of a granted tree."""
        if self.policy.disjoint:
            self._taken[tree.at] = False
        elif self.policy.staggered:
            granted, calls = self._granted[job], self._calls[job][group]
            before = granted[tree.nodes].max(axis=1)
            granted[tree.nodes] -= calls
            self._free[tree.nodes] += before - granted[tree.nodes].max(axis=1)
        else:
            self._free[tree.nodes] += 1

    def _take_phases(self, tree: Tree, job: int, group: int) -> bool:
        if job not in self._calls:
            self._calls[job] = calls_of(self._jobs[job])
            self._granted[job] = np.zeros((len(self._free), len(self._jobs[job].phases)), np.int64)
        granted = self._granted[job][tree.nodes]
        after = granted + self._calls[job][group]
        more = after.max(axis=1) - granted.max(axis=1)
        if (self._free[tree.nodes] < more).any():
            return False
        self._free[tree.nodes] -= more
        self._granted[job][tree.nodes] = after
        return True

    def end(self, job: int) -> None:
        """Forget a job, all of whose grants have been released."""
        self._calls.pop(job, None)
        self._granted.pop(job, None)


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
