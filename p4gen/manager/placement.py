"""From a topology to addresses, a group's IncTree and every switch's configuration.

Mode II's program aggregates on one switch, the root. Ranks that are further away reach it through switches that only
forward, since an IncTree's edge may span several links (EPIC §3.1); so every topology carries a star.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from p4gen.errors import InputError
from p4gen.manager.config import Edge, Endpoint, Group, NextHop, Route, SwitchConfig, configure
from p4gen.rocev2.headers import ipv4_text
from p4gen.spec import ProgramSpec
from p4gen.spec.topology import TopologySpec

TREE_NETWORK = 10 << 24 | 255 << 16
"""10.255.0.0: context c's tree answers to 10.255.c.1."""
HOST_NETWORK = 10 << 24
SWITCH_QP = 0x100
HOST_QP = 0x200
"""First QP of an edge's end at the switch, and at the hosts; rank r's are r further."""


@dataclass(frozen=True)
class Placement:
    """Who is who in a network, and what its switches must hold."""

    root: str
    group: Group
    mac: Mapping[str, int]
    ip: Mapping[str, int]
    """Of hosts."""
    gateway: Mapping[str, int]
    """The MAC address that a host sends to: its switch's."""
    switches: Mapping[str, SwitchConfig]

    @property
    def tree_address(self) -> int:
        """The address that the IncTree answers to."""
        return self.group.edges[0].local.ip


def place(topology: TopologySpec, spec: ProgramSpec, *, context: int = 0, epoch: int = 1) -> Placement:
    """Put a group of all the topology's ranks onto a star around its root.

    Raises ``InputError`` with every reason why ``spec``'s program cannot serve it.
    """
    mac = {host: 0x0200_0000_0001 + i for i, host in enumerate(topology.hosts)}
    mac |= {switch: 0x0200_0001_0001 + i for i, switch in enumerate(topology.switches)}
    ip = {host: HOST_NETWORK + 1 + i for i, host in enumerate(topology.hosts)}
    tree = TREE_NETWORK | context << 8 | 1
    root = topology.root or _nearest(topology)
    for switch in topology.switches:
        links = len(topology.ports[switch])
        if links > spec.ports:
            raise InputError(f"{switch} has {links} links; the program has {spec.ports} ports")
    edges = []
    for rank, host in enumerate(topology.rank_hosts):
        port = topology.next_ports(root, host)[0]
        neighbour = topology.ports[root][port].other(root)
        edges.append(
            Edge(
                edge_id=1 + rank,
                port=port,
                local=Endpoint(mac[root], tree, SWITCH_QP + rank),
                remote=Endpoint(mac[neighbour], ip[host], HOST_QP + rank),
                udp_src_port=0xC000 + rank,
            )
        )
    slots = spec.slots_per_group
    group = Group(context, tuple(edges), context * slots, slots, epoch)
    switches = {}
    for switch in topology.switches:
        targets = {host: ip[host] for host in topology.hosts}
        if switch != root:
            targets[root] = tree
        routes, hops = _routes(topology, switch, targets, mac)
        switches[switch] = configure(spec, [group] if switch == root else [], routes, hops)
    gateway = {host: mac[topology.ports[host][0].other(host)] for host in topology.hosts}
    return Placement(root, group, mac, ip, gateway, switches)


def _nearest(topology: TopologySpec) -> str:
    """The switch with the fewest links to all ranks together; the first of several."""

    def far(switch: str) -> int:
        away = topology.distances(switch)
        return sum(away[host] for host in topology.rank_hosts)

    return min(topology.switches, key=far)


def _routes(
    topology: TopologySpec, switch: str, targets: Mapping[str, int], mac: Mapping[str, int]
) -> tuple[list[Route], list[NextHop]]:
    """Shortest paths to the targets, over all equally short ones; targets behind the same ports share next hops."""
    first: dict[tuple[int, ...], int] = {}
    hops: list[NextHop] = []
    routes = []
    for node, address in targets.items():
        ports = topology.next_ports(switch, node)
        if ports not in first:
            first[ports] = len(hops) + 1
            for port in ports:
                neighbour = topology.ports[switch][port].other(switch)
                hops.append(NextHop(len(hops) + 1, port, mac[switch], mac[neighbour]))
        routes.append(Route(f"{ipv4_text(address)}/32", first[ports], len(ports)))
    return routes, hops
