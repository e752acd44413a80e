"""The interfaces between the IncManager, its agents and the hosts' CommLibs (EPIC §3.2, §3.3.1, §6.1).

``Manager`` is the API of group management. ``IncManager`` implements it; ``ManagerClient`` forwards to one over gRPC,
so callers need not know where it is. ``HostManager`` is the part that hosts need. ``Agent`` is how the manager sees a
switch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from p4gen.arch.ports import CPU_PORT
from p4gen.errors import FailedError
from p4gen.families import WrittenCollective
from p4gen.groups.group import PlacedEdge, SwitchConfig
from p4gen.host.collectives.plan import ChannelKey, PsnSync
from p4gen.host.transport.verbs import Peer
from p4gen.placement.request import Code, GroupSpec, ManagerError

__all__ = [
    "Agent", "AgentError", "Changes", "Code", "GroupSpec", "GroupState", "GroupStatus", "HostAddresses",
    "HostInfo", "HostManager", "LinkPort", "Manager", "ManagerError", "Membership", "RankChannel", "RankConfig",
    "RankReport", "Status", "SwitchInfo", "SwitchStatus",
]  # fmt: skip

# --- who is there ---


@dataclass(frozen=True)
class LinkPort:
    """A port of a switch: its number, the node at the other end, its network interface ("" where nobody knows)."""

    port: int
    neighbour: str
    interface: str = ""


@dataclass(frozen=True)
class SwitchInfo:
    """A switch that registers, with its capabilities: those of the program that it runs.

    ``spec`` tells ports, pipelines, lanes, contexts (``groups``), slots of a pipeline's memory (``total_slots``).
    """

    name: str
    address: str
    """Of its P4Runtime server: ``127.0.0.1:9559``, ``unix:/run/s0.sock``."""
    spec: WrittenCollective
    p4info: str = field(repr=False)
    """In protobuf's text format."""
    device_config: bytes = field(repr=False)
    """What SetForwardingPipelineConfig takes: P4 text for the embedded switch, p4c's JSON for BMv2."""
    device_id: int = 1
    cpu_port: int = CPU_PORT
    links: tuple[LinkPort, ...] = ()
    """For link-state reports, and for a topology that nobody has written down."""


@dataclass(frozen=True)
class HostInfo:
    """A host that registers. Its addresses are the manager's to give (the answer has them)."""

    name: str


@dataclass(frozen=True)
class HostAddresses:
    """What the manager gives a host: MAC (48 bits), IPv4, and the MAC of its switch."""

    mac: int
    ip: int
    gateway: int


# --- groups ---


class GroupState(StrEnum):
    """The state of a group's life cycle."""

    INSTALLING = "installing"
    ACTIVE = "active"
    BROKEN = "broken"
    """No tree can carry it at present; it comes back by itself when one can."""
    REMOVING = "removing"


@dataclass(frozen=True)
class RankChannel:
    """A queue pair of a rank (``GroupConfig.channels``)."""

    key: ChannelKey
    qp: int
    peer: Peer


@dataclass(frozen=True)
class RankConfig:
    """What InitGroup hands to the CommLib of one rank: its place, its endpoints, QPs and PSNs."""

    group: str
    generation: int
    """Counts the placements of a group, from 1; queue pairs of an older one are invalid."""
    rank: int
    size: int
    addresses: HostAddresses
    channels: tuple[RankChannel, ...]
    first_psn: int
    slots: int
    sync: PsnSync
    spec: WrittenCollective
    """Of the first switch: payload, W, M, op, dtype, mode, reliability."""


@dataclass(frozen=True)
class Membership:
    """News for a host: a group that it is a rank of, as it is now.

    ``config`` is None unless the group is active; ``reason`` says why it is broken. ``gone``: it was destroyed.
    """

    group: str
    state: GroupState
    generation: int
    config: RankConfig | None = None
    reason: str = ""
    gone: bool = False


@dataclass(frozen=True)
class GroupStatus:
    """A group as the manager sees it."""

    spec: GroupSpec
    state: GroupState
    generation: int
    reason: str = ""
    tree: Mapping[str, str | None] = field(default_factory=dict)
    """Each switch of its IncTree with the switch above it (None: the root)."""
    slots: Mapping[str, int] = field(default_factory=dict)
    """Slots taken on each switch, over all pipes and pipelines."""
    contexts: Mapping[str, int] = field(default_factory=dict)
    """Contexts taken on each switch."""


@dataclass(frozen=True)
class RankReport:
    """What a rank's CommLib and NIC have counted since the rank joined its group, all generations together."""

    group: str
    rank: int
    invocations: int = 0
    data_bytes: int = 0
    """Of finished collectives: each call's own size, as algorithm throughput counts it (EPIC §7.1)."""
    sent: int = 0
    resent: int = 0
    timeouts: int = 0
    naks: int = 0
    cnps: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Frames that the NIC refused, by reason."""


@dataclass(frozen=True)
class SwitchStatus:
    """A switch as the manager sees it."""

    name: str
    reachable: bool
    problem: str = ""
    contexts: int = 0
    """Taken, of ``contexts_total``; slots likewise, over all pipelines."""
    contexts_total: int = 0
    slots: int = 0
    slots_total: int = 0
    entries: int = 0
    """Table entries that the agent has installed."""
    drops: Mapping[str, int] = field(default_factory=dict)
    """Packets that the program took out, by ``module.reason``."""
    links_down: tuple[str, ...] = ()
    """Neighbours that cannot be reached."""
    ticks_per_second: float = 0.0


@dataclass(frozen=True)
class Status:
    """Everything at one moment; ``time`` is in seconds, of a clock that only goes forward."""

    time: float
    groups: tuple[GroupStatus, ...]
    switches: tuple[SwitchStatus, ...]
    ranks: tuple[RankReport, ...]


class HostManager(Protocol):
    """What hosts need of the manager. Every method raises ``ManagerError``."""

    def register_host(self, host: HostInfo) -> HostAddresses:
        """Register a host (again)."""
        ...

    def group(self, name: str) -> GroupStatus:
        """One group."""
        ...

    def watch(self, host: str) -> Iterator[Membership]:
        """All memberships of a host as they are, then every change; ends when the manager does."""
        ...

    def ready(self, group: str, generation: int, rank: int, completed: int, timeout: float = 60.0) -> int:
        """A rank has made its queue pairs, and has completed so many calls in its life. Waits for all ranks of this
        generation; the least of their numbers is the call (counted from 0) that all have to begin with again.

        ``REFUSED`` when the generation is over, ``UNREACHABLE`` when others do not come in ``timeout`` seconds."""
        ...

    def report_rank(self, report: RankReport) -> None:
        """Counters of a rank, for ``status``."""


class Manager(HostManager, Protocol):
    """Group management, all of it. Every method raises ``ManagerError``."""

    def register_switch(self, switch: SwitchInfo) -> None:
        """Register a switch (again). The manager loads its program, unless it runs, and makes it hold what it should.
        Refused: a name that another address has, one that a given topology does not have."""

    def report_links(self, switch: str, ports: Mapping[int, bool]) -> None:
        """Link state, by port: True is up. Groups are placed again where a tree is cut, or a better time has come for a
        broken one."""

    def init_group(self, spec: GroupSpec) -> GroupStatus:
        """All or nothing: when it returns, every switch holds the group's entries (read back); when it raises, none."""
        ...

    def destroy_group(self, name: str) -> None:
        """Entries go, resources are free, hosts are told. A switch that does not answer is put right when it does."""

    def resize_group(self, name: str, slots: int) -> GroupStatus:
        """Another N, as a new generation; the old one stays when there is no room."""
        ...

    def move_group(self, name: str, root: str | None = None) -> GroupStatus:
        """Another tree, as a new generation, rooted at ``root`` or where the policy puts it now."""
        ...

    def groups(self) -> list[GroupStatus]:
        """All groups, in order of name."""
        ...

    def status(self) -> Status:
        """Everything, with counters read now."""
        ...


# --- switches ---


class AgentError(FailedError):
    """A switch did not do what it was asked for. ``unreachable``: it does not answer, what it holds is unknown."""

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable

    def __reduce__(self) -> tuple[type[AgentError], tuple[str]]:  # type: ignore[override]
        return type(self), (self.diagnostics[0].message,)


@dataclass(frozen=True)
class Changes:
    """What ``Agent.apply`` did, in entries, multicast groups and clone sessions together."""

    inserted: int = 0
    modified: int = 0
    deleted: int = 0


class Agent(Protocol):
    """An IncAgent: the manager's hand at one switch. Methods are for one thread at a time; all raise ``AgentError``."""

    name: str

    def apply(self, wanted: SwitchConfig, *, resync: bool = False) -> Changes:
        """Make the switch hold exactly ``wanted`` (beside the program's own constant entries), and read back what was
        written. Only differences are written: from what it is known to hold; with ``resync``, or when that is not
        known, from what it does hold. After an error it holds some of both; a later ``apply`` puts that right."""
        ...

    def read(self) -> SwitchConfig:
        """What the switch holds, the program's own constant entries left out."""
        ...

    def drops(self) -> Mapping[str, int]:
        """Packets that the program took out, by ``module.reason``."""
        ...

    def given_up(self) -> Mapping[int, int]:
        """By index of an edge's state, how many ticks have found it given up (Mode III); those above 0 only."""
        ...

    def set_ticks(self, edges: Sequence[PlacedEdge]) -> None:
        """Send ticks for these edges from now on (Mode III); others get none."""

    def restart(self) -> None:
        """Load the program afresh: no entries, all state zero."""

    def close(self) -> None:
        """Disconnect from the switch, and leave its configuration unchanged."""
