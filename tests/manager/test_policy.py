"""Placement policies: where groups go, and how a policy is found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import repeat
from types import ModuleType
from typing import Any, cast

import pytest

from p4gen.errors import InputError
from p4gen.manager.api import Code, GroupSpec, ManagerError
from p4gen.plan.placement import policy as module
from p4gen.plan.placement.policy import (
    Candidate,
    FabricView,
    LowestCommonSwitch,
    PlacementPolicy,
    SwitchRoom,
    find_policy,
)
from p4gen.vocabulary.topology import load_topology

from .rig import Rig, group, small


def roots(name: str, ranks: tuple[str, ...], free: dict[str, int] | None = None, **down: str) -> list[str]:
    topology = load_topology(name)
    room = {s: SwitchRoom(small(), (free or {}).get(s, 4), (64,)) for s in topology.switches}
    gone = {link.replace("_", "-"): why for link, why in down.items()}
    found = LowestCommonSwitch().candidates(FabricView(topology, gone, room), GroupSpec("g", ranks))
    return [candidate.root for candidate in found]


def test_the_lowest_common_switch_comes_first() -> None:
    assert roots("tree-3-2", ("h0", "h1"))[0] == "s1"
    assert roots("tree-3-2", ("h0", "h1", "h2", "h3"))[0] == "s0"
    assert roots("leaf-spine", ("h0", "h1"))[0] == "leaf0"
    assert roots("leaf-spine", ("h0", "h2", "h4"))[:2] == ["spine0", "spine1"]
    assert sorted(roots("fat-tree-k4", ("h0", "h2"))[:2]) == ["agg0", "agg1"]
    assert sorted(roots("leaf-spine", ("h0", "h7"))) == sorted(load_topology("leaf-spine").switches)


def test_of_equal_ones_the_emptiest() -> None:
    assert roots("leaf-spine", ("h0", "h2", "h4"), {"spine0": 1, "spine1": 3})[0] == "spine1"


def test_what_cannot_be_reached_is_not_proposed() -> None:
    found = roots("leaf-spine", ("h0", "h2", "h4"), leaf0_spine0="down")
    assert found[0] == "spine1"
    assert "spine0" in found, "round about"
    assert roots("tree-3-2", ("h0", "h1"), h0_s1="down") == []


def test_groups_take_turns() -> None:
    rig = Rig("leaf-spine", small(groups=2))
    with rig.register() as manager:
        edges = ("h0", "h2", "h4")
        tops = [next(iter(manager.init_group(group(f"g{i}", *edges)).tree)) for i in range(4)]
        assert tops == ["spine0", "spine1", "spine0", "spine1"]
        with pytest.raises(ManagerError) as caught:
            manager.init_group(group("next", *edges))
        assert caught.value.code is Code.NO_ROOM
        tried = [f"root {root}: spine0" for root in ("spine0", "leaf0", "leaf1", "leaf2")] + ["root spine1: spine1"]
        assert sorted(caught.value.reason.splitlines()) == sorted(
            f"{what}: 1 context is needed; 0 of 2 are free (groups)" for what in tried
        )
        near = manager.init_group(group("near", "h0", "h1"))
        assert near.tree == {"leaf0": None}
        rig.check()


class Stubborn:
    """Proposes a switch that cannot be, then one that can."""

    asked: list[str] = []  # noqa: RUF012

    def candidates(self, view: FabricView, spec: GroupSpec) -> Iterator[Candidate]:
        self.asked.append(spec.name)
        yield Candidate("nowhere")
        yield from (Candidate(name) for name in reversed(view.topology.switches))


def test_a_policy_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = ModuleType("my_policies")
    mine.Stubborn, mine.Not = Stubborn, dict  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_policies", mine)
    assert isinstance(find_policy("my_policies:Stubborn"), PlacementPolicy)
    rig = Rig("leaf-spine", small(), policy="my_policies:Stubborn")
    with rig.register() as manager:
        assert next(iter(manager.init_group(group("g", "h0", "h2")).tree)) == "leaf3" or Stubborn.asked == ["g"]
        rig.check()
    for name, reason in (
        ("my_policies:Not", "has no method 'candidates'"),
        ("my_policies:None", "has no attribute"),
        ("no_such_module:X", "No module named"),
        ("nonsense", "there is no placement policy 'nonsense'; there are lowest-common-switch"),
    ):
        with pytest.raises(InputError, match=reason):
            find_policy(name)


def _raises() -> Iterator[Candidate]:
    yield Candidate("nowhere")
    raise KeyError("my table")


@pytest.mark.parametrize(
    ("proposals", "reason"),
    [
        (_raises, r"policy .*Rubbish failed: KeyError: 'my table'"),
        (lambda: ["s0"], "proposes 's0', which is not a Candidate"),
        (lambda: 5, "failed: TypeError"),
        (lambda: repeat(Candidate("nowhere")), "there is no switch 'nowhere'"),
        (lambda: [Candidate("s0", tree=cast("Any", "s0"))], "the tree that the policy proposes is invalid"),
        (lambda: [Candidate(cast("Any", 3))], "there is no switch '3'"),
        (list, "proposes no tree"),
    ],
)
def test_a_policy_that_proposes_rubbish(proposals: Callable[[], Any], reason: str) -> None:
    class Rubbish:
        good = False

        def candidates(self, view: FabricView, spec: GroupSpec) -> Any:
            return [Candidate("s0")] if self.good else proposals()

    policy = Rubbish()
    rig = Rig("tree-3-2", small(), policy=policy)
    with rig.register() as manager:
        with pytest.raises(ManagerError, match=reason):
            manager.init_group(group("g", "h0", "h2"))
        assert manager.groups() == []
        policy.good = True
        manager.init_group(group("g", "h0", "h2"))
        policy.good = False
        with pytest.raises(ManagerError, match=reason):
            manager.move_group("g")
        rig.check()


@pytest.mark.parametrize("error", [KeyError("x"), OSError("no such disk"), RuntimeError("not today")])
def test_a_policy_that_cannot_be_made(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> None:
        raise error

    mine = ModuleType("my_policies")
    mine.Make = make  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_policies", mine)
    with pytest.raises(InputError, match=f"placement policy 'my_policies:Make': {type(error).__name__}: "):
        find_policy("my_policies:Make")


def test_entry_points_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name = "stubborn"

        @staticmethod
        def load() -> type[Stubborn]:
            return Stubborn

    monkeypatch.setattr(module, "entry_points", lambda group: [Point] if group == "p4gen.placement_policies" else [])
    assert isinstance(find_policy("stubborn"), Stubborn)
