"""Groups as the manager presents them: their state to clients, and to hosts what their ranks need (EPIC §3.3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from p4gen.families import WrittenServing
from p4gen.groups.group import Memory
from p4gen.host.collectives.plan import ChannelKey, PsnSync
from p4gen.host.transport.verbs import Peer
from p4gen.plan.placement.request import GroupSpec, JobSpec


@dataclass(frozen=True)
class HostAddresses:
    """Addresses that the manager assigns to a host: MAC (48 bits), IP for RoCEv2, and the MAC of its switch."""

    mac: int
    ip: int
    gateway: int
    second_ip: int = 0
    """The address of the other kind, IPv4 or IPv6, if switches route both; 0: none."""

    @property
    def ips(self) -> tuple[int, ...]:
        """All its IP addresses."""
        return (self.ip, self.second_ip) if self.second_ip else (self.ip,)


class GroupState(StrEnum):
    """The state of a group's life cycle."""

    INSTALLING = "installing"
    ACTIVE = "active"
    BROKEN = "broken"
    """There is currently no tree for it; it is placed again automatically when there is one."""
    REMOVING = "removing"
    FAILED = "failed"
    """Ranks have gone away. Its calls fail until it has other ranks (``GroupSpec.elastic``)."""


@dataclass(frozen=True)
class RankChannel:
    """A queue pair of a rank (``GroupConfig.channels``), or the first of several in a row (``spec.queue_pairs``)."""

    key: ChannelKey
    qp: int
    peer: Peer
    context: int = 0
    """The context at the rank's first switch, and its epoch: hosts of some programs name them."""
    epoch: int = 0


@dataclass(frozen=True)
class RingEnd:
    """A rank's queue pair for another rank on a ring of hosts, and the far end."""

    qp: int
    peer: Peer


@dataclass(frozen=True)
class RankTree:
    """A rank's queue pairs on one of several trees of its group."""

    channels: tuple[RankChannel, ...]
    rate: float
    """The rate at which ranks send over this tree, in bit/s with headers. A call is divided among the trees in
    proportion to their rates."""


@dataclass(frozen=True)
class RankConfig:
    """The content of InitGroup for the CommLib of one rank: its place, its endpoints, QPs and PSNs."""

    group: str
    generation: int
    """Number of the group's placement, counted from 1; queue pairs of an older one are invalid."""
    rank: int
    size: int
    addresses: HostAddresses
    channels: tuple[RankChannel, ...]
    first_psn: int
    slots: int
    sync: PsnSync
    spec: WrittenServing
    """The program of the first switch: payload, W, M, op, dtype, mode, reliability."""
    ring: tuple[RingEnd, ...] = ()
    """The rank's ends of a ring of hosts: those to the left and to the right, then those of the star, rank 0's in order
    of the other ranks. Without channels all calls of this generation run on it, otherwise those that get no slots of
    switches (``spec.shared_blocks``)."""
    leased: bool = False
    """Whether rank 0 asks the manager before each call (``HostManager.begin_call``)."""
    trees: tuple[RankTree, ...] = ()
    """All trees of a group with several. Then ``channels`` has none."""
    term: int = 1
    """The number of the group's set of ranks (``GroupSpec.term``)."""
    memory: Memory | None = None
    """What the rank has offered, if switches write results there."""

    @property
    def qps(self) -> tuple[int, ...]:
        """The numbers of this rank's queue pairs, on all trees or on the ring."""
        every = (self.channels, *(tree.channels for tree in self.trees))
        pairs = range(self.spec.queue_pairs)
        own = tuple(channel.qp + pair for channels in every for channel in channels for pair in pairs)
        return own + tuple(end.qp for end in self.ring)


@dataclass(frozen=True)
class Membership:
    """A notification for a host: the current state of a group in which it is a rank.

    ``config`` is None unless the group is active. ``reason`` says why it is broken. ``gone``: it was destroyed.
    """

    group: str
    state: GroupState
    generation: int
    config: RankConfig | None = None
    reason: str = ""
    gone: bool = False
    offer: int = 0
    """The bytes of memory that the host is to offer to the group (``HostManager.offer_memory``); 0: none."""


@dataclass(frozen=True)
class GroupTree:
    """One of several trees of a group."""

    tree: Mapping[str, str | None]
    """Each of its switches with its parent switch (None: the root)."""
    rate: float
    """Bit/s of each rank over it, with headers."""


@dataclass(frozen=True)
class GroupStatus:
    """The status of a group, for clients."""

    spec: GroupSpec
    state: GroupState
    generation: int
    reason: str = ""
    tree: Mapping[str, str | None] = field(default_factory=dict)
    """Each switch of its IncTree with its parent switch (None: the root); of several trees that of the first."""
    slots: Mapping[str, int] = field(default_factory=dict)
    """Number of slots used on each switch, over all pipes and pipelines."""
    contexts: Mapping[str, int] = field(default_factory=dict)
    """Number of contexts used on each switch."""
    ring: bool = False
    """Whether calls currently run on a ring of the hosts."""
    trees: tuple[GroupTree, ...] = ()
    """All trees of a group with several."""
    links: int = 0
    """Number of links that its trees run over, once for each tree."""

    @property
    def switches(self) -> tuple[str, ...]:
        """The switches of all its trees."""
        return tuple(dict.fromkeys(name for each in (self.tree, *(t.tree for t in self.trees)) for name in each))


@dataclass(frozen=True)
class JobStatus:
    """The status of a job, for clients."""

    spec: JobSpec
    hosts: tuple[str, ...]
    """In order of its ranks."""
    groups: tuple[GroupStatus, ...]
    """Its groups, in the order of the request, without those that have been destroyed."""
