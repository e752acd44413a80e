"""Groups that keep step: which of them share a switch, and that one outside its windows harms no other."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.manager.api import Code, GroupSpec, GroupStatus, JobGroup, JobSpec, Schedule
from p4gen.manager.remote.messages import from_message, to_message
from p4gen.plan.placement.policy import FabricView, GroupView, SwitchRoom
from p4gen.plan.placement.sharing import WidestPath
from p4gen.plan.placement.tree import build_tree
from p4gen.plan.placement.windows import busiest
from p4gen.vocabulary.topology import load_topology

from .collectives import Wires
from .rig import Rig, group, small
from .test_leases import Groups
from .test_manager import refused

FIRST, SECOND = ((0.0, 0.5),), ((0.5, 1.0),)


def active(schedule: Schedule, at: float) -> bool:
    return any(begin <= at < end for begin, end in schedule.windows)


def steps(*windows: tuple[float, float], clock: str = "job") -> Schedule:
    return Schedule(clock, windows)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    cuts = sorted(draw(st.sets(st.integers(0, 8), min_size=2, max_size=6)))
    return steps(
        *((a / 8, b / 8) for a, b in zip(cuts[::2], cuts[1::2], strict=False)), clock=draw(st.sampled_from("ab"))
    )


@given(schedules(), schedules())
def test_schedules_meet_if_they_share_a_moment(one: Schedule, other: Schedule) -> None:
    moments = [(n + 0.5) / 8 for n in range(8)]
    together = any(active(one, at) and active(other, at) for at in moments)
    assert one.meets(other) == other.meets(one) == (together or one.clock != other.clock)
    assert one.meets(None)
    assert one.share == sum(active(one, at) for at in moments) / 8
    assert not list(one.problems())


@given(st.lists(st.tuples(schedules(), st.integers(1, 3)), max_size=5), st.floats(0, 2))
def test_the_busiest_moment_is_that_of_brute_force(taken: list[tuple[Schedule, int]], always: float) -> None:
    total = always + sum(schedule.share * blocks for schedule, blocks in taken)
    found = busiest(total, taken)
    moments = [(n + 0.5) / 8 for n in range(8)]
    worst = total
    for clock, at in product("ab", moments):
        now = sum(blocks * active(schedule, at) for schedule, blocks in taken if schedule.clock == clock)
        others = sum(blocks * schedule.share for schedule, blocks in taken if schedule.clock != clock)
        worst = max(worst, always + now + others) if any(s.clock == clock for s, _ in taken) else worst
    assert found == pytest.approx(worst)


def root(status: GroupStatus) -> str:
    return next(switch for switch, above in status.tree.items() if above is None)


def test_groups_that_never_communicate_together_share_a_switch() -> None:
    """Two spines with a block each. As duties of a half any two groups fit; as windows those that do not meet."""
    rig = Rig("leaf-spine", small(groups=1), policy="time-shared")
    with rig.register() as manager:
        whens = {"tp0": FIRST, "dp0": SECOND, "tp1": FIRST, "dp1": SECOND}
        for name, windows in whens.items():
            manager.init_group(group(name, "h0", "h2", schedule=steps(*windows)))
        roots = {name: root(manager.group(name)) for name in whens}
        assert roots["tp0"] != roots["tp1"]
        assert roots["dp0"] != roots["dp1"]
        manager.init_group(group("always", "h0", "h2"))  # in the way of others wherever it is
        rig.check()
        for name in (*whens, "always"):
            manager.destroy_group(name)
        found = {name: root(manager.init_group(group(name, "h0", "h2", duty=0.5))) for name in whens}
        assert found["tp0"] == found["tp1"] != found["dp0"] == found["dp1"], "always in each other's way"


@pytest.mark.parametrize("kept", [True, False])
def test_a_staggered_job_has_all_its_calls_on_switches(kept: bool) -> None:
    """TP groups call at the same time, then DP groups do; there is memory for one group a switch. Declared as duties of
    a half the same groups are in each other's way."""
    rig = Rig("leaf-spine", small(groups=1), policy="time-shared", engine="jit", fallbacks=100)
    names = ("tp0", "tp1", "dp0", "dp1")
    members = {"tp0": (0, 1), "tp1": (2, 3), "dp0": (0, 2), "dp1": (1, 3)}
    with rig.register() as manager:
        order = "tp0", "dp0", "tp1", "dp1"
        specs = [
            GroupSpec(name, (), schedule=Schedule("", FIRST if name[0] == "t" else SECOND))
            if kept
            else GroupSpec(name, (), duty=0.5)
            for name in order
        ]
        job = JobSpec("j", 4, tuple(JobGroup(spec, members[spec.name]) for spec in specs), "spread")
        assert all(each.ring for each in manager.init_job(job).groups)
        groups = Groups(rig)
        groups.calls = {f"j:{name}": 0 for name in names}
        on_switches = Counter[str]()
        for _ in range(3):
            for phase in (names[:2], names[2:]):
                for name in phase:
                    on_switches[name] += groups.ask(f"j:{name}")
                for name in phase:
                    groups.end(f"j:{name}")
        leases = manager.status().leases
        if kept:
            assert on_switches == dict.fromkeys(names, 3)
            assert (leases["refused"], leases["outside"]) == (0, 0)
        else:
            assert sum(on_switches.values()) == leases["refused"] == 6


def test_a_group_outside_its_windows_mixes_nothing_and_is_counted(seed: int) -> None:
    """Whoever holds the lease keeps it until its call has ended; the other one's data goes over its ring."""
    rig = Rig("tree-3-2", small(groups=1), policy="time-shared", engine="jit", fallbacks=100)
    hosts = ("h0", "h1", "h2", "h3")
    chance = random.Random(seed)
    with rig.register() as manager:
        groups, wires = Groups(rig), Wires(rig)
        for name, windows in (("a", FIRST), ("b", SECOND)):
            manager.init_group(group(name, *hosts, schedule=steps(*windows)))
            groups.calls[name] = 0
        outside = 0
        for _ in range(4):
            first, second = chance.sample(["a", "b"], 2)
            assert groups.ask(first)
            assert not groups.ask(second), "in the middle of the other one's call"
            outside += 1
            rig.check()
            for name in (first, second):
                wires.run(name, seed=outside)
            assert groups.on_switches == {first}
            for name in (second, first):
                groups.end(name)
        leases = manager.status().leases
        assert (leases["outside"], leases["refused"]) == (outside, 0)
        manager.init_group(group("c", *hosts, schedule=steps(*FIRST)))
        groups.calls["c"] = 0
        assert groups.ask("a")
        assert not groups.ask("c"), "their windows meet: this is no promise that was broken"
        assert manager.status().leases["refused"] == 1


def test_clocks_of_tenants_are_different_ones(tmp_path: Path) -> None:
    rig = Rig("leaf-spine", small(groups=1), policy="time-shared")
    with rig.register() as manager:
        when = {"alice/a": FIRST, "bob/b": SECOND, "alice/c": SECOND}
        roots = {n: root(manager.init_group(group(n, "h0", "h2", schedule=steps(*w)))) for n, w in when.items()}
        assert GroupSpec("alice/a", (), schedule=steps(*FIRST)).own_schedule != steps(*FIRST)
        # Bob's half a switch counts on average: 1.5 with alice's first group in its windows.
        assert roots["alice/a"] != roots["bob/b"]
        assert roots["alice/c"] == roots["alice/a"]


def test_the_widest_path_counts_only_groups_that_communicate_together() -> None:
    topology = load_topology("leaf-spine")
    tree = build_tree(topology, ("h0", "h2"), "spine0", ports_per_pipeline=dict.fromkeys(topology.switches, 32))
    rooms = {switch: SwitchRoom(small(), 4, (64,)) for switch in topology.switches}
    schedule = GroupSpec("tp", (), schedule=steps(*FIRST)).own_schedule
    view = FabricView(topology, {}, rooms, (GroupView("tp", tree, topology, schedule=schedule),))
    roots = {}
    for windows in (FIRST, SECOND):
        spec = GroupSpec("new", ("h1", "h3"), schedule=steps(*windows))
        roots[windows] = next(iter(WidestPath().candidates(view, spec))).root
    assert roots == {FIRST: "spine1", SECOND: "spine0"}, "the first of two equal ones if nobody uses its links then"


def test_windows_survive_the_manager_and_the_wire(tmp_path: Path) -> None:
    spec = GroupSpec("g", ("h0", "h1"), schedule=steps((0.25, 0.5), (0.75, 1.0)))
    assert from_message(GroupSpec, to_message(spec)) == spec
    rig = Rig("star-4", small(), policy="time-shared", store=tmp_path / "groups.db")
    with rig.register() as manager:
        manager.init_group(spec)
        manager.init_job(JobSpec("j", 2, (JobGroup(GroupSpec("g", (), schedule=Schedule("", FIRST)), (0, 1)),)))
    with rig.again() as manager:
        assert manager.group("g").spec == spec
        assert manager.group("j:g").spec.schedule == Schedule("j", FIRST)


@pytest.mark.parametrize(
    ("schedule", "reason"),
    [
        (Schedule("", FIRST), "windows are of a period whose clock has a name"),
        (Schedule("c", ()), "0 windows; a group has 1 to 16"),
        (Schedule("c", ((0.0, 1.5),)), "a window from 0 to 1.5: its ends are shares of a period, in order"),
        (Schedule("c", ((0.5, 0.25),)), "a window from 0.5 to 0.25: its ends are shares of a period, in order"),
        (Schedule("c", ((math.nan, 0.25),)), "a window from nan to 0.25: its ends are shares of a period, in order"),
        (Schedule("c", ((0.0, 0.5), (0.25, 1.0))), "two of its windows meet"),
    ],
)
def test_windows_that_are_wrong_are_refused(schedule: Schedule, reason: str) -> None:
    rig = Rig("star-4", small(), policy="time-shared")
    with rig.register() as manager:
        assert refused(Code.INVALID, manager.init_group, group("g", "h0", "h1", schedule=schedule)) == reason
        both = group("g", "h0", "h1", schedule=steps(*FIRST), duty=0.5)
        assert "a group has a duty, or windows" in refused(Code.INVALID, manager.init_group, both)
