"""The policy ``aro``: plans, the quick search, then the lowest common switch; on a manager and with packets."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from p4gen.errors import InputError
from p4gen.families import load_collective, load_spec
from p4gen.groups.ranks import ACK_EVERY
from p4gen.groups.wire import payload_share
from p4gen.host.transport.clock import MS, SECOND
from p4gen.manager.api import Code, ManagerError
from p4gen.net.collectives.config import Call, SimConfig, Work
from p4gen.net.collectives.simulation import SimResult, Simulation
from p4gen.net.collectives.values import invoke
from p4gen.plan.placement.policy import FabricView, SwitchRoom, find_policy
from p4gen.plan.placement.request import GroupSpec
from p4gen.plan.placement.tree import IncTree, build_tree
from p4gen.plan.route.fabric import Fabric, Shape
from p4gen.plan.route.jobsplan import JobsPlan
from p4gen.plan.route.planfile import TreePlan
from p4gen.plan.route.policy import Aro, searched
from p4gen.plan.route.together import Job
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import TopologySpec, load_topology

from .collectives import Wires
from .plans import spines, weighted
from .rig import Rig, group, small
from .test_replan import set_spine, settle


def view(topology: TopologySpec, down: Mapping[str, str] | None = None, *switches: str) -> FabricView:
    room = {switch: SwitchRoom(small(), 4, (64,)) for switch in switches or topology.switches}
    return FabricView(topology, down or {}, room)


def narrow() -> TopologySpec:
    """Two leaves and two spines; a link of the first spine has a hundredth of the others' bandwidth."""
    fields = load_topology("clos:2x2x1@100G").model_dump(mode="json", exclude_unset=True)
    fields["links"][0] = {"ends": fields["links"][0]["ends"], "bandwidth": "1G"}
    return TopologySpec.model_validate(fields)


def planned(topology: TopologySpec, root: str = "spine0") -> TreePlan:
    """A tree that neither the search nor the lowest common switch would take."""
    paths = (("h0", "leaf0"), ("h1", "leaf1"), ("leaf0", root), ("leaf1", root))
    return TreePlan(topology, ("h0", "h1"), frozenset(topology.switches), Shape(root, paths), 1, 8, 1e11, "by hand")


def test_a_tree_of_faster_links_is_found_where_the_nearest_root_has_slow_ones() -> None:
    topology = narrow()
    spec = GroupSpec("g", ("h0", "h1"))
    first, *rest = Aro().candidates(view(topology), spec)
    assert first.tree is not None
    assert {node.key.switch for node in first.tree.nodes} == {"spine1"}
    assert rest[0].root == "spine0"
    # With the faster spine cut off there is nothing to search for.
    assert searched(view(topology, {"leaf1-spine1": "down"}), spec) is None


def test_a_group_moves_when_a_link_of_its_tree_fails() -> None:
    topology = narrow()
    rig = Rig(topology, small(), policy="aro")
    with rig.register() as manager:
        assert dict(manager.init_group(group("g", "h0", "h1")).tree) == {"spine1": None}
        ports = topology.ports["leaf0"]
        port = next(i for i, link in enumerate(ports) if link.other("leaf0") == "spine1")
        manager.report_links("leaf0", {port: False})
        rig.wait(rig.settled)
        (status,) = manager.groups()
        assert dict(status.tree) == {"spine0": None}
        rig.check()


def run(topology: TopologySpec, tree: IncTree) -> SimResult:
    spec = load_collective(None, {"lanes": 16, "message": 8, "window": 8})
    work = (Work((Call(size=2048),), ("h0", "h1"), None, tree),)
    return Simulation(SimConfig(topology, spec, size=2048, seed=1, work=work)).run()


@pytest.mark.long
def test_packets_are_faster_on_the_tree_of_the_policy_than_on_the_managers() -> None:
    topology = narrow()
    first = next(iter(Aro().candidates(view(topology), GroupSpec("g", ("h0", "h1")))))
    assert first.tree is not None
    faster, usual = run(topology, first.tree), run(topology, build_tree(topology, ("h0", "h1"), "spine0"))
    assert faster.ok
    assert usual.ok
    assert faster.throughput > 1.5 * usual.throughput


def test_a_manager_places_groups_that_leaves_without_aggregation_would_stop() -> None:
    topology = load_topology("clos:2x2x2")
    plain = load_spec(None, {"family": "themis"})
    specs: dict[str, ProgramSpec] = dict.fromkeys(topology.switches, plain) | {"leaf0": small()}
    usual = Rig(topology, specs)
    with usual.register() as manager, pytest.raises(ManagerError) as refused:
        manager.init_group(group("g", *topology.hosts))
    assert "leaf1: its program serves no groups" in str(refused.value)
    rig = Rig(topology, specs, policy="aro")
    with rig.register() as manager:
        assert dict(manager.init_group(group("g", *topology.hosts)).tree) == {"leaf0": None}
        rig.check()
        (placed,) = (record.placed for record in manager._ledger.records.values())
        assert placed is not None
        assert [(each.switch, each.port) for each in placed.first.port_addresses] == [("leaf0", 0), ("leaf0", 1)]
        manager.init_group(group("two", *topology.hosts))
        with pytest.raises(ManagerError) as full:  # two groups have three addresses each, of eight
            manager.init_group(group("three", *topology.hosts))
        assert full.value.code is Code.NO_ROOM
        assert "leaf0: 3 addresses are needed; 2 of 8 are free (groups)" in str(full.value)
        manager.destroy_group("g")
        manager.init_group(group("three", *topology.hosts))
        manager.destroy_group("two")
        manager.destroy_group("three")
        rig.check()
        assert not manager.groups()


def test_a_plan_is_taken_for_its_ranks_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topology = narrow()
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(planned(topology).to_json()))
    monkeypatch.setenv("P4GEN_PLAN", str(file))
    policy = find_policy("aro")
    for ranks in (("h0", "h1"), ("h1", "h0")):
        first = next(iter(policy.candidates(view(topology), GroupSpec("g", ranks))))
        assert first.tree is not None
        assert first.tree.ranks == ranks
        assert first.tree.root.key.switch == "spine0"
    for missing in (view(topology, {"leaf0-spine0": "down"}), view(topology, None, "leaf0", "leaf1", "spine1")):
        first = next(iter(policy.candidates(missing, GroupSpec("g", ("h0", "h1")))))
        assert first.root == "spine1"
    with pytest.raises(InputError, match=r"plan\.json: .*it is for the topology 'clos-2x2x1'"):
        list(policy.candidates(view(load_topology("clos:2x2x1")), GroupSpec("g", ("h0", "h1"))))
    file.unlink()
    with pytest.raises(InputError, match="cannot read"):
        find_policy("aro")


def test_groups_of_a_joint_plan_share_links_by_their_weights(tmp_path: Path) -> None:
    """Goodput of both at the same time, beside what the plan promises; a group on its own place is not held back."""
    plan, file = weighted(), tmp_path / "plan.json"
    file.write_text(json.dumps(plan.to_json()))
    spec = small(lanes=64, message=4, window=16)
    rig = Rig(plan.plans[0].first.topology, spec, policy=Aro(file), engine="jit")
    with rig.register() as manager:
        for job in plan.jobs:
            status = manager.init_group(group(job.name, *job.fabric.ranks))
            (tree,) = status.trees
            assert dict(tree.tree) == dict(status.tree)
            assert tree.rate == pytest.approx(job.weight * 10e9 / 3)
        rig.check()
        wires = Wires(rig)
        made = {}
        for job in plan.jobs:
            call = Call(size=int(job.weight) << 20)
            made[job.name] = (
                call.size,
                [invoke(member, call, np.ones(call.size // 4, np.int32)) for member in wires.join(job.name)],
            )
        wires.advance(20 * MS)
        share = payload_share(spec, ACK_EVERY)
        for each, (size, calls) in zip(plan.plans, made.values(), strict=True):
            for each_rank in calls:
                np.testing.assert_array_equal(each_rank.result(), np.full(size // 4, 2))
            took = max(call.finished or 0 for call in calls) - min(call.started or 0 for call in calls)
            assert size * 8 * SECOND / took == pytest.approx(each.rate * share, rel=0.05)
        manager.move_group("a", "spine0")
        assert not manager.group("a").trees


def test_a_job_of_a_joint_plan_leaves_others_their_rates_when_one_of_its_trees_fails(tmp_path: Path) -> None:
    """A plan of one group raises the rates of trees that are left; where others have the rest, rates stay."""
    alone = spines(6e9, 4e9)
    topology, ranks = alone.first.topology, alone.first.ranks
    joint = JobsPlan((Job("a", alone.first.fabric),), (alone,), 10e9)
    found = {}
    for name, plan in ("alone", alone), ("joint", joint):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(plan.to_json()))
        for down in ({}, {"leaf0-spine0": "down"}):
            first = next(iter(Aro(file).candidates(view(topology, down), GroupSpec("a", ranks))))
            found[name, len(down)] = tuple(stripe.rate for stripe in first.stripes)
    assert found == {("alone", 0): (6e9, 4e9), ("joint", 0): (6e9, 4e9), ("alone", 1): (), ("joint", 1): (4e9,)}
    rig = Rig(topology, small(), policy=Aro(tmp_path / "joint.json"), replan=True, pause=0.0)
    with rig.register() as manager:
        manager.init_group(group("a", *ranks))
        for up, rates in (False, [4e9]), (True, [6e9, 4e9]):
            before = manager.group("a").generation
            set_spine(rig, "spine0", up=up)
            rig.wait(lambda old=before: rig.settled() and manager.group("a").generation > old)  # type: ignore[misc]
            assert [tree.rate for tree in manager.group("a").trees] == rates
            settle(rig)
            Wires(rig).run("a", [Call(size=256)])
            rig.check()
        assert manager.group("a").generation == 3


def test_a_search_is_short_or_left_out(seed: int) -> None:
    """A large fabric gets the lowest common switch."""
    topology = load_topology("clos:12x12x8")
    some = view(topology, None, *[f"leaf{i}" for i in range(0, 12, 2)], *[f"spine{i}" for i in range(12)])
    ranks = tuple(f"h{i}" for i in range(seed % 7, 96, 4))
    began = time.process_time()
    assert searched(some, GroupSpec("g", ranks)) is None
    assert time.process_time() - began < 5  # not a measurement: a search without an end would be noticed
    assert Fabric(topology, ranks, frozenset(some.switches)).limit > 0
