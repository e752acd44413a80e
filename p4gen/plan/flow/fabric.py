"""Fat trees of leaves, spines and cores (EPIC §L.2): links, switches, and the trees that a group can be mapped to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

_LINK: Final = re.compile(r"(?P<low>[^-]+)-(?P<high>[^-]+)")


@dataclass(frozen=True)
class Tree:
    """A group's aggregation tree: the links and switches that it takes of a fabric."""

    links: tuple[int, ...]
    switches: tuple[int, ...]
    """Empty if the group is inside one server."""

    @cached_property
    def at(self) -> NDArray[np.int64]:
        """The tree's links, as an index of NumPy arrays."""
        return np.array(self.links, np.int64)

    @cached_property
    def nodes(self) -> NDArray[np.int64]:
        """The tree's switches, as an index of NumPy arrays."""
        return np.array(self.switches, np.int64)


@dataclass(frozen=True)
class Trees:
    """The trees that connect a group with the fewest tiers, in the order of their spines and cores."""

    own: tuple[int, ...]
    """The links that all of them have: hosts' or servers'."""
    above: NDArray[np.int64]
    """A row for each tree: its links between switches."""
    switches: NDArray[np.int64]
    """A row for each tree: its switches."""

    def __len__(self) -> int:
        return len(self.above)

    def tree(self, number: int) -> Tree:
        """One of the trees, counted from 0."""
        return Tree((*self.own, *self.above[number].tolist()), tuple(self.switches[number].tolist()))


@dataclass(frozen=True)
class FatTree:
    """A fat tree: in each pod all leaves are connected to all spines; spine s of each pod to the cores of number s.

    A host is a GPU with its own link. Hosts, leaves, spines and cores are numbered from 0; so are links and switches,
    in the order hosts' links, leaf to spine, spine to core, those of GPUs inside servers, and leaves, spines, cores. A
    link is one capacity for both directions: a collective loads both alike.
    """

    pods: int
    leaves: int
    """Leaves of each pod."""
    spines: int
    """Spines of each pod."""
    cores: int
    """Core switches of each spine."""
    hosts: int
    """Hosts of each leaf."""
    bandwidth: float = 100e9
    """Bit/s of a link in each direction."""
    scale_up: int = 0
    """GPUs of a server that its scale-up network connects; 0 for none."""
    scale_up_bandwidth: float = 8e12
    """Bit/s of a GPU in the scale-up network."""
    scale_up_inc: bool = False
    """Whether the scale-up network aggregates, under every policy under which switches do."""

    @cached_property
    def gpus(self) -> int:
        """Number of GPUs, of which each is a host."""
        return self.pods * self.leaves * self.hosts

    @cached_property
    def _first(self) -> tuple[int, int, int, int]:
        """The numbers of the first links from leaf to spine, from spine to core, and of scale-up; then that of all
        links."""
        up = self.gpus
        core = up + self.pods * self.leaves * self.spines
        inside = core + self.pods * self.spines * self.cores
        return up, core, inside, inside + (self.gpus if self.scale_up else 0)

    @cached_property
    def capacity(self) -> NDArray[np.float64]:
        """The capacity of each link, in bytes/s."""
        *_, inside, end = self._first
        found = np.full(end, self.bandwidth / 8)
        found[inside:] = self.scale_up_bandwidth / 8
        return found

    @property
    def switches(self) -> int:
        """Number of leaves, spines and cores."""
        return self.pods * (self.leaves + self.spines) + self.spines * self.cores

    def leaf_of(self, host: int) -> int:
        """The number of the leaf above a host."""
        return host // self.hosts

    def trees(self, group: Sequence[int]) -> Trees:
        """The trees that connect these hosts with the fewest tiers: one for a leaf, one for each spine of a pod, one
        for each core if there are several pods."""
        up, core, inside, _ = self._first
        none = np.empty((1, 0), np.int64)
        if self.scale_up:
            servers = {host // self.scale_up: host for host in reversed(group)}
            if len(servers) == 1:
                return Trees(tuple(inside + host for host in group), none, none)
            group = sorted(servers.values())  # one link for each server; inside it the scale-up network
        own = tuple(group)
        leaves = np.unique(np.array(group) // self.hosts)
        if len(leaves) == 1:
            return Trees(own, none, leaves[np.newaxis])
        pods = np.unique(leaves // self.leaves)
        several = len(pods) > 1
        top = np.arange(self.spines * (self.cores if several else 1))[:, np.newaxis]  # a tree's core, or spine of a pod
        spine = top // self.cores if several else top
        first_spine = self.pods * self.leaves
        first_core = first_spine + self.pods * self.spines
        links = [up + leaves * self.spines + spine]
        nodes = [np.broadcast_to(leaves, links[0].shape), first_spine + pods * self.spines + spine]
        if several:
            links.append(core + pods * self.spines * self.cores + top)
            nodes.append(first_core + top)
        return Trees(own, np.hstack(links), np.hstack(nodes))

    def switch_named(self, name: str) -> int:
        """The number of a switch: ``leaf3``, ``spine5``, ``core0``. Raises ``ValueError``."""
        limits = {
            "leaf": (0, self.pods * self.leaves),
            "spine": (self.pods * self.leaves, self.pods * self.spines),
            "core": (self.pods * (self.leaves + self.spines), self.spines * self.cores),
        }
        match = re.fullmatch(r"(leaf|spine|core)([0-9]{1,6})", name)
        if match is None:
            raise ValueError(f"'{name}' is not a switch such as leaf0, spine0 or core0")
        first, count = limits[match[1]]
        if int(match[2]) >= count:
            raise ValueError(f"there is no {name}; the last one is {match[1]}{count - 1}")
        return first + int(match[2])

    def link_named(self, name: str) -> int:
        """The number of a link: ``h7-leaf0``, ``leaf0-spine1``, ``spine1-core4``. Raises ``ValueError``."""
        match = _LINK.fullmatch(name)
        up, core, *_ = self._first
        if match is not None:
            low, high = match["low"], match["high"]
            host = re.fullmatch(r"h([0-9]{1,7})", low)
            if host is not None and int(host[1]) < self.gpus and high == f"leaf{self.leaf_of(int(host[1]))}":
                return int(host[1])
            if low.startswith("leaf") and high.startswith("spine"):
                leaf, spine = self.switch_named(low), self.switch_named(high) - self.pods * self.leaves
                if leaf // self.leaves == spine // self.spines:
                    return up + leaf * self.spines + spine % self.spines
            if low.startswith("spine") and high.startswith("core"):
                spine = self.switch_named(low) - self.pods * self.leaves
                top = self.switch_named(high) - self.pods * (self.leaves + self.spines)
                if spine % self.spines == top // self.cores:
                    return core + spine * self.cores + top % self.cores
        raise ValueError(f"there is no link '{name}'; links are such as h0-leaf0, leaf0-spine0, spine0-core0")

    def links_of(self, switch: int) -> tuple[int, ...]:
        """The numbers of all links at a switch."""
        up, core, *_ = self._first
        leaves, spines = self.pods * self.leaves, self.pods * self.spines
        if switch < leaves:
            own = range(switch * self.hosts, (switch + 1) * self.hosts)
            return (*own, *(up + switch * self.spines + spine for spine in range(self.spines)))
        if switch < leaves + spines:
            pod, spine = divmod(switch - leaves, self.spines)
            below = (up + (pod * self.leaves + leaf) * self.spines + spine for leaf in range(self.leaves))
            return (*below, *(core + (switch - leaves) * self.cores + top for top in range(self.cores)))
        spine, top = divmod(switch - leaves - spines, self.cores)
        return tuple(core + (pod * self.spines + spine) * self.cores + top for pod in range(self.pods))


FABRICS: Final = {
    "epic-128": FatTree(pods=4, leaves=4, spines=4, cores=4, hosts=8),
    "epic-128-scale-up": FatTree(pods=4, leaves=4, spines=4, cores=4, hosts=8, scale_up=8),
    "epic-128-scale-up-inc": FatTree(pods=4, leaves=4, spines=4, cores=4, hosts=8, scale_up=8, scale_up_inc=True),
    "epic-2048": FatTree(pods=8, leaves=16, spines=16, cores=8, hosts=16),
    "epic-2048-scale-up": FatTree(pods=8, leaves=16, spines=16, cores=8, hosts=16, scale_up=8),
    "epic-2048-scale-up-inc": FatTree(pods=8, leaves=16, spines=16, cores=8, hosts=16, scale_up=8, scale_up_inc=True),
    "epic-2048-half-core": FatTree(pods=8, leaves=16, spines=16, cores=4, hosts=16),
}
"""EPIC's fabrics (§L.2)."""
