"""Shares of time: which homes groups with leases get by their duties, against brute force, and what is refused."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from p4gen.errors import InputError
from p4gen.manager.api import Code, GroupSpec, ManagerError
from p4gen.manager.remote.messages import from_message, to_message
from p4gen.plan.placement.policy import Candidate, FabricView, GroupView, SwitchRoom
from p4gen.plan.placement.sharing import TimeShared
from p4gen.plan.placement.tree import IncTree, build_tree
from p4gen.vocabulary.topology import TopologySpec, load_topology

from .rig import Rig, group, small


def all_trees(topology: TopologySpec, ranks: tuple[str, ...]) -> Iterator[IncTree]:
    """By brute force: shortest paths to every switch that is above all ranks without going down on the way."""
    ports = dict.fromkeys(topology.switches, 32)
    for root, tier in topology.tiers.items():
        above = {
            link.name: "above" for link in topology.links if any(topology.tiers.get(e, 0) > tier for e in link.ends)
        }
        try:
            yield build_tree(topology, ranks, root, ports_per_pipeline=ports, down=above)
        except InputError:
            continue


@pytest.mark.parametrize("name", ["leaf-spine", "tree-3-2", "fat-tree-k4"])
def test_homes_have_time_for_their_groups_where_there_are_such(name: str, seed: int) -> None:
    topology, source = load_topology(name), random.Random(f"{seed} {name}")
    blocks = {switch: source.choice([1, 1, 2]) for switch in topology.switches}
    groups: list[GroupView] = []
    duties: dict[str, float] = defaultdict(float)
    beyond = 0
    for number in range(20):
        ranks = tuple(source.sample(topology.rank_hosts, source.choice([2, 2, 3])))
        duty = source.choice([0.1, 0.25, 0.5])
        rooms = {s: SwitchRoom(small(), 4, (64,), blocks[s], duties[s]) for s in topology.switches}
        view = FabricView(topology, {}, rooms, tuple(groups))
        first = next(iter(TimeShared().candidates(view, GroupSpec("new", ranks, duty=duty))))
        assert first.leased
        assert first.tree is not None

        def fullest(tree: IncTree, more: float = duty) -> float:
            return max((duties[node.key.switch] + more) / blocks[node.key.switch] for node in tree.nodes)

        least = min(fullest(tree) for tree in all_trees(topology, ranks))
        if least <= 1 + 1e-9:
            assert first.within_time
            assert fullest(first.tree) <= 1 + 1e-9
            tiers = [topology.tiers[t.root.key.switch] for t in all_trees(topology, ranks) if fullest(t) <= 1 + 1e-9]
            assert topology.tiers[first.root] == min(tiers)
        else:
            beyond += 1
            assert not first.within_time
            assert fullest(first.tree) == pytest.approx(least)
        for node in first.tree.nodes:
            duties[node.key.switch] += duty
        groups.append(GroupView(f"g{number}", first.tree, topology, True, duty))
    assert 0 < beyond < 20


def test_groups_of_little_duty_share_a_root_and_others_get_another_one() -> None:
    rig = Rig("leaf-spine", small(groups=1), policy="time-shared")
    with rig.register() as manager:
        roots = [
            next(
                s
                for s, above in manager.init_group(group(f"g{n}", "h0", "h2", duty=duty)).tree.items()
                if above is None
            )
            for n, duty in enumerate((0.7, 0.2, 0.5, 0.3, 0.3))
        ]
        # Both spines have one block: 0.7 | 0.2, 0.5 | 0.7, 0.3 | 0.2, 0.5, 0.3, or the other way around.
        assert roots[1] == roots[2] == roots[4] != roots[0] == roots[3]
        rig.check()
        beyond = manager.init_group(group("beyond", "h0", "h2", duty=0.5))
        assert beyond.ring  # it is not refused: calls that find the switches taken are on the ring
        assert manager.group("g0").spec.duty == 0.7


def test_what_a_policy_promises_is_checked() -> None:
    class Promising:
        def candidates(self, view: FabricView, spec: GroupSpec) -> Iterator[Candidate]:
            seen.append((view.switches["s0"].blocks, view.switches["s0"].duty))
            yield Candidate("s0", leased=True, within_time=True)

    seen: list[tuple[int, float]] = []
    rig = Rig("star-4", small(groups=2), policy=Promising())
    with rig.register() as manager:
        for number, duty in enumerate((0.9, 0.6, 0.5)):
            manager.init_group(group(f"g{number}", "h0", "h1", duty=duty))
        with pytest.raises(ManagerError) as refused:
            manager.init_group(group("more", "h0", "h1", duty=0.25))
        assert refused.value.code is Code.NO_ROOM
        assert "s0: with it the duties of groups add up to 2.25, of 2 blocks" in refused.value.reason
        assert seen == [(2, 0), (2, 0.9), (2, 1.5), (2, 2.0)]
        manager.destroy_group("g2")
        manager.init_group(group("more", "h0", "h1", duty=0.25))


@pytest.mark.parametrize("duty", [0.0, -0.5, 1.5, math.nan, math.inf])
def test_a_duty_is_a_share(duty: float) -> None:
    rig = Rig("star-4", small(), policy="time-shared")
    with rig.register() as manager, pytest.raises(ManagerError) as refused:
        manager.init_group(group("g", "h0", "h1", duty=duty))
    assert refused.value.code is Code.INVALID
    assert refused.value.reason == f"a duty of {duty:g}: it is a share of the time, more than 0 and at most 1"


def test_a_duty_survives_the_manager_and_the_wire(tmp_path: Path) -> None:
    for duty in (1.0, 0.25):
        spec = GroupSpec("g", ("h0", "h1"), duty=duty)
        assert from_message(GroupSpec, to_message(spec)) == spec
    db = tmp_path / "groups.db"
    for known in (False, True):
        rig = Rig("star-4", small(), policy="time-shared", store=db)
        with rig.register() as manager:
            if not known:
                manager.init_group(group("g", "h0", "h1", duty=0.25))
            assert manager.group("g").spec.duty == 0.25
