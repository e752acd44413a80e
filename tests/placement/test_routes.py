"""Routes of networks with more hosts than a program's table has entries."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

import pytest

from p4gen.arch import architecture
from p4gen.groups.group import Route
from p4gen.papers.themis.spec import ThemisSpec
from p4gen.plan.placement.placer import ROUTES, Names, routes
from p4gen.program import compose, render
from p4gen.rocev2.headers import ipv4_text
from p4gen.vocabulary.topology import load_topology


def longest(found: Sequence[Route], address: int) -> Route | None:
    """The route of an address, by the longest prefix."""
    fits = [route for route in found if ipaddress.IPv4Address(address) in ipaddress.IPv4Network(route.prefix)]
    return max(fits, key=lambda route: ipaddress.IPv4Network(route.prefix).prefixlen, default=None)


def test_every_program_has_a_table_of_that_size() -> None:
    text = render(compose(ThemisSpec())).text
    _, _, rest = text.partition("table routes {")
    assert f"size = {ROUTES};" in rest.partition("\n    }")[0]


@pytest.mark.parametrize("switch", ["leaf0", "leaf40", "spine3"])
def test_prefixes_lead_where_single_addresses_would(switch: str) -> None:
    topology = load_topology("clos:48x4x24")
    names, arch = Names.of(topology), architecture("v1model")
    found, hops = routes(topology, names, switch, {}, arch)
    assert len(found) <= ROUTES < len(topology.hosts)
    ports = {hop.hop_id: hop.port for hop in hops}
    for host in topology.hosts[::7]:
        route = longest(found, names.ip[host])
        assert route is not None
        ways = tuple(ports[route.first + i] for i in range(route.count))
        assert ways == tuple(map(arch.front_port, topology.next_ports(switch, host))), ipv4_text(names.ip[host])
    last = max(names.ip.values())
    assert longest(found, last + 1) is None
    assert longest(found, min(names.ip.values()) - 1) is None
