"""BMv2's simple_switch_grpc as a target: started, loaded and ended by p4gen, without root.

Its ports use its data-plane interface (``p4gen.switch.dataplane``), its control plane is P4Runtime. Both listen on unix
sockets, so that only Thrift needs a TCP port, which builds with Thrift always open.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4gen.errors import FailedError, InputError, MissingToolError
from p4gen.p4 import p4c
from p4gen.p4rt.schema import P4Info
from p4gen.switch.address import START_S, listens
from p4gen.switch.dataplane import LOG_FILE
from p4gen.switch.running import Program, RunningSwitch, free_port, started
from p4gen.switch.unix import check_path
from p4gen.switch.veth import veth_pairs

SWITCH = "simple_switch_grpc"
_CONTROL, _DATA = "p4rt.sock", "dp.sock"
_ATTEMPTS = 3
_THRIFT_S = 3.0
CAUSES = {
    "Address already in use": "an address it needs is taken by another process",
    "unrecognised option": "this build does not know an option that we use (too old, or built without a feature)",
    "unrecognized option": "this build does not know an option that we use (too old, or built without a feature)",
    "error while loading shared libraries": "its installation is incomplete: a library is missing (ldconfig?)",
    "Permission denied": "it may not do what it needs to: check the folder's permissions",
    "Operation not permitted": "it may not do what it needs to: check this user's capabilities",
    "bad_alloc": "there is not enough memory",
}


def check_tools() -> None:
    """Raises ``MissingToolError`` unless BMv2 and the P4 compiler are installed."""
    missing = [tool for tool in (SWITCH, p4c.COMPILER) if shutil.which(tool) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise MissingToolError(f"target bmv2: {' and '.join(missing)} {verb} not on PATH (see p4gen doctor)")


@functools.cache
def _options(path: str) -> str:
    return subprocess.run([path, "--help"], capture_output=True, text=True, timeout=START_S, check=False).stdout


def has_option(option: str) -> bool:
    """Whether this build of simple_switch_grpc has an option; it must be on PATH."""
    path = shutil.which(SWITCH)
    return path is not None and option in _options(path)


def version() -> str:
    """The version that simple_switch_grpc prints; ``missing`` if it is not installed."""
    path = shutil.which(SWITCH)
    if path is None:
        return "missing"
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=START_S, check=False)
    return (done.stdout + done.stderr).strip().partition("\n")[0] or "unknown version"


@contextlib.contextmanager
def running_bmv2(
    program: Program,
    directory: Path,
    ports: Iterable[int],
    *,
    pcap: bool = False,
    verbose: bool = False,
    veths: bool = False,
    timeout: float = START_S,
) -> Iterator[RunningSwitch]:
    """A simple_switch_grpc that runs ``program`` while the block runs. Its sockets and log are in ``directory``.

    With ``verbose``, its log has every step of every packet. Builds without the data-plane interface, and all builds
    with ``veths``, use veth pairs, which need root. Raises ``MissingToolError`` without BMv2, and ``FailedError`` when
    it does not start, with its command, exit status, last lines of the log and the likely cause. Neither process nor
    socket outlives the block.
    """
    check_tools()
    _check_types(program.read_p4info())
    assert program.json is not None
    path = shutil.which(SWITCH)
    assert path is not None
    directory.mkdir(parents=True, exist_ok=True)
    control, data = directory / _CONTROL, directory / _DATA
    for place in (control, data):
        check_path(place)
        place.unlink(missing_ok=True)
    thrift = "--thrift-port" in _options(path)
    count = max(ports, default=-1) + 1
    try:
        with contextlib.ExitStack() as stack:
            if veths or "--dp-grpc-server-addr" not in _options(path):
                pairs = stack.enter_context(veth_pairs(range(count)))
                words = [word for n, (inner, _) in pairs.items() for word in ("-i", f"{n}@{inner}")]
                arguments: dict[str, Any] = {
                    "interfaces": {n: outer for n, (_, outer) in pairs.items()},
                    "ports": count,
                }
                start = _Start(path, directory, (*words, "--"), thrift, pcap, verbose, timeout)
            else:
                arguments = {"address": f"unix:{data}", "ports": count, "device_id": 1}
                start = _Start(
                    path, directory, ("--", "--dp-grpc-server-addr", f"unix:{data}"), thrift, pcap, verbose, timeout
                )
            port = _start(stack, start)
            running = RunningSwitch(
                "bmv2",
                directory,
                f"unix:{control}",
                program.p4info,
                program.json,
                "dataplane",
                arguments,
                thrift_port=port if thrift and _serves_thrift(port) else 0,
            )
            with running.connect() as client:
                running.load(client)
            yield running
    finally:
        for place in (control, data):
            place.unlink(missing_ok=True)


def _check_types(p4info: P4Info) -> None:
    types = p4info.type_info.new_types.items()
    strings = sorted(name for name, new in types if new.translated_type.HasField("sdn_string"))
    if strings:
        raise InputError(
            f"values of type {' and '.join(strings)} are translated to strings, which BMv2's P4Runtime server takes for"
            " numbers; only p4gen's own switch translates"
        )


def _serves_thrift(port: int) -> bool:
    """Whether Thrift's server starts, after P4Runtime's. Builds without Thrift accept the option, too."""
    deadline = time.monotonic() + _THRIFT_S
    while time.monotonic() < deadline:
        if listens(f"127.0.0.1:{port}"):
            return True
        time.sleep(0.01)
    return False


@dataclass(frozen=True)
class _Start:
    path: str
    directory: Path
    words: tuple[str, ...]
    """simple_switch_grpc's own options for the ports; those of the target follow after ``--``."""
    thrift: bool
    pcap: bool
    verbose: bool
    timeout: float


def _start(stack: contextlib.ExitStack, how: _Start) -> int:
    """Start BMv2. If another process takes the Thrift port first, start again with another one. Returns the Thrift
    port."""
    for attempt in range(_ATTEMPTS):
        port = free_port()
        command = [how.path, "--no-p4", "--device-id", "1", "--log-console"]
        command += ["--log-level", "trace" if how.verbose else "warn"]
        command += ["--thrift-port", str(port)] if how.thrift else []
        command += ["--pcap", str(how.directory)] if how.pcap else []
        command += [*how.words, "--grpc-server-addr", f"unix:{how.directory / _CONTROL}"]
        guarded = [sys.executable, "-m", "p4gen.switch.guard", *command]
        starting = started(
            guarded,
            f"unix:{how.directory / _CONTROL}",
            how.directory / LOG_FILE,
            what=SWITCH,
            causes=CAUSES,
            timeout=how.timeout,
        )
        try:
            stack.enter_context(starting)
        except FailedError as error:
            if attempt + 1 < _ATTEMPTS and "taken by another process" in str(error):
                continue
            raise
        return port
    raise AssertionError("the last attempt returns or raises")
