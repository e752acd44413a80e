"""The IncManager on switches with real control planes: groups come, go, move and survive."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from patience import PATIENCE_S

from p4gen.manager.api import (
    AgentError,
    Code,
    GroupState,
    HostInfo,
    LinkPort,
    ManagerError,
    Membership,
    NicInfo,
    RankReport,
)
from p4gen.manager.watch import Watch
from p4gen.rocev2.headers import ip_text

from .collectives import Wires, news_of
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


@pytest.mark.parametrize("ip", ["6", "both"])
def test_rocev2_stays_over_one_kind_of_ip(tmp_path: Path, ip: str) -> None:
    rig = Rig("tree-3-2", small(ip=ip), store=tmp_path / "store")
    host = HostInfo("h0", out_of_order=True)
    with rig.register() as manager:
        manager.init_group(group("g", *ALL))
        rig.check()
        addresses = manager.register_host(host)
        assert ip_text(addresses.ip) == "fd00:0:0:1::1"
        assert addresses.second_ip == (0x0A00_0001 if ip == "both" else 0)
        other = replace(rig.info("s1"), spec=small(ip="4"))
        said = refused(Code.INVALID, manager.register_switch, other)
        assert said == f"s1: RoCEv2 is over IPv6 here; with {other.spec.program} it could not stay so"
    rig.kill()
    with rig.again() as manager:
        assert manager.group("g").state is GroupState.ACTIVE
        assert manager.register_host(host) == addresses
        wires = Wires(rig, addressed=manager._ledger.fabric.view.names)
        wires.run("g")
        rig.check()


def test_ipv4_stays_too() -> None:
    rig = Rig("star-2", small())
    with rig.register() as manager:
        for ip in ("6", "both"):
            other = replace(rig.info("s0"), spec=small(ip=ip))
            assert "RoCEv2 is over IPv4 here" in refused(Code.INVALID, manager.register_switch, other)


def test_clear_errors() -> None:
    rig = Rig("tree-3-2", small(groups=2, ports=4, fan_in=3))
    with rig.manager as manager:
        assert refused(Code.UNREACHABLE, manager.init_group, group("g", *ALL)).splitlines() == [
            "no path between h0 and s1: switch s1 is not registered",
            "no path between h1 and s1: switch s1 is not registered",
            "no path between h2 and s1: switch s2 is not registered",
            "no path between h3 and s1: switch s2 is not registered",
        ]
        rig.register()
        manager.init_group(group("g", *ALL))
        assert "already a group 'g'" in refused(Code.EXISTS, manager.init_group, group("g", *ALL))
        for spec, reason in (
            (group("x", "h0", "h9"), "there is no host 'h9'"),
            (group("x", "h0", "h0"), "a host can be only one rank of a group"),
            (group("x"), "0 ranks; a group has 1 to 4096"),
            (group("x", "h0", root="s9"), "there is no switch 's9'"),
            (group("x", "h0", slots=3), "3 slots; it takes a power of two of at least 2 x W x M = 2"),
            (group("x", "h0", slots=64), "64 slots; the program has 4"),
            (group("x", "h0", collectives=frozenset()), "it has no collectives"),
            (group("no name", "h0"), "'no name' is not a name for a group"),
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
        assert "switch s9 is not registered" in refused(Code.NOT_FOUND, manager.report_links, "s9", {0: True})
        assert "s0 has no link at port 7" in refused(Code.INVALID, manager.report_links, "s0", {7: True})
        rig.check()
    assert "the manager has ended" in refused(Code.UNREACHABLE, manager.init_group, group("x", "h0"))


def test_resize_and_move_are_new_generations() -> None:
    rig = Rig("leaf-spine", small("III"))
    with rig.register() as manager:
        wires = Wires(rig)
        manager.init_group(group("g", "h0", "h2", "h4"))
        wires.run("g")
        bigger = manager.resize_group("g", 8)
        assert (bigger.generation, bigger.spec.slots) == (2, 8)
        assert news_of(rig, "h0")["g"].config.slots == 8  # type: ignore[union-attr]
        wires.run("g")
        moved = manager.move_group("g", "leaf3")
        assert (moved.generation, moved.spec.root, moved.tree) == (3, "leaf3", {"spine0": None})
        wires.run("g")
        rig.check()
        for slots, code in ((3, Code.INVALID), (32, Code.NO_ROOM), (1 << 12, Code.INVALID)):
            refused(code, manager.resize_group, "g", slots)
            assert manager.group("g") == moved, "whole, as it was"
        refused(Code.INVALID, manager.move_group, "g", "s9")
        wires.run("g")
        rig.check()


def test_watchers_get_all_news_in_order() -> None:
    rig = Rig("star-4", small())
    with rig.register() as manager:
        slow, quick = manager.watch("h0"), manager.watch("h0")
        other = manager.watch("h3")
        seen: list[tuple[str, GroupState, int, bool]] = []
        reader = threading.Thread(
            target=lambda: seen.extend((i.group, i.state, i.generation, i.gone) for i in quick), daemon=True
        )
        reader.start()
        for name in ("a", "b"):
            manager.init_group(group(name, "h0", "h1"))
        manager.resize_group("a", 4)
        manager.destroy_group("a")
        late = manager.watch("h0")
        active, installing, removing = GroupState.ACTIVE, GroupState.INSTALLING, GroupState.REMOVING
        wanted = [
            ("a", installing, 1, False), ("a", active, 1, False), ("b", installing, 1, False), ("b", active, 1, False),
            ("a", active, 2, False), ("a", removing, 2, False), ("a", removing, 2, True),
        ]  # fmt: skip
        rig.wait(lambda: len(seen) == len(wanted))
        assert seen == wanted
        assert [next(slow).group for _ in wanted] == [name for name, *_ in wanted], "nobody waits for the slow"
        assert (next(late).group, len(late._news)) == ("b", 0)
        assert not other._news
        slow.close()
        assert list(slow) == []
    reader.join(PATIENCE_S)
    assert not reader.is_alive(), "they end with the manager"
    assert list(late) == []


def test_a_slow_watcher_keeps_the_newest_of_each_group() -> None:
    watch = Watch(lambda _: None)
    for number in range(5000):
        watch.put(Membership(f"g{number % 3}", GroupState.BROKEN, number))
    newest = {item.group: item.generation for item in watch._news}
    assert len(watch._news) <= 1001
    assert newest == {"g0": 4998, "g1": 4999, "g2": 4997}


def test_ranks_agree_where_to_begin() -> None:
    rig = Rig("star-4", small())
    answers: dict[int, int] = {}
    with rig.register() as manager:
        manager.init_group(group("g", "h0", "h1", "h2"))

        def come(rank: int, completed: int) -> None:
            answers[rank] = manager.ready("g", 1, rank, completed)

        threads = [threading.Thread(target=come, args=(rank, 7 + rank)) for rank in range(2)]
        for thread in threads:
            thread.start()
        rig.wait(lambda: len(manager._ledger.records["g"].arrived) == 2)
        assert "not ready within 0.1 s: rank 2 (h2)" in refused(
            Code.UNREACHABLE, manager.ready, "g", 1, 0, 7, timeout=0.1
        )
        assert not answers
        assert manager.ready("g", 1, 2, 5) == 5
        for thread in threads:
            thread.join(PATIENCE_S)
        assert answers == {0: 5, 1: 5}
        assert manager.ready("g", 1, 1, 99) == 5, "who asks again is told the same"
        assert "generation 1; not 2" in refused(Code.REFUSED, manager.ready, "g", 2, 0, 0)
        assert "has no rank 3" in refused(Code.INVALID, manager.ready, "g", 1, 3, 0)
        manager.resize_group("g", 4)
        waiting: list[str] = []
        waiter = threading.Thread(target=lambda: waiting.append(refused(Code.REFUSED, manager.ready, "g", 2, 0, 0)))
        waiter.start()
        rig.wait(lambda: len(manager._ledger.records["g"].arrived) == 1)
        manager.destroy_group("g")
        waiter.join(PATIENCE_S)
        assert waiting
        refused(Code.NOT_FOUND, manager.ready, "g", 2, 0, 0)


def test_what_ranks_report_is_shown() -> None:
    rig = Rig("star-4", small())
    with rig.register() as manager:
        manager.init_group(group("g", "h0", "h1"))
        report = RankReport("g", 1, invocations=3, dropped={"bad_icrc": 2})
        manager.report_rank(report)
        manager.report_rank(report)
        status = manager.status()
        assert status.ranks == (report,)
        (switch,) = status.switches
        assert (switch.reachable, switch.contexts, switch.contexts_total, switch.slots) == (True, 1, 8, 2)
        assert (switch.slots_total, switch.links_down) == (16, ())
        manager.report_links("s0", {1: False})
        assert manager.status().switches[0].links_down == ("h1",)
        assert manager.status().switches[0].entries == len(rig.switches["s0"].holds().entries)
        refused(Code.INVALID, manager.report_rank, RankReport("g", 2))
        refused(Code.NOT_FOUND, manager.report_rank, RankReport("x", 0))


def test_ticks_are_for_active_groups() -> None:
    rig = Rig("star-4", small("III"))
    with rig.register() as manager:
        manager.init_group(group("g", "h0", "h1"))
        rig.wait(lambda: len(rig.agents["s0"].ticking) == 2)
        manager.init_group(group("h", "h2", "h1", "h3"))
        rig.wait(lambda: len(rig.agents["s0"].ticking) == 5)
        manager.destroy_group("g")
        rig.wait(lambda: len(rig.agents["s0"].ticking) == 3)


def test_a_manager_takes_over(tmp_path: Path) -> None:
    rig = Rig("leaf-spine", small("III"), tmp_path / "store")
    manager = rig.register()
    wires = Wires(rig)
    for name, ranks in (("a", ("h0", "h2", "h5")), ("b", ("h1", "h7")), ("gone", ("h0", "h1"))):
        manager.init_group(group(name, *ranks))
    wires.run("a")
    done = [threading.Thread(target=manager.ready, args=("b", 1, rank, 4 + rank)) for rank in range(2)]
    for thread in done:
        thread.start()
    for thread in done:
        thread.join(PATIENCE_S)
    manager.destroy_group("gone")
    manager.report_links("leaf3", {0: False})
    rig.wait(lambda: manager.group("b").state is GroupState.ACTIVE)
    before = manager.groups()
    loads = {name: switch.loads for name, switch in rig.switches.items()}
    rig.kill()
    manager = rig.again()
    rig.wait(rig.settled)
    assert manager.groups() == before
    assert manager.status().switches[5].links_down == ("spine0",)
    rig.check()
    wires.run("a")  # the same queue pairs: nothing has happened to them
    rig.switches["leaf0"].restart()
    rig.kill()
    manager = rig.again()
    rig.wait(lambda: manager.group("a").generation == before[0].generation + (1 if "leaf0" in before[0].tree else 0))
    assert {name: switch.loads for name, switch in rig.switches.items()} == loads | {"leaf0": loads["leaf0"] + 1}
    rig.check()
    wires.run("a")
    manager.close()
    other = Rig("tree-3-2", small("III"), tmp_path / "store")
    with other.register() as manager:
        rig.wait(lambda: all(g.state is GroupState.BROKEN for g in manager.groups()))
        assert "there is no host 'h5'" in manager.group("a").reason


@pytest.mark.long
def test_switches_of_one_tree_run_programs_that_go_together() -> None:
    base = small("III")
    for other, reason in (
        (small("II"), "has mode"),
        (small("III", lanes=16), "has lanes"),
        (small("III", op="max"), "has op"),
        (small("III", window=2), "has W x M"),
        (small("III", reliability="sr"), "has reliability"),
    ):
        rig = Rig("tree-3-2", {"s0": base, "s1": base, "s2": other})
        with rig.register() as manager:
            text = refused(Code.NO_ROOM, manager.init_group, group("g", *ALL))
            assert f"root s0: s2 {reason}" in text, text
            assert "s0 has " in text
            assert manager.init_group(group("near", "h2", "h3")).tree == {"s2": None}
            Wires(rig).run("near")
    rig = Rig("tree-3-2", {"s0": small(pipelines=2), "s1": small(groups=2, slots=4), "s2": small(fan_in=3, ports=4)})
    with rig.register() as manager:  # each has its own limits
        manager.init_group(group("g", *ALL))
        assert manager.group("g").contexts == {"s0": 1, "s1": 1, "s2": 1}
        assert manager.group("g").slots == {"s0": 2, "s1": 4, "s2": 2}
        rig.check()


def test_a_topology_that_nobody_has_written_down() -> None:
    rig = Rig("tree-3-2", small(), given=False)
    with rig.manager as manager:
        assert "no registered switch has a link to h2" in refused(Code.REFUSED, manager.register_host, HostInfo("h2"))
        rig.register(["s2", "s0"])
        addresses = manager.register_host(HostInfo("h2"))
        assert addresses == manager.register_host(HostInfo("h2")), "again"
        assert "there is no host 'h0'" in refused(Code.INVALID, manager.init_group, group("g", "h0", "h2"))
        rig.register(["s1"])
        macs = {manager.register_host(HostInfo(f"h{i}")).mac for i in range(4)}
        assert len(macs) == 4
        assert addresses.mac in macs
        status = manager.init_group(group("g", *ALL))
        assert status.tree == {"s0": None, "s1": "s0", "s2": "s0"}
        config = news_of(rig, "h2")["g"].config
        assert config is not None
        assert config.addresses == addresses
        wires = Wires(rig, addressed=manager._ledger.fabric.view.names)
        wires.run("g")
        manager.report_links("s1", {2: False})
        rig.wait(lambda: manager.group("g").state is GroupState.BROKEN)
        assert "is down" in manager.group("g").reason
        info = rig.info("s1")
        for wrong, reason in (
            (replace(info, address="unix:/elsewhere"), "s1 is already registered, with address unix:/s1"),
            (replace(info, name="h0"), "h0 is registered as a host"),
            (replace(info, name="s9", links=(LinkPort(0, "h0"),)), "host h0 is already connected to s1"),
            (replace(info, name="s9", links=(LinkPort(9, "s0"),)), "s9 has a link at port 9; its program has 8 ports"),
            (replace(info, name="s9", links=(LinkPort(1, "a"), LinkPort(1, "b"))), "port 1 occurs twice"),
        ):
            with pytest.raises(ManagerError, match=reason):
                manager.register_switch(wrong)


def test_registering_with_a_topology() -> None:
    rig = Rig("tree-3-2", small())
    with rig.manager as manager:
        assert manager.register_host(HostInfo("h1")).ip == 0x0A000002
        refused(Code.INVALID, manager.register_host, HostInfo("h9"))
        assert refused(
            Code.INVALID, manager.register_host, HostInfo("h1", nic=NicInfo(mtus=(1000,), queue_pairs=((1, 9), (8, 9))))
        ).splitlines() == [
            "the NIC of h1: path MTU 1000 is not one of 256, 512, 1024, 2048, 4096",
            "the NIC of h1: queue pairs 1 to 8 are not from 2 to 16777215",
            "the NIC of h1: queue pair 8 is offered twice",
        ]
        refused(Code.INVALID, manager.register_switch, replace(rig.info("s0"), name="s9"))
        assert "link at port 2; its program has 2 ports" in refused(
            Code.INVALID, manager.register_switch, replace(rig.info("s1"), spec=small(ports=2))
        )

        def silent(switch: str, step: str) -> None:
            raise AgentError("no answer", unreachable=True)

        rig.fault = silent
        assert refused(Code.UNREACHABLE, manager.register_switch, rig.info("s0")) == "s0: no answer"
        assert manager.status().switches == ()
        rig.fault = lambda switch, step: None
        rig.register()
        rig.check()
