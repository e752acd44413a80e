"""A host of a lab: a process in its network namespace.

It registers with the manager, configures its interface with the addresses it is given, and makes calls on it as a rank
of groups (``ranks``). The lab sends it requests (``requests``), the same ones whatever the program's family is; those
about a group name it.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import numpy as np

from p4gen.errors import P4genError
from p4gen.host.raw import RawNic, kernel_sink
from p4gen.host.transport.realtime import RealTimeLoop
from p4gen.labs.calls import members_of
from p4gen.labs.hosts.ranks import Ranks
from p4gen.labs.hosts.requests import Request, Verb, serve
from p4gen.labs.hosts.tasks import Batch, BatchTask
from p4gen.labs.job import LabJob
from p4gen.labs.network import hostnet
from p4gen.labs.network.faults import Troubles, direction
from p4gen.labs.prerequisites import interface
from p4gen.manager.api import HostInfo
from p4gen.manager.ranks.host import Host
from p4gen.manager.remote.client import ManagerClient
from p4gen.packetio import PacketSocket
from p4gen.records import from_plain, to_plain

MANAGER_S = 300.0
"""Seconds to wait for the manager."""
VERBS = ("enter", "join", "leave", "prepare", "run", "progress", "faults", "counters")
"""What the lab may ask for: the names of ``Daemon``'s methods."""


class Daemon:
    """The host's NIC and ranks, and the requests that the lab may send."""

    def __init__(self, job: LabJob, name: str, address: str) -> None:
        self.job, self.name = job, name
        self.manager = ManagerClient(address)
        self.manager.wait(MANAGER_S)
        self.addresses = self.manager.register_host(HostInfo(name, out_of_order=True))
        device = interface(name, 0)
        hostnet.configure(device, self.addresses)
        self.sink = kernel_sink()
        self.port = PacketSocket(device, frame_room=hostnet.FRAME_ROOM)
        self.loop = RealTimeLoop()
        self.nic = RawNic(self.loop, self.port, self.addresses.mac, self.addresses.ip, frame_room=hostnet.FRAME_ROOM)
        self._tasks: dict[str, BatchTask] = {}
        """The newest batch of each group."""
        self.loop.start()
        self.host = Host(self.manager, name, self.nic, timeout_ps=int(job.timeout_ms * 1e9), out_of_order=True)
        self.ranks: Ranks = members_of(job.spec).ranks(job.spec, self.host, self.nic)

    def close(self) -> None:
        """Leave all groups and close the NIC."""
        for act in (self.host.close, self.loop.close, self.port.close, self.sink.close, self.manager.close):
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
        batch, group, spec = from_plain(Batch, request["batch"]), request["group"], self.job.spec
        size = self.ranks.size(group)
        plans = {call: call.plan(spec, size) for call in set(batch.calls)}
        calls = []
        for number, call in enumerate(batch.calls, batch.first):
            drawn = plans[call].draw(np.random.default_rng([batch.seed, number]))
            calls.append(self.ranks.prepared(group, drawn, call.size))
        self._tasks[group] = BatchTask(group, self.ranks, calls, batch)
        return {}

    def run(self, request: Request) -> dict[str, Any]:
        """Make the calls of the prepared batch, and compare their results with what NumPy gives."""
        task = self._tasks[request["group"]]
        task.start()
        try:
            return {"answers": [to_plain(answer) for answer in task.answers()]}
        finally:
            self._tasks.pop(request["group"], None)

    def progress(self, request: Request) -> dict[str, Any]:
        """The number of the batch's calls that are done, with the part of the current one."""
        task = self._tasks.get(request["group"])
        return {"done": task.progress() if task is not None else 0.0}

    def faults(self, request: Request) -> dict[str, Any]:
        """Set the faults of the NIC, in both directions."""
        seed, troubles = f"{request['seed']} {self.name}", from_plain(Troubles, request["troubles"])
        in_order = self.job.spec.needs_order
        out, into = (direction(troubles, f"{seed} {way}", in_order=in_order) for way in ("out", "in"))

        def set_them(_: object) -> None:
            self.nic.outgoing, self.nic.incoming = out, into

        self.loop.call_soon_threadsafe(set_them)
        return {}

    def counters(self, _request: Request) -> dict[str, Any]:
        """The counters of the host's ranks and of its NIC."""
        return {
            "groups": self.ranks.counters(),
            "faults": dict(self.nic.lost),
            "refused": dict(self.nic.nic.dropped),
            "undelivered": self.nic.undelivered,
            "kernel_drops": self.port.kernel_drops(),
        }


def run(job: LabJob, name: str) -> int:
    """Run the host, in its network namespace, until standard input ends."""
    try:
        address = hostnet.wait_for(job.scratch / hostnet.MANAGER_SOCKET, MANAGER_S)
        daemon = Daemon(job, name, address)
    except P4genError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    verbs: dict[str, Verb] = {name: getattr(daemon, name) for name in VERBS}
    serve(verbs, to_plain(daemon.addresses), iter(sys.stdin.readline, ""))
    daemon.close()
    return 0
