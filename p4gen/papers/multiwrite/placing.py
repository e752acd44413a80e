"""Which contexts a group of MultiWrite takes at each switch of a network: one for each source whose writes pass.

A source's writes follow unicast routes, of several equally short ones always the one that the source's rank chooses, so
that they make a tree. An edge of a switch is one of its links, numbered from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from p4gen.arch import Architecture
from p4gen.errors import InputError
from p4gen.groups.config import routing
from p4gen.groups.group import Edge, Endpoint, PlacedEdge, SwitchConfig
from p4gen.host.transport.verbs import Peer
from p4gen.papers.multiwrite.control import GROUP_KEY, Window, WriteContext, WriteEdge, configuration
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.plan.placement.placer import Names, routes, switch_of
from p4gen.rocev2.headers import ip_from, ipv4
from p4gen.vocabulary.topology import TopologySpec

SWITCH_NETWORK, IPV6_SWITCH_NETWORK = ipv4("10.254.0.0"), ip_from("fd00:0:0:3::")
"""10.254.0.0: the addresses of switches' endpoints."""
_SWITCH_QP, _SOURCE_QP, _DESTINATION_QP = 0x1000, 0x100, 0x200
_EDGES = 64
"""QPs of a context at a switch."""
_LAYER = 0x20000
"""QPs of a layer of trees, at a switch or a host."""
Waypoint = Callable[[int, int], str | None]
"""A function from source and rank to a switch that the source's writes to the rank pass; None: they go straight."""


def straight(_source: int, _rank: int) -> None:
    """The way that passes no given switch: the shortest one."""


def switch_ip(topology: TopologySpec, switch: str, *, ipv6: bool = False) -> int:
    """The address of a switch's endpoints."""
    return (IPV6_SWITCH_NETWORK if ipv6 else SWITCH_NETWORK) + 1 + topology.switches.index(switch)


@dataclass(frozen=True)
class Addresses:
    """A network's addresses and routes, before any group is set up."""

    mac: Mapping[str, int]
    ip: Mapping[str, int]
    switches: Mapping[str, SwitchConfig]
    architectures: Mapping[str, Architecture]
    tree_depths: Mapping[int, int]
    """The addresses of switches' endpoints: from a host a packet goes up, to a host down."""

    @classmethod
    def of(cls, topology: TopologySpec, spec: MultiwriteSpec) -> Addresses:
        """Those of a topology whose switches all run programs of one spec."""
        names, arch = Names.of(topology, [spec]), spec.architecture
        plain = {
            switch: SwitchConfig(routing(*routes(topology, names, switch, {}, arch)), (), ())
            for switch in topology.switches
        }
        ends = {switch_ip(topology, switch, ipv6=names.ipv6): 0 for switch in topology.switches}
        return cls(names.mac, names.ip, plain, dict.fromkeys(topology.switches, arch), ends)


@dataclass(frozen=True)
class End:
    """A host's end of a connection: its QP, and the switch's end."""

    qp: int
    peer: Peer


class WritePlacement:
    """A group on a network: the ends of its connections, and what its switches must hold.

    ``windows`` are those of destinations, by (source, destination); ``first_psns`` those of sources. ``waypoint`` sends
    writes other ways than the shortest one. ``results`` are where sums go, by source. A placement ``after`` another one
    has trees beside its, a layer more, and its ``switches`` are those of both. Raises ``InputError`` if ranks are too
    many for the program, or routes make no tree.
    """

    def __init__(
        self,
        topology: TopologySpec,
        spec: MultiwriteSpec,
        windows: Mapping[tuple[int, int], Window],
        window_bytes: int,
        first_psns: Sequence[int],
        epoch: int = 1,
        waypoint: Waypoint = straight,
        after: WritePlacement | None = None,
        results: Mapping[int, Window] | None = None,
    ) -> None:
        self._topology, self._spec, self._names = topology, spec, Names.of(topology, [spec])
        self._hosts = topology.rank_hosts
        self._windows, self._window_bytes = windows, window_bytes
        self._first_psns, self._epoch = first_psns, epoch
        self._waypoint, self._results = waypoint, results or {}
        self._layer: int = 0 if after is None else after._layer + 1
        self._contexts: dict[str, list[WriteContext]] = {
            switch: [] if after is None else after._contexts[switch] for switch in topology.switches
        }
        self._passed: set[tuple[str, int]] = set()
        """Switches that a source's writes reach."""
        self.sources: dict[int, End] = {}
        """The ends that write, by rank."""
        self.destinations: dict[tuple[int, int], End] = {}
        """The ends that are written to, by (source, destination)."""
        if len(self._hosts) > spec.receivers:
            raise InputError(f"{len(self._hosts)} ranks; bitmaps of {spec.program} have {spec.receivers} bits")
        for switch in topology.switches:
            if len(topology.ports[switch]) > spec.edges:
                raise InputError(
                    f"{switch} has {len(topology.ports[switch])} links; the program has {spec.edges} edges"
                )
        for source, host in enumerate(self._hosts):
            others = [rank for rank in range(len(self._hosts)) if rank != source]
            link = topology.ports[host][0]
            switch = switch_of(topology, host)
            edge = 1 + topology.ports[switch].index(link)
            local = self._local(switch, source, edge)
            qp = _SOURCE_QP + _LAYER * self._layer
            self.sources[source] = End(qp, Peer(local.mac, local.ip, local.qp, 0xD000 + source))
            remote = Endpoint(self._names.mac[host], self._names.ip[host], qp)
            targets = {rank: waypoint(source, rank) or self._hosts[rank] for rank in others}
            self._walk(switch, source, WriteEdge(edge, local, remote, udp_src_port=0xC000 + source), targets, True)

    @property
    def switches(self) -> dict[str, SwitchConfig]:
        """What each switch must hold beside its routes."""
        arch = self._spec.architecture
        return {
            switch: configuration(
                self._spec,
                contexts,
                {1 + i: arch.front_port(i) for i in range(len(self._topology.ports[switch]))},
            )
            for switch, contexts in self._contexts.items()
            if contexts
        }

    @property
    def ticked(self) -> tuple[PlacedEdge, ...]:
        """The edges that have timers, by switch and context: those that lead to destinations, and if the program
        combines also those toward sources."""
        arch = self._spec.architecture
        return tuple(
            PlacedEdge(
                switch,
                0,
                context.context,
                Edge(edge.edge, arch.front_port(edge.edge - 1), edge.local, edge.remote, edge.udp_src_port),
            )
            for switch, contexts in self._contexts.items()
            for context in contexts
            for edge in context.edges
            if edge.reach or self._spec.combine
        )

    def _local(self, switch: str, source: int, edge: int) -> Endpoint:
        ip = switch_ip(self._topology, switch, ipv6=self._names.ipv6)
        qp = _SWITCH_QP + _LAYER * self._layer + _EDGES * source + edge
        return Endpoint(self._names.mac[switch], ip, qp)

    def _walk(self, switch: str, source: int, toward: WriteEdge, targets: Mapping[int, str], first_hop: bool) -> None:
        """The context of a source at a switch, over which it reaches some ranks, and those at switches behind it.
        ``targets`` are the next waypoints of ranks, or their hosts."""
        by_port: dict[int, dict[int, str]] = {}
        for rank, target in targets.items():
            goal = self._hosts[rank] if target == switch else target
            ports = self._topology.next_ports(switch, goal)
            by_port.setdefault(ports[source % len(ports)], {})[rank] = goal
        contexts = self._contexts[switch]
        if (switch, source) in self._passed:
            raise InputError(f"routes from {self._hosts[source]} reach {switch} twice: they make no tree")
        self._passed.add((switch, source))
        edges, further = [toward], []
        for port, behind in by_port.items():
            link = self._topology.ports[switch][port]
            neighbour = link.other(switch)
            number = 1 + port
            local = self._local(switch, source, number)
            reach = sum(1 << rank for rank in behind)
            udp = 0xC000 + (_EDGES * source + number) % 0x1000
            if neighbour in self._topology.switches:
                far_edge = 1 + self._topology.ports[neighbour].index(link)
                far = self._local(neighbour, source, far_edge)
                edges.append(WriteEdge(number, local, far, reach, udp_src_port=udp))
                further.append((neighbour, WriteEdge(far_edge, far, local, udp_src_port=udp), behind))
                continue
            (rank,) = behind
            qp = _DESTINATION_QP + _LAYER * self._layer + source
            end = End(qp, Peer(local.mac, local.ip, local.qp, 0xD000 + source))
            self.destinations[source, rank] = end
            remote = Endpoint(self._names.mac[neighbour], self._names.ip[neighbour], end.qp)
            edges.append(WriteEdge(number, local, remote, reach, self._windows[source, rank], udp))
        contexts.append(
            WriteContext(
                len(contexts),
                source,
                tuple(edges),
                toward.edge,
                GROUP_KEY,
                self._window_bytes,
                self._epoch,
                self._first_psns[source],
                first_hop,
                results=self._results.get(source) if first_hop else None,
            )
        )
        for neighbour, edge, behind in further:
            self._walk(neighbour, source, edge, behind, first_hop=False)
