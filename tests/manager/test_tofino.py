"""Groups on switches with programs for Tofino: static ones, on ports of hosts, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4gen.host.collectives.plan import PsnSync
from p4gen.manager.api import Code, GroupState, ManagerError
from p4gen.net.collectives.config import Call
from p4gen.papers.epic.capabilities import lack
from p4gen.vocabulary.message import Collective

from .collectives import Wires
from .rig import Rig, group, small

REDUCTIONS = frozenset({Collective.ALLREDUCE, Collective.BARRIER, Collective.REDUCE, Collective.REDUCE_SCATTER})
CALLS = (
    Call(Collective.ALLREDUCE, 96),
    Call(Collective.BARRIER, 0),
    Call(Collective.REDUCE, 32, root=1),
    Call(Collective.REDUCE_SCATTER, 96),
)


@pytest.mark.parametrize("arch", ["tna", "t2na"])
def test_groups_are_served_and_outlive_the_manager(arch: str, tmp_path: Path) -> None:
    rig = Rig("tree-3-2", small(arch=arch, groups=12), tmp_path / "store")
    with rig.register() as manager:
        wires = Wires(rig)
        manager.init_group(group("g", "h0", "h1", "h2", sync=PsnSync.SUBGROUPS, collectives=REDUCTIONS))
        manager.init_group(group("near", "h2", "h3", collectives=frozenset({Collective.ALLREDUCE})))
        wires.run("g", CALLS)
        wires.run("near", CALLS[:2])
        rig.check()
        rig.kill()
    with rig.again() as manager:
        rig.wait(rig.settled)
        # The switches still hold both groups in their epochs, so their state counts: no group begins again.
        assert [manager.group(name).generation for name in ("g", "near")] == [1, 1]
        wires.run("g", CALLS, seed=2)
        rig.switches["s1"].restart()
        rig.register(["s1"])
        rig.wait(lambda: manager.group("g").generation == 2 and manager.group("g").state is GroupState.ACTIVE)
        rig.wait(rig.settled)
        wires.run("g", CALLS, seed=3)
        for name in ("g", "near"):
            manager.destroy_group(name)
        rig.check_empty()


@pytest.mark.parametrize("arch", ["tna", "t2na"])
def test_all_collectives_are_served(arch: str) -> None:
    rig = Rig("tree-3-2", small(arch=arch, groups=12, serves="all"))
    with rig.register() as manager:
        wires = Wires(rig)
        everything = frozenset(Collective)
        manager.init_group(group("g", "h0", "h1", "h2", sync=PsnSync.SUBGROUPS, collectives=everything))
        wires.run("g", (*CALLS, Call(Collective.BROADCAST, 96, root=1), Call(Collective.ALLGATHER, 96)))
        manager.destroy_group("g")
        rig.check_empty()


@pytest.mark.parametrize(
    ("sync", "collectives", "missing"),
    [
        (PsnSync.SUBGROUPS, REDUCTIONS | {Collective.BROADCAST}, ("broadcast",)),
        (PsnSync.SUBGROUPS, frozenset({Collective.ALLGATHER}), ("broadcast",)),
        (PsnSync.REFINED, REDUCTIONS, ("patterns",)),
        (PsnSync.REFINED, frozenset(Collective), ("patterns", "broadcast")),
    ],
)
def test_what_the_programs_lack_is_refused_with_the_reason(
    sync: PsnSync, collectives: frozenset[Collective], missing: tuple[str, ...]
) -> None:
    spec = small(arch="t2na")
    rig = Rig("star-4", spec)
    with rig.register() as manager:
        with pytest.raises(ManagerError) as caught:
            manager.init_group(group("g", "h0", "h1", sync=sync, collectives=collectives))
        assert caught.value.code is Code.INVALID
        assert caught.value.diagnostics[0].message == "\n".join(lack(spec, name) for name in missing)
        rig.check_empty()


def test_a_tree_with_one_such_switch_is_refused_by_its_name() -> None:
    beside = small(lanes=8, icrc="ignore")
    spec = small(arch="t2na")
    rig = Rig("tree-3-2", {"s0": beside, "s1": spec, "s2": beside})
    with rig.register() as manager:
        manager.init_group(group("g", "h0", "h2", "h3"))  # the tree's nodes are s0 and s2
        with pytest.raises(ManagerError, match=r"s1: t2na programs lack patterns"):
            manager.init_group(group("h", "h0", "h1", "h2"))
