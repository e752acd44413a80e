"""p4gen in a guest: ``python3 -m p4gen.labs.softroce.inside``, a rank on the guest's Soft-RoCE device.

The first line of its standard input is the job; then it serves requests as the daemon of any host does. Where the
user's program has the device, there are none.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from p4gen.errors import FailedError, P4genError
from p4gen.families import WrittenSpec
from p4gen.host.device.verbs import VerbsStation
from p4gen.host.transport.realtime import RealTimeLoop
from p4gen.labs.hosts.daemon import MANAGER_S, Daemon, addresses_of
from p4gen.labs.hosts.requests import Request, serve
from p4gen.labs.network import hostnet
from p4gen.labs.softroce.execute import serve_commands
from p4gen.labs.softroce.ports import DEVICE, GATEWAY, INTERFACE, MANAGER_PORT
from p4gen.manager.api import HostAddresses, HostInfo
from p4gen.manager.ranks.host import Host
from p4gen.manager.remote.client import ManagerClient
from p4gen.packetio.ip import ip
from p4gen.records import from_plain, to_plain
from p4gen.vocabulary import ProgramSpec

_PIECE: Final = 512 << 10
"""Bytes of a file that come at once."""


@dataclass(frozen=True)
class GuestJob:
    """What a guest is told."""

    name: str
    spec: WrittenSpec
    timeout_ms: float
    folders: tuple[str, ...]
    """What the user's program finds here of the lab's machine, at the same places; () if there is none."""


class GuestDaemon(Daemon):
    """The ranks of a guest, on its device."""

    VERBS: ClassVar[tuple[str, ...]] = (*Daemon.VERBS, "clock")

    def __init__(self, spec: ProgramSpec, host: Host, station: VerbsStation) -> None:
        super().__init__(spec, host, station)
        self._device = station

    def counters(self, request: Request) -> dict[str, Any]:
        """The counters of the host's ranks, and those of its device, by the device's own names."""
        return super().counters(request) | {"device": self._device.counters()}

    def clock(self, _request: Request) -> dict[str, Any]:
        """The guest's CLOCK_MONOTONIC, in ns."""
        return {"now": time.monotonic_ns()}


def main() -> int:
    """Be the host until standard input ends."""
    threading.Thread(target=serve_commands, daemon=True).start()
    job = from_plain(GuestJob, json.loads(sys.stdin.readline()))
    try:
        manager = ManagerClient(f"{GATEWAY}:{MANAGER_PORT}")
        manager.wait(MANAGER_S)
        addresses = addresses_of(manager, HostInfo(job.name), job.spec)
        _configure(addresses)
        if job.folders:
            _mount(job.folders)
            serve({}, to_plain(addresses), iter(sys.stdin.readline, ""))
            return 0
        loop = RealTimeLoop()
        station = VerbsStation(loop, DEVICE, addresses.ip)
        info = station.info()
        manager.register_host(HostInfo(job.name, nic=info))
    except P4genError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    loop.start()
    host = Host(manager, job.name, station, timeout_ps=int(job.timeout_ms * 1e9), info=info)
    daemon = GuestDaemon(job.spec, host, station)
    own = [number for first, end in info.queue_pairs for number in range(first, end)]
    serve(daemon.verbs, to_plain(addresses) | {"queue_pairs": own}, iter(sys.stdin.readline, ""))
    return 0


def _configure(addresses: HostAddresses) -> None:
    """Configure the card for data, with a Soft-RoCE device on it. Raises ``FailedError``."""
    ip(f"link set {INTERFACE} mtu {hostnet.MTU} up")
    hostnet.configure(INTERFACE, addresses)
    _run("rdma", "link", "add", DEVICE, "type", "rxe", "netdev", INTERFACE)


def _mount(folders: Sequence[str]) -> None:
    """Mount folders of the lab's machine. The first one, the working directory, may change; others are read only."""
    for number, folder in enumerate(folders):
        more = ",ro,cache=loose" if number else ""
        Path(folder).mkdir(parents=True, exist_ok=True)
        _run("mount", "-t", "9p", "-o", f"trans=virtio,version=9p2000.L,msize={_PIECE}{more}", str(number), folder)


def _run(*command: str) -> None:
    """Raises ``FailedError`` with what a command says that fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FailedError(f"{' '.join(command)}: {done.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(main())
