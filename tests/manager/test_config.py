"""Placements: served, or refused with the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p4gen.errors import InputError
from p4gen.manager import Edge, Endpoint, Group, NextHop, Route, configure
from p4gen.model.entries import Lpm, Replica
from p4gen.spec import ProgramSpec

SPEC = ProgramSpec(lanes=8, fan_in=4, groups=2)


def group(context: int = 0, ranks: int = 2, base: int = 0) -> Group:
    edges = tuple(
        Edge(
            edge_id=1 + context * 8 + i,
            port=i,
            local=Endpoint(mac=0x02, ip=0x0A000001, qp=0x100 + context * 16 + i),
            remote=Endpoint(mac=0x10 + i, ip=0x0A000010 + i, qp=0x200 + i),
        )
        for i in range(ranks)
    )
    return Group(context, edges, base=base, slots=128)


def test_each_edge_gets_an_endpoint_an_address_and_a_copy() -> None:
    config = configure(SPEC, [group()])
    tables = [entry.table for entry in config.entries]
    assert {name: tables.count(name) for name in set(tables)} == {
        "addresses": 1,
        "invocations": 2,
        "endpoints": 2,
        "edges": 2,
    }
    (tree,) = config.multicast_groups
    assert tree.replicas == (Replica(0, 1), Replica(1, 2))


def test_routes_are_prefixes_over_next_hops() -> None:
    config = configure(
        SPEC, [], [Route("10.1.0.0/16", first=3), Route("0.0.0.0/0", first=4, count=2)], [NextHop(3, 1, 2, 3)]
    )
    single, several, hop = config.entries
    assert single.match == {"hdr.ipv4.dst_addr": Lpm(0x0A010000, 16)}
    assert (single.action.name, several.action.name, hop.action.name) == ("set_next_hop", "set_ecmp", "send")


@pytest.mark.parametrize(
    ("groups", "reason"),
    [
        ([group(ranks=5)], "takes 1 to 4"),
        ([group(context=2, base=0)], "contexts of this program are 0 to 1"),
        ([replace(group(), slots=64)], "at least 2 x W x M = 128"),
        ([replace(group(), slots=130)], "power of two"),
        ([group(base=192)], "exceed the switch's 256"),
        ([group(), group(context=1, base=64)], "overlap at slot 64"),
        ([replace(group(), epoch=0)], "epoch 0"),
        ([group(), replace(group(), base=128)], "context 0 is used 2 times"),
        ([group(), replace(group(context=1, base=128), edges=group().edges)], "endpoint"),
        ([group(0), group(1, base=128), group(2)], "room for 2"),
    ],
)
def test_refused_placements(groups: list[Group], reason: str) -> None:
    with pytest.raises(InputError) as caught:
        configure(SPEC, groups)
    assert any(reason in diagnostic.message for diagnostic in caught.value.diagnostics)
