"""EPIC's Tables 15 and 16 (section I.4): a training step on switches beside one on the hosts' ring, in a lab."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from p4gen.errors import FailedError, MissingToolError
from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Experiment, Order, Report, Value

SCALES: Final = {"quick": "5 steps: a minute for each lab", "full": "20 steps: two minutes for each lab"}
STEPS: Final = {"quick": 5, "full": 20}
BANDWIDTH: Final = "40M"
"""Of every link, so that the network is what counts, and not the processors that all processes share."""
_NETWORK: Final = "star-4"
_PAPER: Final[Mapping[str, Mapping[str, tuple[float, float]]]] = {
    "dp": {"GPT-2 Large": (5.46, 5.53), "Qwen2.5-0.5B": (3.59, 3.64), "Llama-3.2-1B": (7.18, 7.28)},
    "tp": {"GPT-2 Large": (21.79, 29.35), "Qwen2.5-0.5B": (13.10, 17.51), "Llama-3.2-1B": (21.63, 28.35)},
}
"""Seconds of an iteration with EPIC-II and with NCCL."""
_MODULE: Final = "p4gen.torch.training"
_DEADLINE_S: Final = 1800
_MISSING: Final = 3
"""The exit status without a tool."""


@dataclass(frozen=True)
class Steps:
    """Seconds of a step, the median, and by how much losses differ, relative to gloo's."""

    switches: float
    ring: float
    apart: float

    @property
    def gain(self) -> float:
        """How many times as long a step takes on the ring."""
        return self.ring / self.switches


def measured(parallel: str, steps: int, seed: int) -> Steps:
    """Train in a lab, in turn on switches and on gloo's ring.

    Raises ``MissingToolError`` without root, Mininet or torch, ``FailedError`` if a rank fails.
    """
    if importlib.util.find_spec("torch") is None:
        raise MissingToolError("training needs torch: pip install 'p4gen[torch]'")
    command = [sys.executable, "-m", "p4gen", "lab", _NETWORK, "--mode", "II", "--lanes", "256", "--json"]
    command += ["--bandwidth", BANDWIDTH, "--seed", str(seed), "--deadline", str(_DEADLINE_S)]
    command += ["--exec", f"{sys.executable} -m {_MODULE} {parallel} {steps}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        kind = MissingToolError if done.returncode == _MISSING else FailedError
        raise kind(f"{parallel}: {done.stderr.strip() or done.stdout.strip()}")
    line = next(line for line in done.stderr.splitlines() if line.startswith("[0] {"))
    found = json.loads(line.partition(" ")[2])
    return Steps(found["inc"], found["gloo"], found["apart"])


def _perform(parallel: str, order: Order) -> Report:
    kinds = ("dp", "tp") if parallel == "tp" else ("dp",)
    cells = [Cell(each, measured, (each, STEPS[order.scale], order.seed)) for each in kinds]
    found = order.run(cells)
    rows: list[tuple[Value, ...]] = [
        (f"ours, {each.upper()} of 4", steps.switches, steps.ring, steps.gain) for each, steps in found.items()
    ]
    rows += [(f"paper, {name}", *times, times[1] / times[0]) for name, times in _PAPER[parallel].items()]
    checks = [Check(f"{each.upper()}: a step on switches is the faster one", s.gain > 1) for each, s in found.items()]
    checks += [
        Check(f"{each.upper()}: losses are gloo's, within one part in 100,000: {s.apart:.1g}", s.apart < 1e-5)
        for each, s in found.items()
    ]
    if parallel == "tp":
        checks.append(Check("tensor parallelism gains more than data parallelism", found["tp"].gain > found["dp"].gain))
    return Report(
        ("model", "on switches, s", "on the ring, s", "ring / switches"),
        tuple(rows),
        tuple(checks),
        (
            f"ours: torch.distributed, four ranks of {_NETWORK} in a lab, Mode II, packets of 1 KiB, links of "
            f"{BANDWIDTH}bit/s",
            "a step of four blocks of two linear layers, forward, backward and update; steps of both kinds take turns "
            "in one run, through the same switches; medians",
            "on switches: the backend inc, float32 as integers with agreed exponents; on the ring: gloo over TCP, "
            "whose allreduce is a ring",
            "the paper: eight GPUs in four servers, and a Tofino; EPIC-II beside NCCL",
        ),
        {},
    )


TRAINING: Final = {
    "table-15": Experiment(SCALES, partial(_perform, "dp"), partly=True),
    "table-16": Experiment(SCALES, partial(_perform, "tp"), partly=True),
}
