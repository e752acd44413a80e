"""A host of a lab: a process in its network namespace.

It registers with the manager, configures its interface with the addresses it is given, and runs CommLib on it, or
collectives over connections of its own (``peers``), or those of ranks that offer memory (``members``). The lab sends it
requests (``requests``).
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from p4gen.errors import FailedError, P4genError
from p4gen.families import collective
from p4gen.host.collectives.arrays import Array
from p4gen.host.transport.raw import RawNic
from p4gen.host.transport.realtime import RealTimeLoop
from p4gen.labs.hosts.members import MemoryRanks
from p4gen.labs.hosts.peers import Peers
from p4gen.labs.hosts.requests import Verb, serve
from p4gen.labs.job import JOIN_S, LabJob
from p4gen.labs.network import faults, hostnet
from p4gen.labs.prerequisites import interface
from p4gen.manager.api import GroupState, HostInfo
from p4gen.manager.ranks.host import Host
from p4gen.manager.ranks.member import Member
from p4gen.manager.remote.client import ManagerClient
from p4gen.net.collectives.check import difference
from p4gen.net.collectives.config import Call
from p4gen.net.collectives.values import draw, expected
from p4gen.packetio import PacketSocket
from p4gen.records import from_plain, to_plain
from p4gen.vocabulary.message import Collective

MANAGER_S = 300.0
"""Seconds to wait for the manager."""


class Daemon:
    """The host's CommLib, and the requests that the lab may send."""

    def __init__(self, job: LabJob, name: str, address: str) -> None:
        self.job, self.name = job, name
        self.manager = ManagerClient(address)
        self.manager.wait(MANAGER_S)
        self.addresses = self.manager.register_host(HostInfo(name, out_of_order=True))
        device = interface(name, 0)
        hostnet.configure(device, self.addresses)
        self.sink = hostnet.sink()
        self.port = PacketSocket(device, frame_room=hostnet.FRAME_ROOM)
        self.loop = RealTimeLoop()
        self.nic = RawNic(self.loop, self.port, self.addresses.mac, self.addresses.ip)
        self._running: str | None = None
        """The group of the most recent run."""
        self._done: list[dict[str, Any]] = []
        """Number of calls of that run that are done."""
        self.loop.start()
        self.host = Host(self.manager, name, self.nic, timeout_ps=int(job.timeout_ms * 1e9), out_of_order=True)
        self.peers = MemoryRanks(job.spec, self.host) if job.uses_memory else Peers(name, self.nic)

    def close(self) -> None:
        """Leave all groups and close the NIC."""
        for act in (self.host.close, self.loop.close, self.port.close, self.sink.close, self.manager.close):
            with contextlib.suppress(Exception):
                act()

    # --- requests ---

    def join(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Wait until this host is a rank of an active group, in the wanted generation or a later one."""
        deadline = time.monotonic() + float(request.get("timeout", JOIN_S))
        member = self.host.follower(request["group"], timeout=float(request.get("timeout", JOIN_S)))
        while member.state is not GroupState.ACTIVE or member.generation < request.get("generation", 1):
            if time.monotonic() > deadline:
                raise FailedError(f"{self.name} knows no active generation of {member.group}: {member.reason}")
            time.sleep(0.005)
        return {"rank": member.rank, "size": member.size, "generation": member.generation}

    def run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Make calls one after the other, in step with the other ranks. Each result is compared with NumPy's.

        Every rank draws all ranks' data from the same seed. Calls of up to ``ahead`` bytes in total are prepared before
        the first one. Times are CLOCK_MONOTONIC, in ps.
        """
        self._running = request["group"]
        member = self.host.member(request["group"], timeout=JOIN_S)
        calls = deque(enumerate(from_plain(Call, fields) for fields in request["calls"]))
        deadline = time.monotonic() + float(request["deadline"])
        done = self._done = []
        while calls:
            # Before the calls, because it would slow down ranks that are still working.
            prepared: list[tuple[Call, Array | None, Array | None]] = []
            size = 0
            while calls and (not prepared or size + calls[0][1].size <= request["ahead"]):
                size += calls[0][1].size
                prepared.append(self._prepared(member, int(request["seed"]), *calls.popleft()))
            for call, data, wanted in prepared:
                if request["aligned"]:
                    member.barrier(deadline=max(0.0, deadline - time.monotonic()))
                done.append(_one(member, call, data, wanted, max(0.0, deadline - time.monotonic())))
                if done[-1]["problem"]:
                    return {"rank": member.rank, "calls": done, "generation": member.generation}
        return {"rank": member.rank, "calls": done, "generation": member.generation}

    def progress(self, _request: Mapping[str, Any]) -> dict[str, Any]:
        """The number of calls of the run that are done, with the fraction of the current one; of a call that is
        begun by itself the fraction."""
        if not self.job.takes_part:
            return {"done": self.peers.progress()}
        group = self._running
        member = self.host.members().get(group) if group is not None else None
        return {"done": len(self._done) + (member.progress() if member is not None else 0.0)}

    def _prepared(self, member: Member, seed: int, number: int, call: Call) -> tuple[Call, Array | None, Array | None]:
        """A call with its input and its expected result."""
        assert member.size is not None
        assert member.rank is not None
        spec = collective(self.job.spec)
        values = draw(call, spec, member.size, np.random.default_rng([seed, number]), overflowing=False)
        wanted = expected(call, spec, values)[member.rank]
        return call, None if call.collective is Collective.BARRIER else values[member.rank], wanted

    def set_faults(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Set the faults of the NIC, in both directions."""
        seed, troubles = f"{request['seed']} {self.name}", from_plain(faults.Troubles, request["troubles"])
        in_order = self.job.needs_order
        out, into = (faults.direction(troubles, f"{seed} {way}", in_order=in_order) for way in ("out", "in"))

        def set_them(_: object) -> None:
            self.nic.outgoing, self.nic.incoming = out, into

        self.loop.call_soon_threadsafe(set_them)
        return {}

    def counters(self, _request: Mapping[str, Any]) -> dict[str, Any]:
        """The counters of the host's ranks and of its NIC."""
        groups = {} if isinstance(self.peers, MemoryRanks) else self.peers.counters()
        for name, member in self.host.members().items():
            report = member.report()
            groups[name] = {
                field: getattr(report, field)
                for field in ("rank", "invocations", "data_bytes", "sent", "resent", "timeouts", "naks", "cnps")
            } | {"generation": member.generation, "state": str(member.state), "completed": member.completed}
            if isinstance(member, Member):
                groups[name]["trees"] = {str(n): sent for n, sent in enumerate(member.sent_by_tree())}
        return {
            "groups": groups,
            "faults": dict(self.nic.lost),
            "refused": dict(self.nic.nic.dropped),
            "undelivered": self.nic.undelivered,
            "kernel_drops": self.port.kernel_drops(),
        }


def _one(member: Member, call: Call, data: Array | None, wanted: Array | None, patience: float) -> dict[str, Any]:
    result = member.begin(call.collective, data, root=call.root, op=call.op, deadline=patience).result()
    return {
        "started": result.started,
        "finished": result.finished,
        "begun": result.begun,
        "ring": result.ring,
        "problem": difference(result.value, wanted),
    }


def run(job: LabJob, name: str) -> int:
    """Run the host, in its network namespace, until standard input ends."""
    try:
        address = hostnet.wait_for(job.scratch / hostnet.MANAGER_SOCKET, MANAGER_S)
        daemon = Daemon(job, name, address)
    except P4genError as error:
        sys.stderr.write(f"{error}\n")
        return 1

    verbs: dict[str, Verb] = {
        "join": daemon.join,
        "run": daemon.run,
        "progress": daemon.progress,
        "faults": daemon.set_faults,
        "counters": daemon.counters,
        **daemon.peers.verbs,
    }
    serve(verbs, to_plain(daemon.addresses), iter(sys.stdin.readline, ""))
    daemon.close()
    return 0
