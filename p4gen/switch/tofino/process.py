"""tofino-model and bf_switchd as one switch: started in this order, awaited by the status port, ended in the other."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from p4gen.errors import FailedError
from p4gen.switch import guard
from p4gen.switch.address import START_S
from p4gen.switch.running import COMMANDS_FILE, Program, RunningSwitch, end, free_port, story
from p4gen.switch.tofino import files, tools
from p4gen.switch.tofino.files import Compiled
from p4gen.switch.tofino.namespace import own_network
from p4gen.switch.veth import veth_pairs

NAME: Final = "tofino-model"
SLOWER: Final = 20
"""How many times slower than BMv2 the model may be: every time limit is multiplied by it."""
REQUEST_S: Final = 60.0
"""The seconds that BMv2 may take for a request."""
MODEL_LOG, DRIVER_LOG = "model.log", "switchd.log"
_DEVICE: Final = b"0"
_READY: Final = b"1"
_PAUSE_S: Final = 0.2
_ENDING_S: Final = 5.0
_LISTENS_S: Final = 60.0
_LISTEN: Final = "0A"
"""The state of a listening socket in /proc/net/tcp."""
CAUSES: Final[Mapping[str, str]] = {
    "Address already in use": "an address it needs is taken by another process",
    "unrecognized option": "this build does not know an option that we use",
    "unrecognised option": "this build does not know an option that we use",
    "error while loading shared libraries": "a library of the SDE is missing: is SDE_INSTALL right?",
    "bad_alloc": "there is not enough memory",
}


@dataclass(frozen=True)
class Ports:
    """TCP ports on the loopback interface of the switch's own network."""

    status: int
    bfrt: int
    p4runtime: int | None = None


def model_command(sde: tools.Sde, program: Compiled, conf: Path, ports: Path) -> list[str]:
    """The command that starts the model. Its time runs by itself, which ticks need."""
    return [
        sde.model,
        *("--p4-target-config", str(conf)),
        *("-f", str(ports)),
        *("-d", "1"),
        *("--chip-type", str(program.chip.number)),
        *("--install-dir", str(sde.install)),
        "--logs-disable",
        "--port-monitor",
    ]


def driver_command(sde: tools.Sde, conf: Path, ports: Ports) -> list[str]:
    """The command that starts bf_switchd."""
    return [
        sde.driver,
        *("--install-dir", str(sde.install)),
        *("--conf-file", str(conf)),
        "--init-mode=cold",
        *("--status-port", str(ports.status)),
        *("--bfrt-grpc-port", str(ports.bfrt)),
        "--server-listen-local-only",
        "--background",
        *([f"--p4rt-server=127.0.0.1:{ports.p4runtime}"] if ports.p4runtime is not None else []),
    ]


@contextlib.contextmanager
def running_tofino(
    program: Program,
    directory: Path,
    ports: Iterable[int],
    *,
    timeout: float = START_S * SLOWER,
    slower: float = SLOWER,
    find: Callable[[], tools.Sde] = tools.check,
) -> Iterator[RunningSwitch]:
    """The model and its driver with ``program`` while the block runs. Files and logs are in ``directory``.

    In the block, the calling thread is in the network namespace of the switch. Raises ``MissingToolError`` when a tool
    of the target is missing. Raises ``FailedError`` when a process does not start or ends in the block; the message has
    its command, exit status, last lines of its log and the likely cause. No process, interface or namespace outlives
    the block.
    """
    sde = find()
    assert program.tofino is not None
    compiled = Compiled.of(program.tofino, program.p4.stem)
    mapped = files.device_ports(compiled.chip, ports)
    directory.mkdir(parents=True, exist_ok=True)
    conf, ports_file = files.write(compiled, mapped, directory)
    with contextlib.ExitStack() as stack:
        stack.enter_context(own_network())
        pairs = stack.enter_context(veth_pairs(mapped, files.interfaces))
        tcp = Ports(*_free_ports(2))
        commands = {
            NAME: model_command(sde, compiled, conf, ports_file),
            tools.DRIVER: driver_command(sde, conf, tcp),
        }
        (directory / COMMANDS_FILE).write_text(json.dumps(commands, indent=1), encoding="utf-8")
        model = stack.enter_context(_process(commands[NAME], sde, directory / MODEL_LOG, NAME))
        _await_listener(model)
        driver = stack.enter_context(_process(commands[tools.DRIVER], sde, directory / DRIVER_LOG, tools.DRIVER))
        both = (model, driver)
        _await(both, tcp.status, time.monotonic() + timeout)
        running = RunningSwitch(
            NAME,
            directory,
            f"127.0.0.1:{tcp.bfrt}",
            program.p4info,
            conf,
            "dataplane",
            {
                "interfaces": {port: outer for port, (_, outer) in pairs.items()},
                "ports": max(mapped, default=-1) + 1,
                "slower": slower,
                "marked": True,
            },
            bfrt={
                "proto": str(sde.proto),
                "program": compiled.name,
                "ports": list(mapped.items()),
                "timeout": REQUEST_S * slower,
            },
            pids=tuple(each.process.pid for each in both),
        )
        try:
            yield running
        except Exception as error:
            # A switch that has died is the cause of whatever failed; its guard takes a moment to say so.
            until = time.monotonic() + _ENDING_S
            while not (dead := _dead(both)) and time.monotonic() < until:
                time.sleep(_PAUSE_S)
            if dead:
                raise dead from error
            raise
        if dead := _dead(both):
            raise dead


@dataclass(frozen=True)
class _Process:
    process: subprocess.Popen[bytes]
    command: Sequence[str]
    log: Path
    what: str

    def failure(self, head: str) -> FailedError:
        return FailedError(story(self.process, self.command, self.log, f"{self.what} {head}", CAUSES))


@contextlib.contextmanager
def _process(command: Sequence[str], sde: tools.Sde, log: Path, what: str) -> Iterator[_Process]:
    """A process that is ended when the block ends, or this process does."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            # By its file, not by its name: bf_switchd runs Python, too, and must get nothing of this process's.
            [sys.executable, "-P", guard.__file__, *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=log.parent,  # both write further logs into their folder
            start_new_session=True,
            env=sde.environment(),
        )
    try:
        yield _Process(process, command, log, what)
    finally:
        end(process)


def _dead(processes: Iterable[_Process]) -> FailedError | None:
    """An error about the first process that has ended; None while all run."""
    return next((p.failure("has ended") for p in processes if p.process.poll() is not None), None)


def _free_ports(count: int) -> list[int]:
    """Different TCP ports that are free."""
    found: list[int] = []
    while len(found) < count:
        port = free_port()
        if port not in found:
            found.append(port)
    return found


def _await_listener(model: _Process) -> None:
    """Wait until the model listens for its driver: nothing else listens in this network yet. The driver also tries
    again, so this only keeps the order, and does not wait for ever."""
    deadline = time.monotonic() + _LISTENS_S
    while not _listens() and time.monotonic() < deadline:
        if dead := _dead([model]):
            raise dead
        time.sleep(_PAUSE_S)


def _listens() -> bool:
    """Whether any process listens at a TCP port of this thread's network."""
    tables = (Path(f"/proc/thread-self/net/{name}") for name in ("tcp", "tcp6"))
    lines = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return any(words[3] == _LISTEN for words in lines)


def _await(processes: Sequence[_Process], port: int, deadline: float) -> None:
    """Wait until the driver reports that the device is ready, which takes a minute or two."""
    while True:
        if dead := _dead(processes):
            raise dead
        if _status(port) == _READY:
            return
        if time.monotonic() > deadline:
            raise processes[-1].failure(f"does not say at 127.0.0.1:{port} in time that the device is ready")
        time.sleep(_PAUSE_S)


def _status(port: int) -> bytes:
    """The answer of the driver's status port to the device's number; empty when it does not listen or answer."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0) as peer:
            peer.sendall(_DEVICE)
            return peer.recv(1)
    except OSError:
        return b""
