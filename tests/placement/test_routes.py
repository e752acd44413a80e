"""Routes of networks with more hosts than a program's table has entries."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

import pytest

from p4gen.arch import architecture
from p4gen.groups.group import Route
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.themis.spec import ThemisSpec
from p4gen.plan.placement.placer import ROUTES, Names, routes
from p4gen.program import compose, render
from p4gen.rocev2.headers import ip_text
from p4gen.vocabulary.topology import load_topology


def longest(found: Sequence[Route], address: int) -> Route | None:
    """The route of an address, by the longest prefix."""
    kind = ipaddress.ip_address(ip_text(address))
    fits = [route for route in found if kind in ipaddress.ip_network(route.prefix)]
    return max(fits, key=lambda route: ipaddress.ip_network(route.prefix).prefixlen, default=None)


def test_every_program_has_a_table_of_that_size() -> None:
    text = render(compose(ThemisSpec())).text
    _, _, rest = text.partition("table routes {")
    assert f"size = {ROUTES};" in rest.partition("\n    }")[0]


@pytest.mark.parametrize("ip", ["4", "6", "both"])
@pytest.mark.parametrize("switch", ["leaf0", "leaf40", "spine3"])
def test_prefixes_lead_where_single_addresses_would(switch: str, ip: str) -> None:
    topology = load_topology("clos:48x4x24")
    spec = EpicSpec.model_validate({"ip": ip})
    names, arch = Names.of(topology, [spec]), architecture("v1model")
    found, hops = routes(topology, names, switch, {}, arch)
    assert names.ipv6 is spec.ipv6
    ports = {hop.hop_id: hop.port for hop in hops}
    kinds = (names.ip, names.second) if ip == "both" else (names.ip,)
    assert len(found) <= len(kinds) * ROUTES < len(kinds) * len(topology.hosts)
    for addresses in kinds:
        for host in topology.hosts[::7]:
            route = longest(found, addresses[host])
            assert route is not None
            ways = tuple(ports[route.first + i] for i in range(route.count))
            assert ways == tuple(map(arch.front_port, topology.next_ports(switch, host))), ip_text(addresses[host])
        assert longest(found, max(addresses.values()) + 1) is None
        assert longest(found, min(addresses.values()) - 1) is None


def test_addresses_are_of_the_kinds_that_all_switches_know() -> None:
    topology = load_topology("star-2")
    old, new, both = (EpicSpec.model_validate({"ip": ip}) for ip in ("4", "6", "both"))
    routed = ThemisSpec.model_validate({"ip": "both"})
    for specs, ipv6, second in (
        ([], False, False), ([old], False, False), ([new], True, False), ([both], True, True),
        ([old, both], False, False), ([new, both], True, False), ([routed], routed.roce_ipv6, True),
    ):  # fmt: skip
        names = Names.of(topology, specs)
        assert (names.ipv6, bool(names.second)) == (ipv6, second), specs
