"""Memory for results (EPIC, verb write): the manager asks ranks for it, and switches have what they offer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import pytest

from p4gen.groups.group import Memory
from p4gen.host.collectives.plan import PsnSync
from p4gen.manager.access.tenants import Tenant, Tenants
from p4gen.manager.access.views import TenantView
from p4gen.manager.api import Code, GroupSpec, GroupStatus, ManagerError, Membership
from p4gen.manager.manager import IncManager
from p4gen.manager.remote.messages import from_message, to_message
from p4gen.manager.watch import Watch

from .collectives import news_of
from .rig import Rig, group, small
from .test_manager import refused

SPEC = small(groups=32, verb="write")


def wanted(name: str, *ranks: str, **fields: object) -> GroupSpec:
    return group(name, *ranks, sync=PsnSync.SUBGROUPS, **fields)


def written_to(rig: Rig) -> dict[str, set[tuple[int, int]]]:
    """What switches write to, by switch."""
    found = {}
    for switch, each in rig.switches.items():
        entries = [entry for entry in each.holds().entries if entry.table.endswith("memories")]
        found[switch] = {(entry.action.args["base"], entry.action.args["rkey"]) for entry in entries}
    return found


class Hosts:
    """Hosts that follow the manager and offer memory when they are asked, with a key of their own each time."""

    def __init__(self, manager: IncManager, *names: str) -> None:
        self.manager = manager
        self.news: dict[str, list[Membership]] = {name: [] for name in names}
        self.offered: dict[str, list[Memory]] = {name: [] for name in names}
        self.watches: list[Watch] = []
        for name in names:
            watch = manager.watch(name)
            self.watches.append(watch)
            threading.Thread(target=self._follow, args=(name, watch), daemon=True).start()

    def _follow(self, name: str, watch: Watch) -> None:
        for news in watch:
            self.news[name].append(news)
            if news.offer:
                key = 16 * int(name[1:]) + len(self.offered[name])
                memory = Memory(key << 32, key, news.offer)
                self.offered[name].append(memory)
                self.manager.offer_memory(news.group, name, memory)


@contextmanager
def served(rig: Rig, *names: str) -> Iterator[tuple[IncManager, Hosts]]:
    with rig.register() as manager:
        yield manager, Hosts(manager, *names)


def begun(manager: IncManager, spec: GroupSpec) -> Future[GroupStatus]:
    """InitGroup, in a thread."""
    future: Future[GroupStatus] = Future()

    def init() -> None:
        try:
            future.set_result(manager.init_group(spec))
        except ManagerError as error:
            future.set_exception(error)

    threading.Thread(target=init, daemon=True).start()
    return future


def test_every_placement_has_the_memory_that_ranks_have_offered(tmp_path: Path) -> None:
    rig = Rig("tree-3-2", SPEC, store=tmp_path / "store")
    ranks = ("h0", "h1", "h2")
    with served(rig, *ranks) as (manager, hosts):
        status = manager.init_group(wanted("g", *ranks))
        memories = tuple(hosts.offered[host][0] for host in ranks)
        assert status.spec.memories == memories
        assert {memory.size for memory in memories} == {7 * SPEC.channel_memory}
        rig.check()
        keys = {memory.rkey for memory in memories}
        assert {key for each in written_to(rig).values() for _, key in each} == keys
        manager.move_group("g", "s1")
        rig.check()
        assert {key for each in written_to(rig).values() for _, key in each} == keys
    with rig.again() as manager:
        rig.check()
        config = news_of(rig, "h1")["g"].config
        assert config is not None
        assert config.memory == memories[1]
        assert from_message(type(config), to_message(config)) == config
        manager.destroy_group("g")
        rig.check_empty()


def test_ranks_that_offer_nothing_are_named_and_nothing_is_left() -> None:
    rig = Rig("star-4", SPEC, patience=0.3)
    with served(rig, "h0", "h2") as (manager, hosts):
        ask = wanted("g", "h0", "h1", "h2", "h3")
        reason = "group g: h1, h3 have offered no memory in 0.3 s"
        assert refused(Code.UNREACHABLE, manager.init_group, ask) == reason
        rig.wait(lambda: hosts.news["h0"][-1].gone and hosts.news["h2"][-1].gone)
        rig.check_empty()
        late = refused(Code.NOT_FOUND, manager.offer_memory, "g", "h1", Memory(0, 0, 1 << 20))
        assert late == "there is no group 'g'"


def test_a_rank_that_comes_late_is_asked_and_offers_are_checked() -> None:
    rig = Rig("star-4", SPEC)
    with served(rig, "h0") as (manager, _):
        future = begun(manager, wanted("g", "h0", "h1"))
        watch = manager.watch("h1")
        news = next(news for news in watch if news.offer)
        assert from_message(Membership, to_message(news)) == news
        small_one = Memory(0, 0, news.offer - 1)
        assert f"takes {news.offer:,} bytes" in refused(Code.INVALID, manager.offer_memory, "g", "h1", small_one)
        why = refused(Code.REFUSED, manager.offer_memory, "g", "h2", Memory(0, 0, 1 << 20))
        assert why == "group g asks h2 for no memory"
        tenants = Tenants({name: Tenant(hosts=(host,)) for name, host in (("a", "h1"), ("b", "h2"))})
        other = TenantView(manager, tenants, "b")
        assert "not among the hosts" in refused(Code.DENIED, other.offer_memory, "g", "h1", Memory(0, 0, 1 << 20))
        assert not future.done()
        manager.offer_memory("g", "h1", Memory(4096, 7, news.offer))
        assert future.result().spec.memories[1] == Memory(4096, 7, news.offer)
        refused(Code.REFUSED, manager.offer_memory, "g", "h1", Memory(0, 0, 1 << 20))


def test_what_is_wrong_in_any_case_is_said_before_anybody_is_asked() -> None:
    rig = Rig("star-4", SPEC)
    with served(rig, "h0", "h1") as (manager, hosts):
        assert "sync subgroups" in refused(Code.INVALID, manager.init_group, group("g", "h0", "h1"))
        assert not hosts.offered["h0"]


def test_other_ranks_are_asked_and_all_are_asked_anew() -> None:
    rig = Rig("star-4", SPEC, patience=0.5)
    with served(rig, "h0", "h1", "h2") as (manager, hosts):
        manager.init_group(wanted("g", "h0", "h1", elastic=True))
        status = manager.set_ranks("g", ("h1", "h2"), 1)
        assert status.spec.memories == (hosts.offered["h1"][1], hosts.offered["h2"][0])
        rig.check()
        assert "h3 has offered no memory" in refused(Code.UNREACHABLE, manager.set_ranks, "g", ("h1", "h3"), 2)
        assert manager.group("g").spec.memories == status.spec.memories
        assert manager.group("g").generation == status.generation
        rig.check()
        watch = manager.watch("h3")
        watch.close()
        assert not list(watch), "it is no rank, and has nothing to offer"
        config = news_of(rig, "h1")["g"].config
        assert config is not None
        assert config.memory == hosts.offered["h1"][1]


def test_a_host_that_does_not_become_a_rank_is_told() -> None:
    rig = Rig("tree-3-2", SPEC)
    with served(rig, "h0", "h1", "h2") as (manager, hosts):
        manager.init_group(wanted("g", "h0", "h1", elastic=True))
        manager.report_links("s0", {0: False, 1: False})
        assert "no path" in refused(Code.UNREACHABLE, manager.set_ranks, "g", ("h0", "h2"), 1)
        rig.wait(lambda: hosts.news["h2"][-1].gone)
        assert hosts.offered["h2"]
        assert not any(news.gone for host in ("h0", "h1") for news in hosts.news[host])
        assert manager.group("g").spec.ranks == ("h0", "h1")
        rig.check()


def test_a_group_without_a_place_calls_on_its_ring_until_there_is_one() -> None:
    rig = Rig("star-4", small(groups=5, verb="write"))
    with served(rig, "h0", "h1") as (manager, _):
        manager.init_group(wanted("first", "h0", "h1"))
        assert manager.init_group(wanted("g", "h0", "h1", fallback=True)).ring
        rig.check()
        manager.destroy_group("first")
        rig.wait(lambda: not manager.group("g").ring)
        rig.check()
        assert written_to(rig)["s0"]


def test_a_manager_that_ends_asks_no_longer() -> None:
    rig = Rig("star-4", SPEC)
    manager = rig.register()
    future = begun(manager, wanted("g", "h0", "h1"))
    rig.wait(lambda: manager._ledger.records.get("g") and manager._ledger.records["g"].asked)
    manager.close()
    with pytest.raises(ManagerError, match="the manager has ended"):
        future.result()
