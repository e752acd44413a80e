"""A host of a lab with p4gen's own NIC: a process in its network namespace.

It registers with the manager, configures its interface with the addresses it is given, and makes calls on it as a rank
of groups (``daemon``).
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar

from p4gen.errors import P4genError
from p4gen.host.raw import RawNic, kernel_sink
from p4gen.host.transport.realtime import RealTimeLoop
from p4gen.labs.hosts.daemon import MANAGER_S, Daemon, addresses_of
from p4gen.labs.hosts.requests import Request, serve
from p4gen.labs.job import LabJob
from p4gen.labs.network import hostnet
from p4gen.labs.network.faults import Troubles, direction
from p4gen.labs.prerequisites import interface
from p4gen.manager.api import HostInfo
from p4gen.manager.ranks.host import Host
from p4gen.manager.remote.client import ManagerClient
from p4gen.packetio import PacketSocket
from p4gen.records import from_plain, to_plain


class RawDaemon(Daemon):
    """The ranks of a host that has p4gen's NIC, which has faults."""

    VERBS: ClassVar[tuple[str, ...]] = (*Daemon.VERBS, "faults")

    def __init__(self, job: LabJob, name: str, address: str) -> None:
        self.name, self.manager = name, ManagerClient(address)
        self.manager.wait(MANAGER_S)
        self.addresses = addresses_of(self.manager, HostInfo(name, out_of_order=True), job.spec)
        device, room = interface(name, 0), hostnet.FRAME_ROOM
        hostnet.configure(device, self.addresses)
        self.sink = kernel_sink()
        self.port = PacketSocket(device, frame_room=room)
        loop = RealTimeLoop()
        self.nic = RawNic(loop, self.port, self.addresses.mac, self.addresses.ip, frame_room=room)
        loop.start()
        timeout = int(job.timeout_ms * 1e9)
        host = Host(self.manager, name, self.nic, timeout_ps=timeout, out_of_order=True)
        super().__init__(job.spec, host, self.nic)

    def faults(self, request: Request) -> dict[str, Any]:
        """Set the faults of the NIC, in both directions."""
        seed, troubles = f"{request['seed']} {self.name}", from_plain(Troubles, request["troubles"])
        in_order = self.spec.needs_order
        out, into = (direction(troubles, f"{seed} {way}", in_order=in_order) for way in ("out", "in"))

        def set_them(_: object) -> None:
            self.nic.outgoing, self.nic.incoming = out, into

        self.nic.loop.call_soon_threadsafe(set_them)
        return {}

    def counters(self, request: Request) -> dict[str, Any]:
        """The counters of the host's ranks, of its NIC, and of its interface."""
        return super().counters(request) | {
            "faults": dict(self.nic.lost),
            "undelivered": self.nic.undelivered,
            "kernel_drops": self.port.kernel_drops(),
        }


def run(job: LabJob, name: str) -> int:
    """Run the host, in its network namespace, until standard input ends."""
    try:
        address = hostnet.wait_for(job.scratch / hostnet.MANAGER_SOCKET, MANAGER_S)
        daemon = RawDaemon(job, name, address)
    except P4genError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    serve(daemon.verbs, to_plain(daemon.addresses), iter(sys.stdin.readline, ""))
    daemon.close(daemon.port.close, daemon.sink.close, daemon.manager.close)
    return 0
