"""Themis over three tiers: the leaf changes UDP source ports, so that ECMP in every tier takes the path of a PSN."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p4gen.errors import InputError
from p4gen.host.transport.clock import US
from p4gen.net.traffic.repairs import Cause, Repairs
from p4gen.net.traffic.traffic import Pattern, Traffic, TrafficConfig, by_position
from p4gen.net.traffic.traffic_simulation import TrafficSimulation
from p4gen.net.world.faults import Faults, Impairment
from p4gen.papers.themis.spec import Mode, Spread, ThemisSpec
from p4gen.rocev2.places import IPV4, IPV6
from p4gen.vocabulary.clos import clos_fields
from p4gen.vocabulary.topology import TopologySpec, load_topology

Ip = Literal["4", "6", "both"]
MAPPED = ThemisSpec(paths=16, tiers=3, path_sets=4, connections=16, queue=256, ports=16)
PLAIN = ThemisSpec(spread=Spread.ECMP, paths=2, path_sets=1, connections=16, ports=16)
PASSED = {"NO_EVIDENCE": 1, "LAST_HOP": 2, "LOST": 3, "OVERTAKEN": 7, "COMPENSATED": 9}


def config(
    network: str | TopologySpec, size: int = 128_000, seed: int = 1, *where: Impairment, ip: Ip = "4"
) -> TrafficConfig:
    """Each host sends to the next leaf's, which is in its own pod or in another one."""
    topology = load_topology(network) if isinstance(network, str) else network
    return TrafficConfig(
        topology,
        MAPPED.model_copy(update={"ip": ip}),
        tuple(Traffic(Pattern.NEXT, hosts, size) for hosts in by_position(topology)),
        core=PLAIN.model_copy(update={"ip": ip}),
        faults=Faults(where),
        seed=seed,
        message=32_000,
    )


def verdicts(simulation: TrafficSimulation) -> Counter[int]:
    """Of all leaves' Themis-D."""
    found: Counter[int] = Counter()
    for name, spec in simulation.specs.items():
        if spec.filters:  # type: ignore[attr-defined]
            for index, value in enumerate(simulation.network.switches[name].counters("blocked_nack.verdicts")):
                found[index % 16] += value.packets
    return found


@pytest.mark.parametrize(
    ("network", "ip"),
    [(name, "4") for name in ("clos3:2x2x4x2x2", "clos3:3x1x2x2x1", "fat-tree-k4", "clos:3x4x2")]
    + [("clos3:2x2x4x2x2", "6"), ("fat-tree-k4", "both")],
)
def test_all_paths_are_used_alike_and_nothing_is_sent_twice(network: str, ip: Ip) -> None:
    simulation = TrafficSimulation(config(network, ip=ip))
    places = IPV4 if ip == "4" else IPV6
    requests: Counter[tuple[str, str]] = Counter()

    def watch(passage: object) -> None:
        if passage.frame[places.opcode_at] < 0x0D:  # type: ignore[attr-defined]
            requests[passage.src, passage.dst] += 1  # type: ignore[attr-defined]

    simulation.network.watch(watch)
    result = simulation.run()
    assert result.ok, result.errors
    assert (result.total("resent"), result.total("timeouts"), result.total("naks")) == (0, 0, 0)
    assert result.drops == {}, "no NIC has refused a packet for its ICRC"
    found = verdicts(simulation)
    assert [name for name, number in PASSED.items() if found[number]] == []
    # The requests that a leaf or an aggregation switch sends up are spread over all its links, to the packet.
    tiers = simulation.config.topology.tiers
    ups: dict[str, list[int]] = {}
    for link in simulation.config.topology.links:
        for near, far in (link.ends, link.ends[::-1]):
            if near in tiers and tiers.get(far, 0) > tiers[near]:
                ups.setdefault(near, []).append(requests[near, far])
    used = {name: counts for name, counts in ups.items() if any(counts)}
    assert len(used) > 1
    for name, counts in used.items():
        # A flow has 125 packets; what a number of paths does not divide differs by one for each flow.
        assert max(counts) - min(counts) <= 2 * len(result.flows), (name, counts)
        assert min(counts) > 0, (name, counts)


@pytest.mark.long
def test_losses_are_repaired() -> None:
    lost = late = 0
    for seed in (1, 2):
        lossy = Impairment("agg0-core1", loss=0.02), Impairment("agg1", loss=0.005)
        simulation = TrafficSimulation(config("clos3:2x2x4x2x1", 2_000_000, seed, *lossy))
        repairs = Repairs(simulation)
        result = simulation.run()
        assert result.ok, result.errors
        assert repairs.timeouts[Cause.SILENCE] == 0
        lost, late = lost + repairs.to_repair, late + repairs.late
    assert lost > 20
    assert late <= 0.05 * lost


@settings(max_examples=6, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 2),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from(Pattern),
    st.integers(0, 99),
)
@pytest.mark.long
def test_any_network_of_powers_of_two(
    pods: int, leaves: int, aggs: int, cores: int, pattern: Pattern, seed: int
) -> None:
    run = config(f"clos3:{max(pods, 3 - leaves)}x{leaves}x{aggs}x{cores}x1", seed=seed)
    hosts = run.topology.hosts
    run = replace(run, traffic=(Traffic(pattern, hosts, 4 * len(hosts) * 2_000),), timeout=200 * US)
    for faults in (Faults(), Faults((Impairment("", loss=0.01, reorder=0.05, duplicate=0.05),))):
        result = TrafficSimulation(replace(run, faults=faults)).run()
        assert result.ok, result.errors
        if not faults.impairments:
            assert (result.total("resent"), result.total("naks")) == (0, 0)


def meshed() -> TopologySpec:
    """Two pods; all aggregation switches have links to both cores, so that leaves, these and cores choose."""
    fields = clos_fields("clos3:2x2x2x1x1")
    more = [["agg0", "core1"], ["agg1", "core0"], ["agg2", "core1"], ["agg3", "core0"]]
    return TopologySpec.model_validate(fields | {"links": fields["links"] + more})


def test_a_tier_that_depends_on_another_is_named() -> None:
    with pytest.raises(InputError, match=r"leaf1: tier 3 \(core0, core1\): its bits of the hash depend on those of"):
        TrafficSimulation(config(meshed()))
    result = TrafficSimulation(replace(config(meshed()), core=MAPPED)).run()
    assert result.ok
    assert (result.total("resent"), result.total("naks")) == (0, 0)


@pytest.mark.parametrize(
    ("network", "cause"),
    [
        ("clos3:2x2x2x3x1", r"tier 2 \(agg0, agg1\): 3 next hops; their number must be a power of two"),
        ("clos3:2x2x6x1x1", r"tier 1 \(leaf0\): 6 next hops; their number must be a power of two"),
        ("clos3:2x2x8x4x1", "leaf1: path set 1 has 32 paths; the program sprays over 1 to 16"),
    ],
)
def test_networks_that_cannot_be_sprayed_are_refused(network: str, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        TrafficSimulation(config(network))


def test_the_other_end_must_restore_ports() -> None:
    run = config("clos3:2x2x2x2x1")
    for other in (PLAIN, MAPPED.model_copy(update={"mode": Mode.SOURCE}), MAPPED.model_copy(update={"tiers": 2})):
        with pytest.raises(
            InputError, match="leaf1: its program does not restore the UDP source ports that leaf0 changes"
        ):
            TrafficSimulation(replace(run, programs={"leaf1": other}))
