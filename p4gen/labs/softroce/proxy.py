"""A guest's process in its host's namespace: it runs QEMU and takes the place of the daemon that other hosts have.

Frames go over a bridge between the host's interface and the guest's tap, or over a wire if the link has faults. The
manager's socket is a TCP port of the namespace. Requests go on to the guest, except those about the link.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from typing import IO, Any, Final

from typing_extensions import override

from p4gen.errors import FailedError
from p4gen.host.transport.realtime import RealTimeLoop
from p4gen.labs.hosts.asking import Asker
from p4gen.labs.hosts.daemon import Daemon
from p4gen.labs.hosts.requests import Request, Verb, serve
from p4gen.labs.job import LabJob
from p4gen.labs.network import hostnet
from p4gen.labs.network.faults import Troubles, direction
from p4gen.labs.network.wires import Wire
from p4gen.labs.prerequisites import interface
from p4gen.labs.softroce import guest
from p4gen.labs.softroce.ports import MANAGER_PORT
from p4gen.packetio.ip import ip
from p4gen.records import from_plain, to_plain

CONSOLE: Final = "console.log"
"""In a host's folder: what the guest's kernel and init print, and the errors of p4gen in it."""
PACKAGES: Final = sysconfig.get_path("purelib")
"""The folder with this Python's packages. A user's program finds it in a guest, too, as the working directory."""
READY_S: Final = 240.0
"""Seconds in which a guest is ready, on a machine that starts many."""
_BRIDGE: Final = "guests"
_DEATH: Final = 1  # PR_SET_PDEATHSIG
_LONG_S: Final = 86_400.0
_PIECE: Final = 1 << 16
_CLOCKS: Final = 5
_PS: Final = 1000


class Guest(Asker):
    """Communicates with the program in a guest, over a socket to its virtual serial port. ``ended`` is called before
    requests fail because the guest has ended."""

    def __init__(self, name: str, connection: socket.socket, ended: Callable[[], object] = lambda: None) -> None:
        super().__init__(name)
        self._when_ended = ended
        self._answers, self._out = connection.makefile("rb"), connection.makefile("wb")

    @override
    def out(self) -> IO[bytes]:
        return self._out

    @override
    def answers(self) -> IO[bytes]:
        return self._answers

    @override
    def gone(self) -> FailedError:
        self._when_ended()
        return FailedError("its guest has ended")

    @override
    def refused(self, reason: str) -> FailedError:
        return FailedError(reason)  # the lab says whose it is

    def tell(self, line: str) -> None:
        """Send the job, which comes before all requests."""
        self._out.write(f"{line}\n".encode())
        self._out.flush()

    def ahead(self) -> int:
        """By how much this machine's CLOCK_MONOTONIC is ahead of the guest's, in ps."""
        found = []
        for _ in range(_CLOCKS):
            before = time.monotonic_ns()
            there = int(self.call("clock")["now"])
            after = time.monotonic_ns()
            found.append((after - before, (before + after) // 2 - there))
        return min(found)[1] * _PS


class Link:
    """The guest's link: its tap, and the host's interface ``device``."""

    def __init__(self, name: str, device: str, *, in_order: bool) -> None:
        self._name, self._in_order = name, in_order
        self._ends = (device, guest.TAP)
        self._loop = RealTimeLoop()
        self._wire: Wire | None = None
        self._lost: Counter[str] = Counter()
        self._loop.start()
        ip(
            f"tuntap add dev {guest.TAP} mode tap",
            f"link add {_BRIDGE} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
            *(f"link set {end} mtu {hostnet.MTU} arp off master {_BRIDGE} up" for end in self._ends),
            f"link set {_BRIDGE} mtu {hostnet.MTU} arp off up",
        )

    def faults(self, request: Request) -> dict[str, Any]:
        """Set the faults of the link, in both directions; without any, the kernel forwards frames."""
        seed, troubles = f"{request['seed']} {self._name}", from_plain(Troubles, request["troubles"])
        into, out = (direction(troubles, f"{seed} {way}", in_order=self._in_order) for way in ("in", "out"))
        self._loop.run_there(lambda: self._set(bridged=not troubles.any))
        if self._wire is not None:
            self._wire.faults = [into, out]
        return {}

    def counters(self) -> dict[str, Any]:
        """Of a host's counters: what faults have lost."""
        return {"faults": dict(self._lost)}

    def _set(self, *, bridged: bool) -> None:
        if bridged == (self._wire is None):
            return
        if self._wire is None:
            ip(*(f"link set {end} nomaster" for end in self._ends))
            self._wire = Wire(self._loop, self._ends)
            self._wire.lost = self._lost
        else:
            self._wire.close()
            self._wire = None
            ip(*(f"link set {end} master {_BRIDGE}" for end in self._ends))


class Proxy:
    """The requests of a lab to a guest."""

    def __init__(self, there: Guest, link: Link) -> None:
        self._guest, self._link = there, link

    @property
    def verbs(self) -> dict[str, Verb]:
        """The same as those of any host."""
        own: dict[str, Verb] = {"run": self._run, "counters": self._counters, "faults": self._link.faults}
        return dict.fromkeys(Daemon.VERBS, self._pass_on) | own

    def _pass_on(self, request: Request) -> dict[str, Any]:
        fields = {name: value for name, value in request.items() if name not in ("id", "do")}
        return self._guest.ask(request["do"], **fields).result(_LONG_S)

    def _run(self, request: Request) -> dict[str, Any]:
        """Make calls, and give their times by the clock that all hosts of the lab share."""
        found = self._pass_on(request)
        ahead = self._guest.ahead()
        for answer in found["answers"]:
            answer |= {name: answer[name] + ahead for name in ("started", "finished")}
        return found

    def _counters(self, request: Request) -> dict[str, Any]:
        return self._pass_on(request) | self._link.counters()


def run(job: LabJob, name: str) -> int:
    """Run the guest of a host, in the host's network namespace, until standard input ends. It ends, too, when the guest
    does, with the last lines of its console on standard error."""
    console = (job.folder / name / CONSOLE).absolute()
    link = Link(name, interface(name, 0), in_order=job.spec.needs_order)
    relay(MANAGER_PORT, job.scratch / hostnet.MANAGER_SOCKET)
    ours, theirs = socket.socketpair()
    folders = (os.getcwd(), PACKAGES) if job.wanted.command else ()
    command = guest.command(job.machines[name], name, theirs.fileno(), console, folders)
    qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),), preexec_fn=_end_with_us)  # noqa: PLW1509
    theirs.close()
    watcher = threading.Thread(target=_watch, args=(qemu, console), daemon=True)
    watcher.start()
    there = Guest(name, ours, watcher.join)  # the watcher ends this process, with a report
    there.listen()
    told = {"name": name, "spec": to_plain(job.spec), "timeout_ms": job.timeout_ms, "folders": folders}
    there.tell(json.dumps(told))
    try:
        hello = there.hello.result(READY_S)
    except FutureTimeoutError:
        _tell_end(f"the guest is not ready after {READY_S:g} s", console)
        return 1
    serve(Proxy(there, link).verbs, hello, iter(sys.stdin.readline, ""))
    return 0  # QEMU is killed with this process


def relay(port: int, path: Path) -> None:
    """Join all connections to a TCP port of the loopback to the unix socket ``path``, in threads."""
    listener = socket.create_server(("127.0.0.1", port))

    def accept() -> None:
        while True:
            near, _ = listener.accept()
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(str(path))
            except OSError:  # the manager does not run; who asks tries again
                near.close()
                far.close()
                continue
            for pair in ((near, far), (far, near)):
                threading.Thread(target=_copy, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def _copy(source: socket.socket, destination: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_PIECE):
            destination.sendall(data)
    for end in (source, destination):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _end_with_us() -> None:
    """Have QEMU be killed when the thread ends that has started it."""
    ctypes.CDLL(None).prctl(_DEATH, signal.SIGKILL)


def _watch(qemu: subprocess.Popen[bytes], console: Path) -> None:
    status = qemu.wait()
    _tell_end(f"QEMU has ended with status {status}", console)
    os._exit(1)


def _tell_end(why: str, console: Path) -> None:
    lines = guest.last_words(console)
    sys.stderr.write("\n".join([f"{why}; the guest's console ({console}) ends:", *lines]) + "\n")
    sys.stderr.flush()
