"""From groups and routes to what a switch must hold: table entries and multicast groups.

Addresses are integers as on the wire: MAC 48 bits, IPv4 32 bits, QP 24 bits.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from p4gen.errors import InputError
from p4gen.model.entries import Action, Entry, Exact, Lpm, MulticastGroup, Replica
from p4gen.spec import ProgramSpec

UP_DATA = 1
ANSWER = 2
"""Values of the program's ``traffic_t``."""


@dataclass(frozen=True)
class Endpoint:
    """One end of an IncTree edge: EPIC's (IP, QP), with the MAC address it is reached at."""

    mac: int
    ip: int
    qp: int


@dataclass(frozen=True)
class Edge:
    """An edge of an IncTree as a switch sees it; ``remote`` is the endpoint behind ``port``."""

    edge_id: int
    """Unique on the switch, from 1; also the rid of the copies made for it."""
    port: int
    local: Endpoint
    remote: Endpoint
    udp_src_port: int = 49152


@dataclass(frozen=True)
class Group:
    """A group's local context on one switch that is the root of its IncTree.

    ``edges[i]`` has bit i of the context's bitmaps. Its slots are [base, base + slots).
    """

    context: int
    edges: tuple[Edge, ...]
    base: int
    slots: int
    epoch: int = 1

    @property
    def source_mask(self) -> int:
        """The bits of all edges."""
        return (1 << len(self.edges)) - 1

    @property
    def multicast_group(self) -> int:
        """PRE group ids start at 1."""
        return self.context + 1


@dataclass(frozen=True)
class NextHop:
    """Where packets of a route go."""

    hop_id: int
    port: int
    src_mac: int
    dst_mac: int


@dataclass(frozen=True)
class Route:
    """A prefix such as ``10.0.0.0/24`` over ``count`` next hops from ``first`` on (ECMP if more than 1)."""

    prefix: str
    first: int
    count: int = 1


@dataclass(frozen=True)
class SwitchConfig:
    """Everything that a control plane has to put into one switch."""

    entries: tuple[Entry, ...]
    multicast_groups: tuple[MulticastGroup, ...]


def configure(
    spec: ProgramSpec, groups: Sequence[Group], routes: Iterable[Route] = (), next_hops: Iterable[NextHop] = ()
) -> SwitchConfig:
    """The configuration that makes a program of ``spec`` serve ``groups`` and route the rest.

    Raises ``InputError``, naming every group that the program cannot serve and why.
    """
    problems = list(_problems(spec, groups))
    if problems:
        raise InputError(*problems)
    addresses = sorted({edge.local.ip for group in groups for edge in group.edges})
    entries = [Entry("addresses", {"hdr.ipv4.dst_addr": Exact(ip)}, Action("NoAction")) for ip in addresses]
    for group in groups:
        entries += _group_entries(group)
    entries += [_route_entry(route) for route in routes]
    entries += [
        Entry(
            "next_hops",
            {"next_hop": Exact(hop.hop_id)},
            Action("send", {"port": hop.port, "src_mac": hop.src_mac, "dst_mac": hop.dst_mac}),
        )
        for hop in next_hops
    ]
    trees = tuple(
        MulticastGroup(group.multicast_group, tuple(Replica(edge.port, edge.edge_id) for edge in group.edges))
        for group in groups
    )
    return SwitchConfig(tuple(entries), trees)


def _group_entries(group: Group) -> list[Entry]:
    aggregate = {
        "epoch": group.epoch,
        "base": group.base,
        "mask": group.slots - 1,
        "source_mask": group.source_mask,
        "result_group": group.multicast_group,
    }
    entries = [
        Entry(
            "invocations",
            {"meta.context": Exact(group.context), "meta.traffic": Exact(UP_DATA)},
            Action("aggregate", aggregate),
        ),
        Entry(
            "invocations",
            {"meta.context": Exact(group.context), "meta.traffic": Exact(ANSWER)},
            Action("reflect"),
        ),
    ]
    for bit, edge in enumerate(group.edges):
        entries.append(
            Entry(
                "endpoints",
                {"hdr.ipv4.dst_addr": Exact(edge.local.ip), "hdr.bth.dest_qp": Exact(edge.local.qp)},
                Action(
                    "set_edge",
                    {
                        "context": group.context,
                        "edge": edge.edge_id,
                        "edge_bit": 1 << bit,
                        "remote_address": edge.remote.ip,
                    },
                ),
            )
        )
        entries.append(
            Entry(
                "edges",
                {"meta.edge": Exact(edge.edge_id)},
                Action(
                    "set_endpoints",
                    {
                        "src_mac": edge.local.mac,
                        "dst_mac": edge.remote.mac,
                        "src_address": edge.local.ip,
                        "dst_address": edge.remote.ip,
                        "udp_src_port": edge.udp_src_port,
                        "dest_qp": edge.remote.qp,
                    },
                ),
            )
        )
    return entries


def _route_entry(route: Route) -> Entry:
    network = ipaddress.IPv4Network(route.prefix)
    key = Lpm(int(network.network_address), network.prefixlen)
    if route.count == 1:
        action = Action("set_next_hop", {"id": route.first})
    else:
        action = Action("set_ecmp", {"first": route.first, "count": route.count})
    return Entry("routes", {"hdr.ipv4.dst_addr": key}, action)


def _problems(spec: ProgramSpec, groups: Sequence[Group]) -> Iterable[str]:
    total = spec.groups * spec.slots_per_group
    if len(groups) > spec.groups:
        yield f"{len(groups)} groups; the program has room for {spec.groups}"
    needed = 2 * spec.window * spec.message
    for group in groups:
        name = f"group {group.context}"
        if not 0 <= group.context < spec.groups:
            yield f"{name}: contexts of this program are 0 to {spec.groups - 1}"
        if not 1 <= len(group.edges) <= spec.fan_in:
            yield f"{name}: {len(group.edges)} edges; the program takes 1 to {spec.fan_in}"
        if not 1 <= group.epoch <= 255:
            yield f"{name}: epoch {group.epoch} is not in 1 to 255"
        if group.slots < needed or group.slots & (group.slots - 1):
            yield f"{name}: {group.slots} slots; it takes a power of two of at least 2 x W x M = {needed}"
        if group.base < 0 or group.base + group.slots > total:
            yield f"{name}: slots {group.base} to {group.base + group.slots - 1} exceed the switch's {total}"
        yield from (
            f"{name}: edge {edge.edge_id} is on port {edge.port}; the switch has {spec.ports} ports"
            for edge in group.edges
            if not 0 <= edge.port < spec.ports
        )
        yield from (
            f"{name}: edge id {e.edge_id} is not in 1 to 65535" for e in group.edges if not 0 < e.edge_id < 65536
        )
    ordered = sorted(groups, key=lambda g: g.base)
    for left, right in pairwise(ordered):
        if left.base + left.slots > right.base:
            yield f"group {left.context} and group {right.context} overlap at slot {right.base}"
    edges = [edge for group in groups for edge in group.edges]
    for what, values in (
        ("context", [group.context for group in groups]),
        ("edge id", [edge.edge_id for edge in edges]),
        ("endpoint", [f"({ipaddress.IPv4Address(edge.local.ip)}, QP {edge.local.qp})" for edge in edges]),
    ):
        yield from (f"{what} {value} is used {count} times" for value, count in Counter(values).items() if count > 1)
