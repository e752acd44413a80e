"""Links and switches that fail, managers that are killed: groups move, wait, come back; nothing is half done."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from patience import PATIENCE_S

from p4gen.families import collective
from p4gen.groups.group import placed_edges
from p4gen.groups.ticks import tick
from p4gen.host.collectives.control import Control
from p4gen.host.transport.verbs import Peer
from p4gen.host.transport.wire import Writer
from p4gen.manager.api import AgentError, Code, GroupState, ManagerError, Membership
from p4gen.manager.manager import IncManager
from p4gen.manager.watch import Watch
from p4gen.vocabulary import DType, Op
from p4gen.vocabulary.message import Collective

from .collectives import Wires
from .rig import Rig, group, small

EDGES = ("h0", "h2", "h4", "h6")
"""A rank behind each leaf of leaf-spine."""


def port(rig: Rig, switch: str, neighbour: str) -> int:
    return [link.other(switch) for link in rig.topology.ports[switch]].index(neighbour)


def cut(rig: Rig, switch: str, neighbour: str, *, up: bool = False) -> None:
    rig.manager.report_links(switch, {port(rig, switch, neighbour): up})


def state(manager: IncManager, name: str, wanted: GroupState, generation: int = 0) -> bool:
    status = manager.group(name)
    return status.state is wanted and status.generation >= generation


def read(watch: Watch, until: Callable[[Membership], bool]) -> list[tuple[GroupState, int]]:
    found = []
    for item in watch:
        found.append((item.state, item.generation))
        if until(item):
            return found
    raise AssertionError(found)


def test_a_cut_link_moves_the_groups_that_use_it() -> None:
    rig = Rig("leaf-spine", small("III"))
    writes: list[str] = []
    with rig.register() as manager:
        wires = Wires(rig)
        assert manager.init_group(group("g", *EDGES)).tree["spine0"] is None
        manager.init_group(group("near", "h0", "h1"))
        near = rig.manager._ledger.records["near"].placed
        watch = manager.watch("h0")
        assert {(item.group, item.state) for item in (next(watch), next(watch))} == {
            ("g", GroupState.ACTIVE),
            ("near", GroupState.ACTIVE),
        }
        rig.fault = lambda switch, step: writes.append(f"{switch} {step}")
        cut(rig, "leaf0", "spine0")
        rig.wait(lambda: state(manager, "g", GroupState.ACTIVE, 2))
        assert manager.group("g").tree["spine1"] is None
        assert read(watch, lambda item: item.config is not None) == [
            (GroupState.INSTALLING, 2),
            (GroupState.ACTIVE, 2),
        ]
        rig.check()
        assert manager.group("near").generation == 1
        assert rig.manager._ledger.records["near"].placed is near
        changed = {step.split(" ", 2)[2] for step in writes if step.startswith("leaf0 before modify")}
        assert changed <= {"modify routes"}, changed
        wires.run("g")
        wires.run("near")
        tables = {entry.table.rpartition(".")[2] for entry in rig.switches["spine0"].holds().entries}
        assert tables == {"routes", "next_hops", "neighbours"}
        cut(rig, "leaf0", "spine0", up=True)
        time.sleep(0.1)
        assert manager.group("g").generation == 2, "what works stays where it is"
        assert manager.move_group("g", "spine0").tree["spine0"] is None
        assert read(watch, lambda item: item.generation == 3) == [(GroupState.ACTIVE, 3)]
        wires.run("g")
        rig.check()


def test_a_rank_that_acknowledges_nothing_is_given_up_and_its_group_is_broken() -> None:
    """The switch's own timer and counter, its thread that reads it, and what the manager makes of it."""
    rig = Rig("leaf-spine", small("III"))
    with rig.register() as manager:
        manager.init_group(group("near", "h0", "h1"))
        record, thread = rig.manager._ledger.records["near"], rig.manager._threads["leaf0"]
        assert record.placed is not None
        switch = rig.switches["leaf0"]
        edges = placed_edges("leaf0", record.placed.contexts_on("leaf0"))
        context = next(c for c in record.placed.contexts_on("leaf0") if len(c.edges) == 2)
        barrier = Control(Collective.BARRIER, 0, 0, Op.SUM, DType.INT32).encode().to_bytes(4)
        rig.wait(lambda: thread._given_up.counts is not None)
        with switch.lock:
            sent = []
            for edge in context.edges:
                near, far = edge.local, edge.remote
                writer = Writer(far.mac, far.ip, Peer(near.mac, near.ip, near.qp, 0xC000))
                frame = writer.frame(0x05, context.first_psn, ack_request=True, body=barrier)
                sent += switch.model.process(edge.port, frame)
            assert len(sent) == 4, "two ACKs, and the barrier to both"
            quiet = next(p for p in edges if p.context == context.context and p.edge is context.edges[1])
            bursts = [len(switch.model.process(510, tick(quiet, 2.0))) for _ in range(12)]
        assert bursts == [0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]

        def broken_while_it_ticks() -> bool:
            with switch.lock:
                switch.model.process(510, tick(quiet, 2.0))
            return state(manager, "near", GroupState.BROKEN)

        rig.wait(broken_while_it_ticks)
        assert "h1 acknowledges nothing of leaf0's" in manager.group("near").reason
        (status,) = (s for s in manager.status().switches if s.name == "leaf0")
        assert "h1" in status.links_down
        cut(rig, "leaf0", "h1", up=True)  # whoever says that the link is well is believed
        rig.wait(lambda: state(manager, "near", GroupState.ACTIVE, 2))


def test_a_link_over_which_nothing_is_acknowledged_is_left() -> None:
    rig = Rig("leaf-spine", small("III"))
    with rig.register() as manager:
        assert manager.init_group(group("g", "h0", "h1", "h2", "h3")).tree["spine0"] is None
        record, thread = rig.manager._ledger.records["g"], rig.manager._threads["leaf0"]
        assert record.placed is not None
        up, switch = port(rig, "leaf0", "spine0"), rig.switches["leaf0"]
        rig.wait(lambda: thread._edges)
        edge = next(p for p in thread._edges if p.edge.port == up)
        ticks = itertools.count(1)
        switch.given_up = lambda: {edge.index(collective(switch.spec)): next(ticks)}  # type: ignore[method-assign]
        rig.wait(lambda: state(manager, "g", GroupState.ACTIVE, 2))
        assert manager.group("g").tree["spine1"] is None
        rig.check()


def test_without_another_path_it_waits() -> None:
    rig = Rig("tree-3-2", small())
    with rig.register() as manager:
        manager.init_group(group("g", "h0", "h1", "h2"))
        manager.init_group(group("other", "h2", "h3"))
        watch = manager.watch("h2")
        next(watch), next(watch)
        cut(rig, "s1", "h0")
        news = next(watch)
        assert (news.state, news.reason) == (GroupState.BROKEN, "no path between h0 and s1: link h0-s1 is down")
        with pytest.raises(ManagerError, match="group g is broken: no path between h0 and s1") as caught:
            manager.resize_group("g", 4)
        assert caught.value.code is Code.REFUSED
        rig.check()
        assert manager.group("other").generation == 1
        with pytest.raises(ManagerError, match="no path between h0 and s1: link h0-s1 is down") as caught:
            manager.init_group(group("new", "h0", "h1"))
        assert caught.value.code is Code.UNREACHABLE
        cut(rig, "s1", "h0", up=True)
        read(watch, lambda item: item.config is not None)
        rig.check()
        Wires(rig).run("g")


def test_flapping_links_leave_nothing_half_done() -> None:
    rig = Rig("leaf-spine", small())
    with rig.register() as manager:
        for name in ("a", "b", "c"):
            manager.init_group(group(name, *EDGES))
        for number in range(40):
            cut(rig, f"leaf{number % 4}", f"spine{number % 3 % 2}", up=bool(number // 4 % 2))
            time.sleep(0.003)
        for leaf in range(4):
            for spine in range(2):
                cut(rig, f"leaf{leaf}", f"spine{spine}", up=True)
        rig.wait(lambda: all(g.state is GroupState.ACTIVE for g in manager.groups()))
        rig.check()
        for name in ("a", "b", "c"):
            manager.destroy_group(name)
        rig.check_empty()


def test_a_switch_that_does_not_answer_is_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig("leaf-spine", small(), grace=PATIENCE_S)
    dead: set[str] = set()

    def fault(switch: str, step: str) -> None:
        if switch in dead:
            raise AgentError("connection refused", unreachable=True)

    with rig.register() as manager:
        rig.fault = fault
        manager.init_group(group("g", *EDGES, root="spine0"))
        manager.init_group(group("free", *EDGES[:3]))
        dead.add("spine0")
        manager.destroy_group("free")
        assert manager.group("g").generation == 1, "for a moment it may be silent"
        dead.clear()
        rig.wait(rig.settled)
        assert manager.group("g").generation == 1
        rig.check()
        monkeypatch.setattr(manager._repair, "_grace", 0.2)
        dead.add("spine0")
        manager.init_group(group("h", *EDGES))  # goes round what is silent
        rig.wait(lambda: state(manager, "g", GroupState.BROKEN))
        assert "switch spine0 does not answer (connection refused)" in manager.group("g").reason
        status = next(s for s in manager.status().switches if s.name == "spine0")
        assert (status.reachable, status.problem) == (False, "connection refused")
        dead.clear()
        rig.wait(lambda: state(manager, "g", GroupState.ACTIVE))
        rig.check()
        Wires(rig).run("g")
        for name in ("g", "h"):
            manager.destroy_group(name)
        rig.check_empty()


def test_a_restarted_switch_is_noticed_and_its_groups_begin_again() -> None:
    rig = Rig("tree-3-2", small("III"))
    with rig.register() as manager:
        manager.init_group(group("g", "h0", "h1", "h2"))
        manager.init_group(group("near", "h2", "h3"))
        rig.switches["s1"].restart()
        rig.register(["s1"])
        rig.wait(lambda: state(manager, "g", GroupState.ACTIVE, 2))
        rig.check()
        assert manager.group("near").generation == 1
        Wires(rig).run("g")
        rig.switches["s1"].restart()
        manager.agent_lost("s1")
        rig.wait(lambda: state(manager, "g", GroupState.ACTIVE, 3))
        rig.switches["s1"].restart()  # unnoticed, until something is asked of it
        with contextlib.suppress(ManagerError):
            manager.init_group(group("new", "h0", "h1"))
        rig.wait(lambda: state(manager, "g", GroupState.ACTIVE, 4))
        Wires(rig).run("g")
        rig.register(["s1", "s2"])  # the agents came back, the switches were there all the time
        rig.check()
        assert (manager.group("g").generation, manager.group("near").generation) == (4, 1)


def test_status_does_not_wait_for_a_hanging_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig("tree-3-2", small())
    hangs = threading.Event()
    with rig.register() as manager:
        manager.init_group(group("g", "h2", "h3"))

        def hang(switch: str, step: str) -> None:
            if switch == "s1" and step == "before insert flows":
                hangs.wait()

        rig.fault = hang
        for part in (manager._lifecycle, manager._repair):
            monkeypatch.setattr(part, "_patience", 0.3)
        with pytest.raises(ManagerError, match=r"s1: it did not answer for 0.3 s") as caught:
            manager.init_group(group("slow", "h0", "h1"))
        assert caught.value.code is Code.UNREACHABLE
        manager.status()  # while it hangs still
        rig.wait(lambda: not next(s for s in manager.status().switches if s.name == "s1").reachable)
        monkeypatch.undo()
        manager.destroy_group("g")
        hangs.set()
        rig.check_empty()


def test_a_full_table_is_said_and_undone() -> None:
    rig = Rig("tree-3-2", small(groups=8))
    rig.switches["s1"] = type(rig.switches["s1"])("s1", small(groups=2))
    rig.switches["s1"].spec = small(groups=8)  # it promises more than it has
    with rig.register() as manager:
        for name in ("a", "b"):
            manager.init_group(group(name, "h0", "h1", "h2"))
        with pytest.raises(ManagerError, match=r"s1: table .*contexts: full, it has room for 2 entries") as caught:
            manager.init_group(group("c", "h0", "h1", "h2"))
        assert caught.value.code is Code.REFUSED
        rig.check()
        assert [g.spec.name for g in manager.groups()] == ["a", "b"]
        Wires(rig).run("a")


def moved(rig: Rig, left: list[int]) -> bool:
    return left[0] < 0 or state(rig.manager, "g", GroupState.ACTIVE, 2)


STEPS = ("unreachable", "refused", "killed")


def failing(rig: Rig, kind: str, left: list[int]) -> Callable[[str, str], None]:
    """The step after ``left[0]`` others fails, in one of STEPS' ways; ``left[0]`` is negative from then on."""
    lock = threading.Lock()

    def fault(_switch: str, what: str) -> None:
        if what.endswith(("read", "drops", "connect")):
            return
        with lock:
            left[0] -= 1
            if left[0] != -1:
                return
        if kind == "killed":
            rig.die()
        raise AgentError(f"injected {what}", unreachable=kind != "refused")

    return fault


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("verb", ["init", "destroy", "resize", "replace"])
def test_failing_at_every_step(tmp_path: Path, kind: str, verb: str) -> None:
    """Step after step fails once; the group is there whole or not at all, and the other one is untouched."""
    rig = Rig("leaf-spine", small(groups=3), tmp_path / "store", grace=5.0)
    manager = rig.register()
    manager.init_group(group("other", "h0", "h3"))
    before = manager.group("other")
    ranks = ("h0", "h2")
    tried = 0
    for step in range(0, 400, 3 if verb == "init" else 7):
        if verb != "init":
            manager.init_group(group("g", *ranks, root="spine0" if verb == "destroy" else None))
        left = [step]
        rig.fault = failing(rig, kind, left)
        failed: ManagerError | None = None
        try:
            if verb == "init":
                manager.init_group(group("g", *ranks))
            elif verb == "destroy":
                manager.destroy_group("g")
            elif verb == "resize":
                manager.resize_group("g", 4)
            else:
                root = next(s for s, above in manager.group("g").tree.items() if above is None)
                cut(rig, "leaf0", root)
                rig.wait(partial(moved, rig, left))
        except ManagerError as error:
            failed = error
        if kind == "killed" and left[0] < 0:
            rig.kill()
            manager = rig.again()
        rig.fault = lambda switch, what: None
        rig.wait(rig.settled)
        if verb == "replace":
            for spine in ("spine0", "spine1"):
                cut(rig, "leaf0", spine, up=True)
        rig.wait(lambda: all(g.state is GroupState.ACTIVE for g in rig.manager.groups()))
        rig.check()
        names = {g.spec.name for g in manager.groups()}
        if verb == "init" and failed is not None:
            assert names == {"other"}
        if verb == "resize":
            wanted = {4} if failed is None else {2} if kind != "killed" else {2, 4}
            assert sum(manager.group("g").slots.values()) in wanted
        if verb == "replace":
            assert "g" in names
        if "g" in names:
            manager.destroy_group("g")
        rig.check()
        assert manager.group("other") == before
        if left[0] >= 0:
            break
        tried += 1
    else:
        raise AssertionError("there is no end to the steps")
    assert tried > 5
    manager.destroy_group("other")
    rig.check_empty()
    manager.close()


def test_a_switch_that_refuses_is_gone_round() -> None:
    rig = Rig("leaf-spine", small())
    bad = {"spine0"}

    def fault(switch: str, step: str) -> None:
        if switch in bad and step == "before insert contexts":
            raise AgentError("not today")

    rig.fault = fault
    with rig.register() as manager:
        assert manager.init_group(group("g", *EDGES)).tree == {"spine1": None}
        rig.check()
        bad.add("spine1")
        with pytest.raises(ManagerError, match="spine0: not today") as caught:
            manager.init_group(group("h", *EDGES))
        assert caught.value.code is Code.REFUSED
        rig.check()
        cut(rig, "leaf0", "spine1")  # what has to move is tried again and again, until it may
        rig.wait(lambda: state(manager, "g", GroupState.BROKEN))
        assert manager.group("g").reason == "spine0: not today"
        rig.check()
        bad.clear()
        rig.wait(lambda: state(manager, "g", GroupState.ACTIVE))
        rig.check()


def test_a_store_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig("leaf-spine", small())
    with rig.register() as manager:
        manager.init_group(group("g", *EDGES, root="spine0"))
        before = manager.group("g")

        def full(*_: object) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        calls = (partial(manager.init_group, group("h", *EDGES)), partial(manager.resize_group, "g", 4))
        for method in ("put_placement", "put_epochs"):
            monkeypatch.setattr(manager._store, method, full)
            for call in calls:
                with pytest.raises(ManagerError, match="cannot be written: database or disk is full"):
                    call()
            monkeypatch.undo()
            rig.check()
            assert manager.groups() == [before]
        monkeypatch.setattr(manager._store, "put_epochs", full)
        with pytest.raises(ManagerError, match="disk is full"):
            manager.resize_group("g", 16)  # only in the place of the old one
        monkeypatch.undo()
        rig.wait(lambda: state(manager, "g", GroupState.ACTIVE, before.generation + 2))
        rig.check()
        monkeypatch.setattr(manager._store, "put_epochs", full)
        cut(rig, "leaf0", "spine0")
        rig.wait(lambda: state(manager, "g", GroupState.BROKEN))
        assert "disk is full" in manager.group("g").reason
        monkeypatch.undo()
        rig.wait(lambda: state(manager, "g", GroupState.ACTIVE))
        rig.check()


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.long
def test_without_room_for_both_the_new_takes_the_place_of_the_old(tmp_path: Path, kind: str) -> None:
    """And the old one comes back, untouched, when it fails at any step."""
    rig = Rig("tree-3-2", small("III", groups=1, slots=4), tmp_path / "store", grace=5.0)
    manager = rig.register()
    manager.init_group(group("g", "h0", "h1", "h2", "h3", slots=2))
    wires = Wires(rig)
    wires.run("g")
    tried = 0
    for step in range(0, 900, 23):
        before = manager.group("g")
        left = [step]
        rig.fault = failing(rig, kind, left)
        failed = False
        try:
            manager.resize_group("g", 4 if before.spec.slots == 2 else 2)
        except ManagerError:
            failed = True
        if kind == "killed" and left[0] < 0:
            rig.kill()
            manager = rig.again()
        rig.fault = lambda switch, what: None
        rig.wait(rig.settled)
        rig.wait(lambda: rig.manager.group("g").state is GroupState.ACTIVE)
        rig.check()
        if failed and kind != "killed":
            assert manager.group("g") == before
        wires.run("g")  # after a failure with the queue pairs that it had
        if left[0] >= 0:
            break
        tried += 1
    else:
        raise AssertionError("there is no end to the steps")
    assert tried > 5
    manager.destroy_group("g")
    rig.check_empty()
    manager.close()
