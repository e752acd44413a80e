"""A running switch of any target: its addresses, and how its process is started and ended."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from p4gen.environment import child_environment
from p4gen.errors import FailedError
from p4gen.model.control_plane import ControlPlane
from p4gen.model.entries import Entry
from p4gen.p4.compile import Compiled, compile_text
from p4gen.p4.info.text import parse_text, to_text
from p4gen.p4rt.client import Client
from p4gen.p4rt.session import GoneError
from p4gen.scratch import scratch
from p4gen.switch.address import START_S, listens, refuses
from p4gen.switch.bm_thrift import ThriftRegisters

__all__ = ["WRITES_FILE", "Program", "RunningSwitch", "end", "free_port", "listens", "scratch", "started"]

WRITES_FILE = "writes.bin"
"""The file in a switch's folder with all write requests, see ``p4gen.p4rt.session.recorded``."""
COMMANDS_FILE = "commands.json"
"""The file in a switch's folder with the commands of its processes, if it has several."""
_LAST_LINES = 20
_ENDING_S = 1.0
"""How long, in seconds, a process may go on after its connections have ended."""


@dataclass(frozen=True)
class Program:
    """A program as files: P4 text, P4Info (text format) and, for BMv2, p4c's JSON; for Tofino, p4c's output folder."""

    p4: Path
    p4info: Path
    json: Path | None = None
    tofino: Path | None = None

    @classmethod
    def of_text(cls, text: str, directory: Path, name: str = "program", compiled: Compiled | None = None) -> Program:
        """Compile ``text`` (unless that has been done) and write the files that a switch needs into a folder.

        Raises ``P4genError`` when it does not compile.
        """
        compiled = compiled or compile_text(text, f"{name}.p4")
        source, info = directory / f"{name}.p4", directory / f"{name}.p4info.txtpb"
        source.write_text(text, encoding="utf-8")
        info.write_text(to_text(compiled.p4info), encoding="utf-8")
        return cls(source, info)

    def read_p4info(self) -> Any:
        """The P4Info, parsed from its file."""
        return parse_text(self.p4info.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class RunningSwitch:
    """A switch with a P4Runtime server at ``address``, into which the program ``p4info`` and ``config`` has been
    loaded.

    ``platform`` and ``platform_args`` tell PTF how to reach its ports (see ``p4gen.ptf.platform``). With
    ``thrift_port``, registers are read from BMv2's Thrift server. ``trace`` is the file with the packets' traces.
    With ``bfrt``, the address is that of a BF-Runtime server instead (see ``p4gen.switch.tofino.control.connect``).
    """

    target: str
    directory: Path
    address: str
    p4info: Path
    config: Path
    platform: str
    platform_args: Mapping[str, Any]
    device_id: int = 1
    thrift_port: int = 0
    trace: Path | None = None
    bfrt: Mapping[str, Any] | None = None
    pids: tuple[int, ...] = ()
    """Processes whose end is the end of the switch, for targets whose connections would not tell."""

    def control(self, kept: Sequence[Entry] = ()) -> ControlPlane:
        """The control plane, over the switch's own protocol. With BF-Runtime, ``kept`` are entries that every reset
        adds again."""
        if self.bfrt is None:
            assert not kept
            return self.connect()
        # Imported here, because its messages are made when it is used, and only one target needs them.
        from p4gen.switch.tofino.control import connect  # noqa: PLC0415

        return connect(self.address, self.bfrt, kept)

    @property
    def slower(self) -> float:
        """By how much every time limit for the switch is multiplied."""
        return float(self.platform_args.get("slower", 1.0))

    def connect(self) -> Client:
        """Connect as the primary controller of the switch; ``reset`` loads the same program again.

        Raises ``GoneError`` at once when nothing listens at the address.
        """
        registers = ThriftRegisters(self.thrift_port) if self.thrift_port else None
        record = self.directory / WRITES_FILE
        return Client(
            self.address,
            self.device_id,
            timeout=START_S,
            registers=registers,
            record=record,
            refused=lambda: refuses(self.address),
        )

    def load(self, client: Client) -> None:
        """Load the program over a client."""
        info = parse_text(self.p4info.read_text(encoding="utf-8"))
        client.set_pipeline(info, self.config.read_bytes())


def free_port() -> int:
    """A TCP port of the loopback interface that is currently free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def started(
    command: Sequence[str], address: str, log: Path, *, what: str, causes: Mapping[str, str], timeout: float = START_S
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that listens at ``address`` (host:port or unix:path); it is ended at the end of the block.

    The process should end when its standard input is closed: then it does not outlive this process, even if this one is
    killed.

    Its output goes to ``log``. Raises ``FailedError`` when it ends early or is not ready within ``timeout`` seconds.
    The message has the command, the exit status, the last lines of the log, and the likely cause: ``causes`` maps texts
    in the log to their meanings.
    """
    with log.open("wb") as output:
        # A separate session, so that Ctrl-C goes to this process only, which then ends the other.
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=child_environment(),
        )
    try:
        _wait(process, command, address, log, what, causes, time.monotonic() + timeout)
        yield process
    except GoneError as error:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_ENDING_S)
        if process.poll() is None:
            raise
        raise FailedError(story(process, command, log, f"{what} has ended", causes)) from error
    finally:
        end(process)


def end(process: subprocess.Popen[bytes], patience: float = 5.0) -> None:
    """End a process, by SIGKILL if necessary, and wait until it has ended."""
    process.terminate()
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait(
    process: subprocess.Popen[bytes],
    command: Sequence[str],
    address: str,
    log: Path,
    what: str,
    causes: Mapping[str, str],
    deadline: float,
) -> None:
    while process.poll() is None:
        if listens(address):
            return
        if time.monotonic() > deadline:
            raise FailedError(story(process, command, log, f"{what} does not listen at {address} in time", causes))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    raise FailedError(story(process, command, log, f"{what} did not start", causes))


class Ended(Protocol):
    """A process whose failure is to be reported."""

    def poll(self) -> int | None:
        """Its exit status, or minus the signal that ended it; None while it runs."""
        ...


def story(process: Ended, command: Sequence[str], log: Path, head: str, causes: Mapping[str, str]) -> str:
    """A report on a failed process: ``head`` and the likely cause, command, exit status, end of the log."""
    text = log.read_text(errors="replace")
    lines = text.splitlines()[-_LAST_LINES:]
    status = process.poll()
    if status is None:
        ended = "it is still running"
    elif status < 0:
        ended = f"killed by {signal.Signals(-status).name}"
    else:
        ended = f"exit status {status}"
    cause = next((meaning for sign, meaning in causes.items() if sign in text), "see its log")
    return "\n".join(
        [
            f"{head}: {cause}",
            f"  command: {' '.join(command)}",
            f"  {ended}; its log ends:" if lines else f"  {ended}; its log is empty",
            *(f"    {line}" for line in lines),
            f"  log: {log}",
        ]
    )
