"""BMv2 under the same load: simple_switch_grpc reads the packets from files, which is its fastest input.

Its rate is the steepest slope of a counter that the program keeps, so that neither its start nor the wait for the files
counts.
"""

from __future__ import annotations

import shutil
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from p4gen.bench.workload import Workload
from p4gen.errors import FailedError, P4genError
from p4gen.model import Model
from p4gen.model.jit import Batch
from p4gen.p4 import p4c
from p4gen.p4.compile import compile_text
from p4gen.p4.info.text import parse_text
from p4gen.p4rt.client import Client
from p4gen.switch import bmv2
from p4gen.switch.running import free_port, started

_WAIT_S = 3
"""Seconds between BMv2's start and the first packet, in which the program and the entries are loaded."""

_POLL_S, _QUIET_POLLS = 0.02, 25


def why_not() -> str | None:
    """Why BMv2 cannot be measured; None when it can."""
    try:
        bmv2.check_tools()
    except P4genError as missing:
        return missing.diagnostics[0].message
    return None


def program(text: str, folder: Path) -> p4c.P4cOutput:
    """Compile a program for BMv2."""
    folder.mkdir()
    source = folder / "program.p4"
    source.write_text(text, encoding="utf-8")
    compiler = p4c.find()
    assert compiler is not None
    return p4c.compile_for_bmv2(compiler, source, folder)


def rate(work: Workload, packets: int, output: p4c.P4cOutput, folder: Path) -> tuple[int, float]:
    """Run BMv2 on the first ``packets`` of a workload. Returns (packets, seconds). Raises ``FailedError``."""
    folder.mkdir()
    switch = shutil.which(bmv2.SWITCH)
    assert switch is not None
    load = (*work.opening, *work.packets[:packets])
    ports = sorted({port for port, _ in load})
    for port in ports:
        listed = [(i, frame) for i, (p, frame) in enumerate(load) if p == port]
        _write_pcap(folder / f"port{port}_in.pcap", listed)
    address = f"unix:{folder / 'p4rt.sock'}"
    command = [sys.executable, "-m", "p4gen.switch.guard", switch, "--no-p4", "--device-id", "1"]
    command += ["--log-console", "--log-level", "off", "--use-files", str(_WAIT_S), "--thrift-port", str(free_port())]
    for port in ports:
        command += ["-i", f"{port}@{folder / f'port{port}'}"]
    command += ["--", "--grpc-server-addr", address]
    counted_all = _counted(work, load)
    with started(command, address, folder / "log", what=bmv2.SWITCH, causes={}):
        client = Client(address, 1)
        with client:
            assert output.p4info is not None
            client.set_pipeline(parse_text(output.p4info.read_text(encoding="utf-8")), output.json.read_bytes())
            work.config.install(client)
            counted, seconds = _slope(client, work.counter, counted_all)
    return counted * packets // counted_all, seconds


def _counted(work: Workload, load: Sequence[tuple[int, bytes]]) -> int:
    """How many packets of the load the counter counts, determined with the model."""
    model = work.configure(Model(compile_text(work.text, f"{work.spec.program}.p4").program, engine="jit"))
    model.process_batch(Batch.of(load[len(work.opening) :]))
    return model.counter(*work.counter).packets


def _slope(client: Client, counter: tuple[str, int], expected: int) -> tuple[int, float]:
    seen: list[tuple[float, int]] = []
    quiet, deadline = 0, time.monotonic() + _WAIT_S + 120
    while quiet < _QUIET_POLLS and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        count = client.counter(*counter).packets
        if not count:
            seen = [(time.monotonic(), 0)]  # the newest reading before the load began
        elif not seen or count > seen[-1][1]:
            seen.append((time.monotonic(), count))
            quiet = 0
        else:
            quiet += 1
        if count >= expected:
            break
    if len(seen) < 2:
        raise FailedError(f"BMv2's counter {counter[0]} did not move: {seen}")
    # The fastest tenth of the load: the best estimate of the rate on an otherwise idle machine.
    stretches = [
        (b[1] - a[1], b[0] - a[0])
        for i, a in enumerate(seen)
        for b in seen[i + 1 :]
        if b[1] - a[1] >= min(expected // 10, seen[-1][1] - seen[0][1])
    ]
    return max(stretches, key=lambda s: s[0] / s[1])


def _write_pcap(path: Path, frames: Sequence[tuple[int, bytes]]) -> None:
    """Write a capture of (microsecond, frame) pairs. BMv2 merges several files by their times."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    for at, frame in frames:
        parts += [struct.pack("<IIII", at // 1_000_000, at % 1_000_000, len(frame), len(frame)), frame]
    path.write_bytes(b"".join(parts))
