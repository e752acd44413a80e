"""The IncManager on switches with real control planes: groups come, go, move and survive."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from p4gen.errors import InputError
from p4gen.manager.api import AgentError, Code, GroupState, HostInfo, ManagerError, RankReport

from .rig import Rig, group, small

ALL = ("h0", "h1", "h2", "h3")


def refused(code: Code, call: object, *args: object, **fields: object) -> str:
    with pytest.raises(ManagerError) as caught:
        call(*args, **fields)  # type: ignore[operator]
    assert caught.value.code is code, caught.value
    return caught.value.reason


def test_a_group_comes_and_goes() -> None:
    rig = Rig("tree-3-2", small())
    with rig.register() as manager:
        status = manager.init_group(group("g", *ALL))
        assert (status.state, status.generation) == (GroupState.ACTIVE, 1)
        assert status.tree == {"s0": None, "s1": "s0", "s2": "s0"}
        assert status.contexts == {"s0": 1, "s1": 1, "s2": 1}
        assert status.slots == {"s0": 2, "s1": 2, "s2": 2}
        rig.check()
        assert manager.groups() == [status] == [manager.group("g")]
        manager.destroy_group("g")
        rig.check_empty()


def test_clear_errors() -> None:
    rig = Rig("tree-3-2", small(groups=2, ports=4, fan_in=3))
    with rig.manager as manager:
        assert refused(Code.UNREACHABLE, manager.init_group, group("g", *ALL)).splitlines() == [
            "no path between h0 and s1: switch s1 has not registered",
            "no path between h1 and s1: switch s1 has not registered",
            "no path between h2 and s1: switch s2 has not registered",
            "no path between h3 and s1: switch s2 has not registered",
        ]
        rig.register()
        manager.init_group(group("g", *ALL))
        assert "group 'g' already" in refused(Code.EXISTS, manager.init_group, group("g", *ALL))
        for spec, reason in (
            (group("x", "h0", "h9"), "there is no host 'h9'"),
            (group("x", "h0", "h0"), "a host is one rank of a group at most"),
            (group("x"), "0 ranks; a group has 1 to 32"),
            (group("x", "h0", root="s9"), "there is no switch 's9'"),
            (group("x", "h0", slots=3), "3 slots; it takes a power of two of at least 2 x W x M = 2"),
            (group("x", "h0", slots=64), "64 slots; the program has 4"),
            (group("x", "h0", collectives=frozenset()), "it is for no collective"),
            (group("no name", "h0"), "'no name' is no name for a group"),
        ):
            assert reason in refused(Code.INVALID, manager.init_group, spec)
        manager.init_group(group("h", *ALL))
        reasons = refused(Code.NO_ROOM, manager.init_group, group("i", *ALL)).splitlines()
        assert reasons == [
            f"root {root}: {switch}: 1 context is needed; 0 of 2 are free (groups)"
            for root, nodes in (("s0", ("s0", "s1", "s2")), ("s1", ("s1", "s2")), ("s2", ("s2", "s1")))
            for switch in nodes
        ]
        assert "there is no group 'x'" in refused(Code.NOT_FOUND, manager.destroy_group, "x")
        assert "switch s9 has not registered" in refused(Code.NOT_FOUND, manager.report_links, "s9", {0: True})
        assert "s0 has no link at port 7" in refused(Code.INVALID, manager.report_links, "s0", {7: True})
        rig.check()
    assert "the manager has ended" in refused(Code.UNREACHABLE, manager.init_group, group("x", "h0"))
