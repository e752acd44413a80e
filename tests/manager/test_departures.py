"""Hosts that go: their groups end with the reason, and others stay."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from p4gen.manager.api import Code, GroupSpec, GroupState, ManagerError, Membership
from p4gen.manager.manager import IncManager
from p4gen.manager.remote.service import ManagerServer
from p4gen.manager.watch import Watch

from .rig import Rig, group, small
from .test_manager import refused


def gone(manager: IncManager, name: str) -> bool:
    try:
        manager.group(name)
    except ManagerError as error:
        return error.code is Code.NOT_FOUND
    return False


def last_reason(watch: Watch) -> str:
    for news in watch:
        if news.gone:
            return news.reason
    raise AssertionError


def test_the_groups_of_a_host_that_has_gone_are_destroyed_with_the_reason() -> None:
    rig = Rig("star-4", small(), away=0.05)
    with rig.register() as manager:
        manager.init_group(group("g", "h0", "h1", "h2"))
        manager.init_group(group("other", "h2", "h3"))
        watches = {host: manager.watch(host) for host in rig.topology.hosts}
        watches["h1"].close()
        assert last_reason(watches["h0"]) == "h1 has gone away"
        rig.wait(lambda: gone(manager, "g"))
        assert manager.group("other").generation == 1
        rig.check()
        manager.init_group(group("g", "h0", "h2"))  # the name, and all it held, are free


def test_a_host_that_watches_again_has_not_gone() -> None:
    """Nor one of which another watch is open, nor one that never had any."""
    rig = Rig("star-4", small(), away=1.0)
    with rig.register() as manager:
        manager.init_group(group("g", "h0", "h1"))
        manager.init_group(group("other", "h2", "h3"))
        first, second = manager.watch("h0"), manager.watch("h0")
        for _ in range(3):
            first.close()
            first = manager.watch("h0")
        second.close()
        departing = manager.watch("h2")
        departing.close()
        rig.wait(lambda: gone(manager, "other"))
        assert not gone(manager, "g")


@pytest.mark.parametrize("host", ["h0", "h3"])
def test_the_end_of_a_manager_is_no_departure(host: str) -> None:
    rig = Rig("star-4", small(), away=0.0)
    with rig.register() as manager:
        manager.init_group(group("g", "h0", "h1"))
        watch = manager.watch(host)
    assert list(watch)[1:] == []


WATCHING = """
import sys
from p4gen.manager.remote.client import ManagerClient

for news in ManagerClient(sys.argv[1]).watch("h1"):
    print(news.state, flush=True)
"""


def test_a_host_that_is_silent_has_gone() -> None:
    rig = Rig("star-4", small(), away=0.2)
    with rig.register() as manager, ManagerServer(manager, "127.0.0.1:0", ping=0.2) as server:
        manager.init_group(group("g", "h0", "h1"))
        command = [sys.executable, "-c", WATCHING, server.address]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "active\n"
            process.send_signal(signal.SIGSTOP)  # its connection stays
            rig.wait(lambda: gone(manager, "g"))
        finally:
            process.kill()
            process.communicate()


# --- elastic groups ---


def elastic(name: str, *hosts: str) -> GroupSpec:
    return replace(group(name, *hosts), elastic=True)


def news_of(watch: Watch, state: GroupState, *, gone: bool = False) -> Membership:
    return next(news for news in watch if news.state is state and news.gone is gone)


def test_an_elastic_group_fails_with_the_names_and_goes_on_without_them() -> None:
    rig = Rig("star-4", small(), away=0.05)
    with rig.register() as manager:
        manager.init_group(elastic("g", "h0", "h1", "h2", "h3"))
        watches = {host: manager.watch(host) for host in rig.topology.hosts}
        assert news_of(watches["h2"], GroupState.ACTIVE).config is not None
        watches["h1"].close()
        assert news_of(watches["h2"], GroupState.FAILED).reason == "h1 has gone away"
        rig.wait(lambda: manager.group("g").spec.gone == ("h1",))
        assert manager.group("g").switches == ()
        rig.check()  # it holds nothing
        watches["h3"].close()
        rig.wait(lambda: manager.group("g").reason == "h1, h3 have gone away")
        status = manager.set_ranks("g", ("h0", "h2"), 1)
        assert (status.state, status.spec.term, status.spec.gone) == (GroupState.ACTIVE, 2, ())
        config = news_of(watches["h2"], GroupState.ACTIVE).config
        assert config is not None
        assert (config.rank, config.size, config.term) == (1, 2, 2)
        rig.check()


def test_hosts_that_are_no_longer_ranks_are_told_and_others_join() -> None:
    rig = Rig("star-4", small())
    with rig.register() as manager:
        manager.init_group(elastic("g", "h0", "h1"))
        watches = {host: manager.watch(host) for host in rig.topology.hosts}
        for ranks in (("h0", "h1", "h2"), ("h2", "h3")):
            term = manager.group("g").spec.term
            assert manager.set_ranks("g", ranks, term).spec.ranks == ranks
            rig.check()
        for host in ("h0", "h1"):
            assert news_of(watches[host], GroupState.ACTIVE, gone=True).reason == "it has other ranks"
        config = news_of(watches["h3"], GroupState.ACTIVE).config
        assert config is not None
        assert (config.rank, config.term) == (1, 3)


def test_other_ranks_are_refused_and_the_old_ones_stay() -> None:
    rig = Rig("star-4", small())
    with rig.register() as manager:
        before = manager.init_group(elastic("g", "h0", "h1"))
        refused(Code.REFUSED, manager.set_ranks, "g", ("h0", "h2"), 2)
        refused(Code.INVALID, manager.set_ranks, "g", ("h0", "h0"), 1)
        refused(Code.INVALID, manager.set_ranks, "g", ("h0", "h9"), 1)
        refused(Code.NOT_FOUND, manager.set_ranks, "other", ("h0", "h2"), 1)
        refused(Code.INVALID, manager.init_group, replace(elastic("h", "h0", "h1"), term=2))
        refused(Code.INVALID, manager.init_group, replace(elastic("h", "h0", "h1"), gone=("h1",)))
        assert manager.group("g") == before
        rig.check()


def test_a_group_whose_ranks_have_all_gone_is_destroyed() -> None:
    rig = Rig("star-4", small(), away=0.05)
    with rig.register() as manager:
        manager.init_group(elastic("g", "h0", "h1"))
        watches = [manager.watch(host) for host in ("h0", "h1")]
        watches[0].close()
        rig.wait(lambda: manager.group("g").state is GroupState.FAILED)
        watches[1].close()
        rig.wait(lambda: gone(manager, "g"))
        rig.check()


def test_a_manager_that_starts_again_knows_who_has_gone(tmp_path: Path) -> None:
    rig = Rig("star-4", small(), tmp_path / "db", away=0.05)
    with rig.register() as manager:
        manager.init_group(elastic("g", "h0", "h1", "h2"))
        manager.watch("h1").close()
        rig.wait(lambda: manager.group("g").state is GroupState.FAILED)
    rig.again()
    with rig.register() as manager:
        found = manager.group("g")
        assert (found.state, found.spec.gone, found.reason) == (GroupState.FAILED, ("h1",), "h1 has gone away")
        assert manager.set_ranks("g", ("h0", "h2"), 1).state is GroupState.ACTIVE
        rig.check()
