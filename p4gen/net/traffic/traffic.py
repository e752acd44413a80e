"""Traffic between hosts over point-to-point connections. Each switch may run a different program.

Nothing here needs an IncTree: point-to-point flows, rings of flows, AlltoAll, and AllReduce by hosts alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from p4gen.errors import InputError
from p4gen.host.collectives.algorithms import Algorithm
from p4gen.host.transport.clock import US
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.dcqcn_timed import TimedDcqcnConfig
from p4gen.host.transport.verbs import QpConfig, Recovery
from p4gen.model import EngineName
from p4gen.net.collectives.config import MAX_DATA
from p4gen.net.traffic.flow import MESSAGE
from p4gen.net.world.faults import Faults
from p4gen.plan.placement.placer import switch_of
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import TopologySpec

MAX_FLOW: Final = 1 << 40
"""Bytes of a flow; its data is not in memory."""


class Pattern(StrEnum):
    """A traffic pattern of a group of hosts."""

    FLOW = "flow"
    """The first host sends to each of the others."""
    NEXT = "next"
    """Each host sends to the next one, and the last one to the first."""
    ALLTOALL = "alltoall"
    """Each host sends a part of its array to each of the others."""
    ALLREDUCE = "allreduce"
    """The reduction of all hosts' arrays, by an ``Algorithm``."""

    @property
    def flows(self) -> bool:
        """Whether it consists of flows that do not depend on each other."""
        return self in (Pattern.FLOW, Pattern.NEXT)


@dataclass(frozen=True)
class Traffic:
    """The traffic of a group of hosts. ``size`` is in bytes: of each flow, or of each host's array."""

    pattern: Pattern
    hosts: tuple[str, ...]
    size: int

    def check(self, topology: TopologySpec) -> None:
        """Raises ``InputError`` unless hosts of ``topology`` can carry out this traffic."""
        what = f"{self.pattern} of {self.size} bytes by {len(self.hosts)} hosts"
        unknown = [host for host in self.hosts if host not in topology.hosts]
        if unknown:
            raise InputError(f"{topology.name} has no host {', '.join(unknown)}")
        if len(self.hosts) < 2 or len(set(self.hosts)) != len(self.hosts):
            raise InputError(f"{what}: at least two different hosts are needed, each named once")
        if self.pattern.flows:
            if not 0 < self.size <= MAX_FLOW:
                raise InputError(f"{what}: a flow has 1 to {MAX_FLOW:,} bytes")
            return
        unit = 4 * len(self.hosts) if self.pattern is Pattern.ALLTOALL else 4
        if self.size <= 0 or self.size % unit:
            raise InputError(f"{what}: the size must be a positive multiple of {unit}")


@dataclass(frozen=True)
class TrafficConfig:
    """One run. Times are in ps."""

    topology: TopologySpec
    program: ProgramSpec
    """The program of switches with hosts."""
    traffic: tuple[Traffic, ...]
    core: ProgramSpec | None = None
    """The program of all other switches; ``program`` by default."""
    programs: Mapping[str, ProgramSpec] = field(default_factory=dict)
    """Programs of single switches, by name."""
    faults: Faults = field(default_factory=Faults)
    seed: int = 0
    recovery: Recovery = Recovery.SELECTIVE_REPEAT
    spray_gbn: bool = False
    """Programs that spray registered connections spray them even if NICs go back N."""
    dcqcn: DcqcnConfig | TimedDcqcnConfig | None = None
    timeout: int = 1000 * US
    """Retransmission timer of NICs; 0 switches it off."""
    retry_count: int | None = None
    ack_every: int = 16
    mtu: int = 1024
    """Payload of a packet, bytes."""
    window: int = 512
    """Packets that a connection may have outstanding."""
    message: int = MESSAGE
    """Bytes of a message of a flow."""
    arrays: bool = True
    """Whether collectives work on arrays, whose results are checked. Otherwise the same messages are sent in the same
    order, but they are stretches of a pattern, as those of a flow: however long, they need little memory. All steps of
    an AlltoAll then run at the same time."""
    writes: bool = False
    """Flows consist of RDMA WRITEs with immediate data instead of SENDs; so do collectives without arrays."""
    algorithm: Algorithm = Algorithm.RING
    """Of AllReduces."""
    ahead: int = 1
    """The most steps of an AlltoAll that a host runs at the same time."""
    start: int = 0
    """When hosts begin, ps."""
    skew: int = 0
    """Hosts begin at random times within this span, from ``start`` on."""
    pace: int | None = None
    """The most bit/s, with the overhead on the wire, that each connection sends; not with ``dcqcn``."""
    priority: int = 0
    """Of all packets (``QpConfig``)."""
    endless: bool = False
    """Flows go on as long as others run beside them; ``size`` is then the most that they send. Only for patterns of
    flows, and for sizes of whole messages."""
    interval: int = 0
    """Between two samples of the time series; 0 takes none."""
    engine: EngineName = "jit"
    epoch: int = 1
    """The epoch of all connections in switches."""

    def spec_of(self, switch: str) -> ProgramSpec:
        """The spec of a switch's program: the switch's own spec if it has one, else the spec of the core or of switches
        with hosts."""
        if switch in self.programs:
            return self.programs[switch]
        leaf = any(switch_of(self.topology, host) == switch for host in self.topology.hosts)
        return self.program if leaf or self.core is None else self.core

    @property
    def registers(self) -> bool:
        """Whether switches know the connections, and may spray them."""
        return self.spray_gbn or self.recovery is not Recovery.GO_BACK_N

    def qp(self, initial_psn: int) -> QpConfig:
        """The QP attributes of a connection's ends."""
        return QpConfig(
            mtu=self.mtu,
            initial_psn=initial_psn,
            recovery=self.recovery,
            max_outstanding=self.window,
            ack_every=self.ack_every,
            timeout_ps=self.timeout,
            retry_count=self.retry_count,
            rnr_retry=None,
            dcqcn=self.dcqcn,
            pace=self.pace,
            priority=self.priority,
        )

    def check(self) -> None:
        """Raises ``InputError`` if the hosts cannot send this traffic."""
        if not self.traffic:
            raise InputError("there is no traffic")
        for each in self.traffic:
            each.check(self.topology)
        data = sum(each.size * len(each.hosts) for each in self.traffic if not each.pattern.flows)
        if self.arrays and data > MAX_DATA:
            raise InputError(
                f"all hosts' arrays together have {data >> 20:,} MiB; {MAX_DATA >> 20:,} MiB are the limit"
            )
        reduced = [each for each in self.traffic if each.pattern is Pattern.ALLREDUCE]
        if reduced and self.algorithm is not Algorithm.RING and not self.arrays:
            raise InputError("without arrays, an AllReduce is one on a ring")
        if self.message % 4 or self.message < 4:
            raise InputError(f"messages of {self.message} bytes: a positive multiple of 4 is needed")


def by_position(topology: TopologySpec) -> list[tuple[str, ...]]:
    """Groups with one host of each leaf: the first hosts of all leaves, the second hosts, and so on."""
    leaves: dict[str, list[str]] = {}
    for host in topology.hosts:
        leaves.setdefault(switch_of(topology, host), []).append(host)
    count = min(map(len, leaves.values()))
    return [tuple(hosts[i] for hosts in leaves.values()) for i in range(count)]
