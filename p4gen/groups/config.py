"""From groups and routes to a switch's configuration: table entries, multicast groups and clone sessions."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence

from p4gen.errors import InputError
from p4gen.families import collective
from p4gen.groups.checks import problems
from p4gen.groups.family import group_entries
from p4gen.groups.group import GroupContext, NextHop, Route, SwitchConfig
from p4gen.model.entries import Action, Entry, Exact, Lpm
from p4gen.spec import ProgramSpec


def configure(
    spec: ProgramSpec,
    groups: Sequence[GroupContext],
    routes: Iterable[Route] = (),
    next_hops: Iterable[NextHop] = (),
    gateways: Mapping[int, int] | None = None,
) -> SwitchConfig:
    """The configuration that makes a program of ``spec`` serve ``groups`` and route the rest. Programs that do not take
    part in collectives serve no groups.

    ``gateways`` are IPv4 addresses of the switch that hosts send through, with the MAC addresses that ARP gives for
    them; those that groups send to are answered for as well.

    Raises ``InputError``, naming every group that the program cannot serve and why.
    """
    found = list(problems(collective(spec), groups)) if groups else []
    if found:
        raise InputError(*found)
    served = group_entries(spec).configuration(spec, groups, gateways or {})
    entries = (*served.entries, *routing(routes, next_hops))
    return SwitchConfig(entries, served.multicast_groups, served.clone_sessions)


def routing(routes: Iterable[Route], next_hops: Iterable[NextHop]) -> tuple[Entry, ...]:
    """The entries by which a program of any family routes."""
    return (*map(_route_entry, routes), *map(_next_hop_entry, next_hops))


def _route_entry(route: Route) -> Entry:
    network = ipaddress.IPv4Network(route.prefix)
    key = Lpm(int(network.network_address), network.prefixlen)
    if route.count == 1:
        action = Action("set_next_hop", {"id": route.first})
    elif route.shift is not None and route.count.bit_count() == 1:
        action = Action("set_slice", {"first": route.first, "mask": route.count - 1, "shift": route.shift})
    else:
        action = Action("set_ecmp", {"first": route.first, "count": route.count})
    return Entry("routes", {"hdr.ipv4.dst_addr": key}, action)


def _next_hop_entry(hop: NextHop) -> Entry:
    arguments = {"port": hop.port, "src_mac": hop.src_mac, "dst_mac": hop.dst_mac}
    return Entry("next_hops", {"next_hop": Exact(hop.hop_id)}, Action("send", arguments))
