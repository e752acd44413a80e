"""Addresses and routes of a network whose hosts talk to each other, without IncTrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from p4gen.arch import Architecture
from p4gen.errors import InputError
from p4gen.groups.config import routing
from p4gen.groups.connections import Connection, ConnectionHere, connection_entries
from p4gen.groups.group import SwitchConfig
from p4gen.plan.placement.placer import Names, routes, switch_of
from p4gen.plan.placement.tiers import connection_tiers, hash_shift, path_choice
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import TopologySpec


@dataclass(frozen=True)
class PlainPlacement:
    """The addresses of a network, and the configuration of its switches."""

    mac: Mapping[str, int]
    ip: Mapping[str, int]
    """The IP addresses of hosts."""
    gateway: Mapping[str, int]
    """The MAC address that a host sends to: its switch's."""
    switches: Mapping[str, SwitchConfig] = field(repr=False)
    architectures: Mapping[str, Architecture]
    """The architectures of the switches' programs."""
    tree_depths: Mapping[int, int] = field(default_factory=dict)
    """Empty: there are no trees."""
    queues: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By switch: registers that are to hold the lengths of queues, each with its port."""
    connections: Mapping[str, Sequence[ConnectionHere]] = field(default_factory=dict, repr=False)
    """By switch: the connections between its hosts and those of other switches."""


def place_plain(
    topology: TopologySpec, specs: Mapping[str, ProgramSpec], connections: Sequence[Connection], epoch: int = 1
) -> PlainPlacement:
    """Configure switches, each with a program of its own spec, for connections, all of an ``epoch``, and for the routes
    to all hosts.

    Raises ``InputError`` with every reason why a program cannot serve its place.
    """
    names = Names.of(topology, specs.values())
    problems = [
        f"{switch} has {links} links; the program has {specs[switch].ports} ports"
        for switch in topology.switches
        if (links := len(topology.ports[switch])) > specs[switch].ports
    ]
    if problems:
        raise InputError(*problems)
    switches = {}
    for switch, spec in specs.items():
        shift, facet = hash_shift(topology, spec, switch), connection_entries(spec)
        routed = routing(*routes(topology, names, switch, {}, spec.architecture, shift=shift))
        switches[switch] = SwitchConfig(routed, (), facet.clone_sessions(spec) if facet else ())
    gateway = {host: names.mac[switch_of(topology, host)] for host in topology.hosts}
    architectures = {switch: specs[switch].architecture for switch in topology.switches}
    placed = PlainPlacement(names.mac, names.ip, gateway, switches, architectures)
    return connected(placed, topology, specs, connections, epoch)


def connected(
    placed: PlainPlacement,
    topology: TopologySpec,
    specs: Mapping[str, ProgramSpec],
    connections: Sequence[Connection],
    epoch: int = 1,
) -> PlainPlacement:
    """A placement whose switches know ``connections``, too.

    Raises ``InputError`` with every reason why a program cannot serve its place.
    """
    ends = _ends(topology, placed.ip, specs, connections, epoch)
    switches: dict[str, SwitchConfig] = {}
    queues: dict[str, Mapping[str, int]] = {}
    problems: list[str] = []
    for switch, config in placed.switches.items():
        spec = specs[switch]
        facet = connection_entries(spec)
        try:
            known = facet.entries(spec, ends.get(switch, ())) if facet else ()
            if facet and spec.wants_queue_lengths:
                queues[switch] = _queues(topology, switch, spec.architecture, facet.queue_registers(spec))
        except InputError as error:
            problems += [f"{switch}: {diagnostic.message}" for diagnostic in error.diagnostics]
            continue
        switches[switch] = replace(config, entries=(*known, *config.entries))
    if problems:
        raise InputError(*problems)
    return replace(placed, switches=switches, queues=queues, connections=ends)


def _queues(topology: TopologySpec, switch: str, arch: Architecture, registers: Sequence[str]) -> Mapping[str, int]:
    """The registers that are to hold the lengths of queues, each with its port.

    Raises ``InputError`` if routes have different next hops to choose from, or more than there are registers.
    """
    choices = {ports for host in topology.hosts if len(ports := topology.next_ports(switch, host)) > 1}
    if len(choices) > 1:
        raise InputError("routes have different sets of next hops; a program knows the queues of one set")
    ports = choices.pop() if choices else ()
    if len(ports) > len(registers):
        raise InputError(
            f"routes have {len(ports)} next hops; the program knows the queues of {len(registers)} (paths)"
        )
    return dict(zip(registers, map(arch.front_port, ports), strict=False))


def _ends(
    topology: TopologySpec,
    ip: Mapping[str, int],
    specs: Mapping[str, ProgramSpec],
    connections: Sequence[Connection],
    epoch: int,
) -> dict[str, list[ConnectionHere]]:
    """By switch, the connections between its hosts and hosts of other switches."""
    hosts = {address: host for host, address in ip.items()}
    found: dict[str, list[ConnectionHere]] = {}
    for connection in connections:
        source, destination = hosts[connection.source.ip], hosts[connection.destination.ip]
        first, last = switch_of(topology, source), switch_of(topology, destination)
        if first == last:
            continue
        tiers = connection_tiers(topology, specs, topology.next_ports, source, destination)
        paths = 1 << sum(tier.bits for tier in tiers) if tiers else len(topology.next_ports(first, destination))
        (out,), (to,) = topology.next_ports(first, source), topology.next_ports(last, destination)
        out, to = specs[first].architecture.front_port(out), specs[last].architecture.front_port(to)
        found.setdefault(first, []).append(ConnectionHere(connection, paths, out, None, 0, tiers=tiers))
        ending = found.setdefault(last, [])
        index = sum(here.destination_port is not None for here in ending)
        ending.append(ConnectionHere(connection, paths, None, to, 0, index, epoch, tiers=tiers))
    return {switch: _numbered(here) for switch, here in found.items()}


def _numbered(connections: Sequence[ConnectionHere]) -> list[ConnectionHere]:
    """The connections with numbers for their sets of paths: one for each number of paths, and each way to choose among
    them."""
    sets = sorted({path_choice(here.paths, here.tiers) for here in connections})
    return [replace(here, path_set=sets.index(path_choice(here.paths, here.tiers))) for here in connections]
