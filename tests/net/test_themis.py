"""Themis's programs under traffic, and Figure 1 of its paper."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from p4gen.cli.app import cli
from p4gen.errors import InputError
from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import Recovery
from p4gen.net.traffic.traffic import Pattern, Traffic, TrafficConfig, by_position
from p4gen.net.traffic.traffic_simulation import TrafficSimulation
from p4gen.net.world.faults import Faults, Impairment
from p4gen.papers.themis.spec import Evidence, Spread, ThemisSpec
from p4gen.vocabulary.clos import clos_fields
from p4gen.vocabulary.topology import TopologySpec


@lru_cache
def leaf(spread: Spread, evidence: Evidence = Evidence.QUEUE) -> ThemisSpec:
    """One program for all tests: it is compiled once."""
    if evidence is Evidence.CLASSES:
        return ThemisSpec(spread=spread, paths=8, connections=16, evidence=evidence, ports=16)
    return ThemisSpec(spread=spread, paths=8, connections=16, queue=256, ports=16)


def config(
    spines: int, spread: Spread, pattern: Pattern = Pattern.NEXT, size: int = 96_000, loss: float = 0, seed: int = 1
) -> TrafficConfig:
    """Two groups of three hosts on three leaves; one spine's links lose."""
    network = TopologySpec.model_validate(clos_fields(f"clos:3x{spines}x2") | {"defaults": {"queue": "4M"}})
    return TrafficConfig(
        network,
        leaf(spread),
        tuple(Traffic(pattern, hosts, size) for hosts in by_position(network)),
        core=leaf(Spread.ECMP),
        faults=Faults((Impairment("spine0", loss=loss),)) if loss else Faults(),
        seed=seed,
        timeout=200 * US,
        message=32_000,
    )


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 8), st.sampled_from(Pattern), st.integers(0, 99), st.sampled_from(Evidence))
@pytest.mark.long
def test_without_loss_nothing_is_sent_twice(spines: int, pattern: Pattern, seed: int, evidence: Evidence) -> None:
    run = replace(config(spines, Spread.THEMIS, pattern, seed=seed), program=leaf(Spread.THEMIS, evidence))
    result = TrafficSimulation(run).run()
    assert result.ok, result.errors
    assert (result.total("resent"), result.total("timeouts")) == (0, 0)


@settings(max_examples=10, deadline=None)
@given(
    st.integers(1, 8),
    st.sampled_from(Pattern),
    st.integers(0, 99),
    st.sampled_from([0.001, 0.01, 0.1]),
    st.sampled_from(Evidence),
)
@pytest.mark.long
def test_with_loss_everything_arrives(
    spines: int, pattern: Pattern, seed: int, loss: float, evidence: Evidence
) -> None:
    run = replace(config(spines, Spread.THEMIS, pattern, 48_000, loss, seed), program=leaf(Spread.THEMIS, evidence))
    result = TrafficSimulation(run).run()
    assert result.ok, result.errors


@pytest.mark.parametrize("evidence", Evidence)
@pytest.mark.long
def test_losses_are_repaired_without_a_timeout(evidence: Evidence) -> None:
    lost = timeouts = 0
    for spines in (2, 3, 5):
        run = config(spines, Spread.THEMIS, size=2_000_000, loss=0.002, seed=3)
        result = TrafficSimulation(replace(run, program=leaf(Spread.THEMIS, evidence))).run()
        assert result.ok, result.errors
        lost, timeouts = lost + result.total("lost"), timeouts + result.total("timeouts")
    assert lost > 20
    assert timeouts <= 0.05 * lost


def test_random_spraying_makes_nics_retransmit_what_was_not_lost() -> None:
    spurious = {
        spread: TrafficSimulation(config(2, spread, size=600_000)).run().spurious
        for spread in (Spread.ECMP, Spread.RANDOM, Spread.THEMIS)
    }
    assert spurious[Spread.RANDOM] > 0.02
    assert spurious[Spread.ECMP] == spurious[Spread.THEMIS] == 0
    ideal = replace(config(2, Spread.RANDOM, size=600_000), recovery=Recovery.ORACLE)
    assert TrafficSimulation(ideal).run().total("resent") == 0


def test_connections_of_nics_that_go_back_n_are_not_sprayed() -> None:
    usual = replace(config(2, Spread.THEMIS), recovery=Recovery.GO_BACK_N)
    result = TrafficSimulation(usual).run()
    assert result.ok, result.errors
    assert (result.total("resent"), result.total("naks")) == (0, 0)
    sprayed = TrafficSimulation(replace(usual, spray_gbn=True)).run()
    assert sprayed.ok, sprayed.errors
    assert sprayed.total("resent") > 0
    assert sprayed.duration > 4 * result.duration


def test_requests_are_spread_evenly_over_spines() -> None:
    simulation = TrafficSimulation(config(4, Spread.THEMIS))
    assert simulation.run().ok
    for leaf_name in ("leaf0", "leaf1", "leaf2"):
        counts = [simulation.network.directions[f"{leaf_name}>spine{i}"].packets for i in range(4)]
        # Two flows of 96 packets each leave by here; answers, a sixteenth of that, have one path each.
        assert min(counts) >= 2 * 96 // 4
        assert max(counts) <= 2 * 96 // 4 + 2 * 10


def test_too_many_connections_are_refused() -> None:
    few = leaf(Spread.THEMIS).model_copy(update={"connections": 1})
    with pytest.raises(InputError, match=r"leaf0: more connections end at this switch .* 1 \(connections\)"):
        TrafficSimulation(replace(config(2, Spread.THEMIS), program=few))


def figure(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["paper", "themis", *arguments], standalone_mode=False)


@pytest.mark.long
def test_figure_1_holds_and_is_written(tmp_path: Path) -> None:
    result = figure("figure-1", "--scale", "quick", "--seed", "1", "--out", str(tmp_path), "--json")
    report = json.loads(result.output)
    assert (result.return_value, report["passed"]) == (0, True), [c for c in report["checks"] if not c["holds"]]
    assert [row["spurious: paper"] for row in report["rows"]] == [0, 16, None, None, None]
    folder = tmp_path / "themis"
    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == [
        "figure-1-series.csv", "figure-1.csv", "figure-1.md", "figure-1b.svg", "figure-1c.svg",
    ]  # fmt: skip
    assert (folder / "figure-1.csv").read_text().count("\n") == 6


def test_adaptive_routing_sees_the_queues() -> None:
    """With a slow link to one of two spines, requests take the other one more often; at random they do not."""
    shares = {}
    for spread in (Spread.ADAPTIVE, Spread.RANDOM):
        traffic = config(2, spread, Pattern.FLOW, size=400_000)
        fields = clos_fields("clos:3x2x2") | {"defaults": {"queue": "4M"}}
        slow = [{"ends": link, "bandwidth": "25G"} if link == ["leaf0", "spine0"] else link for link in fields["links"]]
        network = TopologySpec.model_validate(fields | {"links": slow})
        simulation = TrafficSimulation(replace(traffic, topology=network))
        assert simulation.run().ok
        sent = [simulation.network.directions[f"leaf0>spine{i}"].packets for i in range(2)]
        shares[spread] = sent[0] / sum(sent)
    assert shares[Spread.ADAPTIVE] < 0.3
    assert 0.45 < shares[Spread.RANDOM] < 0.55


def test_queues_of_more_next_hops_than_the_program_knows_are_refused() -> None:
    few = leaf(Spread.ADAPTIVE).model_copy(update={"paths": 2})
    with pytest.raises(
        InputError, match=r"leaf0: routes have 3 next hops; the program knows the queues of 2 \(paths\)"
    ):
        TrafficSimulation(replace(config(3, Spread.ADAPTIVE), program=few))
