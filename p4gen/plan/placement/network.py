"""From a topology and its groups to addresses, IncTrees, contexts and every switch's configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from p4gen.arch import Architecture
from p4gen.errors import InputError
from p4gen.groups.config import configure
from p4gen.groups.family import group_entries
from p4gen.groups.group import GroupContext, PlacedEdge, SwitchConfig, placed_edges
from p4gen.host.collectives.plan import PsnSync
from p4gen.plan.placement.placed import TREES, GroupRequest, PlacedGroup
from p4gen.plan.placement.placer import Names, Placer, gateways, routes, separate_ports, switch_of, tree_routes
from p4gen.plan.placement.pools import Pools
from p4gen.plan.placement.tree import IncTree, build_tree
from p4gen.vocabulary import ServingSpec
from p4gen.vocabulary.topology import TopologySpec

NO_TREES: Final[Mapping[int, IncTree]] = MappingProxyType({})


@dataclass(frozen=True)
class Placement:
    """The addresses of a network, and the configuration of its switches."""

    groups: tuple[PlacedGroup, ...]
    mac: Mapping[str, int]
    ip: Mapping[str, int]
    """The IPv4 addresses of hosts."""
    gateway: Mapping[str, int]
    """The MAC address that a host sends to: its switch's."""
    switches: Mapping[str, SwitchConfig]
    architectures: Mapping[str, Architecture]
    """The architectures of the switches' programs."""
    edges: tuple[PlacedEdge, ...] = field(repr=False)
    """The edges of all groups on all switches, internal ones too."""

    @property
    def root(self) -> str:
        """The switch at the root of the first group's tree."""
        return self.groups[0].tree.root.key.switch

    @property
    def group(self) -> GroupContext:
        """The first group's first context at its root."""
        return self.groups[0].channels[0].contexts[self.groups[0].tree.root.key]

    @property
    def tree_depths(self) -> Mapping[int, int]:
        """All addresses that switches answer to, each with the number of switches of its tree above."""
        return {
            address: group.tree.depth(switch)
            for group in self.groups
            for switch, address in (
                *group.addresses.items(),
                *((each.switch, each.address) for each in group.port_addresses),
            )
        }


def place(
    topology: TopologySpec,
    spec: ServingSpec,
    groups: Sequence[GroupRequest] | None = None,
    *,
    sync: PsnSync = PsnSync.SUBGROUPS,
    trees: Mapping[int, IncTree] = NO_TREES,
) -> Placement:
    """Place groups on a topology whose switches all run a program of ``spec``: all of them or none.

    By default one group of all the topology's ranks, synchronised by ``sync``. ``trees`` has those of groups, by
    number, that are not to be made of shortest paths. Raises ``InputError`` with every
    reason why the programs cannot serve them.
    """
    whole = GroupRequest(topology.rank_hosts, sync=sync, possible_roots=spec.roots)
    requests = [whole] if groups is None else list(groups)
    problems = [
        f"{switch} has {len(topology.ports[switch])} links; the program has {spec.ports} ports"
        for switch in topology.switches
        if len(topology.ports[switch]) > spec.ports
    ]
    chosen: list[IncTree] = []
    for number, request in enumerate(requests):
        try:
            chosen.append(
                trees.get(number) or _tree(topology, request, spec.pipelines, spec.ports, server=spec.has_server)
            )
        except InputError as error:
            problems += [f"group {number}: {diagnostic.message}" for diagnostic in error.diagnostics]
        problems += [f"group {number}: {reason}" for reason in request.problems()]
        problems += [f"group {number}: {reason}" for reason in group_entries(spec).refusals(spec, request.channels())]
    if len(requests) > TREES:
        problems.append(f"{len(requests)} groups; there are addresses for {TREES}")
    if problems:
        raise InputError(*problems)
    names = Names.of(topology, [spec])
    specs = dict.fromkeys(topology.switches, spec)
    placer = Placer(topology, names, specs, Pools())
    placed = tuple(placer.place(request, tree) for request, tree in zip(requests, chosen, strict=True))
    return _placement(topology, spec, names, placed)


def _placement(topology: TopologySpec, spec: ServingSpec, names: Names, groups: tuple[PlacedGroup, ...]) -> Placement:
    passed = tree_routes(topology, groups)
    switches: dict[str, SwitchConfig] = {}
    edges: list[PlacedEdge] = []
    problems: list[str] = []
    for switch in topology.switches:
        contexts = [context for group in groups for context in group.contexts_on(switch)]
        edges += placed_edges(switch, contexts)
        if len(contexts) > spec.groups:
            problems.append(f"{switch}: {len(contexts)} contexts are needed; the program has {spec.groups} (groups)")
            continue
        own = {edge.local.ip for context in contexts for edge in context.edges}
        if len(own) > spec.groups:
            problems.append(f"{switch}: {len(own)} addresses are needed; the program has {spec.groups} (groups)")
            continue
        try:
            switches[switch] = configure(
                spec,
                contexts,
                *routes(topology, names, switch, passed[switch], spec.architecture),
                gateways(spec, names.mac[switch]),
            )
        except InputError as error:
            problems += [f"{switch}: {diagnostic.message}" for diagnostic in error.diagnostics]
    if problems:
        raise InputError(*problems)
    architectures = dict.fromkeys(topology.switches, spec.architecture)
    gateway = {host: names.mac[switch_of(topology, host)] for host in topology.hosts}
    return Placement(groups, names.mac, names.ip, gateway, switches, architectures, tuple(edges))


def contexts_needed(
    topology: TopologySpec,
    groups: Sequence[GroupRequest],
    *,
    pipelines: int = 1,
    ports: int = 32,
    trees: Mapping[int, IncTree] = NO_TREES,
) -> int:
    """The contexts that the groups take on the switch with the most of them, or the addresses if these are more: the
    least value of ``groups``."""
    taken: Counter[str] = Counter()
    addresses: Counter[str] = Counter()
    for number, request in enumerate(groups):
        tree = trees.get(number) or _tree(topology, request, pipelines, ports)
        for node in tree.nodes:
            taken[node.key.switch] += len(request.channels())
        addresses.update({node.key.switch for node in tree.nodes})
        addresses.update(switch for switch, _ in separate_ports(tree))
    return max((taken | addresses).values(), default=0)


def _tree(
    topology: TopologySpec, request: GroupRequest, pipelines: int, ports: int, *, server: bool = False
) -> IncTree:
    return build_tree(
        topology,
        request.ranks,
        request.root,
        pipelines=pipelines,
        ports=ports,
        every_switch=request.every_switch,
        server=server,
    )
