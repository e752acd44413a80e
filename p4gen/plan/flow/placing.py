"""The places of jobs and groups: the GPUs of a job, and the tree of each of its groups for the job's life."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from p4gen.errors import InputError
from p4gen.plan.flow.fabric import FatTree, Tree, Trees
from p4gen.plan.placement.hosts import proposals


@dataclass(frozen=True)
class Placing:
    """How jobs and groups are placed, by name."""

    jobs: str = "packed"
    """One of ``PLACEMENTS`` (``p4gen.plan.placement.hosts``)."""
    unit: int = 8
    """GPUs that a job gets together, under one leaf: a server's."""
    trees: str = "least"
    """``least``: the possible tree whose fullest link has the fewest groups; ``random``: any, as ECMP chooses."""
    seed: int = 0


class Places:
    """The free GPUs of a fabric, in units."""

    def __init__(self, fabric: FatTree, placing: Placing) -> None:
        if placing.unit < 1 or fabric.hosts % placing.unit:
            raise InputError(f"a unit of {placing.unit} GPUs does not divide a leaf's {fabric.hosts}")
        self._fabric, self._placing = fabric, placing
        leaves = range(fabric.pods * fabric.leaves)
        self._free: dict[tuple[int, ...], list[int]] = {(leaf // fabric.leaves, leaf): [] for leaf in leaves}
        for first in range(0, fabric.gpus, placing.unit):
            self._leaf(first).append(first)
        self._random = random.Random(placing.seed)  # noqa: S311 - a simulation

    def take(self, gpus: int) -> tuple[int, ...] | None:
        """GPUs for a job, in order of its ranks; None if so many are not free."""
        units = -(-gpus // self._placing.unit)
        chosen = next(proposals(self._free, units, self._placing.jobs, self._random), None)
        if chosen is None:
            return None
        for first in chosen:
            self._leaf(first).remove(first)
        return tuple(first + i for first in chosen for i in range(self._placing.unit))[:gpus]

    def give(self, hosts: Sequence[int]) -> None:
        """Return a job's GPUs to the free ones."""
        for first in sorted({host - host % self._placing.unit for host in hosts}):
            leaf = self._leaf(first)
            leaf.append(first)
            leaf.sort()

    def _leaf(self, host: int) -> list[int]:
        leaf = self._fabric.leaf_of(host)
        return self._free[leaf // self._fabric.leaves, leaf]


class Routes:
    """The trees of groups; it counts how many groups use each link."""

    def __init__(self, fabric: FatTree, placing: Placing) -> None:
        self._fabric, self._random = fabric, random.Random(placing.seed + 1)  # noqa: S311 - a simulation
        self._any = placing.trees == "random"
        self._load: NDArray[np.int64] = np.zeros(len(fabric.capacity), np.int64)

    def choose(self, hosts: Sequence[int], down: NDArray[np.int64]) -> Tree:
        """A tree of these hosts without links that are ``down``, if there is one; otherwise any."""
        trees = self._fabric.trees(hosts)
        usable = self._usable(trees, down)
        if self._any:
            tree = trees.tree(self._random.choice(usable.tolist()))
        else:
            fullest = self._load[trees.above[usable]].max(axis=1, initial=0)
            tree = trees.tree(usable[fullest.argmin()])
        self._load[tree.at] += 1
        return tree

    def _usable(self, trees: Trees, down: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the trees without links that are down; if there are none, of all."""
        whole = np.flatnonzero(~(down[list(trees.own)].any() | down[trees.above].any(axis=1)))
        return whole if len(whole) else np.arange(len(trees))

    def drop(self, tree: Tree) -> None:
        """Forget a tree that a group no longer has."""
        self._load[tree.at] -= 1
