"""The tiers that choose on the way between two hosts, and the bits of their hashes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from p4gen.errors import InputError
from p4gen.groups.connections import Tier
from p4gen.papers.themis.spec import Mode, Spread, ThemisSpec
from p4gen.plan.placement.tiers import choosing_tiers, connection_tiers, hash_shift
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.clos import clos_fields
from p4gen.vocabulary.topology import TopologySpec, load_topology

MAPPED = ThemisSpec(paths=16, tiers=3)
PLAIN = ThemisSpec(spread=Spread.ECMP)


def programs(topology: TopologySpec, **others: ProgramSpec) -> dict[str, ProgramSpec]:
    """Leaves change ports; other switches run what ``others`` has for the beginnings of their names."""
    kinds: Mapping[str, ProgramSpec] = {"leaf": MAPPED} | others
    return {name: kinds.get(name.rstrip("0123456789"), PLAIN) for name in topology.switches}


def meshed() -> TopologySpec:
    """Two pods; all aggregation switches have links to both cores, so that leaves, these and cores choose."""
    fields = clos_fields("clos3:2x2x2x1x1")
    more = [["agg0", "core1"], ["agg1", "core0"], ["agg2", "core1"], ["agg3", "core0"]]
    return TopologySpec.model_validate(fields | {"links": fields["links"] + more})


def tiers(topology: TopologySpec, specs: Mapping[str, ProgramSpec], to: str) -> tuple[Tier, ...]:
    return choosing_tiers(topology, specs, topology.next_ports, "h0", to)


def test_leaves_take_the_bits_above_those_of_the_switches_above_them() -> None:
    clos = load_topology("clos3:2x2x4x2x1")
    specs = programs(clos)
    assert tiers(clos, specs, "h3") == (
        Tier("1 (leaf0)", 2, 1),
        Tier("2 (agg0, agg1, agg2, agg3)", 1, 0),
    )
    assert tiers(clos, specs, "h1") == (Tier("1 (leaf0)", 2, 1),)
    assert hash_shift(clos, MAPPED, "agg0") == 0
    assert hash_shift(clos, PLAIN, "leaf0") is None


def test_two_tiers_are_a_case_of_three() -> None:
    clos = load_topology("clos:3x4x1")
    assert tiers(clos, programs(clos), "h2") == (Tier("1 (leaf0)", 2, 0),)


def test_a_third_tier_that_chooses_has_bits_of_its_own_if_its_program_can() -> None:
    every = tiers(meshed(), programs(meshed(), agg=MAPPED, core=MAPPED), "h3")
    assert [(tier.name, tier.bits, tier.shift) for tier in every] == [
        ("1 (leaf0)", 1, 2), ("2 (agg0, agg1)", 1, 1), ("3 (core0, core1)", 1, 0),
    ]  # fmt: skip
    plain = tiers(meshed(), programs(meshed()), "h3")
    assert [tier.shift for tier in plain] == [2, 0, 0]


@pytest.mark.parametrize(
    ("network", "others", "cause"),
    [
        ("clos3:2x2x3x2x1", {}, r"tier 1 \(leaf0\): 3 next hops; their number must be a power of two"),
        ("clos3:2x2x2x3x1", {}, r"tier 2 \(agg0, agg1\): 3 next hops; their number must be a power of two"),
        ("clos3:2x1x8x3x1", {}, r"tier 2 \(agg0, agg1, agg2, agg3 and 4 more\): 3 next hops"),
    ],
)
def test_groups_that_are_no_power_of_two_are_refused(network: str, others: dict[str, Any], cause: str) -> None:
    clos = load_topology(network)
    with pytest.raises(InputError, match=cause):
        tiers(clos, programs(clos, **others), clos.hosts[-1])


def test_a_tier_must_choose_alike() -> None:
    clos = load_topology("clos3:2x2x2x2x1")
    down = {"agg1-core2"}
    with pytest.raises(InputError, match=r"tier 2 \(agg0, agg1\): its switches have 1 and 2 next hops"):
        choosing_tiers(clos, programs(clos), lambda at, host: clos.next_ports(at, host, down), "h0", "h3")
    mixed = programs(meshed()) | {"agg0": MAPPED}
    with pytest.raises(InputError, match=r"tier 2 \(agg0, agg1\): its switches choose by different bits"):
        tiers(meshed(), mixed, "h3")
    missing = {name: spec for name, spec in programs(clos).items() if name != "agg1"}
    with pytest.raises(InputError, match=r"tier 2 \(agg0, agg1\): agg1 is not registered"):
        tiers(clos, missing, "h3")


@pytest.mark.parametrize(
    "last",
    [
        PLAIN,
        ThemisSpec(paths=16),
        ThemisSpec(paths=16, tiers=3, mode=Mode.SOURCE),
        ThemisSpec(paths=16, tiers=3, spread=Spread.PSN),
    ],
)
def test_ports_are_changed_only_if_the_other_end_restores_them(last: ThemisSpec) -> None:
    clos = load_topology("clos3:2x2x2x2x1")
    specs = programs(clos)
    assert len(connection_tiers(clos, specs, clos.next_ports, "h0", "h3")) == 2
    with pytest.raises(InputError, match="leaf3: its program does not restore the UDP source ports that leaf0 changes"):
        connection_tiers(clos, specs | {"leaf3": last}, clos.next_ports, "h0", "h3")
    if not last.sprays or last.tiers == 2:
        assert connection_tiers(clos, specs | {"leaf0": last}, clos.next_ports, "h0", "h3") == ()
