"""Hosts that go: their groups end with the reason, and others stay."""

from __future__ import annotations

import pytest

from p4gen.manager.api import Code, ManagerError
from p4gen.manager.manager import IncManager
from p4gen.manager.watch import Watch

from .rig import Rig, group, small


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
