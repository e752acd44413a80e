"""The loop by hand that handles an AllReduce's packets as the program does (``roofline.c``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from p4gen.bench.roofline import EDGE, Roofline, edge_record, no_compiler
from p4gen.bench.workload import Bursts
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.vocabulary import DType, Numbers, Op

_PSNS = np.dtype([("received", "<u4"), ("sent", "<u4")])
_MODES = {Mode.I: 1, Mode.II: 2, Mode.III: 3}


def why_not(work: Bursts) -> str | None:
    """Why there is no roofline for a workload; None when there is one."""
    spec = work.spec
    assert isinstance(spec, EpicSpec)
    if spec.mode not in _MODES or spec.pipelines > 1:
        return "the C loop is written for modes I, II and III, and one pipeline"
    if not spec.saturating or spec.numbers != Numbers(Op.SUM, DType.INT32) or not spec.icrc.checked:
        return "the C loop is written for saturating sums of int32 with the ICRC recomputed"
    if spec.ipv6:
        return "the C loop is written for IPv4"
    return no_compiler()


def loop(work: Bursts, folder: Path) -> Roofline:
    """The loop, built into ``folder``. Raises ``FailedError`` if it does not build."""
    spec = work.spec
    assert isinstance(spec, EpicSpec)
    config = np.zeros(1, [("edges", EDGE, len(work.edges)), ("first", _PSNS, len(work.edges))])
    config["edges"][0] = [edge_record(e.local, e.remote, e.port, e.udp_src_port) for e in work.edges]
    config["first"][0] = [(e.first_received, e.first_sent) for e in work.edges]
    constants = {
        "MODE": _MODES[spec.mode], "LANES": spec.lanes, "SLOTS": spec.slots_per_group, "EDGES": len(work.edges),
        "MOST": spec.payload_bytes,
    }  # fmt: skip
    return Roofline(work, folder, Path(__file__).with_suffix(".c"), constants, config)
