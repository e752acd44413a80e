"""Where ranks' connections with a switch are: addresses, ports and queue pairs of contexts around one switch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from p4gen.arch import Architecture
from p4gen.errors import InputError
from p4gen.groups.config import routing
from p4gen.groups.group import Endpoint, SwitchConfig
from p4gen.host.transport.memory import MemoryRegion
from p4gen.host.transport.verbs import Peer
from p4gen.host.transport.wire import Writer
from p4gen.papers.scin.control import PullContext, PullEdge, Role, roles
from p4gen.papers.scin.spec import ScinSpec
from p4gen.plan.placement.placer import Names, routes
from p4gen.rocev2.headers import AETH, ip_from, ipv4
from p4gen.vocabulary import ticks
from p4gen.vocabulary.topology import TopologySpec

_SWITCH_ADDRESS, _IPV6_SWITCH_ADDRESS = ipv4("10.254.0.1"), ip_from("fd00:0:0:3::1")
_SWITCH_QP, _RANK_QP = 0x1000, 0x100
_PER_CONTEXT: Final = 128
"""QPs of a context."""


@dataclass(frozen=True)
class Plain:
    """The network before any context is set up. Raises ``InputError`` (``of``) unless it is around one switch."""

    switch: str
    names: Names
    switches: Mapping[str, SwitchConfig]
    architectures: Mapping[str, Architecture]

    @classmethod
    def of(cls, topology: TopologySpec, spec: ScinSpec) -> Plain:
        """The network of a topology. Raises ``InputError`` unless that has one switch."""
        if len(topology.switches) != 1:
            raise InputError(f"{topology.name} has {len(topology.switches)} switches; SCIN's groups are around one")
        (switch,) = topology.switches
        names, arch = Names.of(topology, [spec]), spec.architecture
        plain = SwitchConfig(routing(*routes(topology, names, switch, {}, arch)), (), ())
        return cls(switch, names, {switch: plain}, {switch: arch})

    @property
    def mac(self) -> Mapping[str, int]:
        """The MAC addresses of hosts and switches."""
        return self.names.mac

    @property
    def ip(self) -> Mapping[str, int]:
        """The IP addresses of hosts."""
        return self.names.ip

    @property
    def address(self) -> int:
        """That of the switch's endpoints."""
        return _IPV6_SWITCH_ADDRESS if self.names.ipv6 else _SWITCH_ADDRESS

    @property
    def tree_depths(self) -> Mapping[int, int]:
        """The switch's endpoint: from a host a packet goes up, to a host down."""
        return {self.address: 0}

    def place(self, topology: TopologySpec, spec: ScinSpec, context: int, rank: int) -> Place:
        """A rank's connections in a context."""
        host, switch = topology.rank_hosts[rank], self.switch
        near, far = [], []
        for role in roles(spec):
            qp = context * _PER_CONTEXT + 4 * rank + role
            near.append(Endpoint(self.mac[switch], self.address, _SWITCH_QP + qp))
            far.append(Endpoint(self.mac[host], self.ip[host], _RANK_QP + qp))
        port = self.architectures[switch].front_port(topology.ports[switch].index(topology.ports[host][0]))
        return Place(rank, port, tuple(near), tuple(far))


@dataclass(frozen=True)
class Place:
    """A rank's connections in a context, by role: the switch's ends and its own."""

    rank: int
    port: int
    near: tuple[Endpoint, ...]
    far: tuple[Endpoint, ...]

    @property
    def ends(self) -> dict[Role, tuple[int, Peer]]:
        """The rank's queue pairs, and what is at their other ends."""
        found = {}
        for role, (near, far) in enumerate(zip(self.near, self.far, strict=True)):
            found[Role(role)] = far.qp, Peer(near.mac, near.ip, near.qp, 0xD000 + (far.qp - _RANK_QP) % 4096)
        return found

    def edge(self, flag: MemoryRegion) -> PullEdge:
        """The rank as the switch knows it."""
        return PullEdge(self.rank + 1, self.port, self.near, self.far, flag.address, flag.rkey, 0xC000 + self.rank)


def tick_of(context: PullContext) -> bytes:
    """The agent's tick for a context."""
    edge = context.edges[0]
    near, far = edge.local[Role.SYNC], edge.remote[Role.SYNC]
    return Writer(far.mac, far.ip, Peer(near.mac, near.ip, near.qp)).frame(ticks.OPCODE, 0, body=AETH(0, 1).pack())
