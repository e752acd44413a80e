"""Plans anew in the background: groups move where that is worth it, and stay otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from p4gen.manager.api import Code, GroupSpec, ManagerError
from p4gen.manager.groups.together import PairSearch
from p4gen.manager.store.record import Record
from p4gen.net.collectives.config import Call
from p4gen.plan.placement.policy import Candidate, FabricView
from p4gen.plan.placement.rate import Crowd, flows
from p4gen.plan.placement.tree import build_tree
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec, load_topology

from .collectives import Wires
from .rig import Rig, group, small


def two_spines(second: str) -> TopologySpec:
    """Two leaves with two hosts each, and two spines: links of the first one have 400 Gb/s."""
    hosts = [[f"h{host}", f"leaf{host // 2}"] for host in range(4)]
    first = [{"ends": [f"leaf{leaf}", "spine0"], "bandwidth": "400G"} for leaf in range(2)]
    other = [{"ends": [f"leaf{leaf}", "spine1"], "bandwidth": second} for leaf in range(2)]
    return TopologySpec.model_validate(
        {
            "name": "two-spines",
            "switches": ["leaf0", "leaf1", "spine0", "spine1"],
            "hosts": [f"h{host}" for host in range(4)],
            "links": [*hosts, *first, *other],
            "defaults": {"bandwidth": "1T"},
        }
    )


class Widest:
    """Both spines, that with the faster links first."""

    def candidates(self, view: FabricView, spec: GroupSpec) -> Iterator[Candidate]:
        topology = view.topology
        rates = {root: min(topology.setting(link, "bandwidth") for link in topology.ports[root]) for root in SPINES}
        yield from (Candidate(root) for root in sorted(SPINES, key=lambda root: -rates[root]))


SPINES = ("spine0", "spine1")
SHORT = [Call(Collective.ALLREDUCE, 96)]


def set_spine(rig: Rig, spine: str, *, up: bool) -> None:
    """All links of a spine."""
    rig.manager.report_links(spine, dict.fromkeys(range(len(rig.topology.ports[spine])), up))


def root(rig: Rig, name: str) -> str:
    return next(switch for switch, above in rig.manager.group(name).tree.items() if above is None)


def settle(rig: Rig) -> None:
    """Until the planner finds nothing to do."""
    replan = rig.manager._replan
    assert replan is not None

    def settled() -> bool:
        with rig.manager._changed:
            return replan.settled

    rig.wait(settled)


@pytest.mark.parametrize(("second", "moves"), [("500G", True), ("430G", False)])
def test_a_group_moves_to_a_link_that_is_back_if_it_gains_a_tenth(second: str, *, moves: bool) -> None:
    rig = Rig(two_spines(second), small(), policy=Widest(), replan=True, pause=0.0)
    with rig.register() as manager:
        set_spine(rig, "spine1", up=False)
        before = manager.init_group(group("g", "h0", "h2"))
        assert root(rig, "g") == "spine0"
        wires = Wires(rig)
        wires.run("g", SHORT, seed=1)
        settle(rig)
        set_spine(rig, "spine1", up=True)
        settle(rig)
        assert (root(rig, "g"), manager.group("g").generation) == (
            ("spine1", before.generation + 1) if moves else ("spine0", before.generation)
        )
        rig.check()
        wires.run("g", SHORT, seed=2)
        manager.destroy_group("g")
        rig.check_empty()


def test_groups_part_and_then_stay() -> None:
    rig = Rig("leaf-spine", small(groups=4), replan=True, pause=0.0)
    with rig.register() as manager:
        set_spine(rig, "spine1", up=False)
        for number in range(2):  # both use the spine that is left, and its links
            manager.init_group(group(f"g{number}", f"h{number}", f"h{number + 2}"))
            assert root(rig, f"g{number}") == "spine0"
        manager.init_group(group("fixed", "h0", "h2", root="spine0"))
        set_spine(rig, "spine1", up=True)
        settle(rig)
        where = {name: root(rig, name) for name in ("g0", "g1", "fixed")}
        generations = {name: manager.group(name).generation for name in where}
        # g0 moves first, from a third of a link to a half, as it shares h0's own link; so have the others then. It has
        # no more anywhere, so it makes way for g1, which has a whole link now.
        assert where == {"g0": "spine0", "g1": "spine1", "fixed": "spine0"}
        assert generations == {"g0": 3, "g1": 2, "fixed": 1}
        for _ in range(3):  # nothing that others do moves them again
            manager.init_group(group("more", "h4", "h6"))
            settle(rig)
            manager.destroy_group("more")
            settle(rig)
        assert {name: root(rig, name) for name in where} == where
        assert {name: manager.group(name).generation for name in where} == generations
        rig.check()


def test_a_group_that_has_moved_stays_for_a_while() -> None:
    rig = Rig(two_spines("800G"), small(), policy=Widest(), replan=True, pause=3600.0)
    with rig.register() as manager:
        replan = manager._replan
        assert replan is not None
        for _ in range(2):  # a link that comes and goes
            set_spine(rig, "spine1", up=False)
            if not manager.groups():
                manager.init_group(group("g", "h0", "h2"))
            rig.wait(lambda: root(rig, "g") == "spine0")
            set_spine(rig, "spine1", up=True)
            rig.wait(lambda: root(rig, "g") == "spine1" or manager.group("g").generation == 3)
        looks = replan.looks
        rig.wait(lambda: replan.looks > looks + 1)
        assert (root(rig, "g"), manager.group("g").generation) == ("spine0", 3)  # placed, moved, repaired
        rig.check()


@pytest.mark.parametrize("replan", [True, False])
def test_nobody_moves_without_the_planner_or_without_room(replan: bool) -> None:
    rig = Rig(two_spines("800G"), small(groups=1), policy=Widest(), replan=replan, pause=0.0)
    with rig.register() as manager:
        if replan:
            manager.init_group(group("there", "h1", "h3", root="spine1"))
        else:
            set_spine(rig, "spine1", up=False)
        manager.init_group(group("g", "h0", "h2"))
        set_spine(rig, "spine1", up=True)
        if replan:
            settle(rig)
        assert (root(rig, "g"), manager.group("g").generation) == ("spine0", 1)
        rig.check()
        if replan:  # where there is room for one at a time, the new place takes the old one's
            manager.destroy_group("there")
            settle(rig)
            assert (root(rig, "g"), manager.group("g").generation) == ("spine1", 2)
            rig.check()


def crossed() -> TopologySpec:
    """``two_spines``, the second with 800 Gb/s; hosts' links have 1 Tb/s, but those of h1 and h3 100 Gb/s."""
    fields = two_spines("800G").model_dump(mode="json", exclude_unset=True)
    for link in fields["links"][:4]:
        if link["ends"][0] in ("h1", "h3"):
            link["bandwidth"] = "100G"
    return TopologySpec.model_validate(fields)


@pytest.mark.parametrize("apart", [True, False])
def test_two_groups_move_at_once_where_one_alone_gains_nothing(*, apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Big wants the spine with 800 Gb/s, of which small leaves it a half, no more than it has; small has its hosts'
    100 Gb/s everywhere. They change places, or small makes way for big where both are on one spine."""
    rig = Rig(crossed(), small(groups=4), policy=Widest(), replan=True, pause=0.0)
    with rig.register() as manager:
        if apart:
            for number in range(3):
                manager.init_group(group(f"full{number}", "h0", "h2", root="spine1"))
        manager.init_group(group("small", "h1", "h3"))
        with monkeypatch.context() as alone:
            alone.setattr(PairSearch, "pairs", lambda _: iter(()))
            manager.init_group(group("big", "h0", "h2"))
            for number in range(3 * apart):
                manager.destroy_group(f"full{number}")
            settle(rig)
            before = {name: (root(rig, name), manager.group(name).generation) for name in ("big", "small")}
            assert before == {"big": ("spine0" if apart else "spine1", 1), "small": ("spine1", 1)}
        manager.init_group(group("new", "h1", "h3", root="spine0"))
        manager.destroy_group("new")
        settle(rig)
        after = {name: (root(rig, name), manager.group(name).generation) for name in ("big", "small")}
        assert after == {"big": ("spine1", 1 + apart), "small": ("spine0", 2)}
        rig.check()
        wires = Wires(rig)
        wires.run("big", SHORT)
        wires.run("small", SHORT)


def test_a_pair_of_which_one_cannot_move_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(crossed(), small(groups=4), policy=Widest(), replan=True, pause=0.0)
    made: list[str] = []
    with rig.register() as manager:
        for number in range(3):
            manager.init_group(group(f"full{number}", "h0", "h2", root="spine1"))
        manager.init_group(group("small", "h1", "h3"))
        settle_group = manager._lifecycle.settle

        def settle_once(record: Record, spec: GroupSpec, **options: Any) -> None:
            if options["faster"].candidate is not None:  # of a pair
                made.append(record.spec.name)
                if record.spec.name == "big":
                    raise ManagerError(Code.REFUSED, "not there")
            settle_group(record, spec, **options)

        manager.init_group(group("big", "h0", "h2"))
        settle(rig)
        monkeypatch.setattr(manager._lifecycle, "settle", settle_once)
        for number in range(3):
            manager.destroy_group(f"full{number}")
        rig.wait(lambda: made)
        settle(rig)
        assert made == ["small", "big", "small"]
        assert (root(rig, "big"), root(rig, "small")) == ("spine0", "spine1")
        rig.check()


def test_a_group_with_leases_gets_a_home_that_has_time_for_it() -> None:
    rig = Rig("leaf-spine", small(groups=1), policy="time-shared", replan=True, pause=0.0, fallbacks=100)
    with rig.register() as manager:
        for number, duty in enumerate((0.7, 0.7, 0.6, 0.25)):
            manager.init_group(group(f"g{number}", "h0", "h2", duty=duty))
        settle(rig)
        homes = [root(rig, f"g{number}") for number in range(4)]
        assert homes[0] != homes[1]  # 0.7 and 0.6 at one spine, 0.7 and 0.25 at the other
        assert manager.begin_call("g2", 1, 0) is False  # a lease, which nothing takes away
        there = next(name for name in ("g0", "g1") if root(rig, name) != homes[2])
        generation = manager.group("g2").generation
        manager.destroy_group(there)
        looks = manager._replan.looks  # type: ignore[union-attr]
        rig.wait(lambda: manager._replan.looks > looks + 1)  # type: ignore[union-attr]
        assert (root(rig, "g2"), manager.group("g2").generation) == (homes[2], generation)
        # The other group of this spine has no lease, so it goes, and there is time for both.
        (stayed,) = {"g0", "g1"} - {there}
        settle(rig)
        assert root(rig, stayed) != homes[2]
        rig.check()


def test_rates_are_what_the_fullest_link_leaves() -> None:
    topology = load_topology("leaf-spine")
    ports = dict.fromkeys(topology.switches, 32)
    members = ("h0", "h2"), ("h1", "h3"), ("h0", "h1", "h4")
    a, b, c = (build_tree(topology, ranks, "spine0", ports_per_pipeline=ports) for ranks in members)
    bandwidth = topology.setting(topology.links[0], "bandwidth")
    assert flows(c)[frozenset({"leaf0", "spine0"})] == 1  # they meet in their leaf
    assert Crowd(topology, []).rate([a]) == bandwidth
    assert Crowd(topology, [b]).rate([a]) == bandwidth / 2
    assert Crowd(topology, [b, c]).rate([a]) == bandwidth / 3
    assert Crowd(topology, [b, c]).most(("h0", "h2")) == bandwidth / 2
    assert Crowd(topology, [b]).most(("h0", "h2")) == bandwidth
    other = build_tree(topology, members[0], "spine1", ports_per_pipeline=ports)
    rates = bandwidth / 2, bandwidth / 4
    assert Crowd(topology, []).rate([a, other], rates) == sum(rates), "no more than they are given"
    assert Crowd(topology, [b]).rate([a, other], rates) == sum(rates), "b is between other hosts"
    assert Crowd(topology, [b, c]).rate([a, other], rates) == pytest.approx(bandwidth / 2), "a third of a link of a"
