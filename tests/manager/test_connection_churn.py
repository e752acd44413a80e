"""Connections under random requests, failing links, failing switches and managers that are killed."""

from __future__ import annotations

import random
import sys
import threading
from pathlib import Path

import pytest

from p4gen.manager.api import AgentError, ConnectionSpec, ConnectionState, ConnectionStatus, ManagerError

from .rig import Rig
from .test_connections import LEAF, link, rig_of

HOSTS = ("h0", "h1", "h2", "h3", "h4", "h5")


class Chance:
    """Random faults at switches; one lock, since each switch has a thread."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.share = 0.0
        self.injected = 0
        self._lock = threading.Lock()

    def fault(self, _switch: str, step: str) -> None:
        with self._lock:
            if step == "before drops" or self.random.random() >= self.share:
                return
            self.injected += 1
            unreachable = self.random.random() < 0.5
        raise AgentError("injected", unreachable=unreachable)


def request(rig: Rig, chance: random.Random) -> str:
    """One random request; returns what it was, and how it ended."""
    manager = rig.manager
    numbers = [c.number for c in manager.connections()]
    what = chance.choice(["register", "register", "release", "spray", "link", "link", "kill"])
    try:
        match what:
            case "register":
                a, b = chance.sample(HOSTS, 2)
                manager.register_connection(ConnectionSpec(a, b, chance.randrange(2, 12), chance.randrange(2, 12)))
            case "release" if numbers:
                manager.release_connection(chance.choice(numbers))
            case "spray" if numbers:
                manager.spray_connection(chance.choice(numbers), spray=chance.random() < 0.5)
            case "link":
                leaf, spine = f"leaf{chance.randrange(3)}", f"spine{chance.randrange(4)}"
                link(rig, manager, spine, up=chance.random() < 0.8, leaf=leaf)
            case "kill" if chance.random() < 0.2:
                rig.kill()
                rig.again()
            case _:
                return "nothing"
    except ManagerError as error:
        return f"{what} {error.code.name}"
    return what


@pytest.mark.parametrize("share", [0.0, 0.02])
@pytest.mark.long
def test_whatever_happens_switches_hold_what_the_books_say(tmp_path: Path, share: float, seed: int) -> None:
    chance = Chance(seed)
    requests = random.Random(seed)
    rig = rig_of(tmp_path / "db", LEAF.model_copy(update={"connections": 4}), grace=0.3)
    rig.fault = chance.fault
    rig.register()
    done: dict[str, int] = {}
    for _ in range(6):
        chance.share = share
        for _ in range(12):
            result = request(rig, requests)
            done[result] = done.get(result, 0) + 1
        chance.share = 0.0
        rig.wait(lambda: rig.settled() and quiet(rig))
        rig.check()
        held = [(c.destination_switch, c.index) for c in rig.manager.connections() if c.destination_switch]
        assert len(set(held)) == len(held)
    sys.stdout.write(f"{done}, {chance.injected} failures injected\n")
    assert share or done.get("register", 0) > 0
    for connection in rig.manager.connections():
        rig.manager.release_connection(connection.number)
    rig.check()
    assert not any(
        entry.table.rpartition(".")[2] in ("data_flows", "answer_flows", "paths")
        for switch in rig.switches.values()
        for entry in switch.holds().entries
    )
    rig.kill()


def quiet(rig: Rig) -> bool:
    """Whether no connection is to be tried again."""
    with rig.manager._changed:
        again = any(record.failed for record in rig.manager._connections._records.all.values())
    return not again and all(map(as_wanted, rig.manager.connections()))


def as_wanted(found: ConnectionStatus) -> bool:
    """Whether a connection is sprayed, or is not for a reason that stays."""
    if found.state is ConnectionState.SPRAYED:
        return not found.reason
    return found.state is ConnectionState.ECMP and ("spraying is off" in found.reason or "no path" in found.reason)
