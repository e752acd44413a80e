"""The embedded switch as a process: ports, P4Runtime server, captures, logs, statistics.

``run_switch`` implements ``p4gen switch``; ``running_switch`` starts it as a child process on unix sockets, which needs
neither privileges nor port numbers.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p4gen.errors import InputError
from p4gen.model import EngineName
from p4gen.p4.compile import compile_file
from p4gen.p4rt.server import P4RuntimeServer
from p4gen.p4rt.status import StatusError
from p4gen.protos import p4runtime as pb
from p4gen.switch.address import START_S
from p4gen.switch.control import ControlSocket
from p4gen.switch.device import Device
from p4gen.switch.observe import TRACE_LIMIT, Observer
from p4gen.switch.packet import PacketPorts
from p4gen.switch.unix import UnixPorts, check_path, fence_path
from p4gen.vocabulary import ticks

if TYPE_CHECKING:
    from p4gen.switch.running import Program, RunningSwitch

CONTROL_SOCKET, LOG_FILE, TRACE_FILE = "p4rt.sock", "switch.log", "trace.txt"
_STOP_PATIENCE_S = 10.0
_COLLECT = 50_000, 20, 20
LOGGER = logging.getLogger("p4gen.switch")
TRACE_LEVEL = 5
"""The log level of traces, below DEBUG: every step of every packet."""


@dataclass(frozen=True)
class Options:
    """How to run a switch. Its ports are ``interfaces`` (by port number), or 0 to ``ports`` - 1 in ``unix``."""

    address: str
    program: Path | None = None
    interfaces: Mapping[int, str] = field(default_factory=dict)
    unix: Path | None = None
    ports: int = 0
    device_id: int = 1
    cpu_port: int = 0
    pcap: Path | None = None
    trace: Path | None = None
    trace_limit: int = TRACE_LIMIT
    """Size limit of the trace file, in bytes."""
    control: Path | None = None
    """The control socket. If it is set, traces and captures are off until a request turns them on
    (``ControlSocket``)."""
    seed: int = 0
    engine: EngineName = "interp"
    until_eof: bool = False
    """Also stop when standard input is closed, because the parent process may have been killed."""
    includes: Sequence[Path] = ()
    defines: Sequence[str] = ()
    """Definitions for the preprocessor of ``program``."""

    def __post_init__(self) -> None:
        if self.control is not None and self.trace is None and self.pcap is None:
            raise InputError("--control needs something to turn on: --trace FILE, --pcap DIR or both")


@dataclass(frozen=True)
class Statistics:
    """The counters of a switch that has ended, by port."""

    ports: dict[int, dict[str, int]]
    undelivered: dict[int, int]
    truncated: dict[int, int]
    """Number of frames dropped because they were longer than any interface takes."""
    missed: dict[int, int]
    """Number of frames that the kernel dropped because too many waited for the switch."""
    traps: tuple[str, ...]


def run_switch(options: Options) -> Statistics:
    """Run a switch until SIGTERM, SIGINT or SIGHUP. Call it in the main thread.

    Raises ``P4genError`` when the program does not compile, or a port or the address cannot be used.
    """
    # A program is a large, permanent heap; repeated garbage collection of it would delay the start and packets.
    gc.set_threshold(*_COLLECT)
    device, config = _device(options)
    with contextlib.ExitStack() as stack:
        observer = Observer(device, options.trace, options.pcap, LOGGER, options.trace_limit)
        stack.callback(observer.close)
        if options.control is None:
            _observe(observer, options)
        if options.trace is None and LOGGER.isEnabledFor(TRACE_LEVEL):
            device.trace = lambda trace: LOGGER.log(TRACE_LEVEL, "%s", trace)
        device.log = lambda line: LOGGER.info("log_msg: %s", line)
        carrier = _ports(options, observer, device)
        stack.callback(carrier.close)
        carrier.before_waiting = observer.settle_or_log
        device.inject = carrier.inject
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                signal.signal(number, lambda *_: carrier.stop())
        # Without this, a signal just before the carrier begins to wait would only be noticed after the wait.
        signal.set_wakeup_fd(carrier.wakeup, warn_on_full_buffer=False)
        stack.callback(signal.set_wakeup_fd, -1)
        if options.control is not None:
            stack.callback(_control(options.control, observer, carrier).close)
        if options.until_eof:
            threading.Thread(target=_stop_with_parent, args=(carrier,), daemon=True).start()
        socket = options.address.removeprefix("unix:") if options.address.startswith("unix:") else None
        if socket is not None:
            check_path(Path(socket))
            Path(socket).unlink(missing_ok=True)
            stack.callback(lambda: Path(socket).unlink(missing_ok=True))
        server = stack.enter_context(P4RuntimeServer(device, options.address, LOGGER))
        if config is not None:
            try:
                server.load(config)
            except StatusError as error:
                raise InputError(error.message) from None
        LOGGER.info("P4Runtime server listening at %s, device id %d", server.address, options.device_id)
        carrier.run()
        LOGGER.info("stopping")
        undelivered = dict(carrier.undelivered)
        truncated, missed = (
            (dict(carrier.truncated), dict(carrier.missed)) if isinstance(carrier, PacketPorts) else ({}, {})
        )
    model = device.model
    traps = tuple(str(trap) for trap in model.traps()) if model is not None else ()
    ports = {port: asdict(counts) for port, counts in sorted(device.counts.items())}
    return Statistics(ports, undelivered, truncated, missed, traps)


def _control(path: Path, observer: Observer, carrier: UnixPorts | PacketPorts) -> ControlSocket:
    try:
        return ControlSocket(path, observer, carrier.wake)
    except OSError as problem:
        raise InputError(f"cannot make the control socket {path}: {problem.strerror}") from None


def _observe(observer: Observer, options: Options) -> None:
    if options.trace is not None:
        observer.set_trace(True)
    if options.pcap is not None:
        observer.set_capture(True)
    try:
        observer.settle()
    except OSError as problem:
        raise InputError(f"cannot write traces or captures: {problem}") from None


def _device(options: Options) -> tuple[Device, Any]:
    """The device and, if there is a program, the config that loads it."""
    ports = set(options.interfaces) if options.unix is None else set(range(options.ports))
    if options.cpu_port in ports and options.cpu_port:
        raise InputError(f"port {options.cpu_port} cannot be both the CPU port and a port with frames")
    programs, config = [], None
    if options.program is not None:
        compiled = compile_file(options.program, options.defines, options.includes)
        programs = [compiled]
        # No device config: the P4Info identifies the program, with its includes.
        config = pb.ForwardingPipelineConfig(p4info=compiled.p4info)
    everywhere = {*ports, options.cpu_port} if options.cpu_port else ports
    device = Device(
        options.device_id,
        cpu_port=options.cpu_port,
        ports=everywhere,
        programs=programs,
        seed=options.seed,
        engine=options.engine,
    )
    return device, config


def _ports(options: Options, observer: Observer, device: Device) -> UnixPorts | PacketPorts:
    if options.unix is None:
        return PacketPorts(observer.send, options.interfaces, device.set_link, carry=observer.carry)
    try:
        # With ``until_eof`` the parent created the folder above, and may have removed it.
        options.unix.mkdir(parents=not options.until_eof, exist_ok=True)
        return UnixPorts(observer.send, options.unix, sorted({*range(options.ports), ticks.PORT}), device.fence)
    except OSError as problem:
        raise InputError(f"cannot make ports in {options.unix}: {problem}") from None


def _stop_with_parent(carrier: UnixPorts | PacketPorts) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    carrier.stop()
    # A daemon thread, so that the process can end even if a packet recirculates without end.
    time.sleep(_STOP_PATIENCE_S)
    os._exit(1)


@contextlib.contextmanager
def running_switch(
    program: Program,
    directory: Path,
    ports: Iterable[int],
    *,
    trace: bool = False,
    pcap: bool = False,
    engine: EngineName = "interp",
    timeout: float = START_S,
) -> Iterator[RunningSwitch]:
    """A switch in its own process that runs ``program`` while the block runs.

    Its sockets, its log and, with ``trace`` or ``pcap``, the packets are in ``directory``, which is created if
    necessary. Raises ``FailedError`` with the last lines of the log when the switch does not start. No process or
    socket outlives the block.
    """
    # Imported here, because the switch process itself does not need it and is to start quickly.
    from p4gen.switch.running import RunningSwitch, started  # noqa: PLC0415

    directory.mkdir(parents=True, exist_ok=True)
    address = f"unix:{directory / CONTROL_SOCKET}"
    check_path(directory / CONTROL_SOCKET)
    count = max(ports, default=-1) + 1
    command = [sys.executable, "-m", "p4gen", "switch", "--unix", str(directory), "--ports", str(count)]
    command += ["--grpc-server-addr", address, "--engine", engine, "--until-eof"]
    if trace:
        command += ["--trace", str(directory / TRACE_FILE)]
    if pcap:
        command += ["--pcap", str(directory / "pcap")]
    running = RunningSwitch(
        "embedded",
        directory,
        address,
        program.p4info,
        program.p4,
        "unix",
        {"dir": str(directory), "ports": count},
        trace=directory / TRACE_FILE if trace else None,
    )
    log = directory / LOG_FILE
    try:
        with started(command, address, log, what="the embedded switch", causes={}, timeout=timeout):
            with running.connect() as client:
                running.load(client)
            yield running
    finally:
        for path in (directory / CONTROL_SOCKET, fence_path(directory), *directory.glob("port*.sock")):
            with contextlib.suppress(OSError):
                path.unlink()
