"""Runs of ATP: every element beside NumPy's, whatever the links do but damage packets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from p4gen.errors import InputError
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.net.order import RunOrder
from p4gen.net.world.faults import Faults, Impairment, Outage
from p4gen.papers.atp.running import AtpRun
from p4gen.papers.atp.runs import FACET
from p4gen.papers.atp.spec import AtpSpec
from p4gen.vocabulary.topology import Ecn, TopologySpec, load_topology

DISORDER = Faults((Impairment(loss=0.02, reorder=0.2, duplicate=0.2),))
TROUBLES = {
    "none": Faults(),
    "loss": Faults((Impairment(loss=0.1),)),
    "bursts": Faults((Impairment(loss=0.05, burst=4),)),
    "disorder": DISORDER,
    "a link down": Faults(outages=(Outage("h0", 2_000_000, 22_000_000),)),
}


def order(
    topology: str | TopologySpec = "star-4", spec: dict[str, Any] | None = None, options: dict[str, str] | None = None,
    **fields: Any,
) -> RunOrder[AtpSpec]:  # fmt: skip
    """Three calls of 4 KiB with eight packets on the way."""
    given = {name: option.default for name, option in FACET.options.items()} | {"in_flight": "8"} | (options or {})
    program = AtpSpec(**{"lanes": 32, "aggregators": 16, "patience": 8, **(spec or {})})
    read = {name: option.read(given[name]) for name, option in FACET.options.items()}
    asked = RunOrder(
        load_topology(topology), program, FACET.collectives[0], 4096, repeat=3, engine="interp", options=read
    )
    return replace(asked, **fields)


def marking(name: str) -> TopologySpec:
    """A topology whose links mark packets from one in the queue on."""
    topology = load_topology(name)
    ecn = Ecn(low=1, high=200, share=1.0)
    return topology.model_copy(update={"defaults": topology.defaults.model_copy(update={"ecn": ecn})})


@pytest.mark.parametrize("server", ["local", "worker"])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_sums_are_right(trouble: str, server: str, pytestconfig: pytest.Config) -> None:
    seed = pytestconfig.getoption("--seed")
    run = AtpRun(order(spec={"server": server}, faults=TROUBLES[trouble], seed=seed))
    result = run.run()
    assert (result.stuck, result.errors) == ((), ()), seed
    assert result.sent - result.resent == run.arrived() == 4 * 3 * 32
    assert bool(result.resent) == bool(result.drops or trouble == "disorder")
    (stats,) = (each.stats for each in run.servers)
    if trouble == "none":
        assert (stats.whole, stats.again, stats.useless) == (96, 0, 0)
        assert stats.packets == 96 * (2 if server == "local" else 1)


@pytest.mark.parametrize("topology", ["tree-3-2", "leaf-spine"])
@pytest.mark.parametrize("server", ["local", "worker"])
def test_racks_and_jobs_with_too_few_aggregators(topology: str, server: str, pytestconfig: pytest.Config) -> None:
    """Two jobs whose servers are in different racks share two aggregators a switch."""
    seed = pytestconfig.getoption("--seed")
    asked = order(topology, {"aggregators": 2, "server": server}, faults=DISORDER, concurrent=2, size=2048, seed=seed)
    run = AtpRun(asked)
    result = run.run()
    assert (result.stuck, result.errors) == ((), ()), seed
    for stats in (each.stats for each in run.servers):
        assert stats.collisions, seed


def test_sums_of_racks_meet_at_the_servers_switch() -> None:
    """Without losses the server gets each packet once, with all that is sent through switches."""
    run = AtpRun(order("tree-3-2"))
    assert run.run().ok
    (stats,) = (each.stats for each in run.servers)
    assert (stats.packets, stats.whole) == (2 * 96, 96)  # one of two is its own worker's


def test_sums_that_do_not_fit_are_made_of_floats(pytestconfig: pytest.Config) -> None:
    seed = pytestconfig.getoption("--seed")
    for faults in (Faults(), DISORDER):
        run = AtpRun(order(options={"large": "30%"}, faults=faults, seed=seed))
        result = run.run()
        assert (result.stuck, result.errors) == ((), ()), seed
        assert run.servers[0].stats.asked, seed


def test_long_queues_halve_windows() -> None:
    """Marks on gradients come back with the result, whoever met the queue."""
    quick, slow = (AtpRun(order(topology, size=1 << 14)) for topology in ("star-4", marking("star-4")))
    assert quick.run().ok
    result = slow.run()
    assert result.ok
    assert sum(link.marked for link in result.links)
    assert result.duration > quick.network.loop.now


def test_a_run_that_cannot_end_says_what_workers_wait_for() -> None:
    result = AtpRun(order(faults=Faults((Impairment("h0>s0", loss=1.0),)), timeout=20_000_000)).run()
    assert any("rank 3 waits for the result of packet 0" in line for line in result.stuck)


@pytest.mark.parametrize(
    ("asked", "cause"),
    [
        (order(size=100), "it has to be a positive multiple of 128"),
        (order(faults=Faults((Impairment(corrupt=0.1),))), "no packets may be corrupted"),
        (order(dcqcn=DcqcnConfig()), "no queue pairs"),
        (order(spec={"fan_in": 2}), "4 edges; the program takes 1 to 2"),
        (order(spec={"groups": 1}, concurrent=2), "2 contexts are needed; the program has 1"),
        (order(spec={"ports": 3}), "s0 has 4 links; the program has 3 ports"),
    ],
)
def test_wrong_orders_are_refused(asked: RunOrder[AtpSpec], cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        AtpRun(asked)
