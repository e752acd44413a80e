"""EPIC's Tables 19 to 24 (section J.4): labs of switches in software, with p4gen's hosts and with Linux's own RoCE
stack, beside the paper's testbed."""

from __future__ import annotations

import importlib.util
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
from p4gen.labs.softroce import asked, guest, kernel
from p4gen.labs.softroce.asked import SOFTROCE
from p4gen.papers.epic.spec import Mode
from p4gen.papers.epic.studies.emulated import CALLS, EMULATED, MPI
from p4gen.vocabulary import units
from p4gen.vocabulary.message import Collective

NETWORK: Final = "tree-3-2"
"""The paper's: four hosts below two leaves and a spine."""
FIELDS: Final[Mapping[Mode, Mapping[str, int]]] = {Mode.I: {"slots": 512}, Mode.II: {}, Mode.III: {}}
"""What a mode has other than labs that measure have: Mode I two windows of slots, as a result that one rank lacks holds
its slot (docs/modes.md)."""
SCALES: Final = {
    "64K": "up to 64 KiB: a minute, and a quarter of an hour for guests that are emulated",
    "1M": "up to 1 MiB: two minutes, and half an hour",
    "64M": "up to 64 MiB, guests to 4 MiB: hours",
    "1G": "all ten sizes, guests to 64 KiB: an hour",
}
OURS: Final = "p4gen"
_MPI: Final = "MPI"
_MODULE: Final = "p4gen.papers.epic.experiments.mpi"
COLUMNS: Final = (
    "collective", "bytes", "solution", "labs", "Soft-RoCE", "paper", "labs/paper", "Soft-RoCE/paper",
    "us/packet, hosts", "us/packet, switches",
)  # fmt: skip
_IN_GUESTS: Final = {"64M": "4M", "1G": "64K"}
"""The largest size, where guests have no room for that of the scale."""
_PATIENT: Final = "4s"
"""The timer of guests, which loses nothing here: an ACK that comes while rdma_rxe sends a message again, too early, can
make it send a packet more than the message has."""
_DEADLINE_S: Final = 3600
_MISSING: Final = 3
"""The exit status without a tool."""


@dataclass(frozen=True)
class Measured:
    """One size of a collective, in a mode or by MPI: Mb/s, or of a Barrier calls a second, ours and the paper's; and
    microseconds of processor time for each packet, None for MPI's."""

    collective: str
    size: int
    ours: float
    paper: float
    host: float | None
    switch: float | None
    load: float
    """Of the machine before the lab began: processes that ran on each processor, in the mean of a minute."""


def measured(mode: Mode, hosts: str, collective: str, largest: str, seed: int) -> tuple[Measured, ...]:
    """Run a lab of a mode, and measure a collective's calls of all of the tables' sizes up to the largest; "" is all of
    them, in one group. ``hosts``: p4gen's, or ``softroce``.

    Raises ``MissingToolError`` without root or Mininet, ``FailedError`` if a result is wrong.
    """
    command = ["--mode", mode, "--measure", "--repeat", str(CALLS)]
    command += [word for name, value in FIELDS[mode].items() for word in (f"--{name}", str(value))]
    command += ["--collective", collective] if collective else []
    command += [] if collective == Collective.BARRIER else ["--size", largest]
    command += [] if hosts == OURS else ["--hosts", hosts, "--timeout", _PATIENT]
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    done = _lab(command, seed, f"EPIC-{mode}, {hosts}, {collective or 'all'}")
    rows: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])["rows"]
    return tuple(
        Measured(row["collective"], row["size"], row["mean"], row["paper"], row["host_us"], row["switch_us"], load)
        for row in rows
    )


def baseline(collective: str, largest: str, seed: int) -> tuple[Measured, ...]:
    """The same of an MPI library, whose TCP packets the switches forward. Errors are those of ``measured``."""
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    program = f"{sys.executable} -m {_MODULE} {collective} {units.size(largest)}"
    done = _lab(["--mode", Mode.II, "--exec", program], seed, f"MPI, {collective}")
    line = next(line for line in done.stderr.splitlines() if line.startswith("[0] {"))
    rows: list[dict[str, Any]] = json.loads(line.partition(" ")[2])["rows"]
    paper = MPI[Collective(collective)]
    return tuple(Measured(collective, row["size"], row["mean"], paper[row["size"]], None, None, load) for row in rows)


def _lab(options: list[str], seed: int, what: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "p4gen", "lab", NETWORK, *options]
    command += ["--seed", str(seed), "--deadline", str(_DEADLINE_S), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        kind = MissingToolError if done.returncode == _MISSING else FailedError
        raise kind(f"{what}: {done.stderr.strip() or done.stdout.strip()}")
    return done


def _perform(order: Order) -> Report:
    guests, ends = _guests()
    mpis = "MPI: MPICH over TCP, which the same switches forward"
    if not has_mpi():
        mpis = "MPI is not run: it needs mpi4py and MPICH: pip install 'p4gen[mpi]'"
    largest = {OURS: order.scale, SOFTROCE: _IN_GUESTS.get(order.scale, order.scale)}
    # Guests take long to start. A group for all collectives has more contexts that get ticks than one for its own.
    labs = [(OURS, str(each)) for each in EMULATED] + ([(SOFTROCE, "")] if guests else [])
    cells = [
        Cell(f"EPIC-{mode}/{kind}/{each or 'all'}", measured, (mode, kind, each, largest[kind], order.seed))
        for mode in Mode
        for kind, each in labs
    ]
    if has_mpi():
        cells += [Cell(f"{_MPI}/{OURS}/{each}", baseline, (str(each), order.scale, order.seed)) for each in EMULATED]
    found = order.run(cells)
    busy = next(iter(found.values()))[0].load
    points: dict[tuple[str, int, str], dict[str, Measured]] = {}
    for cell, measurements in found.items():
        mode, kind, _ = cell.split("/")
        for each in measurements:
            points.setdefault((each.collective, each.size, mode), {})[kind] = each
    places = {collective: place for place, collective in enumerate(EMULATED)}
    ordered = sorted(points.items(), key=lambda point: (places[Collective(point[0][0])], *point[0][1:]))
    less = [
        f"{mode}, {size:,} bytes: {ours.ours:.4g} for {ours.paper:.4g}"
        for (collective, size, mode), by_kind in ordered
        if collective == Collective.ALLREDUCE and mode != _MPI
        if (ours := by_kind.get(OURS)) and ours.ours < ours.paper
    ]
    judged = (
        f"AllReduce by p4gen's hosts: at least the paper's throughput; {'; '.join(less) or 'of all modes and sizes'}"
    )
    return Report(
        COLUMNS,
        tuple(_row(point, by_kind, guests) for point, by_kind in ordered),
        (Check(judged, not less),),
        (
            f"Mb/s, of Barriers calls a second: mean of {CALLS} calls after two others, of 16 MiB of 4, above it of "
            "one, where 1 GiB is four calls of 256 MiB, one after the other",
            f"{NETWORK}, whose switches and hosts are processes of one machine; p4gen's hosts have a group a "
            "collective, guests one for all",
            mpis,
            f"before the first lab began, {busy:.1f} other processes ran on each processor, in the mean of a minute",
            ends,
            "packets of 1 KiB, messages of 8 packets, a window of 32 messages, between guests 16, as rdma_rxe has 128 "
            "packets unacknowledged; Mode I has 512 slots",
            "every result is compared with NumPy's, outside of the time that is measured",
            "us/packet: processor time of p4gen's hosts and their switches for each packet at their interfaces, in and "
            "out, the kernel's included; of small calls most is for the call",
            "small calls are bound by the processes that start them, Barriers most; large ones of Modes I and III by "
            "what is sent again, as switches refuse data that finds no slot when one host is late; in Mode II senders "
            "wait",
            "the paper: eight virtual machines, Soft-RoCE, switches in C on libpcap; Open MPI over TCP",
            "MPI-ICRC is not ours: there the paper's switch computes an ICRC for each packet of TCP, which has none",
        ),
        {},
    )


def has_mpi() -> bool:
    """Whether the MPI library of the extra ``mpi`` is installed."""
    return importlib.util.find_spec("mpi4py") is not None


def _guests() -> tuple[bool, str]:
    """Whether there can be guests here, and how they run, or why they cannot."""
    try:
        way = asked.machines({"": kernel.DEFAULT})[""].accelerator
    except MissingToolError as error:
        return False, f"Soft-RoCE is not run: {error.reason}"
    runs = "whose instructions QEMU translates (TCG)" if way == guest.TCG else "on KVM"
    processors = len(os.sched_getaffinity(0))
    return True, f"Soft-RoCE: four virtual machines with Linux {kernel.DEFAULT} on {processors} processors, {runs}"


def _row(point: tuple[str, int, str], by_kind: Mapping[str, Measured], guests: bool) -> tuple[Value, ...]:
    both = [by_kind.get(OURS), by_kind.get(SOFTROCE)]
    values: list[Value] = [each.ours if each else None for each in both]
    if not guests:
        values[1] = "not run"
    paper = next(iter(by_kind.values())).paper
    ratios = [each.ours / paper if each else None for each in both]
    costs = [both[0].host, both[0].switch] if both[0] else [None, None]
    return *point, *values, paper, *ratios, *costs


EMULATION: Final = Experiment(SCALES, _perform, partly=True)
