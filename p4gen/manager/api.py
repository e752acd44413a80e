"""The interfaces between the IncManager, its agents and the hosts' CommLibs (EPIC §3.2, §3.3.1, §6.1).

``Manager`` is the API of group management. ``IncManager`` implements it; ``ManagerClient`` forwards to one over gRPC,
so callers need not know where it is. ``HostManager`` is the part that hosts need. ``Agent`` is how the manager sees a
switch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from p4gen.arch.ports import CPU_PORT
from p4gen.errors import FailedError
from p4gen.families import WrittenSpec
from p4gen.groups.connections import Tally
from p4gen.groups.group import Memory, PlacedEdge, SwitchConfig
from p4gen.host.transport.nicinfo import OUR_NIC, NicInfo
from p4gen.host.transport.verbs import Recovery
from p4gen.manager.durations import Durations
from p4gen.manager.groups.memberships import (
    GroupState,
    GroupStatus,
    GroupTree,
    HostAddresses,
    JobStatus,
    Membership,
    RankChannel,
    RankConfig,
    RankTree,
    RingEnd,
)
from p4gen.plan.placement.request import Code, ConnectionSpec, GroupSpec, JobGroup, JobSpec, ManagerError
from p4gen.plan.placement.windows import Schedule

__all__ = [
    "Agent",
    "AgentError",
    "Changes",
    "Code",
    "ConnectionCount",
    "ConnectionSpec",
    "ConnectionState",
    "ConnectionStatus",
    "Durations",
    "GroupSpec",
    "GroupState",
    "GroupStatus",
    "GroupTree",
    "HostAddresses",
    "HostInfo",
    "HostManager",
    "JobGroup",
    "JobSpec",
    "JobStatus",
    "LinkPort",
    "Manager",
    "ManagerError",
    "Membership",
    "Memory",
    "NicInfo",
    "RankChannel",
    "RankConfig",
    "RankReport",
    "RankTree",
    "RingEnd",
    "Schedule",
    "Status",
    "SwitchInfo",
    "SwitchStatus",
]  # fmt: skip

# --- registration ---


@dataclass(frozen=True)
class LinkPort:
    """A port of a switch: its number, the node at the other end, its network interface ("" if unknown)."""

    port: int
    neighbour: str
    interface: str = ""


@dataclass(frozen=True)
class SwitchInfo:
    """A switch that registers. Its capabilities are those of the program that it runs.

    ``spec`` gives ports and pipelines, of programs that take part in collectives also lanes, contexts (``groups``) and
    slots of a pipeline's memory (``total_slots``).
    """

    name: str
    address: str
    """Address of its P4Runtime server: ``127.0.0.1:9559``, ``unix:/run/s0.sock``."""
    spec: WrittenSpec
    p4info: str = field(repr=False)
    """P4Info in protobuf's text format."""
    device_config: bytes = field(repr=False)
    """The device config of SetForwardingPipelineConfig: P4 text for the embedded switch, p4c's JSON for BMv2."""
    device_id: int = 1
    cpu_port: int = CPU_PORT
    links: tuple[LinkPort, ...] = ()
    """Its links, for link-state reports and, if no topology is given, for the discovered one."""


@dataclass(frozen=True)
class HostInfo:
    """A host that registers. The manager's answer has its addresses."""

    name: str
    out_of_order: bool = False
    """Whether its NIC takes packets out of order. A NIC that goes back N discards them, so its connections are not
    sprayed."""
    nic: NicInfo = OUR_NIC
    """What its NIC can do. A host that registers again may have another NIC, or offer other queue pairs."""

    @property
    def may_be_sprayed(self) -> bool:
        """Whether its connections may be sprayed: its NIC takes packets out of order, and does not go back N."""
        return self.out_of_order and self.nic.recovery is not Recovery.GO_BACK_N


# --- connections ---


class ConnectionState(StrEnum):
    """The state of a registered connection."""

    REGISTERING = "registering"
    SPRAYED = "sprayed"
    """Its requests are sprayed, and its NACKs filtered."""
    CHANGING = "changing"
    """Its paths change; meanwhile all NACKs pass."""
    ECMP = "ecmp"
    """It has the path that ECMP's hash gives it, and all NACKs pass. It is sprayed again when this is possible, unless
    a user has turned spraying off."""
    RELEASING = "releasing"


@dataclass(frozen=True)
class ConnectionCount:
    """A counter of a connection in switches; its name is the family's."""

    name: str
    packets: int


@dataclass(frozen=True)
class ConnectionStatus:
    """The status of a connection."""

    number: int
    spec: ConnectionSpec
    state: ConnectionState
    generation: int
    """Number of its set of paths, counted from 1."""
    reason: str = ""
    """Why it is not sprayed."""
    source_switch: str = ""
    destination_switch: str = ""
    paths: tuple[str, ...] = ()
    """Its next hops at the source's switch, in the order of the paths."""
    path_set: int = 0
    index: int = 0
    """The index of its state at the destination's switch, with ``epoch``."""
    epoch: int = 0
    counts: tuple[ConnectionCount, ...] = field(default=(), compare=False)
    """What the switches of its ends have counted since it was registered, as far as the manager knows; empty for a
    program whose family counts nothing."""


@dataclass(frozen=True)
class RankReport:
    """Counters of a rank's CommLib and NIC since the rank joined its group, for all generations together."""

    group: str
    rank: int
    invocations: int = 0
    data_bytes: int = 0
    """Bytes of finished collectives: each call's own size, as for algorithm throughput (EPIC §7.1)."""
    sent: int = 0
    resent: int = 0
    timeouts: int = 0
    naks: int = 0
    cnps: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Number of frames that the NIC dropped, by reason."""


@dataclass(frozen=True)
class SwitchStatus:
    """A switch's resources, counters and links, at one time."""

    name: str
    reachable: bool
    problem: str = ""
    contexts: int = 0
    """Number of contexts in use, of ``contexts_total``; likewise for slots, over all pipelines."""
    contexts_total: int = 0
    slots: int = 0
    slots_total: int = 0
    entries: int = 0
    """Number of table entries that the agent has installed."""
    drops: Mapping[str, int] = field(default_factory=dict)
    """Number of packets that the program dropped, by ``module.reason``."""
    links_down: tuple[str, ...] = ()
    """Neighbours that cannot be reached."""
    ticks_per_second: float = 0.0
    writes: Durations = field(default_factory=Durations)
    """How long its agent's requests that write took."""


@dataclass(frozen=True)
class Status:
    """The status of everything at one time. ``time`` is in seconds of a monotonic clock."""

    time: float
    groups: tuple[GroupStatus, ...]
    switches: tuple[SwitchStatus, ...]
    ranks: tuple[RankReport, ...]
    handshakes: Mapping[str, int] = field(default_factory=dict)
    """Messages with which hosts set up and end connections, by outcome: ``registered``, ``no room``."""
    connections: tuple[ConnectionStatus, ...] = ()
    leases: Mapping[str, int] = field(default_factory=dict)
    """Leases that are ``held``, and how many were ``granted`` and ``refused`` since the manager began; those that were
    refused because a group calls ``outside`` its windows count as that."""


class HostManager(Protocol):
    """The part of the manager's API that hosts need. Every method raises ``ManagerError``."""

    @abstractmethod
    def register_host(self, host: HostInfo) -> HostAddresses:
        """Register a host, possibly again. Returns its addresses."""
        ...

    @abstractmethod
    def group(self, name: str) -> GroupStatus:
        """The status of a group. Raises ``NOT_FOUND`` if there is none of this name."""
        ...

    @abstractmethod
    def watch(self, host: str) -> Iterator[Membership]:
        """All current memberships of a host, then every change. Ends when the manager does."""
        ...

    @abstractmethod
    def ready(self, group: str, generation: int, rank: int, completed: int, timeout: float = 60.0) -> int:
        """Report that a rank has created its queue pairs and has completed this many calls so far. Waits for all ranks
        of this generation. Returns the least of their numbers: all ranks begin again with the call of that number,
        counted from 0.

        Raises ``REFUSED`` when the generation is over, ``UNREACHABLE`` when other ranks do not report within
        ``timeout`` seconds.
        """
        ...

    @abstractmethod
    def offer_memory(self, group: str, host: str, memory: Memory) -> None:
        """Offer memory of a host that the group has asked for (``Membership.offer``), and that switches may write
        results to as long as the host is a rank. Raises ``REFUSED`` if it has not."""

    @abstractmethod
    def begin_call(self, group: str, generation: int, call: int) -> bool:
        """Report that a group whose switches are leased is about to make a call, counted from 0; only rank 0 reports
        it. Returns whether to make the call in this generation, on switches or on the ring. Otherwise another
        generation is about to be announced, in which the call is to be made.

        Waits for the lease if the group has often made calls without it. Raises ``REFUSED`` when the generation is
        over.
        """
        ...

    @abstractmethod
    def end_call(self, group: str, generation: int, rank: int, completed: int) -> None:
        """Report how many calls a rank has completed, in a generation that has its switches by a lease. When all ranks
        have completed them, other groups may have the lease."""

    @abstractmethod
    def report_rank(self, report: RankReport) -> None:
        """Report the counters of a rank, for ``status``."""


class Manager(HostManager, Protocol):
    """The whole API of group management. Every method raises ``ManagerError``."""

    @abstractmethod
    def register_switch(self, switch: SwitchInfo) -> None:
        """Register a switch, possibly again. The manager loads its program, unless it is running, and configures it.
        Refused for a name that is registered with another address, and for one that a given topology does not have."""

    @abstractmethod
    def switch(self, name: str) -> SwitchInfo:
        """A switch as it has registered last. Raises ``NOT_FOUND``."""
        ...

    @abstractmethod
    def report_links(self, switch: str, ports: Mapping[int, bool]) -> None:
        """Report link state by port; True is up. Groups whose tree is cut are placed again, and so are broken groups if
        a link came up."""

    @abstractmethod
    def cordon(self, node: str, *, on: bool) -> None:
        """Keep new placements away from a switch, or new jobs from a host; or no longer. Groups that are there stay.
        Raises ``NOT_FOUND`` for a node that there is not."""

    @abstractmethod
    def cordoned(self) -> list[str]:
        """The nodes from which new placements are kept away, in order of name."""
        ...

    @abstractmethod
    def init_group(self, spec: GroupSpec) -> GroupStatus:
        """Create a group, all or nothing: when it returns, every switch holds the group's entries (read back); when it
        raises, none does. Waits for the memory of ranks if switches write results there and ``memories`` are not
        given."""
        ...

    @abstractmethod
    def destroy_group(self, name: str) -> None:
        """Destroy a group: delete its entries, free its resources, notify its hosts. A switch that does not answer is
        corrected when it answers again."""

    @abstractmethod
    def resize_group(self, name: str, slots: int) -> GroupStatus:
        """Change N, as a new generation. The old one stays when there is no room."""
        ...

    @abstractmethod
    def set_ranks(self, name: str, ranks: Sequence[str], term: int) -> GroupStatus:
        """Give a group other ranks, fewer or more, as a new generation and a new term: calls that ranks have not
        completed fail, those that they have stay completed. ``term`` is the one that the caller knows. The old ranks
        stay when there is no room, or the group has failed for other reasons.

        Raises ``REFUSED`` for another term, and for ranks that offer memory to switches.
        """
        ...

    @abstractmethod
    def move_group(self, name: str, root: str | None = None) -> GroupStatus:
        """Change the tree, as a new generation, rooted at ``root`` or where the policy now puts it."""
        ...

    @abstractmethod
    def init_job(self, spec: JobSpec) -> JobStatus:
        """Choose the hosts of a job among those that nobody uses, and create its groups, all or nothing, as
        ``init_group`` does. Its hosts belong to the job's tenant, if it has one, and to nobody otherwise.

        Raises ``NO_ROOM`` if not so many hosts are free, or its groups find no place below any of the hosts that the
        placement proposes.
        """
        ...

    @abstractmethod
    def destroy_job(self, name: str) -> None:
        """Destroy all groups of a job; its hosts are free again. A job ends with the last of its groups, too."""

    @abstractmethod
    def job(self, name: str) -> JobStatus:
        """The status of a job. Raises ``NOT_FOUND`` if there is none of this name."""
        ...

    @abstractmethod
    def jobs(self) -> list[JobStatus]:
        """The status of all jobs, in order of name."""
        ...

    @abstractmethod
    def register_connection(self, spec: ConnectionSpec) -> ConnectionStatus:
        """Have a connection sprayed. When it returns, the switches of both ends hold its entries (read back); when it
        raises, neither does, and the connection goes on with ECMP.

        Raises ``NOT_FOUND`` for an unknown host, ``EXISTS`` for QPs that are registered, ``REFUSED`` for hosts of one
        switch, ``NO_ROOM`` for a switch whose tables are full or whose program knows no connections.
        """
        ...

    @abstractmethod
    def release_connection(self, number: int) -> None:
        """Remove a connection's entries, and free its index. A switch that does not answer is corrected when it answers
        again."""

    @abstractmethod
    def spray_connection(self, number: int, *, spray: bool) -> ConnectionStatus:
        """Revert a connection to ECMP, or spray it again; no NACK is blocked while it changes."""
        ...

    @abstractmethod
    def connections(self) -> list[ConnectionStatus]:
        """The status of all connections, in order of number, with the counters that ``status`` has read last."""
        ...

    @abstractmethod
    def groups(self) -> list[GroupStatus]:
        """The status of all groups, in order of name."""
        ...

    @abstractmethod
    def status(self) -> Status:
        """The status of everything, with counters read now."""
        ...


# --- switches ---


class AgentError(FailedError):
    """A request to a switch failed. ``unreachable``: it does not answer, and its state is unknown."""

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable

    def __reduce__(self) -> tuple[type[AgentError], tuple[str]]:  # type: ignore[override]
        return type(self), (self.diagnostics[0].message,)


@dataclass(frozen=True)
class Changes:
    """What ``Agent.apply`` changed: numbers of entries, multicast groups and clone sessions together."""

    inserted: int = 0
    modified: int = 0
    deleted: int = 0


class Agent(Protocol):
    """An IncAgent, through which the manager controls one switch. Methods must not be called concurrently; all raise
    ``AgentError``."""

    name: str

    @abstractmethod
    def apply(self, wanted: SwitchConfig, *, resync: bool = False) -> Changes:
        """Make the switch hold exactly ``wanted`` (besides the program's own constant entries), and read back what was
        written. Only differences are written: with respect to the known state or, with ``resync`` or when the state is
        unknown, to the state that is read first. After an error the switch may hold some of the old and some of the new
        configuration; a later ``apply`` corrects that."""
        ...

    @abstractmethod
    def read(self) -> SwitchConfig:
        """The configuration that the switch holds, without the program's own constant entries."""
        ...

    @abstractmethod
    def drops(self) -> Mapping[str, int]:
        """Number of packets that the program dropped, by ``module.reason``."""
        ...

    @abstractmethod
    def tallies(self, tallies: Sequence[Tally]) -> Sequence[int]:
        """The packets that the switch has counted, by tally; 0 for entries that it does not hold."""
        ...

    @abstractmethod
    def given_up(self) -> Mapping[int, int]:
        """How many ticks found an edge given up (Mode III), by index of the edge's state; edges without such ticks are
        missing."""
        ...

    @abstractmethod
    def set_ticks(self, edges: Sequence[PlacedEdge]) -> None:
        """From now on send ticks for these edges and no others (Mode III)."""

    @abstractmethod
    def restart(self) -> None:
        """Load the program again: no entries, all state zero."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect from the switch, and leave its configuration unchanged."""
