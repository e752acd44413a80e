"""Contexts, edges and slots that others have used before: what is left in the registers harms nobody."""

from __future__ import annotations

import random

import pytest

from p4gen.manager.api import Code, GroupState, ManagerError
from p4gen.net.collectives.config import Call
from p4gen.vocabulary.message import Collective

from .collectives import EVERY, Wires
from .rig import Rig, group, small

SHORT = (Call(Collective.ALLREDUCE, 96), Call(Collective.REDUCE, 32, root=1), Call(Collective.BROADCAST, 32, root=0))


@pytest.mark.sample(1)
@pytest.mark.parametrize("mode", ["II", "III"])
@pytest.mark.long
def test_more_generations_than_epochs(mode: str) -> None:
    """On one switch, beside a group that stays: every generation's results are right, and so are the survivor's."""
    rig = Rig("star-4", small(mode, groups=3), engine="jit")
    chance = random.Random(7)
    with rig.register() as manager:
        wires = Wires(rig)
        manager.init_group(group("survivor", "h0", "h1", "h2", "h3"))
        wires.run("survivor")
        epochs: set[tuple[int, int]] = set()
        for number in range(300):
            manager.init_group(group("g", *chance.sample(rig.topology.rank_hosts, 3)))
            wires.run("g", SHORT, seed=number)
            ((_, context),) = manager._ledger.records["g"].placed.contexts  # type: ignore[union-attr]
            assert (context.context, context.epoch) not in epochs
            epochs.add((context.context, context.epoch))
            manager.destroy_group("g")
        assert {context for context, _ in epochs} == {1, 2}
        wires.run("survivor", EVERY, seed=2)
        assert rig.switches["s0"].loads == 1


@pytest.mark.long
def test_a_program_is_loaded_anew_when_its_epochs_are_used_up() -> None:
    rig = Rig("star-4", small(groups=1), engine="jit")
    with rig.register() as manager:
        wires = Wires(rig)
        for _ in range(256):
            manager.init_group(group("g", "h0", "h1"))
            manager.destroy_group("g")
        assert rig.switches["s0"].loads == 2
        manager.init_group(group("g", "h0", "h1"))
        wires.run("g", SHORT)
        rig.check()


@pytest.mark.long
def test_unless_another_group_lives_there() -> None:
    rig = Rig("star-4", small(groups=2))
    with rig.register() as manager:
        manager.init_group(group("stays", "h2", "h3"))
        for _ in range(255):
            manager.init_group(group("g", "h0", "h1"))
            manager.destroy_group("g")
        with pytest.raises(ManagerError, match="all 255 epochs of its free resources have been used") as caught:
            manager.init_group(group("g", "h0", "h1"))
        assert caught.value.code is Code.NO_ROOM
        assert rig.switches["s0"].loads == 1
        manager.destroy_group("stays")
        assert manager.init_group(group("g", "h0", "h1")).state is GroupState.ACTIVE
        assert manager.group("g").contexts == {"s0": 1}
        rig.check()
