"""Groups without a place do their calls on a ring of their hosts, and go over to switches when there is room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from p4gen.groups.group import Memory
from p4gen.manager.api import Code, GroupState, ManagerError
from p4gen.net.collectives.config import Call
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import load_topology

from .cluster import Cluster
from .collectives import Wires, news_of
from .rig import Rig, group, small
from .test_member import ALL, activate, begin, check, members, run, spec_of
from .test_member import values as drawn

HOSTS = ("h0", "h1", "h2", "h3")


def test_a_refused_group_calls_on_a_ring_until_there_is_room() -> None:
    rig = Rig("tree-3-2", small(groups=1))
    with rig.register() as manager:
        manager.init_group(group("a", *HOSTS))
        with pytest.raises(ManagerError) as refused:
            manager.init_group(group("b", *HOSTS[::-1]))
        assert refused.value.code is Code.NO_ROOM
        status = manager.init_group(group("b", *HOSTS[::-1], fallback=True))
        assert (status.state, status.ring, status.tree, status.slots) == (GroupState.ACTIVE, True, {}, {})
        assert "0 of 1 are free" in status.reason
        wires = Wires(rig)
        wires.run("a")
        wires.run("b")
        rig.check()
        manager.destroy_group("a")
        rig.wait(lambda: not manager.group("b").ring)
        assert (manager.group("b").generation, manager.group("b").reason) == (2, "")
        wires.run("b")
        rig.check()
        manager.destroy_group("b")
        rig.check_empty()
        assert not manager._store.counts()["rings"]


def test_a_ring_outlives_its_manager(tmp_path: Path) -> None:
    rig = Rig("tree-3-2", small(groups=1), tmp_path / "db")
    rig.register()
    rig.manager.init_group(group("a", *HOSTS))
    rig.manager.init_group(group("b", *HOSTS[::-1], fallback=True))
    for rank in range(4):
        rig.manager._ledger.records["b"].arrived[rank] = 5 + rank
    assert rig.manager.ready("b", 1, 0, 5) == 5
    before = news_of(rig, "h1")["b"].config
    rig.kill()
    with rig.again() as manager:
        assert news_of(rig, "h1")["b"].config == before
        assert manager.ready("b", 1, 1, 9) == 5
        Wires(rig).run("b")
        rig.check()


def test_a_group_whose_tree_is_cut_goes_on_with_its_ring() -> None:
    rig = Rig("leaf-spine", small(groups=1))
    with rig.register() as manager:
        topology = load_topology("leaf-spine")
        manager.init_group(group("g", "h0", "h1", "h2", fallback=True))
        up = [port for port, link in enumerate(topology.ports["leaf0"]) if link.other("leaf0") in topology.switches]
        manager.report_links("leaf0", dict.fromkeys(up, False))
        rig.wait(lambda: manager.group("g").ring)
        assert manager.group("g").state is GroupState.ACTIVE
        manager.report_links("leaf0", dict.fromkeys(up, True))
        rig.wait(lambda: not manager.group("g").ring)
        Wires(rig).run("g")
        rig.check()


def test_requests_that_no_ring_can_serve_are_refused() -> None:
    rig = Rig("tree-3-2", small())
    with rig.register() as manager:
        for wrong, why in (
            (group("g", "h0", fallback=True), "a ring needs at least two ranks"),
            (group("g", "h0", "h1", fallback=True, memories=(Memory(0, 1, 64),) * 2), "cannot call on a ring"),
        ):
            with pytest.raises(ManagerError, match=why):
                manager.init_group(wrong)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(spec_of("II")) as found:
        yield found


def test_ranks_go_from_switches_to_a_ring_and_back(cluster: Cluster) -> None:
    activate(cluster)
    ranks = members(cluster)
    run(cluster, ranks, ALL[0])
    cluster.manager.ring("g")
    for number, call in enumerate(ALL):
        run(cluster, ranks, call, number)
    # More Broadcasts in a row than calls are kept: Barriers keep ranks together.
    values = [drawn(cluster, Call(Collective.BROADCAST, 4 * 9, root=1), seed) for seed in range(20)]
    call = Call(Collective.BROADCAST, 4 * 9, root=1)
    futures = [begin(ranks[1:], call, each[1:]) for each in values]
    assert ranks[1].completed <= len(ALL) + 1 + 8
    late = [begin(ranks[:1], call, each[:1]) for each in values]
    cluster.manager.activate()
    for each, mine, others in zip(values, late, futures, strict=True):
        check(spec_of("II"), call, each, mine + others)
    for number, call in enumerate(ALL):
        run(cluster, ranks, call, number)
