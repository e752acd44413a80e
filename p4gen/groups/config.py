"""From groups and routes to a switch's configuration: table entries, multicast groups and clone sessions."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence

from p4gen.errors import InputError
from p4gen.families import serving
from p4gen.groups.checks import problems
from p4gen.groups.connections import connection_entries
from p4gen.groups.family import group_entries
from p4gen.groups.group import GroupContext, NextHop, Route, SwitchConfig
from p4gen.model.entries import Action, CloneSession, Entry, Exact, Lpm
from p4gen.vocabulary import ProgramSpec


def configure(
    spec: ProgramSpec,
    groups: Sequence[GroupContext],
    routes: Iterable[Route] = (),
    next_hops: Iterable[NextHop] = (),
    gateways: Mapping[int, int] | None = None,
) -> SwitchConfig:
    """The configuration that makes a program of ``spec`` serve ``groups`` and route the rest. Programs that do not take
    part in collectives serve no groups.

    ``gateways`` are IP addresses of the switch that hosts send through, with the MAC addresses that ARP or NDP gives
    for them; those that groups send to are answered for as well.

    Raises ``InputError``, naming every group that the program cannot serve and why.
    """
    found = list(problems(serving(spec), groups)) if groups else []
    if found:
        raise InputError(*found)
    routes, next_hops = tuple(routes), tuple(next_hops)
    for hop in next_hops:
        if hop.port in spec.architecture.reserved_ports:
            raise InputError(f"next hop {hop.hop_id}: port {hop.port} of {spec.arch} is no port of hosts")
    for route in routes if spec.architecture.masks_hashes else ():
        if route.count.bit_count() != 1:
            raise InputError(f"route {route.prefix}: {route.count} next hops; {spec.arch} takes a power of two")
    served = group_entries(spec).configuration(spec, groups, gateways or {})
    entries = (*served.entries, *routing(routes, next_hops))
    return SwitchConfig(entries, served.multicast_groups, _sessions(spec, served.clone_sessions))


def _sessions(spec: ProgramSpec, served: Iterable[CloneSession]) -> tuple[CloneSession, ...]:
    """The clone sessions for groups and for connections. Two families may share one that leads to the same ports.

    Raises ``InputError`` if they use one for different ports.
    """
    facet = connection_entries(spec)
    found = {session.session_id: session for session in served}
    for session in facet.clone_sessions(spec) if facet is not None else ():
        if found.setdefault(session.session_id, session) != session:
            raise InputError(f"{spec.program}: two families use clone session {session.session_id}")
    return tuple(found.values())


def routing(routes: Iterable[Route], next_hops: Iterable[NextHop]) -> tuple[Entry, ...]:
    """The entries by which a program of any family routes."""
    return (*map(_route_entry, routes), *map(_next_hop_entry, next_hops))


def _route_entry(route: Route) -> Entry:
    network = ipaddress.ip_network(route.prefix)
    key = Lpm(int(network.network_address), network.prefixlen)
    ipv6 = network.version == 6
    if route.count == 1:
        action = Action("set_next_hop", {"id": route.first})
    elif route.shift is not None and route.count.bit_count() == 1:
        name = "set_ipv6_slice" if ipv6 else "set_slice"
        action = Action(name, {"first": route.first, "mask": route.count - 1, "shift": route.shift})
    else:
        action = Action("set_ipv6_ecmp" if ipv6 else "set_ecmp", {"first": route.first, "count": route.count})
    table, field = ("ipv6_routes", "hdr.ipv6.dst_addr") if ipv6 else ("routes", "hdr.ipv4.dst_addr")
    return Entry(table, {field: key}, action)


def _next_hop_entry(hop: NextHop) -> Entry:
    arguments = {"port": hop.port, "src_mac": hop.src_mac, "dst_mac": hop.dst_mac}
    return Entry("next_hops", {"next_hop": Exact(hop.hop_id)}, Action("send", arguments))
