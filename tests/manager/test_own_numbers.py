"""Hosts whose NICs number their queue pairs themselves: groups and rings get numbers that these hosts offer."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import pytest

from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.nicinfo import NicInfo
from p4gen.manager.api import Code, GroupSpec, GroupState, HostInfo, ManagerError
from p4gen.manager.store.record import Record
from p4gen.papers.epic.spec import EpicSpec
from p4gen.plan.placement.numbers import HOST_QP
from p4gen.vocabulary.message import Collective

from .collectives import EVERY, Wires, news_of
from .rig import Rig, group, small

ALL = ("h0", "h1", "h2", "h3")
REDUCES = [call for call in EVERY if call.collective in (Collective.ALLREDUCE, Collective.BARRIER)]


def offer(rig: Rig, host: str, *spans: tuple[int, int]) -> None:
    rig.manager.register_host(HostInfo(host, nic=NicInfo(queue_pairs=spans)))


def rig_of(spec: EpicSpec, store: Path | str = ":memory:", **spans: tuple[int, int]) -> Rig:
    rig = Rig("tree-3-2", spec, store)
    rig.register()
    for host, span in spans.items():
        offer(rig, host, span)
    return rig


def reduces(name: str, *ranks: str, **fields: object) -> GroupSpec:
    """A group that needs one queue pair for each rank."""
    return group(name, *ranks, sync=PsnSync.SUBGROUPS, collectives=frozenset({Collective.ALLREDUCE}), **fields)


def numbers(rig: Rig) -> dict[str, dict[str, tuple[int, ...]]]:
    """The numbers of every host's queue pairs, by host and group."""
    found: defaultdict[str, dict[str, tuple[int, ...]]] = defaultdict(dict)
    for host in rig.topology.hosts:
        for name, news in news_of(rig, host).items():
            if news.config is not None:
                found[host][name] = news.config.qps
    return found


@pytest.mark.parametrize("mode", ["I", "II", "III"])
def test_groups_get_the_numbers_that_their_hosts_have(mode: str) -> None:
    rig = rig_of(small(mode), h0=(17, 20), h2=(100, 103))
    with rig.manager as manager:
        for name in "abc":
            manager.init_group(reduces(name, *ALL))
        with pytest.raises(ManagerError) as refused:
            manager.init_group(reduces("d", *ALL))
        assert refused.value.code is Code.NO_ROOM
        assert set(refused.value.reason.splitlines()) == {
            f"root {root}: {host}: 1 queue pair is needed; 0 of its NIC's 3 are free"
            for root in ("s0", "s1", "s2")
            for host in ("h0", "h2")
        }
        found = numbers(rig)
        assert found["h0"] == {"a": (17,), "b": (18,), "c": (19,)}
        assert found["h2"] == {"a": (100,), "b": (101,), "c": (102,)}
        assert found["h1"]["a"] == (HOST_QP,)
        assert found["h3"]["a"] == (HOST_QP + 1,)
        wires = Wires(rig)
        for name in "abc":
            wires.run(name, REDUCES)
        manager.destroy_group("b")
        manager.init_group(reduces("d", "h2", "h0"))
        assert (numbers(rig)["h0"]["d"], numbers(rig)["h2"]["d"]) == ((18,), (101,))
        Wires(rig).run("d", REDUCES)
        rig.check()


def test_what_needs_more_queue_pairs_says_how_many() -> None:
    rig = rig_of(small(groups=16), h0=(17, 20))
    with rig.manager as manager:
        every = group("g", *ALL, sync=PsnSync.SUBGROUPS)
        with pytest.raises(ManagerError, match="root s0: h0: 9 queue pairs are needed; 3 of its NIC's 3 are free"):
            manager.init_group(every)
        offer(rig, "h0", (17, 20), (30, 36))
        manager.init_group(every)
        assert numbers(rig)["h0"]["g"] == (17, 18, 19, *range(30, 36))
        Wires(rig).run("g")


def test_a_move_takes_other_numbers_unless_there_are_none() -> None:
    rig = rig_of(small(), h0=(17, 19))
    with rig.manager as manager:
        manager.init_group(reduces("g", "h0", "h2"))
        manager.move_group("g", "s1")
        assert numbers(rig)["h0"]["g"] == (18,)
        manager.init_group(reduces("h", "h1", "h0"))
        assert numbers(rig)["h0"] == {"g": (18,), "h": (17,)}
        manager.move_group("g", "s2")  # the old placement goes before the new one is made
        assert numbers(rig)["h0"]["g"] == (18,)
        assert manager.group("g").generation == 3
        wires = Wires(rig)
        wires.run("g", REDUCES)
        wires.run("h", REDUCES)
        rig.check()


def test_a_host_that_has_other_queue_pairs_now_is_placed_again() -> None:
    rig = rig_of(small(), h0=(17, 19))
    with rig.manager as manager:
        manager.init_group(reduces("g", *ALL))
        manager.init_group(reduces("h", "h2", "h3"))
        offer(rig, "h0", (17, 40))
        rig.check()
        assert manager.group("g").generation == 1, "it has them still"
        offer(rig, "h0", (50, 52))
        rig.wait(lambda: manager.group("g").generation > 1 and manager.group("g").state is GroupState.ACTIVE)
        assert numbers(rig)["h0"]["g"] == (50,)
        assert manager.group("h").generation == 1
        Wires(rig).run("g", REDUCES)
        rig.check()


def test_a_broken_group_comes_back_when_its_host_offers_more() -> None:
    rig = rig_of(small(), h0=(17, 18), h1=(17, 18))
    with rig.manager as manager:
        manager.init_group(reduces("g", *ALL))
        manager.init_group(reduces("h", "h2", "h3"))
        offer(rig, "h0", (50, 51))
        offer(rig, "h1", (60, 61))
        rig.wait(lambda: numbers(rig)["h0"].get("g") == (50,) and numbers(rig)["h1"].get("g") == (60,))
        manager.init_group(reduces("i", "h2", "h3"))
        with pytest.raises(ManagerError, match="h0: 1 queue pair is needed; 0 of its NIC's 1 are free"):
            manager.init_group(reduces("j", "h2", "h0"))
        rig.check()


def test_a_manager_that_restarts_knows_whose_numbers_are_taken(tmp_path: Path) -> None:
    rig = rig_of(small(), tmp_path / "db", h0=(17, 20))
    rig.manager.init_group(reduces("g", "h0", "h2"))
    before = numbers(rig)
    rig.kill()
    with rig.again() as manager:
        assert numbers(rig) == before
        manager.init_group(reduces("h", "h1", "h0"))
        assert numbers(rig)["h0"] == {"g": (17,), "h": (18,)}
        offer(rig, "h0", (17, 20))
        assert manager.group("g").generation == 1
        rig.check()


def test_rings_take_numbers_of_their_hosts(tmp_path: Path) -> None:
    rig = rig_of(small(groups=1), tmp_path / "db", h1=(17, 23), h0=(30, 40))
    rig.manager.init_group(reduces("a", "h2", "h3"))
    status = rig.manager.init_group(reduces("b", *ALL, fallback=True))
    assert status.ring
    found = numbers(rig)
    assert (found["h0"]["b"], found["h1"]["b"]) == ((30, 31, 32, 33, 34), (17, 18, 19))
    assert all(number >= HOST_QP for host in ("h2", "h3") for number in found[host]["b"])
    Wires(rig).run("b")
    before = news_of(rig, "h1")["b"].config
    rig.kill()
    with rig.again() as manager:
        assert news_of(rig, "h1")["b"].config == before
        with pytest.raises(ManagerError) as refused:
            manager.init_group(reduces("c", "h1", "h0", "h2", "h3", fallback=True))
        assert refused.value.code is Code.NO_ROOM
        assert "no ring: h1: 5 queue pairs are needed; 3 of its NIC's 6 are free" in refused.value.reason
        assert [each.spec.name for each in manager.groups()] == ["a", "b"]
        offer(rig, "h1", (50, 60))
        rig.wait(lambda: numbers(rig)["h1"].get("b") == (50, 51, 52))
        Wires(rig).run("b")
        manager.destroy_group("a")
        rig.wait(lambda: not manager.group("b").ring)
        Wires(rig).run("b", REDUCES)
        manager.destroy_group("b")
        rig.check_empty()
        assert not manager._store.counts()["ring_ends"]


def test_a_group_whose_tree_is_cut_breaks_if_its_hosts_have_no_queue_pairs_for_a_ring() -> None:
    rig = rig_of(small(), h0=(17, 19))
    with rig.manager as manager:
        manager.init_group(reduces("g", *ALL, fallback=True))
        manager.report_links("s0", {0: False})
        rig.wait(lambda: manager.group("g").state is GroupState.BROKEN)
        assert "no ring: h0: 5 queue pairs are needed; 1 of its NIC's 2 are free" in manager.group("g").reason
        manager.report_links("s0", {0: True})
        rig.wait(lambda: manager.group("g").state is GroupState.ACTIVE)
        Wires(rig).run("g", REDUCES)
        rig.check()


def test_numbers_are_nobody_elses_whatever_happens(seed: int) -> None:
    """Groups come, move and go, their hosts offer other queue pairs, and links fail."""
    chance, refusals = random.Random(seed), set()
    rig = rig_of(small(), h0=(17, 22), h2=(100, 106))
    offered = {"h0": (17, 22), "h2": (100, 106)}
    names = "abcdefg"
    for _ in range(60):
        manager, name = rig.manager, chance.choice(names)
        try:
            match chance.randrange(8):
                case 0 | 1 | 2:
                    ranks = chance.sample(ALL, chance.randint(2, 4))
                    manager.init_group(reduces(name, *ranks, fallback=chance.random() < 0.5))
                case 3:
                    manager.move_group(name, chance.choice(rig.topology.switches))
                case 4 | 5:
                    manager.destroy_group(name)
                case 6:
                    host, first = chance.choice(("h0", "h2")), chance.randrange(17, 40)
                    offered[host] = (first, first + chance.randint(1, 8))
                    offer(rig, host, offered[host])
                case 7:
                    manager.report_links("s0", {chance.randrange(2): chance.random() < 0.7})
        except ManagerError as error:
            refusals.add(error.code)
        rig.wait(lambda: not any(r.lost and r.state is GroupState.ACTIVE for r in records(rig)) and rig.settled())
        for host, (first, end) in offered.items():
            mine = [number for qps in numbers(rig)[host].values() for number in qps]
            assert len(set(mine)) == len(mine)
            assert all(first <= number < end for number in mine), (host, mine, offered)
    assert refusals <= {Code.NO_ROOM, Code.EXISTS, Code.NOT_FOUND, Code.REFUSED, Code.UNREACHABLE}
    rig.check()
    rig.manager.close()


def records(rig: Rig) -> list[Record]:
    with rig.manager._changed:
        return list(rig.manager._ledger.records.values())
