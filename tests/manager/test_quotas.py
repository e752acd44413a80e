"""Quotas of tenants: which requests they refuse, and what they count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import until

from p4gen.manager.access.tenants import load_tenants
from p4gen.manager.api import Code, ConnectionSpec, GroupState, HostInfo, ManagerError

from .rig import Rig, group, small
from .tenancy import TENANTS, Site, outcome, site
from .test_connections import LEAF, NETWORK, spread


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "tenants.yaml"
    made.write_text(TENANTS)
    return made


@pytest.fixture
def star(file: Path, tmp_path: Path) -> Iterator[Site]:
    rig = Rig("star-4", small(), tenants=load_tenants(file))
    with rig.register(), site(file, rig, tmp_path) as made:
        yield made


def why(ask: Callable[[], Any]) -> str:
    with pytest.raises(ManagerError) as caught:
        ask()
    assert caught.value.code is Code.NO_ROOM
    return caught.value.reason


def test_quotas_of_groups_contexts_and_slots(file: Path, tmp_path: Path) -> None:
    text = TENANTS.replace("[h0, h1]", "[h0, h1, h2, h3]").replace("hosts: [h2, h3]", "hosts: []")
    file.write_text(text.replace("slots: 64", "slots: 6"))
    rig = Rig("tree-3-2", small(), tmp_path / "state.db", tenants=load_tenants(file))
    rig.register()
    with site(file, rig, tmp_path) as made:
        alice, ops = made.clients["alice"], made.clients["ops"]
        alice.init_group(group("one", "h0", "h1", "h2", "h3", slots=2))  # a context on each of three switches
        reason = why(lambda: alice.init_group(group("two", "h0", "h1")))
        assert "quota of tenant alice: 3 of 3 contexts are used; 1 more needed" in reason
        assert why(lambda: ops.init_group(group("alice/two", "h0", "h1"))) == reason, "an operator's, for the tenant"
        rig.check()
        ops.init_group(group("two", "h0", "h1"))  # nobody's
        alice.move_group("one")  # the new generation takes the place of the old one
        alice.destroy_group("one")
        alice.init_group(group("one", "h0", "h1"))
        reason = why(lambda: alice.resize_group("one", 8))
        assert "quota of tenant alice: 0 of 6 slots are used; 8 more needed" in reason
        assert alice.group("one").generation == 1
        alice.init_group(group("two", "h0", "h1"))
        assert why(lambda: alice.init_group(group("three", "h0"))) == "quota of tenant alice: 2 of 2 groups are used"
        rig.check()
    rig.kill()
    with rig.again(), site(file, rig, tmp_path) as made:
        alice = made.clients["alice"]
        assert [status.spec.name for status in alice.groups()] == ["one", "two"]
        assert why(lambda: alice.init_group(group("three", "h0"))) == "quota of tenant alice: 2 of 2 groups are used"
        assert made.clients["bob"].groups() == []


def test_a_group_with_a_ring_goes_there_when_its_tenant_has_no_contexts_left(star: Site) -> None:
    alice = star.clients["alice"]
    star.rig.manager._ledger.quotas._tenants.all["alice"].__dict__["contexts"] = 0
    status = alice.init_group(group("g", "h0", "h1", fallback=True))
    assert (status.state, status.ring) == (GroupState.ACTIVE, True)
    assert "quota of tenant alice: 0 of 0 contexts are used; 1 more needed" in status.reason


def test_leases_count_while_they_are_held(file: Path, tmp_path: Path) -> None:
    file.write_text(TENANTS.replace("contexts: 3", "contexts: 1"))
    rig = Rig("star-4", small(groups=4), tenants=load_tenants(file), policy="time-shared", fallbacks=100)
    with rig.register(), site(file, rig, tmp_path) as made:
        alice = made.clients["alice"]
        for name in ("one", "two"):
            assert alice.init_group(group(name, "h0", "h1")).ring
        assert not alice.begin_call("one", 1, 0), "it has the lease"
        assert not alice.group("one").ring
        assert alice.begin_call("two", 1, 0), "the switch has room, the tenant has none: a call on the ring"
        for rank in range(2):
            alice.end_call("one", 2, rank, 1)
        rig.check()


def test_quotas_of_connections(file: Path, tmp_path: Path) -> None:
    file.write_text("operators: [ops]\ntenants: {alice: {hosts: [h0, h2], connections: 1}, bob: {hosts: [h1, h3]}}")
    rig = Rig(NETWORK, spread(Rig(NETWORK, LEAF).topology), drain=0.0, tenants=load_tenants(file))
    with rig.register(), site(file, rig, tmp_path) as made:
        alice, bob, ops = (made.clients[name] for name in ("alice", "bob", "ops"))
        for client, hosts in ((alice, ("h0", "h2")), (bob, ("h1", "h3"))):
            for host in hosts:
                client.register_host(HostInfo(host, out_of_order=True))
        number = alice.register_connection(ConnectionSpec("h0", "h2", 8, 9)).number
        mine = bob.register_connection(ConnectionSpec("h1", "h3", 8, 9)).number
        limit = "quota of tenant alice: 1 of 1 connections are used"
        assert why(lambda: alice.register_connection(ConnectionSpec("h2", "h0", 8, 9))) == limit
        assert [each.number for each in alice.connections()] == [each.number for each in alice.status().connections]
        assert [each.number for each in alice.connections()] == [number]
        assert [each.number for each in ops.connections()] == [number, mine]
        assert (
            outcome(lambda: bob.release_connection(number))
            == outcome(lambda: bob.release_connection(99))
            == "NOT_FOUND"
        )
        assert outcome(lambda: bob.spray_connection(number, spray=False)) == "NOT_FOUND"
        assert outcome(lambda: alice.register_connection(ConnectionSpec("h0", "h3", 10, 11))) == "DENIED"
        alice.release_connection(number)
        alice.register_connection(ConnectionSpec("h2", "h0", 8, 9))


def test_no_tenant_takes_all_threads(star: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("p4gen.manager.remote.access.AT_ONCE", 3)
    alice, bob = star.clients["alice"], star.clients["bob"]
    alice.init_group(group("g", "h0", "h1"))
    watches = [alice.watch("h0") for _ in range(3)]
    for watch in watches:
        next(watch)
    assert why(alice.groups) == "tenant alice has 3 requests under way, the most"
    assert bob.groups() == []
    watches[0].close()
    until(lambda: outcome(alice.groups) == "OK")
    for watch in watches:
        watch.close()
