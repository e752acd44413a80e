from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p4gen.errors import InputError
from p4gen.plan.placement.placer import Names
from p4gen.vocabulary.clos import clos_fields
from p4gen.vocabulary.topology import TopologySpec, load_topology


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))
def test_every_leaf_reaches_every_other_over_each_spine(leaves: int, spines: int, hosts: int) -> None:
    clos = load_topology(f"clos:{leaves}x{spines}x{hosts}")
    assert (len(clos.switches), len(clos.hosts)) == (leaves + spines, leaves * hosts)
    assert len(clos.links) == leaves * (spines + hosts)
    for number, host in enumerate(clos.hosts):
        own = f"leaf{number // hosts}"
        assert clos.ports[host][0].other(host) == own
        for leaf in range(leaves):
            ports = clos.next_ports(f"leaf{leaf}", host)
            ends = {clos.ports[f"leaf{leaf}"][port].other(f"leaf{leaf}") for port in ports}
            assert ends == ({host} if f"leaf{leaf}" == own else {f"spine{i}" for i in range(spines)})
        for spine in range(spines):
            assert len(clos.next_ports(f"spine{spine}", host)) == 1


@settings(max_examples=25, deadline=None)
@given(*[st.integers(1, 4)] * 5)
def test_pods_reach_each_other_over_all_cores(pods: int, leaves: int, aggs: int, cores: int, hosts: int) -> None:
    clos = load_topology(f"clos3:{pods}x{leaves}x{aggs}x{cores}x{hosts}")
    assert (len(clos.switches), len(clos.hosts)) == (pods * (leaves + aggs) + aggs * cores, pods * leaves * hosts)
    assert set(clos.tiers.values()) == {1, 2, 3}
    for target in clos.hosts[::hosts]:
        last = clos.ports[target][0].other(target)
        for leaf in range(pods * leaves):
            first = f"leaf{leaf}"
            here, widths = {first}, []
            while here != {target}:
                found = {(at, port) for at in here for port in clos.next_ports(at, target)}
                widths.append(len(found))
                here = {clos.ports[at][port].other(at) for at, port in found}
            if first == last:
                assert widths == [1]
            elif leaf // leaves == int(target[1:]) // hosts // leaves:
                assert widths == [aggs, aggs, 1]
            else:
                assert widths == [aggs, aggs * cores, aggs * cores, aggs, 1]


def test_a_name_may_say_the_bandwidth() -> None:
    assert load_topology("clos:2x1x1@400G").defaults.bandwidth == 400_000_000_000
    assert load_topology("clos:2x1x1").defaults.bandwidth == 100_000_000_000


def test_the_papers_network_has_256_hosts_with_an_address_each() -> None:
    clos = load_topology("clos:16x16x16@400G")
    names = Names.of(clos)
    assert len(set(names.ip.values())) == len(set(names.mac.values()) & set(names.mac.values())) - 32 == 256
    assert all(len(clos.next_ports("leaf0", host)) in (1, 16) for host in clos.hosts)


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("clos:", "must be clos:LxSxH"),
        ("clos:4x4", "must be clos:LxSxH"),
        ("clos3:4x4x4", "must be clos3:PxLxAxCxH"),
        ("clos3:4x4x4x0x1", "none of the numbers may be 0"),
        ("clos3:2x2x2x2x2@fast", "'fast' is not a bandwidth"),
        ("clos3:8x8x8x8x128", "8,192 hosts; a topology has 4,096 at most"),
        ("clos:0x4x4", "at least"),
        ("clos:4x4x4@fast", "'fast' is not a bandwidth"),
        ("clos:64x1x128", "8,192 hosts; a topology has 4,096 at most"),
        ("clos:1000x100x1", "1,100 switches"),
    ],
)
def test_wrong_names(name: str, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        load_topology(name)


def test_a_shared_buffer_is_part_of_a_topology() -> None:
    spec = TopologySpec.model_validate(clos_fields("clos:2x1x1") | {"buffer": {"size": "2M", "alpha": 0.5}})
    assert spec.buffer is not None
    assert (spec.buffer.size, spec.buffer.alpha) == (2 << 20, 0.5)


def test_a_generated_topology_may_be_written_down(tmp_path: Path) -> None:
    """Labs do: their processes read the topology from a file."""
    file = tmp_path / "topology.yaml"
    file.write_text(json.dumps(clos_fields("clos:3x2x2@25G")))
    assert load_topology(file) == load_topology("clos:3x2x2@25G")
