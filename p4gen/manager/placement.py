"""From a topology and the groups on it to addresses, IncTrees, contexts and every switch's configuration."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from p4gen.errors import InputError
from p4gen.host.control import Collective
from p4gen.host.plan import SYMMETRIC, ChannelKey, PsnSync
from p4gen.host.verbs import Peer
from p4gen.manager.config import configure
from p4gen.manager.group import Edge, Endpoint, Group, NextHop, Pattern, Route, SwitchConfig
from p4gen.manager.tree import IncTree, NodeKey, TreeNode, build_tree, port_to
from p4gen.rocev2.headers import ipv4_text
from p4gen.spec import Mode, ProgramSpec
from p4gen.spec.topology import TopologySpec

TREE_NETWORK = 10 << 24 | 255 << 16
"""10.255.0.0: of group g's tree the root's switch answers to 10.255.g.1, the others to 10.255.g.2 and on."""
HOST_NETWORK = 10 << 24
SWITCH_QP = 0x100
HOST_QP = 0x200
"""First QP of an edge's end at a switch, and at the hosts."""
UDP_PORTS = 0x1000
"""Source ports of UDP, which ECMP looks at: switches use as many from 0xC000 on, hosts from 0xD000 on."""


Serves = tuple[ChannelKey, ...]
"""Patterns, by collective and root."""


@dataclass(frozen=True)
class GroupRequest:
    """A group that is wanted."""

    ranks: tuple[str, ...]
    """Hosts, in order of rank."""
    root: str | None = None
    """Switch; by default the topology's root, or the one nearest to the ranks."""
    sync: PsnSync = PsnSync.SUBGROUPS
    collectives: frozenset[Collective] = frozenset(Collective)
    """What it is going to invoke; less takes fewer contexts."""
    roots: frozenset[int] | None = None
    """Ranks that Reduce or Broadcast will have as their root; all by default."""
    epoch: int = 1
    first_psn: int = 0
    """Every rank's initial PSN, both ways."""
    slots: int | None = None
    """N; by default the program's."""
    every_switch: bool = False
    """Make every switch on the way a node."""

    def channels(self) -> tuple[Serves, ...]:
        """The patterns it needs, together where they share contexts and QPs. AllReduce is always among them, for the
        Barriers between others. ReduceScatter is N Reduces, AllGather N Broadcasts (EPIC §A)."""
        wanted = self.collectives
        roots = range(len(self.ranks)) if self.roots is None else sorted(self.roots)
        found = [SYMMETRIC]
        if wanted & {Collective.REDUCE, Collective.REDUCE_SCATTER}:
            found += [(Collective.REDUCE, root) for root in roots]
        if wanted & {Collective.BROADCAST, Collective.ALLGATHER}:
            found += [(Collective.BROADCAST, root) for root in roots]
        return (tuple(found),) if self.sync is PsnSync.REFINED else tuple((pattern,) for pattern in found)


@dataclass(frozen=True)
class RankEnd:
    """A rank's end of a channel: its own QP, and the endpoint that it sends to."""

    qp: int
    peer: Peer


@dataclass(frozen=True)
class Channel:
    """A queue pair at every rank and a context at every node, for patterns that follow each other in one PSN space."""

    serves: Serves
    ends: tuple[RankEnd, ...]
    """By rank."""
    contexts: Mapping[NodeKey, Group] = field(repr=False)

    @property
    def key(self) -> ChannelKey:
        """What CommLib calls it: its first pattern."""
        return self.serves[0]


_CARRIED_BY = {
    Collective.BARRIER: Collective.ALLREDUCE,
    Collective.REDUCE_SCATTER: Collective.REDUCE,
    Collective.ALLGATHER: Collective.BROADCAST,
}


@dataclass(frozen=True)
class PlacedGroup:
    """A group on its tree."""

    request: GroupRequest
    tree: IncTree
    addresses: Mapping[str, int]
    """What the switches of the tree answer to."""
    channels: tuple[Channel, ...]

    def channel(self, collective: Collective, root: int = 0) -> Channel:
        """The channel of a collective; for a phase of ReduceScatter or AllGather that of its Reduce or Broadcast.

        Raises ``InputError`` when the group was not made for it.
        """
        pattern = (_CARRIED_BY.get(collective, collective), root)
        if pattern[0] is Collective.ALLREDUCE:
            pattern = (pattern[0], 0)
        for channel in self.channels:
            if pattern in channel.serves:
                return channel
        raise InputError(f"the group is not placed for {collective} with root {root}")


@dataclass(frozen=True)
class PlacedEdge:
    """A node's end of an edge: what ticks are addressed to."""

    switch: str
    pipe: int
    context: int
    edge: Edge


@dataclass(frozen=True)
class Placement:
    """Who is who in a network, and what its switches must hold."""

    groups: tuple[PlacedGroup, ...]
    mac: Mapping[str, int]
    ip: Mapping[str, int]
    """Of hosts."""
    gateway: Mapping[str, int]
    """The MAC address that a host sends to: its switch's."""
    switches: Mapping[str, SwitchConfig]
    edges: tuple[PlacedEdge, ...] = field(repr=False)
    """Of all groups on all switches, internal ones too."""

    @property
    def root(self) -> str:
        """The switch at the root of the first group's tree."""
        return self.groups[0].tree.root.key.switch

    @property
    def group(self) -> Group:
        """The first group's first context at its root."""
        return self.groups[0].channels[0].contexts[self.groups[0].tree.root.key]

    @property
    def tree_depths(self) -> Mapping[int, int]:
        """All addresses that switches answer to, each with the number of switches of its tree above."""
        return {
            address: group.tree.depth(switch) for group in self.groups for switch, address in group.addresses.items()
        }


def place(
    topology: TopologySpec,
    spec: ProgramSpec,
    groups: Sequence[GroupRequest] | None = None,
    *,
    sync: PsnSync = PsnSync.SUBGROUPS,
) -> Placement:
    """Put groups onto a topology whose switches all run a program of ``spec``: all of them or none.

    By default one group of all the topology's ranks, synchronised by ``sync``. Raises ``InputError`` with every
    reason why the programs cannot serve them.
    """
    requests = [GroupRequest(topology.rank_hosts, sync=sync)] if groups is None else list(groups)
    problems = [
        f"{switch} has {len(topology.ports[switch])} links; the program has {spec.ports} ports"
        for switch in topology.switches
        if len(topology.ports[switch]) > spec.ports
    ]
    trees: list[IncTree] = []
    for number, request in enumerate(requests):
        try:
            trees.append(_tree(topology, request, spec.pipelines, spec.ports))
        except InputError as error:
            problems += [f"group {number}: {diagnostic.message}" for diagnostic in error.diagnostics]
        problems += [f"group {number}: {reason}" for reason in _request_problems(request)]
    if len(requests) > 256:
        problems.append(f"{len(requests)} groups; there are addresses for 256")
    if problems:
        raise InputError(*problems)
    return _Placer(topology, spec, requests, trees).placement()


def contexts_needed(
    topology: TopologySpec, groups: Sequence[GroupRequest], *, pipelines: int = 1, ports: int = 32
) -> int:
    """The contexts that the groups take on the switch where they take most: what ``ProgramSpec.groups`` has to be."""
    taken: Counter[str] = Counter()
    for request in groups:
        for node in _tree(topology, request, pipelines, ports).nodes:
            taken[node.key.switch] += len(request.channels())
    return max(taken.values(), default=0)


def _tree(topology: TopologySpec, request: GroupRequest, pipelines: int, ports: int) -> IncTree:
    return build_tree(
        topology,
        request.ranks,
        request.root,
        pipelines=pipelines,
        ports=ports,
        every_switch=request.every_switch,
    )


def _request_problems(request: GroupRequest) -> Iterator[str]:
    if not request.collectives:
        yield "it is for no collective"
    yield from (
        f"rank {root} cannot be a root; there are {len(request.ranks)} ranks"
        for root in sorted(request.roots or ())
        if not 0 <= root < len(request.ranks)
    )


class _Placer:
    """Gives out addresses, contexts, edge ids, queue pairs and slots, each in the order of asking."""

    def __init__(
        self, topology: TopologySpec, spec: ProgramSpec, requests: Sequence[GroupRequest], trees: Sequence[IncTree]
    ) -> None:
        self._topology = topology
        self._spec = spec
        self._requests = requests
        self._trees = trees
        self._mac = {host: 0x0200_0000_0001 + i for i, host in enumerate(topology.hosts)}
        self._mac |= {switch: 0x0200_0001_0001 + i for i, switch in enumerate(topology.switches)}
        self._ip = {host: HOST_NETWORK + 1 + i for i, host in enumerate(topology.hosts)}
        self._contexts: dict[str, list[Group]] = {switch: [] for switch in topology.switches}
        self._edges: Counter[str] = Counter()
        self._slots: defaultdict[NodeKey, int] = defaultdict(int)
        self._host_qps = 0

    def placement(self) -> Placement:
        groups = tuple(self._group(number) for number in range(len(self._requests)))
        topology = self._topology
        routes = _tree_routes(topology, groups)
        switches: dict[str, SwitchConfig] = {}
        problems: list[str] = []
        for switch in topology.switches:
            contexts = self._contexts[switch]
            if len(contexts) > self._spec.groups:
                problems.append(
                    f"{switch}: {len(contexts)} contexts are needed; the program has {self._spec.groups} (groups)"
                )
                continue
            try:
                switches[switch] = configure(self._spec, contexts, *self._routes(switch, routes[switch]))
            except InputError as error:
                problems += [f"{switch}: {diagnostic.message}" for diagnostic in error.diagnostics]
        if problems:
            raise InputError(*problems)
        edges = tuple(
            PlacedEdge(switch, context.pipe, context.context, edge)
            for switch, contexts in self._contexts.items()
            for context in contexts
            for edge in context.edges
        )
        gateway = {host: self._mac[self._switch_of(host)] for host in topology.hosts}
        return Placement(groups, self._mac, self._ip, gateway, switches, edges)

    def _group(self, number: int) -> PlacedGroup:
        request, tree = self._requests[number], self._trees[number]
        names = dict.fromkeys(node.key.switch for node in tree.nodes)
        if len(names) > 255:
            raise InputError(f"group {number}: {len(names)} switches; there are addresses for 255")
        first = TREE_NETWORK | number << 8 | 1
        addresses = {switch: first + i for i, switch in enumerate(names)}
        channels = tuple(self._channel(request, tree, addresses, serves) for serves in request.channels())
        return PlacedGroup(request, tree, addresses, channels)

    def _channel(self, request: GroupRequest, tree: IncTree, addresses: Mapping[str, int], serves: Serves) -> Channel:
        ids = {node.key: [self._edge_id(node.key.switch) for _ in node.edges] for node in tree.nodes}
        qps = [HOST_QP + self._host_qps + rank for rank in range(len(tree.ranks))]
        self._host_qps += len(qps)

        def local(node: TreeNode, index: int) -> Endpoint:
            switch = node.key.switch
            return Endpoint(self._mac[switch], addresses[switch], SWITCH_QP + ids[node.key][index] - 1)

        def edge(node: TreeNode, index: int) -> Edge:
            seen = node.edges[index]
            if seen.far is None:
                host = seen.path[-1]
                ip, qp = self._ip[host], qps[tree.ranks.index(host)]
            else:
                far = local(*tree.opposite(node, index))
                ip, qp = far.ip, far.qp
            edge_id = ids[node.key][index]
            return Edge(
                edge_id,
                seen.port or 0,
                local(node, index),
                Endpoint(self._mac[seen.path[1] if len(seen.path) > 1 else node.key.switch], ip, qp),
                udp_src_port=0xC000 + (edge_id - 1) % UDP_PORTS,
                first_hop=seen.far is None,
                to_pipe=seen.far.pipe if seen.internal and seen.far is not None else None,
            )

        contexts = {
            node.key: self._context(request, node, tuple(edge(node, i) for i in range(len(node.edges))), serves)
            for node in tree.nodes
        }
        ends = []
        for rank, host in enumerate(tree.ranks):
            at = local(*tree.first_hop(rank))
            port = 0xD000 + (qps[rank] - HOST_QP) % UDP_PORTS
            ends.append(RankEnd(qps[rank], Peer(self._mac[self._switch_of(host)], at.ip, at.qp, udp_src_port=port)))
        return Channel(serves, tuple(ends), contexts)

    def _context(self, request: GroupRequest, node: TreeNode, edges: tuple[Edge, ...], serves: Serves) -> Group:
        patterns = tuple(
            Pattern(collective, root, node.parent if collective is Collective.ALLREDUCE else node.toward(root))
            for collective, root in serves
        )
        mine = self._contexts[node.key.switch]
        slots = request.slots or self._spec.slots_per_group
        context = Group(len(mine), edges, 0, slots, request.epoch, patterns, node.key.pipe, None, request.first_psn)
        if any(map(context.has_up, patterns)):
            context = replace(context, base=self._take(node.key, slots))
        if self._spec.mode is Mode.III and any(map(context.has_down, patterns)):
            context = replace(context, base_down=self._take(node.key, slots))
        mine.append(context)
        return context

    def _take(self, node: NodeKey, slots: int) -> int:
        first = self._slots[node]
        self._slots[node] += slots
        return first

    def _edge_id(self, switch: str) -> int:
        self._edges[switch] += 1
        return self._edges[switch]

    def _switch_of(self, host: str) -> str:
        return self._topology.ports[host][0].other(host)

    def _routes(self, switch: str, trees: Mapping[int, int]) -> tuple[list[Route], list[NextHop]]:
        """Shortest paths to the hosts, over all equally short ones, and the trees' own ways to their switches.

        Addresses behind the same ports share next hops.
        """
        topology = self._topology
        targets = {self._ip[host]: topology.next_ports(switch, host) for host in topology.hosts}
        targets |= {address: (port,) for address, port in trees.items()}
        first: dict[tuple[int, ...], int] = {}
        hops: list[NextHop] = []
        routes = []
        for address, ports in targets.items():
            if ports not in first:
                first[ports] = len(hops) + 1
                for port in ports:
                    neighbour = topology.ports[switch][port].other(switch)
                    hops.append(NextHop(len(hops) + 1, port, self._mac[switch], self._mac[neighbour]))
            routes.append(Route(f"{ipv4_text(address)}/32", first[ports], len(ports)))
        return routes, hops


def _tree_routes(topology: TopologySpec, groups: Sequence[PlacedGroup]) -> dict[str, dict[int, int]]:
    """For each switch that an edge only passes through: the address at the edge's end → the port toward it.

    Not any shortest path, since a node expects a packet at the pipeline of its edge's port.
    """
    found: dict[str, dict[int, int]] = {switch: {} for switch in topology.switches}
    for group in groups:
        for node in group.tree.nodes:
            for edge in node.edges:
                for behind, here in zip(edge.path, edge.path[1:-1], strict=False):
                    found[here][group.addresses[node.key.switch]] = port_to(topology, here, behind)
    return found
