"""Several trees for one group: rates against all trees, shares of calls, files, and packets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from p4gen.errors import InputError
from p4gen.families import load_collective
from p4gen.groups.wire import payload_share
from p4gen.net.collectives.config import Call, SimConfig
from p4gen.net.collectives.simulation import Simulation
from p4gen.plan.route.exact import fastest
from p4gen.plan.route.fabric import Fabric
from p4gen.plan.route.planfile import TreePlan
from p4gen.plan.route.program import Program
from p4gen.plan.route.stripeplan import StripedPlan, read_striped
from p4gen.plan.route.stripes import striped
from p4gen.plan.route.treedrawing import places, plot_trees
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import load_topology

from .test_trees import all_shapes, drawn, possible


def three_of_two() -> Fabric:
    """A leaf that only forwards has three ranks and two links up: with one tree, two of their flows share a link."""
    topology = load_topology("clos:2x2x3@10G")
    return Fabric(topology, topology.hosts, frozenset({"leaf1", "spine0", "spine1"}))


def best_of_all(fabric: Fabric) -> float:
    """The highest rate of all trees there are, together: each has any rate."""
    program = Program()
    links: dict[str, list[tuple[int, float]]] = {}
    for shape in all_shapes(fabric):
        if possible(shape, fabric):
            rate = program.column(0, 1, -1.0)
            for name, flows in shape.loads(fabric).items():
                links.setdefault(name, []).append((rate, float(flows)))
    for name, load in links.items():
        program.at_most(load, fabric.bandwidths[name] / 100e9)
    found = program.minimise(60.0)
    assert found is not None
    return -found.bound * 100e9


def test_rates_are_the_best_of_all_trees(seed: int) -> None:
    for number in range(5):
        fabric = drawn(seed * 1000 + number, ("clos:2x2x2", "clos:3x2x1")[number % 2], 3, 1 + number % 3)
        found, most = striped(fabric, 8), best_of_all(fabric)
        assert found.bound == pytest.approx(most)
        assert most * 0.9 < found.rate <= most * (1 + 1e-6)  # trees that add little are left out
        assert found.rate >= fastest(fabric).rate * (1 - 1e-6)
        assert all(load <= fabric.bandwidths[name] * (1 + 1e-6) for name, load in found.loads.items())


def test_two_trees_use_links_that_one_leaves_idle() -> None:
    fabric = three_of_two()
    found = striped(fabric, 4)
    assert fastest(fabric).rate == pytest.approx(5e9)
    assert len(found.shapes) == 2
    assert found.rate == pytest.approx(20e9 / 3)
    assert found.gap == pytest.approx(0, abs=1e-6)
    assert len(striped(fabric, 1).shapes) == 1


def plan_of(fabric: Fabric) -> StripedPlan:
    return StripedPlan.of(striped(fabric, 4), 1, 32)


@pytest.mark.parametrize("collective", [Collective.ALLREDUCE, Collective.REDUCE_SCATTER, Collective.ALLGATHER])
def test_calls_are_divided_by_whole_messages(collective: Collective) -> None:
    plan, spec = plan_of(three_of_two()), load_collective(None, {"lanes": 8, "message": 2})
    unit = 64 * (1 if collective is Collective.ALLREDUCE else 6)
    for messages in (1, 2, 5, 1000):
        parts = plan.parts(Call(collective, messages * unit + (24 if unit == 64 else 0)), spec)
        assert sum(part.size for part in parts) == messages * unit + (24 if unit == 64 else 0)
        assert all(part.size % unit == 0 for part in parts[1:])
        for part, rate in zip(parts, plan.rates, strict=True):
            assert part.size / unit == pytest.approx(messages * rate / plan.rate, abs=len(parts))
    assert len(plan.work((Call(collective, unit),), spec, 32)) == 1  # there is one message only


def test_a_plan_comes_back_from_its_file(tmp_path: Path) -> None:
    plan, file = plan_of(three_of_two()), tmp_path / "plan.json"
    file.write_text(json.dumps(plan.to_json()))
    assert read_striped(file, plan.first.topology) == plan
    single = TreePlan(**{name: getattr(plan.first, name) for name in TreePlan.__dataclass_fields__})
    file.write_text(json.dumps(single.to_json()))
    assert read_striped(file, single.topology) == StripedPlan((single,), (single.rate,), single.bound)


def _too_fast(content: dict[str, Any]) -> None:
    content["trees"][0]["stripe_bps"] *= 2


def _of_nothing(content: dict[str, Any]) -> None:
    content["trees"][1]["stripe_bps"] = 0


def _without_trees(content: dict[str, Any]) -> None:
    content["trees"] = []


def _without_shares(content: dict[str, Any]) -> None:
    del content["trees"][0]["stripe_bps"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_too_fast, "its rates are more than .* carries"),
        (_of_nothing, "have positive rates"),
        (_without_trees, "it has no trees"),
        (_without_shares, "is no plan with an IncTree: KeyError"),
    ],
)
def test_plans_that_do_not_fit_are_refused(tmp_path: Path, change: Callable[[Any], None], reason: str) -> None:
    plan, file = plan_of(three_of_two()), tmp_path / "plan.json"
    content = plan.to_json()
    change(content)
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match=reason):
        read_striped(file, plan.first.topology)


@pytest.mark.long
def test_goodput_is_that_of_all_trees_together(seed: int) -> None:
    plan = plan_of(three_of_two())
    fields = {"lanes": 256, "message": 8, "groups": 8}
    spec = load_collective(None, {**fields, "window": plan.window(load_collective(None, fields))})
    topology = plan.first.topology.model_copy(update={"ranks": plan.first.ranks})
    work = plan.work((Call(size=1 << 20),), spec, 32)
    config = SimConfig(topology, spec, size=1 << 20, seed=seed, engine="jit", timeout=plan.timeout(spec), work=work)
    result = Simulation(config).run()
    assert result.ok
    assert result.drops.total() == 0
    assert 0.95 < result.throughput / (plan.rate * payload_share(spec, 32)) < 1.02


def test_trees_are_drawn(tmp_path: Path) -> None:
    """Each with its root; hosts are below their leaves, switches in the order of their tiers."""
    plan = StripedPlan.of(striped(three_of_two(), 4), 1, 32)
    plot_trees(plan.plans, tmp_path / "trees.svg")
    text = (tmp_path / "trees.svg").read_text()
    assert all(f"root {number}" in text for number in range(len(plan.plans)))
    at = places(plan.first.topology)
    assert [at[name][1] for name in ("h0", "leaf0", "spine0")] == sorted({y for _, y in at.values()})
    assert at["h0"][0] < at["h3"][0]
    assert at["leaf0"][0] < at["leaf1"][0]
