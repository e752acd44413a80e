"""Assigns addresses, contexts, edge ids, slots and queue pairs to a group on a tree; computes a switch's routes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from p4gen.arch import Architecture
from p4gen.errors import InputError
from p4gen.groups.group import Edge, Endpoint, GroupContext, Memory, NextHop, Pattern, Route
from p4gen.groups.psns import stream_psn
from p4gen.host.collectives.plan import SYMMETRIC
from p4gen.host.transport.verbs import Peer
from p4gen.plan.placement.numbers import HOST_QP
from p4gen.plan.placement.placed import (
    Channel,
    GroupRequest,
    PlacedGroup,
    PortAddress,
    RankEnd,
    Serves,
    first_address,
)
from p4gen.plan.placement.pools import Need, Pools, Taken
from p4gen.plan.placement.spans import NoRoomError
from p4gen.plan.placement.tree import NOTHING_DOWN, IncTree, NodeKey, TreeNode, port_to
from p4gen.rocev2.headers import ip_from, ip_text, ipv4, is_ipv6
from p4gen.rocev2.layouts import IPV4_BITS, IPV6_BITS
from p4gen.vocabulary import ProgramSpec, ServingSpec
from p4gen.vocabulary.message import ROOTS, Collective
from p4gen.vocabulary.topology import TopologySpec

HOST_NETWORK, IPV6_HOST_NETWORK = ipv4("10.0.0.0"), ip_from("fd00:0:0:1::")
_GATEWAY, _IPV6_GATEWAY = ipv4("169.254.0.1"), ip_from("fe80::1")
SWITCH_QP = 0x100
"""First QP of an edge's end at a switch."""
ROUTES = 1024
"""Entries of the table ``routes`` of every program. Hosts have a route each, unless there are more."""
UDP_PORTS = 0x1000
"""Source ports of UDP, which ECMP looks at: switches use as many from 0xC000 on, hosts from 0xD000 on."""


def gateway(ip: int) -> int:
    """The gateway of hosts with addresses of this kind. Every switch answers for it: hosts can have it anywhere."""
    return _IPV6_GATEWAY if is_ipv6(ip) else _GATEWAY


def gateways(spec: ProgramSpec, mac: int) -> dict[int, int]:
    """The gateways that a program answers for, with its switch's MAC address."""
    return ({_GATEWAY: mac} if spec.ipv4 else {}) | ({_IPV6_GATEWAY: mac} if spec.ipv6 else {})


def over_ipv6(specs: Collection[ProgramSpec]) -> bool:
    """Whether RoCEv2 is over IPv6 where switches have programs of these specs."""
    return bool(specs) and all(spec.roce_ipv6 for spec in specs)


@dataclass(frozen=True)
class Names:
    """The MAC addresses of all nodes, and the IP addresses of hosts."""

    mac: Mapping[str, int]
    ip: Mapping[str, int]
    """Those of RoCEv2: IPv6 where all switches' programs take it, as RFC 6724 prefers."""
    second: Mapping[str, int] = field(default_factory=dict)
    """Those of the other kind, where all switches route both."""

    @classmethod
    def numbered(
        cls, hosts: Mapping[str, int], switches: Mapping[str, int], specs: Iterable[ProgramSpec] = ()
    ) -> Names:
        """Addresses that follow from the nodes' numbers, counted from 0, and from the programs of switches."""
        mac = {host: 0x0200_0000_0001 + number for host, number in hosts.items()}
        mac |= {switch: 0x0200_0001_0001 + number for switch, number in switches.items()}
        known = tuple(specs)
        old, new = (
            {host: network + 1 + number for host, number in hosts.items()}
            for network in (HOST_NETWORK, IPV6_HOST_NETWORK)
        )
        if over_ipv6(known):
            return cls(mac, new, old if all(spec.ipv4 for spec in known) else {})
        return cls(mac, old, new if known and all(spec.ipv6 for spec in known) else {})

    @classmethod
    def of(cls, topology: TopologySpec, specs: Iterable[ProgramSpec] = ()) -> Names:
        """Addresses of nodes that are numbered in the topology's order."""
        return cls.numbered(
            {host: number for number, host in enumerate(topology.hosts)},
            {switch: number for number, switch in enumerate(topology.switches)},
            specs,
        )

    @property
    def ipv6(self) -> bool:
        """Whether RoCEv2 is over IPv6."""
        return is_ipv6(next(iter(self.ip.values()), 0))


def switch_of(topology: TopologySpec, host: str) -> str:
    """The switch that a host is connected to."""
    return topology.ports[host][0].other(host)


class Placer:
    """Allocates resources of ``pools`` to groups, in the order of calls. ``specs`` are the programs of the switches."""

    def __init__(self, topology: TopologySpec, names: Names, specs: Mapping[str, ServingSpec], pools: Pools) -> None:
        self._topology = topology
        self._names = names
        self._specs = specs
        self._pools = pools

    def place(self, request: GroupRequest, tree: IncTree) -> PlacedGroup:
        """Place a group on its tree. Raises ``NoRoomError`` with the resources that each switch or host lacks;
        resources that have been taken so far stay taken."""
        names = dict.fromkeys(node.key.switch for node in tree.nodes)
        ports = separate_ports(tree)
        self._check_contexts(request, tree)
        self._pools.pairs.check(dict.fromkeys(tree.ranks, len(request.channels()) * self._pairs(tree)))
        for switch in names:
            self._pools.addresses(switch, 1 + sum(at == switch for at, _ in ports))
        ipv6, count = self._names.ipv6, len(names) + len(ports)
        first = first_address(self._pools.tree(1 if ipv6 else count), ipv6=ipv6)
        addresses = {switch: first + i for i, switch in enumerate(names)}
        second = tuple(PortAddress(*at, address) for address, at in enumerate(ports, start=first + len(names)))
        group = PlacedGroup(request, tree, addresses, (), second)
        return replace(group, channels=tuple(self._channel(group, serves) for serves in request.channels()))

    def _check_contexts(self, request: GroupRequest, tree: IncTree) -> None:
        """Checks all contexts together, so that the reason gives the total number."""
        wanted: dict[str, int] = {}
        for node in tree.nodes:
            wanted[node.key.switch] = wanted.get(node.key.switch, 0) + len(request.channels())
        problems = []
        for switch, count in wanted.items():
            pool = self._pools.switch(switch)
            if count > pool.contexts_free:
                contexts = "1 context is" if count == 1 else f"{count} contexts are"
                problems.append(
                    f"{switch}: {contexts} needed; {pool.contexts_free} of {pool.limits.contexts} are free (groups)"
                )
        if problems:
            raise NoRoomError(*problems)

    def _channel(self, group: PlacedGroup, serves: Serves) -> Channel:
        request, tree = group.request, group.tree
        taken = self._take(request, tree, serves)
        pairs = self._pairs(tree)
        qps = self._pools.pairs.ranks(tree.ranks, pairs)
        mac, ip = self._names.mac, self._names.ip
        server = self._specs[tree.root.key.switch].has_server

        def local(node: TreeNode, index: int) -> Endpoint:
            switch = node.key.switch
            address = group.address(switch, node.edges[index].port)
            return Endpoint(mac[switch], address, SWITCH_QP + pairs * (taken[node.key].edge_ids[index] - 1))

        def edge(node: TreeNode, index: int) -> Edge:
            seen = node.edges[index]
            if seen.far is None:
                host = seen.path[-1]
                to_ip, to_qp = ip[host], qps[tree.ranks.index(host)]
            else:
                far = local(*tree.opposite(node, index))
                to_ip, to_qp = far.ip, far.qp
            edge_id, own_qp = taken[node.key].edge_ids[index], local(node, index).qp
            program = self._specs[node.key.switch]
            own_psns = program.own_psns
            ranks = sum(1 << rank for rank in seen.ranks) if program.uses_memory or program.has_server else 0
            rank = ranks.bit_length() - 1
            memory = request.memories[rank] if request.memories and ranks and seen.far is None else None
            if memory is not None and (part := program.channel_memory):
                memory = Memory(memory.address + request.channels().index(serves) * part, memory.rkey, part)
            return Edge(
                edge_id,
                program.architecture.front_port(seen.port or 0),
                local(node, index),
                Endpoint(mac[seen.path[1] if len(seen.path) > 1 else node.key.switch], to_ip, to_qp),
                udp_src_port=0xC000 + (edge_id - 1) % UDP_PORTS,
                first_hop=seen.far is None,
                to_pipeline=seen.far.pipeline if seen.internal and seen.far is not None else None,
                first_received=stream_psn(to_qp, own_qp, request.first_psn) if own_psns else 0,
                first_sent=stream_psn(own_qp, to_qp, request.first_psn) if own_psns else 0,
                ranks=ranks,
                memory=memory,
                more_ports=self._more_ports(node, index) if program.has_server else (),
            )

        contexts = {}
        for node in tree.nodes:
            got, program = taken[node.key], self._specs[node.key.switch]
            if program.shared_blocks and request.epoch is not None:  # groups that share slots have different epochs
                got = replace(got, epoch=1 + (got.context + program.groups * (request.epoch - 1)) % 255)
            contexts[node.key] = GroupContext(
                got.context,
                tuple(edge(node, i) for i in range(len(node.edges))),
                got.base or 0,
                self._slots(request, node.key),
                got.epoch,
                _patterns(node, serves),
                node.key.pipeline,
                got.base_down,
                0 if program.own_psns else request.first_psn,
                tuple(ip[host] for host in tree.ranks) if server else (),
                got.context % program.shared_blocks if program.shared_blocks else None,
            )
        ends = []
        for rank, host in enumerate(tree.ranks):
            at = local(*tree.first_hop(rank))
            port = 0xD000 + (qps[rank] - HOST_QP) % UDP_PORTS
            to = ip[tree.ranks[-1 if rank < len(tree.ranks) - 1 else 0]] if server else at.ip
            peer = Peer(mac[switch_of(self._topology, host)], to, at.qp, udp_src_port=port)
            ends.append(RankEnd(qps[rank], peer, pairs))
        return Channel(serves, tuple(ends), contexts)

    def _pairs(self, tree: IncTree) -> int:
        """The number of queue pairs in a row that a rank has for each channel."""
        return max(self._specs[node.key.switch].queue_pairs for node in tree.nodes)

    def _more_ports(self, node: TreeNode, index: int) -> tuple[int, ...]:
        """The other ports by which packets of an edge to another switch may come in: routes choose among paths."""
        edge, switch = node.edges[index], node.key.switch
        if edge.far is None:
            return ()
        links, front = self._topology.ports[switch], self._specs[switch].architecture.front_port
        ports = (port for port, link in enumerate(links) if link.other(switch) in self._topology.switches)
        return tuple(front(port) for port in ports if port != edge.port)

    def _take(self, request: GroupRequest, tree: IncTree, serves: Serves) -> dict[NodeKey, Taken]:
        if self._specs[tree.root.key.switch].has_server:
            needs = {node.key.switch: self._need(request, node, serves) for node in tree.nodes}
            found = self._pools.together(needs, request.epoch)
            return {node.key: found[node.key.switch] for node in tree.nodes}
        taken: dict[NodeKey, Taken] = {}
        lacking: list[NoRoomError] = []
        for node in tree.nodes:
            try:
                need = self._need(request, node, serves)
                taken[node.key] = self._pools.switch(node.key.switch).take(need, request.epoch)
            except NoRoomError as error:
                lacking.append(error)
        if lacking:
            reasons = dict.fromkeys(reason for error in lacking for reason in error.diagnostics)
            raise NoRoomError(*reasons, epochs=frozenset[str]().union(*(error.epochs for error in lacking)))
        return taken

    def _need(self, request: GroupRequest, node: TreeNode, serves: Serves) -> Need:
        # Which data flows here depends on the number of edges alone.
        outline = GroupContext(0, (_ANY_EDGE,) * len(node.edges), 0, 0)
        patterns, program = _patterns(node, serves), self._specs[node.key.switch]
        return Need(
            node.key.pipeline,
            len(node.edges),
            self._slots(request, node.key),
            not program.shared_blocks and any(map(outline.has_up, patterns)),
            not program.shared_blocks and program.pipes > 1 and any(map(outline.has_down, patterns)),
            sharing=program if program.shared_blocks else None,
        )

    def _slots(self, request: GroupRequest, node: NodeKey) -> int:
        return request.slots or self._specs[node.switch].slots_per_group


def separate_ports(tree: IncTree) -> list[tuple[str, int]]:
    """The ports (of a node's switch, and their numbers) that need an address of their own: those of switches that the
    edges of the tree reach over different next hops of a switch on the way. Raises ``InputError`` where this holds for
    edges at the same port."""
    ways: dict[tuple[str, int], dict[str, str]] = {}
    for node in tree.nodes:
        for edge in node.edges:
            if edge.port is None:
                continue
            way = ways.setdefault((node.key.switch, edge.port), {})
            for behind, here in zip(edge.path, edge.path[1:-1], strict=False):
                if way.setdefault(here, behind) != behind:
                    raise InputError(
                        f"{here} would have to forward to port {edge.port} of {node.key.switch} by way of both "
                        f"{way[here]} and {behind}: an address has one path"
                    )
    whole: dict[tuple[str, str], set[str]] = {}
    for (switch, _), way in ways.items():
        for here, behind in way.items():
            whole.setdefault((switch, here), set()).add(behind)
    several = {switch for (switch, _), behind in whole.items() if len(behind) > 1}
    return sorted((switch, port) for (switch, port), way in ways.items() if way and switch in several)


_FEW: Final = 1 + 2 * ROOTS
"""Patterns that each have their own number in a program's ``flow.pattern``, of 8 bits."""
_ANY_EDGE = Edge(1, 0, Endpoint(0, 0, 0), Endpoint(0, 0, 0))


def _patterns(node: TreeNode, serves: Serves) -> tuple[Pattern, ...]:
    """A pattern for each of ``serves``; in a group with many roots, one for all roots behind the same edge."""
    if len(serves) <= _FEW:
        return tuple(
            Pattern(collective, root, node.parent if collective is Collective.ALLREDUCE else node.toward(root))
            for collective, root in serves
        )
    found = [Pattern(Collective.ALLREDUCE, 0, node.parent)] if SYMMETRIC in serves else []
    for collective in (Collective.REDUCE, Collective.BROADCAST):
        roots = {root for each, root in serves if each is collective}
        for index, edge in enumerate(node.edges):
            if behind := sorted(roots & edge.ranks):
                found.append(Pattern(collective, behind[0], index, tuple(behind[1:])))
    return tuple(found)


def routes(
    topology: TopologySpec,
    names: Names,
    switch: str,
    trees: Mapping[int, int],
    arch: Architecture,
    *,
    down: Mapping[str, str] = NOTHING_DOWN,
    fixed: bool = False,
    shift: int | None = None,
) -> tuple[list[Route], list[NextHop]]:
    """Shortest paths to the hosts, over all equally short ones, and the trees' own ways to their switches (``trees``:
    address to number of the link); ``arch`` is that of the switch's program. Without a path there is no route.
    Addresses behind the same ports share next hops.

    With ``fixed`` link p alone is always next hop p + 1, so that changes do not renumber others. ``shift`` is the bit
    of the hash from which on the switch chooses (``p4gen.plan.placement.tiers``).
    """
    ways = {host: topology.next_ports(switch, host, down) for host in topology.hosts}
    targets = {kind[host]: ports for kind in (names.ip, names.second) if kind for host, ports in ways.items()}
    targets |= {address: (port,) for address, port in trees.items()}
    alone = [(port,) for port, link in enumerate(topology.ports[switch]) if link.other(switch) in names.mac]
    first: dict[tuple[int, ...], int] = {}
    hops: list[NextHop] = []
    next_hop = len(topology.ports[switch]) + 1 if fixed else 1
    for ports in chain(alone if fixed else (), filter(None, targets.values())):
        if ports in first:
            continue
        if fixed and len(ports) == 1:
            first[ports] = ports[0] + 1
        else:
            first[ports] = next_hop
            next_hop += len(ports)
        for number, port in enumerate(ports, start=first[ports]):
            neighbour = topology.ports[switch][port].other(switch)
            hops.append(NextHop(number, arch.front_port(port), names.mac[switch], names.mac[neighbour]))
    found = [
        Route(f"{ip_text(address)}/{length}", first[ports], len(ports), shift)
        for bits in (IPV4_BITS, IPV6_BITS)
        for (address, length), ports in _prefixes(targets, bits).items()
    ]
    return found, hops


def _prefixes(targets: Mapping[int, tuple[int, ...]], bits: int) -> dict[tuple[int, int], tuple[int, ...]]:
    """The ways to prefixes (address and length) of addresses of one kind, those of as many bits. If there are too many,
    each two halves of a prefix that have the same way become one: no address gets a way that had none."""
    kind = bits == IPV6_BITS
    found = {(address, bits): ports for address, ports in targets.items() if ports and is_ipv6(address) is kind}
    if len(found) <= ROUTES:
        return found
    for length in range(bits, 0, -1):
        half = 1 << (bits - length)
        for address in [address for address, long in found if long == length and not address & half]:
            ports = found[address, length]
            if found.get((address | half, length)) == ports:
                del found[address, length], found[address | half, length]
                found[address, length - 1] = ports
    return found


def tree_routes(topology: TopologySpec, groups: Iterable[PlacedGroup]) -> dict[str, dict[int, int]]:
    """For each switch that an edge only passes through: the address at the edge's end → the port toward it.

    Not any shortest path, since a node expects a packet at the pipeline of its edge's port.
    """
    found: dict[str, dict[int, int]] = {switch: {} for switch in topology.switches}
    for group in groups:
        for node in group.tree.nodes:
            for edge in node.edges:
                for behind, here in zip(edge.path, edge.path[1:-1], strict=False):
                    address = group.address(node.key.switch, edge.port)
                    found[here][address] = port_to(topology, here, behind)
    return found
