"""How many packets ``p4gen switch`` carries between network interfaces (veth pairs), compared with a plain echo.

The load is that of ``workload``, sent as hosts would send it: a quarter of the window at a time, at most a window
outstanding, results acknowledged when they arrive. Both ends of the wire are on this machine, so the hosts do half of
the work in wall-clock time; the processor time is that of the switch alone. Needs CAP_NET_ADMIN and CAP_NET_RAW.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from p4gen.bench.workload import Bursts
from p4gen.errors import FailedError
from p4gen.model import Model
from p4gen.model.jit import Batch
from p4gen.p4.compile import compile_text
from p4gen.packetio import Receiver, Sender, open_socket, sending_socket
from p4gen.switch.running import Program, scratch, started
from p4gen.switch.veth import veth_pairs

SWITCH, ECHO = "p4gen switch", "echo in Python"
_QUARTER = 4
_SLOTS = 2048
_PATIENCE_S = 5.0


@dataclass(frozen=True)
class WireRate:
    """Packets into and out of a process, with the wall-clock time and the process's processor time in seconds."""

    what: str
    packets_in: int
    packets_out: int
    wall: float
    cpu: float

    @property
    def per_second(self) -> float:
        """Packets in and out per second of wall-clock time."""
        return (self.packets_in + self.packets_out) / self.wall


@dataclass(frozen=True)
class _Load:
    """Packets in the order in which they are sent. ``steps`` are the ends of the parts; ``outputs`` the number of
    output packets by the end of each part."""

    batch: Batch
    steps: list[int]
    outputs: list[int]


def measure_wire(work: Bursts, rounds: int = 2) -> tuple[WireRate, WireRate]:
    """Measure the switch and the echo in alternating rounds; the best round counts.

    Raises ``FailedError`` where interfaces cannot be created, or when packets were lost.
    """
    load = _load(work)
    echoed = _Load(load.batch, load.steps, load.steps)
    found: dict[str, list[WireRate]] = {SWITCH: [], ECHO: []}
    ports = sorted({edge.port for edge in work.edges})
    for _ in range(rounds):
        with veth_pairs(ports) as pairs:
            inner, outer = ({port: pair[end] for port, pair in pairs.items()} for end in (0, 1))
            with _switch(work, inner, outer) as process:
                found[SWITCH].append(_measure(SWITCH, load, outer, process.pid))
            with _echo(inner) as process:
                found[ECHO].append(_measure(ECHO, echoed, outer, process.pid))
    best = [min(rates, key=lambda rate: rate.wall) for rates in found.values()]
    return best[0], best[1]


def _load(work: Bursts) -> _Load:
    size = work.burst + work.answers
    numbers = np.arange(len(work.packets) // size * size).reshape(-1, size)
    data, acks = numbers[:, : work.burst], numbers[:, work.burst :]
    at_once = max(work.spec.window // _QUARTER, 1)
    parts = []
    for first in range(0, len(numbers), at_once):
        before = acks[max(first - 2 * at_once, 0) : max(first - at_once, 0)]
        parts.append(np.concatenate([before.reshape(-1), data[first : first + at_once].reshape(-1)]))
    order, steps = np.concatenate(parts), np.cumsum([len(part) for part in parts])
    whole = work.batch
    batch = Batch(whole.data, whole.offsets[:-1][order], whole.ports[order], ends=whole.offsets[1:][order])
    model = work.configure(Model(compile_text(work.text).program, engine="jit"))
    sources = model.process_batch(batch).sources
    assert sources is not None
    return _Load(batch, steps.tolist(), np.searchsorted(sources, steps).tolist())


@contextlib.contextmanager
def _switch(work: Bursts, inner: Mapping[int, str], outer: Mapping[int, str]) -> Iterator[subprocess.Popen[bytes]]:
    with scratch() as folder, contextlib.ExitStack() as stack:
        address, log = f"unix:{folder / 'p4rt.sock'}", folder / "switch.log"
        program = Program.of_text(work.text, folder)
        command = [sys.executable, "-m", "p4gen", "switch", "--until-eof", "--grpc-server-addr", address]
        for port, name in inner.items():
            command += ["-i", f"{port}@{name}"]
        process = stack.enter_context(started(command, address, log, what="the embedded switch", causes={}))
        _configure(work, address, program)
        for port, frame in work.opening:
            with open_socket(outer[port]) as host:
                host.send(frame)
        time.sleep(0.2)  # the opening packets have no output
        yield process


def _configure(work: Bursts, address: str, program: Program) -> None:
    from p4gen.p4rt.client import Client  # noqa: PLC0415  (gRPC takes a while to load, other measurements need none)

    with Client(address, 1) as client:
        client.set_pipeline(program.read_p4info(), program.p4.read_bytes())
        work.config.install(client)


@contextlib.contextmanager
def _echo(inner: Mapping[int, str]) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "p4gen.bench.echo", *inner.values()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != b"ready\n":
                raise FailedError("the echo did not start")
            yield process
        finally:
            process.kill()


def _measure(what: str, load: _Load, outer: Mapping[int, str], process: int) -> WireRate:
    with contextlib.ExitStack() as stack:
        receiver, poll, ports = Receiver(_SLOTS, 2048), stack.enter_context(select.epoll()), {}
        for port, name in outer.items():
            found = stack.enter_context(open_socket(name))
            ports[found.fileno()] = port
            poll.register(found, select.EPOLLIN)
        out = stack.enter_context(sending_socket())
        sender = Sender(out, {port: socket.if_nametoindex(name) for port, name in outer.items()})
        batch, ends = load.batch, _ends(load.batch)
        base = batch.data.ctypes.data
        came = first = 0
        cpu, wall = _cpu(process), time.perf_counter()
        for step, last in enumerate(load.steps):
            part = slice(first, last)
            if len(sender.send(base, batch.offsets[part], ends[part], batch.ports[part])):
                raise FailedError("the interfaces did not take all packets of the load")
            first = last
            # The outputs of all parts but the newest must have arrived.
            wanted = load.outputs[step - 1] if step else 0
            if last == load.steps[-1]:
                wanted = load.outputs[-1]
            while came < wanted:
                ready = poll.poll(_PATIENCE_S)
                if not ready:
                    raise FailedError(f"{what}: only {came} of {wanted} packets arrived within {_PATIENCE_S:g} s")
                for file, _ in ready:
                    came += receiver.receive(file, ports[file], receiver.free)
                receiver.take()
        wall, cpu = time.perf_counter() - wall, _cpu(process) - cpu
    return WireRate(what, len(batch), came, wall, cpu)


def _ends(batch: Batch) -> Any:
    assert batch.ends is not None
    return batch.ends


def _cpu(process: int) -> float:
    """Processor time that a process has used, in seconds."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))
