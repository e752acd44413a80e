"""Instances of the routing problem on leaf-spine fabrics, as ARO's simulations draw them (§V)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from p4gen.errors import InputError

MAPPINGS: Final = ("mod", "block")
"""How ports belong to pipelines: port p to pipeline p mod P, or equally many in a row to each."""


@dataclass(frozen=True)
class LeafSpine:
    """A leaf-spine fabric with equal links, some of whose switches aggregate.

    A leaf's first ports are its hosts', then there is one for each spine; a spine has one for each leaf. An aggregator
    adds packets that arrive at the same pipeline, and sends one flow for each pipeline that has any.
    """

    leaves: int = 24
    spines: int = 24
    hosts: int = 24
    """Hosts of each leaf."""
    bandwidth: float = 100e9
    """Bit/s."""
    pipelines: int = 4
    mapping: str = "mod"

    def leaf_pipeline(self, port: int) -> int:
        """The pipeline of a leaf's port: of a host, or ``hosts`` + a spine's number."""
        return self._pipeline(port, self.hosts + self.spines)

    def spine_pipeline(self, leaf: int) -> int:
        """The pipeline of a spine's port to a leaf."""
        return self._pipeline(leaf, self.leaves)

    def _pipeline(self, port: int, ports: int) -> int:
        return port % self.pipelines if self.mapping == "mod" else port * self.pipelines // ports


@dataclass(frozen=True)
class Instance:
    """One task: workers send to a parameter server. In random instances the server's leaf aggregates."""

    fabric: LeafSpine
    aggregating_leaves: frozenset[int]
    aggregating_spines: frozenset[int]
    server: tuple[int, int]
    """Leaf and port of the parameter server."""
    workers: tuple[tuple[int, int], ...]

    @cached_property
    def by_leaf(self) -> Mapping[int, tuple[int, ...]]:
        """The ports of the workers under each leaf that has any."""
        found: dict[int, list[int]] = {}
        for leaf, port in self.workers:
            found.setdefault(leaf, []).append(port)
        return {leaf: tuple(ports) for leaf, ports in sorted(found.items())}

    @cached_property
    def sends(self) -> Mapping[int, int]:
        """Flows that each leaf but the server's sends up: one for each worker, or each pipeline that workers enter."""
        return {leaf: self.leaf_flows(leaf) for leaf in self.by_leaf if leaf != self.server[0]}

    def leaf_flows(self, leaf: int) -> int:
        """Flows that come out of a leaf for its workers alone."""
        ports = self.by_leaf.get(leaf, ())
        if leaf not in self.aggregating_leaves:
            return len(ports)
        return len({self.fabric.leaf_pipeline(port) for port in ports})

    @cached_property
    def own(self) -> frozenset[int]:
        """Pipelines of the server's leaf that its own workers enter."""
        return frozenset(self.fabric.leaf_pipeline(port) for port in self.by_leaf.get(self.server[0], ()))

    @property
    def least(self) -> int:
        """The least number of flows on the server's link: those of its own leaf's workers."""
        aggregates = self.server[0] in self.aggregating_leaves
        return max(1, len(self.own) if aggregates else len(self.by_leaf.get(self.server[0], ())))

    def entry(self, spine: int) -> int:
        """The pipeline of the server's leaf that a spine's flows enter."""
        return self.fabric.leaf_pipeline(self.fabric.hosts + spine)


def draw(fabric: LeafSpine, workers: int, aggregators: int, seed: int) -> Instance:
    """A random instance with ``aggregators`` switches that aggregate, among them the leaf of the parameter server, leaf
    0.

    Raises ``InputError`` if there are not so many switches or hosts.
    """
    total = fabric.leaves + fabric.spines
    if not 1 <= aggregators <= total:
        raise InputError(f"{aggregators} aggregators; with the server's leaf it is 1 to {total}")
    places = fabric.leaves * fabric.hosts - 1
    if not 1 <= workers <= places:
        raise InputError(f"{workers} workers; the fabric has room for 1 to {places}")
    if fabric.mapping not in MAPPINGS:
        raise InputError(f"there is no mapping '{fabric.mapping}'; there are {', '.join(MAPPINGS)}")
    source = random.Random(seed)  # noqa: S311 - a simulation
    rest = [("leaf", leaf) for leaf in range(1, fabric.leaves)] + [("spine", spine) for spine in range(fabric.spines)]
    chosen = [("leaf", 0), *source.sample(rest, aggregators - 1)]
    server = (0, source.randrange(fabric.hosts))
    hosts = [(leaf, port) for leaf in range(fabric.leaves) for port in range(fabric.hosts) if (leaf, port) != server]
    return Instance(
        fabric,
        frozenset(number for kind, number in chosen if kind == "leaf"),
        frozenset(number for kind, number in chosen if kind == "spine"),
        server,
        tuple(source.sample(hosts, workers)),
    )
