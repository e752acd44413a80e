"""An embedded switch in a process of its own, and the client that configures it.

``running_switch`` starts ``python -m p4gen.switch.process``. Its ports are sockets in a directory (see
``p4gen.switch.unix``); ``control.sock`` beside them serves the control plane to whoever can read
``control.key``. ``switch.log`` has what the process had to say.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pickle
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any

from p4gen.errors import FailedError, InputError, P4genError
from p4gen.model import Digest, MeterConfig, Trace, Trap
from p4gen.model.entries import Action, CloneSession, CounterValue, Entry, MulticastGroup
from p4gen.p4 import ir
from p4gen.switch.embedded import EmbeddedSwitch
from p4gen.switch.unix import UnixPorts, check_path

CONTROL_SOCKET, KEY_FILE, LOG_FILE, PROGRAM_FILE = "control.sock", "control.key", "switch.log", "program.pickle"

_METHODS = (
    "insert", "modify", "delete", "entries", "set_default", "default", "set_multicast_group",
    "set_clone_session", "counter", "counters", "entry_counter", "register", "registers", "write_register",
    "write_counter", "set_meter", "meter", "set_entry_meter", "traps", "digests", "log_messages", "reset",
    "set_tracing", "take_trace", "process",
)  # fmt: skip


class _Served(EmbeddedSwitch):
    """What the manager serves: the switch, and the way to stop it."""

    ports: UnixPorts

    def stop(self) -> None:
        """End the process once this request is answered."""
        self.ports.stop()

    def undelivered(self) -> dict[int, int]:
        """Frames by port that found no peer."""
        return dict(self.ports.undelivered)


class _Manager(BaseManager):
    """Serves one object, named ``switch``."""


class _Client(BaseManager):
    """The client's side of ``_Manager``."""


_Client.register("switch")


class RemoteSwitch:
    """The ``ControlPlane`` of a switch in another process; ``ControlError`` arrives with its message.

    Any thread may use it. Raises ``FailedError`` when the switch cannot be reached.
    """

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        try:
            key = (self.directory / KEY_FILE).read_bytes()
            manager = _Client(address=str(self.directory / CONTROL_SOCKET), authkey=key)
            manager.connect()
            self._proxy: Any = manager.switch()  # type: ignore[attr-defined]
        except (OSError, EOFError) as problem:
            raise FailedError(f"no switch can be reached at {self.directory}: {problem}") from None

    def _call(self, method: str, *args: Any) -> Any:
        try:
            return self._proxy._callmethod(method, args)
        except P4genError:
            raise
        except (OSError, EOFError):
            raise FailedError(
                "\n".join([f"the switch at {self.directory} has gone away", *_log(self.directory)])
            ) from None

    def process(self, port: int, packet: bytes, trace: Trace | None = None) -> list[tuple[int, bytes]]:
        """What the switch would send if ``packet`` arrived at ``port``; nothing leaves its ports."""
        if trace is not None:
            raise InputError("a trace is not filled in across processes: use set_tracing and take_trace")
        result: list[tuple[int, bytes]] = self._call("process", port, packet)
        return result

    def insert(self, *entries: Entry) -> None:
        """Add table entries; all or none."""
        self._call("insert", *entries)

    def modify(self, *entries: Entry) -> None:
        """Give existing entries another action; all or none."""
        self._call("modify", *entries)

    def delete(self, *entries: Entry) -> None:
        """Remove table entries; all or none."""
        self._call("delete", *entries)

    def entries(self, table: str) -> list[Entry]:
        """All entries of a table, in the order of insertion."""
        result: list[Entry] = self._call("entries", table)
        return result

    def set_default(self, table: str, action: Action | None) -> None:
        """Replace a table's default action; None restores the program's."""
        self._call("set_default", table, action)

    def default(self, table: str) -> Action:
        """The default action in force."""
        result: Action = self._call("default", table)
        return result

    def set_multicast_group(self, group: MulticastGroup) -> None:
        """Create or replace; a group without replicas is removed."""
        self._call("set_multicast_group", group)

    def set_clone_session(self, session: CloneSession) -> None:
        """Create or replace; a session without replicas is removed."""
        self._call("set_clone_session", session)

    def counter(self, name: str, index: int = 0) -> CounterValue:
        """One cell of an indexed counter."""
        result: CounterValue = self._call("counter", name, index)
        return result

    def counters(self, name: str) -> list[CounterValue]:
        """All cells of an indexed counter."""
        result: list[CounterValue] = self._call("counters", name)
        return result

    def entry_counter(self, entry: Entry) -> CounterValue:
        """What the table's direct counter has counted for an entry."""
        result: CounterValue = self._call("entry_counter", entry)
        return result

    def register(self, name: str, index: int) -> int:
        """One cell of a register, as an unsigned number."""
        result: int = self._call("register", name, index)
        return result

    def registers(self, name: str) -> list[int]:
        """All cells of a register, as unsigned numbers."""
        result: list[int] = self._call("registers", name)
        return result

    def write_register(self, name: str, index: int, value: int) -> None:
        """Set one cell of a register to an unsigned number of its width."""
        self._call("write_register", name, index, value)

    def write_counter(self, name: str, index: int, value: CounterValue) -> None:
        """Set one cell of an indexed counter."""
        self._call("write_counter", name, index, value)

    def set_meter(self, name: str, index: int | None, config: MeterConfig | None) -> None:
        """Configure one cell of an indexed meter, or with ``index`` None all of them."""
        self._call("set_meter", name, index, config)

    def meter(self, name: str, index: int) -> MeterConfig | None:
        """The configuration of one cell of an indexed meter."""
        result: MeterConfig | None = self._call("meter", name, index)
        return result

    def set_entry_meter(self, entry: Entry, config: MeterConfig | None) -> None:
        """Configure the direct meter of an entry."""
        self._call("set_entry_meter", entry, config)

    def traps(self) -> list[Trap]:
        """Undefined behaviour since loading, counted by source position."""
        result: list[Trap] = self._call("traps")
        return result

    def digests(self) -> list[Digest]:
        """Digests sent since the last call."""
        result: list[Digest] = self._call("digests")
        return result

    def log_messages(self) -> list[str]:
        """What ``log_msg`` wrote since the last call."""
        result: list[str] = self._call("log_messages")
        return result

    def reset(self) -> None:
        """Back to the state after loading."""
        self._call("reset")

    def set_tracing(self, on: bool) -> None:
        """Start or stop collecting traces; starting forgets older events."""
        self._call("set_tracing", on)

    def take_trace(self) -> Trace:
        """The events since tracing started or since the last call."""
        result: Trace = self._call("take_trace")
        return result

    def undelivered(self) -> dict[int, int]:
        """Frames by port that found no peer."""
        result: dict[int, int] = self._call("undelivered")
        return result

    def stop(self) -> None:
        """End the switch's process; nothing happens if it has ended already."""
        with contextlib.suppress(FailedError):
            self._call("stop")


# --- the process ---


def serve(switch: _Served, directory: Path, ports: Iterable[int], *, until_eof: bool = False) -> None:
    """Run ``switch`` at ``directory`` until it is told to stop (``stop()``, SIGTERM or SIGINT), or
    with ``until_eof`` until standard input ends."""
    control = directory / CONTROL_SOCKET
    check_path(control)
    control.unlink(missing_ok=True)
    with UnixPorts(switch.send, directory, ports) as carrier:
        switch.ports = carrier
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: carrier.stop())
        if until_eof:
            threading.Thread(target=_stop_with_parent, args=(carrier,), daemon=True).start()
        _Manager.register("switch", callable=lambda: switch, exposed=(*_METHODS, "stop", "undelivered"))
        manager = _Manager(address=str(control), authkey=_write_key(directory))
        server = manager.get_server()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            carrier.run()
        finally:
            (directory / KEY_FILE).unlink(missing_ok=True)  # the manager removes its socket itself


def _stop_with_parent(carrier: UnixPorts) -> None:
    """Stop when standard input ends: the parent holds the other end, and may be killed without a word."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    carrier.stop()


def _write_key(directory: Path) -> bytes:
    """A fresh secret that only this user can read."""
    key, path = secrets.token_bytes(32), directory / KEY_FILE
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key)
    return key


def main(argv: list[str] | None = None) -> int:
    """``python -m p4gen.switch.process``: exit 0 when stopped, 2 for a program that cannot be loaded."""
    parser = argparse.ArgumentParser(prog="p4gen.switch.process", description="Run an embedded P4 switch.")
    parser.add_argument("--dir", type=Path, required=True, help="directory for its sockets")
    parser.add_argument("--ports", required=True, help="port numbers, separated by commas")
    parser.add_argument("--until-eof", action="store_true", help="stop when standard input ends")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--p4", type=Path, help="P4 program to compile")
    source.add_argument("--program", type=Path, help="compiled program (a pickle by running_switch)")
    options = parser.parse_args(argv)
    try:
        if options.p4 is not None:
            switch = _Served.from_file(options.p4)
        else:
            with open(options.program, "rb") as file:
                switch = _Served(pickle.load(file))  # noqa: S301 - our own parent's file
        assert isinstance(switch, _Served)
        serve(switch, options.dir, [int(p) for p in options.ports.split(",")], until_eof=options.until_eof)
    except P4genError as problem:
        sys.stderr.write(f"{problem}\n")
        return problem.exit_code
    return 0


# --- starting it ---


@contextlib.contextmanager
def running_switch(
    program: Path | str | ir.Program, directory: Path | str, ports: Iterable[int], *, timeout: float = 60.0
) -> Iterator[RemoteSwitch]:
    """A switch in its own process, running ``program`` (a .p4 file, or compiled), while the block runs.

    ``directory`` gets its sockets and log and is made if need be. Raises ``FailedError`` with the log's last
    lines if the switch is not ready within ``timeout`` seconds. The process and its sockets never outlive
    the block.
    """
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    check_path(place / CONTROL_SOCKET)
    numbers = list(ports)
    command = [sys.executable, "-m", "p4gen.switch.process", "--until-eof", "--dir", str(place)]
    command += ["--ports", ",".join(map(str, numbers))]
    if isinstance(program, ir.Program):
        (place / PROGRAM_FILE).write_bytes(_pickled(program))
        command += ["--program", str(place / PROGRAM_FILE)]
    else:
        command += ["--p4", str(program)]
    for stale in (CONTROL_SOCKET, KEY_FILE):
        (place / stale).unlink(missing_ok=True)
    with open(place / LOG_FILE, "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
    try:
        yield _wait_until_ready(process, place, timeout)
    finally:
        _end(process)
        for name in (CONTROL_SOCKET, KEY_FILE, PROGRAM_FILE, *(f"port{n}.sock" for n in numbers)):
            (place / name).unlink(missing_ok=True)


def _pickled(program: ir.Program) -> bytes:
    """The IR nests as deep as the program does, more than pickle's recursion usually may."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 100_000))
    try:
        return pickle.dumps(program)
    finally:
        sys.setrecursionlimit(limit)


def _wait_until_ready(process: subprocess.Popen[bytes], place: Path, timeout: float) -> RemoteSwitch:
    deadline = time.monotonic() + timeout
    while process.poll() is None and time.monotonic() < deadline:
        # The key is written before the socket listens, and the ports listen before both.
        if (place / CONTROL_SOCKET).exists():
            with contextlib.suppress(FailedError):
                return RemoteSwitch(place)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    why = f"was not ready after {timeout:g} s" if process.poll() is None else f"ended with exit code {process.poll()}"
    raise FailedError("\n".join([f"the switch at {place} {why}", *_log(place)]))


def _log(place: Path) -> list[str]:
    """How the switch's log ends, for the end of an error message."""
    try:
        lines = (place / LOG_FILE).read_text(errors="replace").splitlines()[-20:]
    except OSError:
        return []
    return ["its log ends:", *lines] if lines else []


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
