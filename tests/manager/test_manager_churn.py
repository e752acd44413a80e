"""Groups of many clients come and go in any order while everything fails that can: nothing is left behind.

``P4GEN_CHURN_OPS`` sets how many requests are made (and lifts the limit of time); ``--seed`` repeats a run as far as
threads allow.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from patience import PATIENCE_S

from p4gen.errors import P4genError
from p4gen.manager.api import AgentError, GroupState, ManagerError
from p4gen.manager.manager import IncManager

from .rig import Rig, group, small

GROUPS = 64
CLIENTS = 6
OPERATIONS = int(os.environ.get("P4GEN_CHURN_OPS", "0"))
SECONDS = 20 * PATIENCE_S
"""An end, should all hang; it takes a few."""


class Chaos:
    """Breaks exchanges with switches, links, and the manager; counts what it did."""

    def __init__(self, rig: Rig, seed: int) -> None:
        self.rig = rig
        self.chance = random.Random(seed)
        self.lock = threading.Lock()
        self.calm = False
        self.kill = threading.Event()
        self.injected: Counter[str] = Counter()
        self.places: set[str] = set()

    def __call__(self, switch: str, step: str) -> None:
        with self.lock:
            if self.calm:
                return
            draw = self.chance.random()
        kind = next((kind for kind, limit in RATES if draw < limit), None)
        if kind is None or (kind == "refused" and not step.startswith("before")):
            return
        with self.lock:
            self.injected[kind] += 1
            self.places.add(f"{kind} {step}")
        if kind == "killed":
            self.rig.die()
            self.kill.set()
            raise AgentError("the manager was killed", unreachable=True)
        if kind == "hangs":
            time.sleep(0.05)
        else:
            raise AgentError(f"injected: {kind} {step}", unreachable=kind == "unreachable")


RATES = (("unreachable", 0.0010), ("refused", 0.0020), ("hangs", 0.0025), ("killed", 0.00262))


class Clients:
    """Threads that each do one thing after the other to groups drawn at random."""

    def __init__(self, rig: Rig, seed: int) -> None:
        self.rig = rig
        self.seed = seed
        self.stop = False
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.created: set[str] = set()
        self.destroyed: set[str] = set()
        self.lock = threading.Lock()
        self.up = threading.Event()
        self.up.set()
        self.threads = [threading.Thread(target=self._work, args=(i,), daemon=True) for i in range(CLIENTS)]

    def _work(self, number: int) -> None:
        chance = random.Random(self.seed * 100 + number)
        while not self.stop:
            self.up.wait()
            manager = self.rig.manager
            try:
                groups = manager.groups()
                there = [status.spec.name for status in groups]
                with self.lock:  # what a request did whose answer was lost counts too
                    self.created |= {status.spec.name for status in groups if status.state is GroupState.ACTIVE}
                    self.destroyed |= self.created.difference(there)
                verb, name = self._choice(chance, there)
                self._do(manager, verb, name, chance)
                self.done[verb] += 1
            except ManagerError as error:
                self.failed[f"{verb} {error.code}"] += 1

    def _choice(self, chance: random.Random, there: list[str]) -> tuple[str, str]:
        """What makes sense, for most of the time."""
        name = f"g{chance.randrange(GROUPS)}"
        verb = chance.choices(("init", "destroy", "resize", "move", "flap"), (10, 8, 2, 2, 1))[0]
        if chance.random() < 0.1 or verb == "flap":
            return verb, name
        if verb == "init":
            absent = [f"g{i}" for i in range(GROUPS) if f"g{i}" not in there]
            return verb, chance.choice([n for n in absent if n not in self.created] or absent or [name])
        return verb, chance.choice([n for n in there if n not in self.destroyed] or there or [name])

    def _do(self, manager: IncManager, verb: str, name: str, chance: random.Random) -> None:
        if verb == "init":
            manager.init_group(group(name, *chance.sample(self.rig.topology.rank_hosts, chance.randint(2, 4))))
        elif verb == "destroy":
            manager.destroy_group(name)
        elif verb == "resize":
            manager.resize_group(name, chance.choice((2, 4, 8)))
        elif verb == "move":
            manager.move_group(name)
        else:
            switch = chance.choice(list(self.rig.switches))
            manager.report_links(switch, {chance.randrange(2): False})
            time.sleep(0.02)
            manager.report_links(switch, {0: True, 1: True})

    def through(self) -> bool:
        """Whether it has gone on for long enough."""
        if OPERATIONS:
            return self.operations() >= OPERATIONS
        return min(len(self.created), len(self.destroyed)) == GROUPS

    def operations(self) -> int:
        return self.done.total() + self.failed.total()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("topology", "mode", "locks"), [("leaf-spine", "II", 0), ("tree-3-2", "III", 0), ("tree-3-2", "II", 3)]
)
@pytest.mark.long
def test_churn_leaves_nothing(
    tmp_path: Path, topology: str, mode: str, locks: int, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = small(mode, groups=40, slots=2, locks=locks)
    rig = Rig(topology, spec, tmp_path / "store", grace=0.1, patience=5.0, seed=seed)
    manager = rig.register()
    chaos = Chaos(rig, seed)
    rig.fault = chaos
    clients = Clients(rig, seed)
    started = time.monotonic()
    restarts = 0
    for thread in clients.threads:
        thread.start()
    while not clients.through():
        assert OPERATIONS or time.monotonic() < started + SECONDS, f"seed {seed}: {clients.done} {clients.failed}"
        if not chaos.kill.wait(0.05):
            continue
        clients.up.clear()
        rig.kill()
        restarts += 1
        chaos.kill.clear()
        manager = rig.again()
        clients.up.set()
    clients.stop = True
    for thread in clients.threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    chaos.calm = True
    if chaos.kill.is_set():
        rig.kill()
        restarts += 1
        manager = rig.again()
    for name in rig.switches:
        rig.wait(partial(links_up, rig, name))
    rig.wait(lambda: rig.settled() and all(g.state is GroupState.ACTIVE for g in manager.groups()))
    rig.check()
    left = len(manager.groups())
    for status in manager.groups():
        manager.destroy_group(status.spec.name)
    rig.check_empty()
    manager.close()
    with capsys.disabled():
        sys.stderr.write(
            f"\nchurn, mode {mode}, seed {seed}: {clients.operations()} requests ({dict(clients.done)}; refused "
            f"{dict(clients.failed)}), {chaos.injected.total()} failures injected {dict(chaos.injected)} in "
            f"{len(chaos.places)} different ways, {restarts} restarts, {left} groups left and destroyed, "
            f"{len(clients.created)} names used; leaks: 0; {time.monotonic() - started:.1f} s\n"
        )


def links_up(rig: Rig, name: str) -> bool:
    try:
        rig.manager.report_links(name, dict.fromkeys(range(len(rig.topology.ports[name])), True))
    except P4genError:
        return False
    return True
