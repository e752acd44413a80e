"""Policies that share the fabric: trees without a common link, and the widest path, on a manager and on views."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest

from p4gen.errors import InputError
from p4gen.manager.api import Code, GroupSpec, ManagerError
from p4gen.plan.placement.policy import Candidate, FabricView, GroupView, SwitchRoom, find_policy
from p4gen.plan.placement.sharing import EdgeDisjoint, TimeShared, WidestPath, trees_by_tier
from p4gen.plan.placement.tree import IncTree, build_tree, tree_links
from p4gen.vocabulary.topology import TopologySpec, load_topology

from .rig import Rig, group, small


def view(topology: TopologySpec, *trees: IncTree, slots: dict[str, int] | None = None) -> FabricView:
    """A fabric with groups on these trees."""
    free = slots or {}
    room = {switch: SwitchRoom(small(), 4, (free.get(switch, 64),)) for switch in topology.switches}
    return FabricView(topology, {}, room, tuple(GroupView(f"g{i}", tree, topology) for i, tree in enumerate(trees)))


def descending(topology: TopologySpec, ranks: tuple[str, ...]) -> dict[int, set[str]]:
    """By brute force: for each tier the switches that reach all ranks only by way of lower tiers."""
    found: dict[int, set[str]] = {}
    for switch, tier in topology.tiers.items():
        reached, todo = {switch}, [switch]
        while todo:
            node = todo.pop()
            for link in topology.ports[node]:
                other = link.other(node)
                if topology.tiers.get(other, 0) < topology.tiers.get(node, 0) and other not in reached:
                    reached.add(other)
                    todo.append(other)
        if reached.issuperset(ranks):
            found.setdefault(tier, set()).add(switch)
    return found


@pytest.mark.parametrize("ranks", [("h0", "h1"), ("h0", "h2"), ("h0", "h2", "h3"), ("h0", "h5", "h12")])
def test_trees_come_from_the_lowest_tier_that_reaches_all_ranks(ranks: tuple[str, ...]) -> None:
    topology = load_topology("fat-tree-k4")
    expected = descending(topology, ranks)
    lowest = min(expected)
    found = list(trees_by_tier(view(topology), GroupSpec("g", ranks), {}))
    assert found[0][0] == lowest
    assert {tree.root.key.switch for tier, tree in found if tier == lowest} == expected[lowest]


def test_edge_disjoint_trees_share_no_link_until_none_is_left() -> None:
    topology = load_topology("fat-tree-k4")
    ranks = topology.rank_hosts
    placed: list[IncTree] = []
    for pair in itertools.combinations(ranks[:8], 2):  # any two of two pods' hosts, as long as there is a tree
        first = next(iter(EdgeDisjoint().candidates(view(topology, *placed), GroupSpec("new", pair))), None)
        assert first is not None
        assert first.tree is not None
        assert first.disjoint
        taken = set().union(*(tree_links(tree, topology) for tree in placed))
        if tree_links(first.tree, topology) & taken:  # proposed for the manager's reason only: a host's link is taken
            assert any(topology.ports[host][0].name in taken for host in pair)
        else:
            placed.append(first.tree)
    assert len(placed) == 4


def test_a_manager_with_disjoint_trees_refuses_with_the_group_that_is_in_the_way() -> None:
    rig = Rig("leaf-spine", small(), policy="edge-disjoint")
    with rig.register() as manager:
        trees = [
            next(iter(manager.init_group(group(name, *hosts)).tree))
            for name, hosts in (("a", ("h0", "h2")), ("b", ("h1", "h3")))
        ]
        assert sorted(trees) == ["spine0", "spine1"]
        with pytest.raises(ManagerError) as refused:
            manager.init_group(group("c", "h0", "h4"))
        assert refused.value.code is Code.NO_ROOM
        assert "of its tree is in that of group a" in refused.value.reason
        assert [status.spec.name for status in manager.groups()] == ["a", "b"]
        manager.destroy_group("a")
        manager.init_group(group("c", "h0", "h4"))
        manager.move_group("c")  # beside its present place, which is not in its own way
        rig.check()


def test_the_widest_path_avoids_links_that_others_use() -> None:
    topology = load_topology("leaf-spine")
    pipeline = dict.fromkeys(topology.switches, 32)
    other = build_tree(topology, ("h0", "h2"), "spine0", ports_per_pipeline=pipeline)
    proposed = [c.root for c in WidestPath().candidates(view(topology, other), GroupSpec("g", ("h1", "h3")))]
    assert proposed[0] == "spine1"
    assert set(proposed) == {"spine0", "spine1"} | {r for r in proposed if r.startswith("leaf")}


def test_of_the_frontier_the_wide_or_the_near_comes_first() -> None:
    topology = load_topology("leaf-spine")
    # One leaf reaches both; its memory is nearly full, that of the spines is not, but the leaf is in their trees, too.
    ranks = ("h0", "h1")
    wide = list(find_policy("widest-path").candidates(view(topology), GroupSpec("g", ranks)))
    near = list(find_policy("widest-path-near").candidates(view(topology), GroupSpec("g", ranks)))
    assert near[0].root == "leaf0"
    assert {c.root for c in wide} == {c.root for c in near}


def test_slots_are_as_many_as_the_links_can_use_and_as_are_free() -> None:
    topology = load_topology("star-4")
    need = small().slots_per_group

    def slots(free: int, wanted: int | None = None) -> int:
        spec = GroupSpec("g", ("h0", "h1"), slots=wanted)
        return next(iter(WidestPath().candidates(view(topology, slots={"s0": free}), spec))).slots or 0

    assert slots(need) == need
    assert slots(4 * need) == 2 * need
    assert slots(1 << 16) == slots(1 << 17) > need  # more than a round trip's packets are of no use
    assert slots(1 << 16, wanted=need) == need


def test_a_manager_gives_the_slots_that_a_policy_proposes() -> None:
    rig = Rig("star-4", small(), policy="widest-path")
    with rig.register() as manager:
        status = manager.init_group(group("a", "h0", "h1"))
        fixed = manager.init_group(group("b", "h2", "h3", slots=small().slots_per_group))
        assert sum(status.slots.values()) == small().total_slots // 2
        assert sum(fixed.slots.values()) == small().slots_per_group
        rig.check()


def test_shares_of_time_are_on_the_least_wanted_switches_of_the_lowest_tier() -> None:
    topology = load_topology("fat-tree-k4")
    ranks = ("h0", "h2")  # of one pod
    placed: list[IncTree] = []
    roots = []
    for _ in range(4):
        duty = Counter(node.key.switch for tree in placed for node in tree.nodes)
        room = {switch: SwitchRoom(small(), 4, (64,), 4, duty[switch]) for switch in topology.switches}
        found = list(TimeShared().candidates(FabricView(topology, {}, room), GroupSpec("new", ranks)))
        assert all(candidate.leased and not candidate.disjoint for candidate in found)
        everywhere = trees_by_tier(view(topology), GroupSpec("new", ranks), {})
        assert {c.root for c in found} == {tree.root.key.switch for _, tree in everywhere}
        assert found[0].tree is not None
        placed.append(found[0].tree)
        roots.append(found[0].root)
    lowest = descending(topology, ranks)
    assert set(roots[:2]) == set(roots[2:]) == lowest[min(lowest)]


def test_groups_that_no_ring_can_stand_in_for_are_placed_for_good() -> None:
    rig = Rig("tree-3-2", small(groups=1), policy="time-shared")
    with rig.register() as manager:
        status = manager.init_group(group("alone", "h0"))
        assert not status.ring
        assert sum(status.slots.values())
        with pytest.raises(ManagerError) as refused:  # a lease must fit beside what is held for good
            manager.init_group(group("all", "h0", "h1", "h2", "h3", root=next(iter(status.tree))))
        assert refused.value.code is Code.NO_ROOM
        manager.destroy_group("alone")
        assert manager.init_group(group("all", "h0", "h1", "h2", "h3", root="s1")).ring
        assert manager.group("all").tree["s1"] is None
        rig.check()


def test_a_policy_is_asked_without_the_lock_and_again_if_the_fabric_has_changed() -> None:
    asked: list[int] = []

    class Slow:
        def candidates(self, view: FabricView, spec: GroupSpec) -> Iterator[Candidate]:
            asked.append(len(view.groups))
            if spec.name == "a" and len(asked) < 3:  # a request that overtakes
                rig.manager.init_group(group(f"b{len(asked)}", "h0", "h1"))
            yield Candidate("s0")

    rig = Rig("star-4", small(groups=3), policy=Slow())
    with rig.register() as manager:
        manager.init_group(group("a", "h2", "h3"))
        # Asked for a; for b1 meanwhile; again for a; for b3 would be the next, but three have been asked for.
        assert asked == [0, 0, 1]
        assert [status.spec.name for status in manager.groups()] == ["a", "b1"]
        rig.check()


def test_a_policy_that_does_not_exist_is_refused_with_all_names() -> None:
    with pytest.raises(
        InputError,
        match="there are lowest-common-switch, edge-disjoint, widest-path, widest-path-near, time-shared, ring, aro",
    ):
        find_policy("widest")
