"""EPIC's Table 19 (section J.4): AllReduce in a lab of switches and hosts in software, beside the paper's testbed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from p4gen.errors import FailedError, MissingToolError
from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Experiment, Order, Report, Value
from p4gen.papers.epic.spec import Mode

NETWORK: Final = "tree-3-2"
"""The paper's: four hosts below two leaves and a spine."""
CALLS: Final = 10
"""As in the paper, whose values are means."""
FIELDS: Final[Mapping[Mode, Mapping[str, int]]] = {Mode.I: {"slots": 512}, Mode.II: {}, Mode.III: {}}
"""What a mode has other than labs that measure have: Mode I two windows of slots, as a result that one rank lacks holds
its slot (docs/modes.md)."""
SCALES: Final = {"1M": "up to 1 MiB: a minute", "64M": "up to 64 MiB: ten minutes"}
_DEADLINE_S: Final = 3600
_MISSING: Final = 3
"""The exit status without a tool."""


@dataclass(frozen=True)
class Measured:
    """One size in a mode: Mb/s, ours and the paper's; and microseconds of processor time for each packet."""

    size: int
    ours: float
    paper: float
    host: float
    switch: float
    load: float
    """Of the machine before the lab began: processes that ran on each processor, in the mean of a minute."""


def measured(mode: Mode, largest: str, seed: int) -> tuple[Measured, ...]:
    """Run a lab of a mode, and measure AllReduces of all of the table's sizes up to the largest.

    Raises ``MissingToolError`` without root or Mininet, ``FailedError`` if a result is wrong.
    """
    command = [sys.executable, "-m", "p4gen", "lab", NETWORK, "--mode", mode, "--measure", "--size", largest]
    command += ["--repeat", str(CALLS), "--seed", str(seed), "--deadline", str(_DEADLINE_S), "--json"]
    command += [word for name, value in FIELDS[mode].items() for word in (f"--{name}", str(value))]
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        kind = MissingToolError if done.returncode == _MISSING else FailedError
        raise kind(f"EPIC-{mode}: {done.stderr.strip() or done.stdout.strip()}")
    rows: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])["rows"]
    return tuple(
        Measured(row["size"], row["mean"], row["paper"], row["host_us"], row["switch_us"], load) for row in rows
    )


def _perform(order: Order) -> Report:
    cells = [Cell(f"EPIC-{mode}", measured, (mode, order.scale, order.seed)) for mode in Mode]
    found = order.run(cells)
    busy = next(iter(found.values()))[0].load
    columns: dict[str, list[Value]] = {}
    checks = []
    for name, rows in found.items():
        columns["bytes"] = [float(row.size) for row in rows]
        columns |= {
            name: [row.ours for row in rows],
            f"{name}: paper": [row.paper for row in rows],
            f"{name}: ratio": [row.ours / row.paper for row in rows],
            f"{name}: us/packet, hosts": [row.host for row in rows],
            f"{name}: us/packet, switches": [row.switch for row in rows],
        }
        less = [f"{row.size:,} bytes: {row.ours:.4g} for {row.paper:.4g}" for row in rows if row.ours < row.paper]
        checks.append(
            Check(f"{name}: at least the paper's throughput, Mb/s; {'; '.join(less) or 'at all sizes'}", not less)
        )
    return Report(
        tuple(columns),
        tuple(zip(*columns.values(), strict=True)),
        tuple(checks),
        (
            f"throughput in Mb/s: mean of {CALLS} calls after two others on {NETWORK}, whose switches and hosts are "
            "processes of one machine",
            f"before the first lab began, {busy:.1f} other processes ran on each processor, in the mean of a minute",
            "packets of 1 KiB, a window of 32 messages of 8 packets; Mode I has slots for two windows",
            "every result is compared with NumPy's, outside of the time that is measured",
            "us/packet: processor time of hosts' and switches' processes for each packet at their interfaces, in and "
            "out, the kernel's included; of small calls most is for the call",
            "the paper: eight virtual machines, Soft-RoCE, switches in C on libpcap",
        ),
        {},
    )


EMULATION: Final = Experiment(SCALES, _perform, partly=True)
