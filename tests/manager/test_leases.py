"""Groups that share their switches' time: who has the lease, for how long, and that nobody is harmed."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest

from p4gen.host.transport.clock import MS
from p4gen.manager.api import AgentError, Code, GroupState, ManagerError
from p4gen.net.collectives.config import Call
from p4gen.net.collectives.values import invoke
from p4gen.plan.placement import pools
from p4gen.vocabulary.message import Collective

from .collectives import Wires, news_of
from .rig import Rig, group, small

HOSTS = ("h0", "h1", "h2", "h3")
ONE = small(groups=1)
"""A program with contexts and slots for one group."""
SHORT = [Call(Collective.ALLREDUCE, 4 * 24)]


class Groups:
    """Groups of all hosts at a manager, whose ranks say what CommLib would."""

    def __init__(self, rig: Rig, *names: str) -> None:
        self.rig, self.calls = rig, dict.fromkeys(names, 0)
        for number, name in enumerate(names):
            rig.manager.init_group(group(name, *HOSTS[number:], *HOSTS[:number]))

    def ask(self, name: str) -> bool:
        """Rank 0 is about to make the next call. Returns whether switches carry it."""
        manager = self.rig.manager
        before = manager.group(name)
        go = manager.begin_call(name, before.generation, self.calls[name])
        after = manager.group(name)
        assert go == (after.generation == before.generation)
        return not after.ring

    def asking(self, name: str) -> Future[bool]:
        """The same in a thread, for one that may wait."""
        future: Future[bool] = Future()
        threading.Thread(target=lambda: future.set_result(self.ask(name)), daemon=True).start()
        return future

    def end(self, name: str) -> None:
        """All ranks have completed the call."""
        self.calls[name] += 1
        status = self.rig.manager.group(name)
        for rank in range(len(status.spec.ranks)):
            self.rig.manager.end_call(name, status.generation, rank, self.calls[name])

    @property
    def on_switches(self) -> set[str]:
        return {status.spec.name for status in self.rig.manager.groups() if not status.ring}


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig("tree-3-2", ONE, policy="time-shared", engine="jit", fallbacks=100)
    with made.register():
        yield made


def test_groups_that_want_the_same_switches_alternate(rig: Rig) -> None:
    groups, wires = Groups(rig, "a", "b", "c"), Wires(rig)
    rig.check()
    for status in rig.manager.groups():
        assert (status.state, status.ring, set(status.tree), status.slots) == (
            GroupState.ACTIVE,
            True,
            {"s0", "s1", "s2"},
            {},
        )
    for turn in range(2):
        for name in ("a", "b", "c"):
            assert groups.ask(name)
            assert groups.on_switches == {name}
            others = {"a", "b", "c"} - {name}
            assert not any(groups.ask(other) for other in others)
            rig.check()
            for each in ("a", "b", "c"):
                wires.run(each, seed=turn)
                groups.end(each)
    for name in ("a", "b", "c"):
        rig.manager.destroy_group(name)
    rig.check_empty()


def test_a_group_keeps_its_lease_until_another_one_wants_it(rig: Rig) -> None:
    groups = Groups(rig, "a", "b")
    assert groups.ask("a")
    generation = rig.manager.group("a").generation
    for _ in range(3):
        groups.end("a")
        assert groups.ask("a")
    assert rig.manager.group("a").generation == generation
    # Not before the call has ended at all ranks.
    for rank in range(3):
        rig.manager.end_call("a", generation, rank, 4)
    assert not groups.ask("b")
    rig.manager.end_call("a", generation, 3, 4)
    assert groups.ask("b")
    assert groups.on_switches == {"b"}
    rig.manager.end_call("a", generation, 3, 5)  # late, and about a lease that is over
    assert not groups.ask("a")


def test_a_group_goes_over_when_all_its_ranks_have_completed_the_call_before(rig: Rig) -> None:
    manager = rig.manager
    groups = Groups(rig, "a", "b")
    ranks = range(len(HOSTS))

    def ends(name: str, some: Iterable[int], completed: int) -> None:
        for rank in some:
            manager.end_call(name, manager.group(name).generation, rank, completed)

    for name in ("a", "b"):
        begun = [threading.Thread(target=manager.ready, args=(name, 1, rank, 0), daemon=True) for rank in ranks]
        for thread in begun:
            thread.start()
        for thread in begun:
            thread.join()
    ends("a", ranks[:3], 1)
    groups.calls["a"] = 1
    asked = groups.asking("a")
    time.sleep(0.3)  # longer than installing takes
    assert not asked.done()
    assert manager.group("a").generation == 1  # otherwise rank 3's call would be repeated
    ends("a", ranks[3:], 1)
    assert asked.result(10)
    groups.end("a")
    manager.end_call("b", 1, 3, 0)
    assert groups.ask("b")  # its first call: nobody is behind
    ends("b", ranks[:2], 1)
    groups.calls["b"] = 1
    assert groups.ask("b")  # and a lease that is kept makes nobody repeat anything


def test_a_lease_goes_from_one_group_to_another_in_one_change_of_each_switch(rig: Rig) -> None:
    groups, changes = Groups(rig, "a", "b"), Counter[str]()
    assert groups.ask("a")
    groups.end("a")

    def count(switch: str, step: str) -> None:
        changes[switch] += step == "after read back"

    def refuse(switch: str, step: str) -> None:
        if switch == "s1" and step.startswith("before insert"):
            raise AgentError("no")

    rig.fault = count
    assert groups.ask("b")
    groups.end("b")
    assert changes == {"s0": 1, "s1": 1, "s2": 1}
    rig.fault = refuse
    assert not groups.ask("a")
    rig.fault = lambda switch, step: None
    assert groups.on_switches == set()  # neither has anything
    rig.check()
    assert groups.ask("a")
    rig.check()


def test_a_lease_is_for_all_switches_of_the_tree_or_for_none(rig: Rig) -> None:
    manager = rig.manager
    groups = Groups(rig, "all")
    for name, ranks in (("left", HOSTS[:2]), ("right", HOSTS[2:])):
        manager.init_group(group(name, *ranks))
        groups.calls[name] = 0
        assert groups.ask(name)
    rig.check()
    assert not groups.ask("all")
    groups.end("left")
    assert not groups.ask("all")
    assert groups.on_switches == {"left", "right"}  # nobody has lost a lease for nothing
    rig.check()
    groups.end("right")
    assert groups.ask("all")
    assert groups.on_switches == {"all"}
    rig.check()


def test_who_has_done_without_often_enough_waits_and_gets_the_next_lease() -> None:
    rig = Rig("tree-3-2", ONE, policy="time-shared", engine="jit", fallbacks=2)
    with rig.register() as manager:
        groups = Groups(rig, "a", "b", "c")
        assert groups.ask("a")
        assert [groups.ask("b") for _ in range(2)] == [False, False]
        assert not groups.ask("c")
        b = groups.asking("b")
        rig.wait(lambda: manager._leases._waiting)
        assert not groups.ask("c")
        c = groups.asking("c")
        rig.wait(lambda: len(manager._leases._waiting) == 2)
        assert not groups.ask("a")  # it has had its turn
        assert b.result(30)
        assert groups.on_switches == {"b"}
        groups.end("b")
        assert c.result(30)
        assert groups.on_switches == {"c"}
        rig.check()


def test_nobody_is_refused_more_often_than_said(seed: int) -> None:
    # However slow the machine is, no call takes so long that its lease is taken away.
    rig = Rig("tree-3-2", ONE, policy="time-shared", engine="jit", fallbacks=2, longest=3600)
    chance = random.Random(seed)
    with rig.register():
        groups = Groups(rig, "a", "b", "c", "d")
        refused, granted = dict.fromkeys(groups.calls, 0), dict.fromkeys(groups.calls, 0)
        asked: dict[str, Future[bool]] = {}
        for _ in range(60):
            rig.wait(lambda: sum(not future.done() for future in asked.values()) <= len(rig.manager._leases._waiting))
            for name in [name for name, future in asked.items() if future.done()]:
                if asked.pop(name).result():
                    granted[name], refused[name] = granted[name] + 1, 0
                    if chance.random() < 0.8:
                        groups.end(name)
                else:
                    refused[name] += 1
                    assert refused[name] <= 2, name
            for name in groups.calls.keys() - asked.keys():
                if name in groups.on_switches or chance.random() < 0.5:
                    groups.end(name)
                    asked[name] = groups.asking(name)
        while not all(future.done() for future in asked.values()):
            for name in groups.on_switches:
                groups.end(name)
        assert min(granted.values()) > 3, granted


def test_packets_of_the_previous_holder_change_nothing(rig: Rig) -> None:
    groups, wires = Groups(rig, "a", "b"), Wires(rig)
    assert groups.ask("a")
    stale = wires.join("a")
    call = Call(Collective.ALLREDUCE, 4 * 64)
    values = np.arange(64, dtype=np.int32)
    runs = [invoke(member, call, values) for member in stale[:3]]  # one rank is missing: slots are left half full
    wires.advance(MS)
    groups.end("a")
    assert groups.ask("b")
    late = invoke(stale[3], call, values)
    wires.run("b")  # meanwhile all ranks of the old generation send, again and again
    assert not any(run.done for run in (*runs, late))
    for member in stale:
        member.destroy()
    groups.end("b")
    wires.run("a", SHORT)


def test_a_lease_whose_holder_is_dead_ends_when_others_want_it() -> None:
    rig = Rig("tree-3-2", ONE, policy="time-shared", engine="jit", fallbacks=0, longest=0.3)
    with rig.register() as manager:
        groups = Groups(rig, "a", "b", "c")
        assert groups.ask("a")
        for rank in range(3):
            manager.end_call("a", manager.group("a").generation, rank, 1)
        assert groups.ask("b")  # it waits until a call cannot take that long
        assert groups.on_switches == {"b"}
        manager.destroy_group("b")  # in the middle of its call
        assert groups.ask("c")
        rig.check()


def test_a_switch_that_fails_ends_the_lease_and_calls_go_on(rig: Rig) -> None:
    manager = rig.manager
    groups, wires = Groups(rig, "a", "b"), Wires(rig)
    assert groups.ask("a")
    rig.switches["s1"].restart()
    rig.agents["s1"]._known = None
    manager.agent_lost("s1")
    rig.wait(lambda: manager.group("a").ring)
    assert manager.group("a").state is GroupState.ACTIVE
    wires.run("a", SHORT)
    assert groups.ask("a")
    rig.check()
    wires.run("a", SHORT)
    # A link of the tree, which has no other one.
    manager.report_links("s0", {0: False})
    rig.wait(lambda: manager.group("a").ring)
    assert not groups.ask("a")
    assert not groups.ask("b")
    manager.report_links("s0", {0: True})
    assert groups.ask("b")
    rig.check()
    wires.run("b", SHORT)


def test_a_lease_that_a_switch_refuses_leaves_nothing(rig: Rig) -> None:
    groups, wires = Groups(rig, "a", "b"), Wires(rig)
    assert groups.ask("b")
    groups.end("b")

    steps: list[str] = []
    rig.fault = lambda switch, step: steps.append(step)
    assert groups.ask("a")
    groups.end("a")
    inserts = next(step for step in steps if step.startswith("before insert"))

    def full(switch: str, step: str) -> None:
        if switch == "s2" and step == inserts:
            raise AgentError("s2 is full")

    rig.fault = full
    assert not groups.ask("b")
    rig.check()
    assert groups.on_switches == set()
    wires.run("b", SHORT)
    rig.fault = lambda switch, step: None
    assert groups.ask("b")
    wires.run("b", SHORT)
    rig.check()


def test_a_manager_that_is_started_again_knows_who_has_the_lease(tmp_path: Path) -> None:
    rig = Rig("tree-3-2", ONE, tmp_path / "db", policy="time-shared", engine="jit", fallbacks=100)
    rig.register()
    groups = Groups(rig, "a", "b")
    assert groups.ask("a")
    before = {name: news_of(rig, "h0")[name].config for name in ("a", "b")}
    rig.kill()
    with rig.again() as manager:
        assert {name: news_of(rig, "h0")[name].config for name in ("a", "b")} == before
        assert not groups.ask("b")  # nobody knows whether the call has ended
        Wires(rig).run("a", SHORT)
        assert groups.ask("a")
        groups.end("a")
        assert groups.ask("b")
        assert groups.on_switches == {"b"}
        Wires(rig).run("b", SHORT)
        rig.check()
        with pytest.raises(ManagerError) as refused:
            manager.begin_call("a", 1, 5)
        assert refused.value.code is Code.REFUSED


def test_programs_are_loaded_again_when_all_epochs_are_used(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "EPOCHS", range(1, 4))
    groups, wires = Groups(rig, "a", "b"), Wires(rig)
    for turn in range(3):
        for name in ("a", "b"):
            assert groups.ask(name)
            wires.run(name, SHORT, turn)
            groups.end(name)
    assert {switch.loads for switch in rig.switches.values()} == {2}
    rig.check()
