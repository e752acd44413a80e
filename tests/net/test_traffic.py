"""Flows, AlltoAll and rings between hosts of generated networks."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest

from p4gen.errors import InputError
from p4gen.host.transport.clock import US
from p4gen.host.transport.dcqcn_timed import TimedDcqcnConfig
from p4gen.host.transport.verbs import Recovery
from p4gen.net.traffic.series import points, series_csv, series_svg
from p4gen.net.traffic.traffic import Pattern, Traffic, TrafficConfig, by_position
from p4gen.net.traffic.traffic_simulation import TrafficSimulation
from p4gen.net.world.faults import Faults, Impairment
from p4gen.papers.epic.spec import EpicSpec
from p4gen.vocabulary.clos import clos_fields
from p4gen.vocabulary.topology import TopologySpec, load_topology

PROGRAM = EpicSpec(lanes=8, window=1, message=1, groups=1)
LOSSY = Faults((Impairment("leaf0", loss=0.08),))


def config(pattern: Pattern = Pattern.NEXT, size: int = 40_000, **fields: Any) -> TrafficConfig:
    """Two groups of three on three leaves; all hosts' messages take several packets."""
    clos = load_topology("clos:3x2x2")
    traffic = tuple(Traffic(pattern, hosts, size) for hosts in by_position(clos))
    defaults: dict[str, Any] = {"message": 12_000, "seed": 4, "timeout": 100 * US}
    return TrafficConfig(clos, PROGRAM, traffic, **(defaults | fields))


def test_groups_have_one_host_of_each_leaf() -> None:
    assert by_position(load_topology("clos:3x2x2")) == [("h0", "h2", "h4"), ("h1", "h3", "h5")]


@pytest.mark.sample(4)
@pytest.mark.parametrize("recovery", [Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT, Recovery.ORACLE])
@pytest.mark.parametrize("pattern", Pattern)
def test_all_traffic_arrives_despite_loss(pattern: Pattern, recovery: Recovery) -> None:
    dcqcn = TimedDcqcnConfig(increase_timer=10 * US)
    result = TrafficSimulation(config(pattern, 24_000, recovery=recovery, faults=LOSSY, dcqcn=dcqcn)).run()
    assert result.ok, result.errors
    assert result.total("lost") > 0
    if recovery is Recovery.ORACLE:
        assert result.total("resent") == result.total("lost")
        assert (result.total("naks"), result.total("timeouts"), result.spurious) == (0, 0, 0)


@pytest.mark.parametrize("pattern", [Pattern.ALLREDUCE, Pattern.ALLTOALL])
@pytest.mark.parametrize("message", [4_000, 12_000])
@pytest.mark.long
def test_collectives_without_arrays_arrive_despite_loss_and_go_on_when_frozen(pattern: Pattern, message: int) -> None:
    mine = config(pattern, 24_000, arrays=False, message=message, faults=LOSSY, skew=5 * US)
    simulation = TrafficSimulation(mine)
    simulation.network.loop.run(count=150)
    frozen = simulation.freeze()
    whole = simulation.run()
    assert whole.ok, whole.errors
    assert whole.total("lost") > 0
    again = TrafficSimulation(mine)
    again.restore(frozen)
    assert again.run() == whole


def test_without_loss_nothing_is_sent_twice_and_links_are_used() -> None:
    result = TrafficSimulation(config(size=400_000)).run()
    assert result.ok
    assert (result.total("resent"), result.total("naks"), len(result.flows)) == (0, 0, 6)
    assert {flow.sent for flow in result.flows} == {33 * 12 + 4}  # messages of 12 packets, and the rest
    for flow in result.flows:
        assert flow.throughput < flow.rate < 100e9


def test_the_same_seed_gives_the_same_run_and_another_one_another() -> None:
    results = [TrafficSimulation(config(seed=seed, faults=LOSSY, interval=5 * US)).run() for seed in (1, 1, 2)]
    assert results[0] == results[1]
    assert replace(results[0], config=results[2].config) != results[2]


@pytest.mark.long
def test_other_switches_may_have_another_program() -> None:
    core = EpicSpec(lanes=16, groups=1)
    traffic = config(core=core, programs={"leaf2": EpicSpec(lanes=32, groups=1)})
    simulation = TrafficSimulation(traffic)
    lanes = {name: spec.lanes for name, spec in simulation.specs.items() if isinstance(spec, EpicSpec)}
    assert lanes == {"spine0": 16, "spine1": 16, "leaf0": 8, "leaf1": 8, "leaf2": 32}
    assert simulation.run().ok


@pytest.mark.sample(3)
@pytest.mark.parametrize("recovery", [Recovery.SELECTIVE_REPEAT, Recovery.ORACLE])
@pytest.mark.parametrize("pattern", Pattern)
def test_a_frozen_run_goes_on_as_if_nothing_had_happened(pattern: Pattern, recovery: Recovery) -> None:
    dcqcn = TimedDcqcnConfig(increase_timer=10 * US)
    mine = config(pattern, 12_000, faults=LOSSY, dcqcn=dcqcn, interval=2 * US, skew=5 * US, recovery=recovery)
    mine = replace(mine, topology=network(buffer={"size": "20K"}, defaults={"ecn": {"low": "2K", "high": "8K"}}))
    simulation = TrafficSimulation(mine)
    simulation.network.loop.run(count=150)
    frozen = simulation.freeze()
    assert frozen == pickle.loads(pickle.dumps(frozen))
    whole = simulation.run()
    for again in (simulation, TrafficSimulation(mine)):
        again.restore(frozen)
        assert again.freeze() == frozen
        assert again.run() == whole


def test_the_series_adds_up_to_the_run() -> None:
    result = TrafficSimulation(config(size=400_000, interval=5 * US)).run()
    mine = [point for point in points(result.samples) if point.flow == "h0>h2"]
    sent = sum(point.rate for point in mine) * 5e-6 / 8
    flow = next(flow for flow in result.flows if flow.name == "h0>h2")
    assert 0.8 * flow.bytes < sent < 1.0001 * flow.bytes  # what is sent after the last sample is missing
    assert {point.useful for point in mine} <= {1.0, None}
    assert series_csv(result.samples).count("\n") == 1 + len(result.samples)
    assert "h0&gt;h2" in series_svg("t", result.samples) or "h0>h2" in series_svg("t", result.samples)


def test_a_run_without_a_timer_says_why_it_does_not_end() -> None:
    result = TrafficSimulation(config(faults=Faults((Impairment("h0>leaf0", loss=1),)), timeout=0, interval=US)).run()
    assert not result.ok
    assert "deadlock: no packet is in flight" in result.stuck[0]


@pytest.mark.long
def test_a_run_that_makes_no_progress_is_given_up() -> None:
    result = TrafficSimulation(config(faults=Faults((Impairment("h0>leaf0", loss=1),)), timeout=2 * US)).run()
    assert not result.ok
    assert "no packet has arrived since" in result.stuck[0]


def test_a_connection_that_fails_is_an_error() -> None:
    faults = Faults((Impairment("h0>leaf0", loss=1),))
    result = TrafficSimulation(config(faults=faults, timeout=2 * US, retry_count=1)).run()
    assert (result.ended, result.ok) == (True, False)
    assert any("h0>h2: sending: transport retry counter exceeded" in error for error in result.errors), result.errors


def test_marks_come_back_as_cnps_and_keep_queues_short() -> None:
    rates = {}
    for nack_cuts in (True, False):
        marking = network(defaults={"queue": "4M", "ecn": {"low": "20K", "high": "80K"}})
        incast = tuple(Traffic(Pattern.FLOW, (host, "h0"), 400_000) for host in ("h1", "h2", "h4"))
        dcqcn = TimedDcqcnConfig(increase_timer=50 * US, nack_cuts=nack_cuts)
        simulation = TrafficSimulation(replace(config(dcqcn=dcqcn), topology=marking, traffic=incast))
        result = simulation.run()
        assert result.ok
        assert result.total("cnps") > 3
        assert simulation.network.directions["leaf0>h0"].marked > 3
        rates[nack_cuts] = result.rate
    assert rates[True] == rates[False], "in order: there is no NAK"


def network(**fields: Any) -> TopologySpec:
    """``clos:3x2x2`` with other values of some fields."""
    return TopologySpec.model_validate(clos_fields("clos:3x2x2") | fields)


def congested(size: str, alpha: float) -> TrafficConfig:
    """Three hosts send to one: the queue to it is long, all others are short."""
    traffic = tuple(Traffic(Pattern.FLOW, (host, "h0"), 200_000) for host in ("h1", "h2", "h4"))
    shared = network(buffer={"size": size, "alpha": alpha}, defaults={"queue": "1G"})
    return replace(config(), topology=shared, traffic=traffic)


def test_a_shared_buffer_bounds_the_queues_together() -> None:
    roomy = TrafficSimulation(congested("8M", 1.0)).run()
    assert roomy.ok
    assert not roomy.drops
    tight = TrafficSimulation(congested("100K", 1.0)).run()
    assert tight.ok
    assert set(tight.drops) == {"leaf0>h0 queue_full"}


@pytest.mark.parametrize("alpha", [0.25, 0.5, 1.0])
def test_a_queue_is_as_long_as_its_share_of_what_is_free(alpha: float) -> None:
    simulation = TrafficSimulation(congested("200K", alpha))
    loop, queues = simulation.network.loop, simulation.network.nodes["leaf0"].outputs.values()
    most = 0
    while not simulation.done:
        loop.run(count=10)
        most = max(most, sum(queue.backlog(loop.now) for queue in queues))
    # One queue q alone: q <= alpha (size - q). Three links bring 15,000 bytes in the latency that switches work ahead.
    longest = 200 * 1024 * alpha / (1 + alpha)
    assert 0.95 * longest < most < longest + 16_000


@pytest.mark.parametrize(
    ("traffic", "cause"),
    [
        (Traffic(Pattern.FLOW, ("h0",), 4), "two different hosts"),
        (Traffic(Pattern.FLOW, ("h0", "h0"), 4), "two different hosts"),
        (Traffic(Pattern.NEXT, ("h0", "h9"), 4), "no host h9"),
        (Traffic(Pattern.NEXT, ("h0", "h1"), 0), "1 to"),
        (Traffic(Pattern.ALLTOALL, ("h0", "h1"), 12), "multiple of 8"),
        (Traffic(Pattern.ALLREDUCE, ("h0", "h1"), 1 << 30), "MiB are the limit"),
    ],
)
def test_impossible_traffic_is_refused(traffic: Traffic, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        TrafficSimulation(replace(config(), traffic=(traffic,)))
