"""Groups that share slots by locks in the switches (EPIC section 6.2): what the manager gives them, and what is left of
those that die."""

from __future__ import annotations

import contextlib
import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from p4gen.host.collectives.leased import LeasedCommunicator, LeasedInvocation
from p4gen.host.transport.clock import MS
from p4gen.manager.api import Code, GroupState
from p4gen.manager.remote.messages import from_message, to_message
from p4gen.plan.placement.planner import NoPlaceError
from p4gen.plan.placement.pools import History, Kind, Limits, Need, SwitchPool
from p4gen.plan.placement.spans import NoRoomError

from .collectives import Wires, news_of
from .rig import Rig, group, small
from .test_manager import refused

HOSTS = ("h0", "h1", "h2", "h3")
LOCKS = "IncIngress.acquire_lease.locks"
VALUES = np.arange(24, dtype=np.int32)


def leased(wires: Wires, name: str) -> list[LeasedCommunicator]:
    members = wires.join(name)
    found = [member for member in members if isinstance(member, LeasedCommunicator)]
    assert len(found) == len(members)
    return found


def call(wires: Wires, name: str) -> bool | None:
    """An AllReduce of all ranks, which is right. Returns whether switches have carried it."""
    made = [member.all_reduce(VALUES * rank) for rank, member in enumerate(leased(wires, name), start=1)]
    wires.advance(20 * MS)
    for each in made:
        assert isinstance(each, LeasedInvocation)
        assert each.done, f"{name} hangs"
        np.testing.assert_array_equal(each.result(), VALUES * sum(range(len(made) + 1)))
    (granted,) = {each.granted for each in made if isinstance(each, LeasedInvocation)}
    return granted


def acquire(wires: Wires, name: str, ranks: int | None = None) -> None:
    """As many ranks acquire, by default all; then they are silent for ever."""
    for member in leased(wires, name)[:ranks]:
        member.tree.acquire()
    wires.advance(20 * MS)


def locked(rig: Rig) -> set[str]:
    """The switches with a word in a lock."""
    return {name for name, switch in rig.switches.items() if any(switch.model.register_cells(LOCKS))}


@pytest.mark.parametrize("mode", ["II", "III"])
def test_groups_share_slots_call_over_their_rings_and_leave_no_lock(mode: str, tmp_path: Path) -> None:
    rig = Rig("tree-3-2", small(mode, groups=2, locks=1), engine="jit", store=tmp_path / "store")
    with rig.register() as manager:
        for name in ("a", "b"):
            manager.init_group(group(name, *HOSTS))
        rig.check()
        wires = Wires(rig)
        made = [[member.all_reduce(VALUES) for _ in range(6) for member in leased(wires, name)] for name in ("a", "b")]
        wires.advance(50 * MS)
        for each in made:
            assert all(call.done for call in each)
            for one in each:
                np.testing.assert_array_equal(one.result(), VALUES * len(HOSTS))
        granted = [one.granted for each in made for one in each if isinstance(one, LeasedInvocation)]
        assert {True, False} == {*granted}
        for name in ("a", "b"):
            wires.run(name)
        assert not locked(rig)
        status = manager.status()
        assert {switch.slots for switch in status.switches} == {small(mode).slots_per_group * (1 + (mode == "III"))}
        assert [each.ring for each in status.groups] == [False, False]
    with rig.again() as manager:  # the rings are those of before
        for name in ("a", "b"):
            config = news_of(rig, "h1")[name].config
            assert config is not None
            assert len(config.ring) == 3
            assert from_message(type(config), to_message(config)) == config
        rig.check()
        call(wires, "a")
        assert call(wires, "a")


@pytest.mark.parametrize("ranks", [2, 1], ids=["granted", "on its way"])
@pytest.mark.parametrize("restarted", [False, True], ids=["", "restarted"])
def test_a_dead_groups_tenure_ends_with_it(ranks: int, restarted: bool, tmp_path: Path) -> None:
    """Its ranks have acquired the tree, or a part of it, and go without a word."""
    spec = small(groups=3, locks=1, window=2)
    rig = Rig("tree-3-2", spec, engine="jit", store=tmp_path / "store")
    manager = rig.register()
    for name, hosts in (("dead", ("h0", "h2")), ("b", ("h1", "h3")), ("c", ("h1", "h3"))):
        manager.init_group(group(name, *hosts))
    wires = Wires(rig)
    acquire(wires, "dead", ranks)
    assert locked(rig) == {"s0"}, "the only switch of both trees"
    assert not call(wires, "b")
    if restarted:
        rig.kill()
        manager = rig.again()
    for host in ("h1", "h3"):
        manager.watch(host)
    manager._departures._away = 0.05
    manager.watch("h0").close()  # its process has ended
    rig.wait(lambda: [status.spec.name for status in manager.groups()] == ["b", "c"])
    rig.check()
    assert call(wires, "b")
    acquire(wires, "b")
    manager.init_group(group("new", "h1", "h3"))
    manager.destroy_group("c")
    assert not call(wires, "new"), "others that come and go end no tenure"
    for member in leased(wires, "b"):
        member.tree.release()
    wires.advance(20 * MS)
    assert call(wires, "new")
    manager.close()


def test_a_group_that_is_placed_again_has_another_tenure(tmp_path: Path) -> None:
    """What it held before is over, and what comes late of it changes nothing."""
    rig = Rig("tree-3-2", small(groups=4, locks=1), engine="jit")
    with rig.register() as manager:
        for name in ("a", "b"):
            manager.init_group(group(name, *HOSTS))
        wires = Wires(rig)
        acquire(wires, "a")
        old = leased(wires, "a")
        manager.move_group("a")
        rig.check()
        assert call(wires, "b")
        acquire(wires, "b")
        for member in old:
            member.tree.release()
        assert not call(wires, "a")
        for member in leased(wires, "b"):
            member.tree.release()
        wires.advance(20 * MS)
        assert call(wires, "a")


def test_groups_of_a_block_have_epochs_of_their_own_for_ever(seed: int, tmp_path: Path) -> None:
    """Whatever comes and goes: state that a group has left is no other group's."""
    chance = random.Random(seed)
    rig = Rig("leaf-spine", small(groups=6, locks=2), store=tmp_path / "store")
    manager = rig.register()
    had: defaultdict[tuple[str, object], set[tuple[str, int, int]]] = defaultdict(set)
    for number in range(60):
        names = [status.spec.name for status in manager.groups()]
        verb = chance.choice(("init", "init", "destroy", "move", "restart"))
        with contextlib.suppress(NoPlaceError):
            if verb == "init":
                manager.init_group(group(f"g{number}", *chance.sample(HOSTS, chance.randint(2, 4))))
            elif verb == "restart" and number % 3 == 0:
                rig.kill()
                manager = rig.again()
            elif names:
                name = chance.choice(names)
                manager.destroy_group(name) if verb == "destroy" else manager.move_group(name)
        with manager._changed:
            live = [(r, placed) for r, placed in manager._ledger.live() if r.state is GroupState.ACTIVE]
        for record, placed in live:
            for key, context in placed.contexts:
                assert context.block is not None
                where = key.switch, context.block
                who = record.spec.name, record.generation, context.epoch
                assert all(epoch != context.epoch or (n, g) == who[:2] for n, g, epoch in had[where])
                had[where].add(who)
    rig.check()
    manager.close()
    assert max(map(len, had.values())) > 4


def test_a_block_whose_epochs_are_used_up_makes_way_for_another_one() -> None:
    spec = small(groups=4, locks=2)
    history = History()
    pool = SwitchPool("s0", Limits.of(spec), history)
    need = Need(0, 1, spec.slots_per_group, up=False, down=False, sharing=spec)
    first, _ = spec.block_of(0)
    for epoch in range(1, 256):
        history.seen(Kind.SLOT, 0, epoch).add(first, first + spec.slots_per_group)
    taken = [pool.take(need) for _ in range(2)]
    assert [each.context for each in taken] == [1, 3]
    assert [each.epoch for each in taken] == [1, 2]
    with pytest.raises(NoRoomError, match="all 255 epochs of its free resources have been used"):
        pool.take(need)


def test_what_cannot_be() -> None:
    rig = Rig("star-4", small(groups=2, locks=1))
    with rig.register() as manager:
        alone = refused(Code.NO_ROOM, manager.init_group, group("g", "h0"))
        assert "a ring for calls that get none needs at least two ranks" in alone
        assert "each block that groups share has" in refused(
            Code.INVALID, manager.init_group, group("g", "h0", "h1", slots=4 * small().slots_per_group)
        )
        rig.check()
