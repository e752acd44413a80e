"""What a switch serves: edges, patterns, and the contexts made of them; routes for all other traffic.

A switch (with several pipelines: each of them) is a node of an IncTree with numbered edges. For each pattern, that is
AllReduce, Reduce to a rank, or Broadcast from one, at most one edge leads toward the root of the pattern. What a node
has to do follows from that; docs/modes.md has the table. Addresses are integers as on the wire: MAC 48 bits, IPv4 32
bits, IPv6 128 bits, QP 24 bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from p4gen.model.entries import CloneSession, Entry, MulticastGroup
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.message import Collective


@dataclass(frozen=True)
class Endpoint:
    """One end of an IncTree edge: EPIC's (IP, QP), with the MAC address it is reached at. Where an edge has several
    connections (``spec.queue_pairs``), the QP is the first of as many in a row."""

    mac: int
    ip: int
    qp: int


@dataclass(frozen=True)
class Memory:
    """Memory that a rank has registered, and that switches address."""

    address: int
    rkey: int
    size: int
    """Bytes."""


@dataclass(frozen=True)
class Edge:
    """An edge of an IncTree as a switch sees it; ``remote`` is the endpoint at the other end."""

    edge_id: int
    """Unique on the switch, from 1; also the rid of the copies made for it."""
    port: int
    """For an internal edge any port that exists: its copies are recirculated and do not leave."""
    local: Endpoint
    remote: Endpoint
    udp_src_port: int = 49152
    first_hop: bool = True
    """Whether a rank, not a switch, is at the other end."""
    to_pipeline: int | None = None
    """An internal edge's other pipeline; None for an edge that leaves the switch."""
    first_received: int = field(default=0, metadata={"later": True})
    """The PSN of the first packet that comes over it, where connections begin with PSNs of their own
    (``spec.own_psns``)."""
    first_sent: int = field(default=0, metadata={"later": True})
    """The PSN of the first packet that leaves by it."""
    ranks: int = field(default=0, repr=False, metadata={"later": True})
    """The ranks behind it, as a bitmap; of programs that address ranks' memory (``spec.uses_memory``), or whose groups
    have a server (``spec.has_server``)."""
    memory: Memory | None = field(default=None, repr=False, metadata={"later": True})
    """The same programs': what the rank at the other end has offered."""
    more_ports: tuple[int, ...] = field(default=(), repr=False, metadata={"later": True})
    """Where several paths lead to it: the other ports by which its packets come in."""

    @property
    def entrances(self) -> tuple[int, ...]:
        """The ports by which its packets come in. None for an internal edge, whose packets are recirculated."""
        return (self.port, *self.more_ports) if self.to_pipeline is None else ()


@dataclass(frozen=True)
class Pattern:
    """A collective and its root: AllReduce (Barrier goes with it), Reduce to ``root``, or Broadcast from ``root``."""

    collective: Collective
    root: int = 0
    """A rank; 0 for AllReduce."""
    toward: int | None = None
    """Index of the edge toward the pattern's root: for AllReduce the parent (None at the IncTree's root), else the
    edge on the path to rank ``root``."""
    more_roots: tuple[int, ...] = field(default=(), repr=False, metadata={"later": True})
    """Further ranks to which, or from which, the same edge leads."""

    @property
    def roots(self) -> tuple[int, ...]:
        """All its roots, in order."""
        return (self.root, *self.more_roots)

    @property
    def announced_as(self) -> tuple[Collective, ...]:
        """The collectives that control messages announce for it: a Barrier is an AllReduce without data."""
        barrier = (Collective.BARRIER,) if self.collective is Collective.ALLREDUCE else ()
        return (self.collective, *barrier)


ALLREDUCE_AT_ROOT = Pattern(Collective.ALLREDUCE)


@dataclass(frozen=True)
class GroupContext:
    """A context: a group's local state on one switch, or on one of its pipelines; a node of an IncTree.

    ``edges[i]`` has bit i of the context's bitmaps. A pipe's slots are [base, base + slots), counted in the
    pipeline's own memory. By default the node is the root of a star that serves AllReduce and Barrier.
    """

    context: int
    """Unique on the switch."""
    edges: tuple[Edge, ...]
    base: int
    """First slot of the aggregation pipe; with two pipes, of the pipe up, toward a pattern's root."""
    slots: int
    epoch: int = 1
    patterns: tuple[Pattern, ...] = (ALLREDUCE_AT_ROOT,)
    """In the order of their numbers, from 1."""
    pipeline: int = 0
    """The pipeline of all its edges."""
    base_down: int | None = None
    """First slot of the pipe down, the one away from a pattern's root; None when there is none."""
    first_psn: int = 0
    """The PSN that every flow begins with, both ways, where switches end connections (``spec.terminates``). With
    ``spec.own_psns`` it is the number of a flow's first packet, the same for all edges, whatever its PSN is."""
    hosts: tuple[int, ...] = field(default=(), repr=False, metadata={"later": True})
    """The addresses of all ranks, in order, where the group has a server (``spec.has_server``)."""
    block: int | None = field(default=None, repr=False, metadata={"later": True})
    """The number of the block that its slots are, in its pipeline's memory, if it shares them by a lock in the switch
    (``spec.shared_blocks``)."""

    @property
    def source_mask(self) -> int:
        """The bits of all edges: a packet from any of them may be a contribution."""
        return (1 << len(self.edges)) - 1

    def toward(self, pattern: Pattern) -> int:
        """The bit of the edge toward the pattern's root; 0 when there is none."""
        return 0 if pattern.toward is None else 1 << pattern.toward

    def away(self, pattern: Pattern) -> int:
        """The bits of all other edges."""
        return self.source_mask & ~self.toward(pattern)

    def has_up(self, pattern: Pattern) -> bool:
        """Whether data goes toward the pattern's root here, which takes slots."""
        return pattern.collective is not Collective.BROADCAST and self.away(pattern) != 0

    def has_down(self, pattern: Pattern) -> bool:
        """Whether data comes from the pattern's root here, which takes slots where there is a pipe down."""
        if pattern.toward is None or not self.away(pattern):
            return False
        return pattern.collective is not Collective.REDUCE

    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The slots of its patterns, as (first, one past the last)."""
        bases = [self.base] if any(map(self.has_up, self.patterns)) else []
        if self.base_down is not None and any(map(self.has_down, self.patterns)):
            bases.append(self.base_down)
        return tuple((base, base + self.slots) for base in bases)


@dataclass(frozen=True)
class PlacedEdge:
    """A node's end of an edge; ticks are addressed to it."""

    switch: str
    pipeline: int
    context: int
    edge: Edge

    def index(self, spec: CollectiveSpec) -> int:
        """Where the switch keeps the edge's state."""
        return self.pipeline * spec.bank_edges + self.edge.edge_id

    @property
    def internal(self) -> bool:
        """Whether both ends are on this switch, in two of its pipelines."""
        return self.edge.local.ip == self.edge.remote.ip


def placed_edges(switch: str, contexts: Iterable[GroupContext]) -> tuple[PlacedEdge, ...]:
    """The edges of a switch's contexts, internal ones too."""
    return tuple(
        PlacedEdge(switch, context.pipeline, context.context, edge) for context in contexts for edge in context.edges
    )


@dataclass(frozen=True)
class NextHop:
    """The destination of a route's packets."""

    hop_id: int
    port: int
    src_mac: int
    dst_mac: int


@dataclass(frozen=True)
class Route:
    """A prefix such as ``10.0.0.0/24`` or ``fd00::/64`` over ``count`` next hops from ``first`` (ECMP if several)."""

    prefix: str
    first: int
    count: int = 1
    shift: int | None = None
    """The bit of the hash from which on 2^n next hops are chosen; None: by the whole hash."""


class Configurable(Protocol):
    """What a configuration needs of a switch: a model, or a client of its control plane."""

    def insert(self, *entries: Entry) -> None:
        """Add table entries; all or none."""

    def set_multicast_group(self, group: MulticastGroup) -> None:
        """Create or replace a multicast group."""

    def set_clone_session(self, session: CloneSession) -> None:
        """Create or replace a clone session."""


@dataclass(frozen=True)
class SwitchConfig:
    """The whole configuration of one switch."""

    entries: tuple[Entry, ...]
    multicast_groups: tuple[MulticastGroup, ...]
    clone_sessions: tuple[CloneSession, ...] = ()

    def install(self, switch: Configurable) -> None:
        """Add the configuration to what a switch has."""
        switch.insert(*self.entries)
        self.replicate(switch)

    def replicate(self, switch: Configurable) -> None:
        """Give a switch the multicast groups and clone sessions, and no entries."""
        for group in self.multicast_groups:
            switch.set_multicast_group(group)
        for session in self.clone_sessions:
            switch.set_clone_session(session)
