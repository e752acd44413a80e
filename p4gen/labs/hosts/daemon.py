"""A host's ranks on its NIC, whatever NIC that is, and the requests about them that the lab may send (``requests``).

The requests are the same whatever the program's family is; those about a group name it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, ClassVar, Final

import numpy as np

from p4gen.errors import FailedError
from p4gen.host.transport.realtime import Station
from p4gen.labs.calls import members_of
from p4gen.labs.hosts.ranks import Ranks
from p4gen.labs.hosts.requests import Request, Verb
from p4gen.labs.hosts.tasks import Batch, BatchTask
from p4gen.manager.api import HostAddresses, HostInfo
from p4gen.manager.ranks.host import Host
from p4gen.manager.remote.client import ManagerClient
from p4gen.records import from_plain, to_plain
from p4gen.rocev2.headers import is_ipv6
from p4gen.vocabulary import ProgramSpec

MANAGER_S = 300.0
"""Seconds to wait for the manager."""
_LOOK_S: Final = 0.02


def addresses_of(manager: ManagerClient, info: HostInfo, spec: ProgramSpec) -> HostAddresses:
    """Register a host. Returns its addresses, once the manager knows the programs of switches, which say of what kinds
    they are. Raises ``FailedError`` if it does not after ``MANAGER_S``."""
    until = time.monotonic() + MANAGER_S
    while time.monotonic() < until:
        found = manager.register_host(info)
        if (is_ipv6(found.ip), len(found.ips) > 1) == (spec.roce_ipv6, spec.ipv4 and spec.ipv6):
            return found
        time.sleep(_LOOK_S)
    raise FailedError(f"{info.name} has no addresses of the kinds of {spec.program} after {MANAGER_S:.0f} s")


class Daemon:
    """The host's groups on ``station``, and the requests that the lab may send."""

    VERBS: ClassVar[tuple[str, ...]] = ("enter", "join", "leave", "prepare", "run", "progress", "counters")
    """What the lab may ask for: the names of methods."""

    def __init__(self, spec: ProgramSpec, host: Host, station: Station) -> None:
        self.spec, self.host, self.station = spec, host, station
        self.ranks: Ranks = members_of(spec).ranks(spec, host, station)
        self._tasks: dict[str, BatchTask] = {}
        """The newest batch of each group."""

    @property
    def verbs(self) -> dict[str, Verb]:
        """What the lab may ask for, by name."""
        return {name: getattr(self, name) for name in self.VERBS}

    def close(self, *others: Callable[[], None]) -> None:
        """Leave all groups, end the loop, and do what ``others`` do."""
        for act in (self.host.close, self.station.loop.close, *others):
            with contextlib.suppress(Exception):
                act()

    # --- requests ---

    def enter(self, request: Request) -> dict[str, Any]:
        """Do what comes before a group is there (``Ranks.enter``)."""
        return self.ranks.enter(request["group"], request)

    def join(self, request: Request) -> dict[str, Any]:
        """Wait until this host can make calls in a group."""
        self.ranks.join(request["group"], int(request["generation"]), float(request["timeout"]))
        return {}

    def leave(self, request: Request) -> dict[str, Any]:
        """Undo ``enter``, and forget the group's batch."""
        self.ranks.leave(request["group"])
        self._tasks.pop(request["group"], None)
        return {}

    def prepare(self, request: Request) -> dict[str, Any]:
        """Draw the data of a batch of calls."""
        batch, group = from_plain(Batch, request["batch"]), request["group"]
        size = self.ranks.size(group)
        plans = {call: call.plan(self.spec, size) for call in set(batch.calls)}
        calls = []
        for number, call in enumerate(batch.calls, batch.first):
            drawn = plans[call].draw(np.random.default_rng([batch.seed, number]))
            calls.append(self.ranks.prepared(group, drawn, call.size))
        self._tasks[group] = BatchTask(group, self.ranks, calls, batch)
        return {}

    def run(self, request: Request) -> dict[str, Any]:
        """Make the calls of the prepared batch, and compare their results with what NumPy gives."""
        task = self._tasks[request["group"]]
        task.start(request.get("times", ()))
        try:
            return {"answers": [to_plain(answer) for answer in task.answers()]}
        finally:
            self._tasks.pop(request["group"], None)

    def progress(self, request: Request) -> dict[str, Any]:
        """The number of the batch's calls that are done, with the part of the current one."""
        task = self._tasks.get(request["group"])
        return {"done": task.progress() if task is not None else 0.0}

    def counters(self, _request: Request) -> dict[str, Any]:
        """The counters of the host's ranks and of its NIC."""
        return {
            "groups": self.ranks.counters(),
            "faults": {},
            "refused": dict(self.station.nic.dropped),
            "undelivered": 0,
            "kernel_drops": 0,
        }
