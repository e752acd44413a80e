"""The loop by hand that handles the packets of AllReduces as the program does (``roofline.c``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from p4gen.bench.roofline import EDGE, Roofline, edge_record, no_compiler
from p4gen.bench.workload import Workload
from p4gen.papers.scin.control import PullContext
from p4gen.papers.scin.spec import ScinSpec
from p4gen.vocabulary import ProgramSpec

_ENDPOINTS: Final = 1024
_ENDPOINT = np.dtype([("qp", "<u4"), ("context", "<u4"), ("edge", "<u4"), ("role", "<u4")])
_FLAG = np.dtype([("address", "<u8"), ("key", "<u4"), ("unused", "<u4")])
_RETH: Final = 16


def why_not(spec: ProgramSpec) -> str | None:
    """Why there is no loop for a program; None when there is one."""
    assert isinstance(spec, ScinSpec)
    if (spec.op, spec.dtype, spec.overflow) != ("sum", "int32", "saturate") or not spec.icrc.checked:
        return "the C loop is written for saturating sums of int32 with the ICRC recomputed"
    if spec.ordered or spec.variant is not None:
        return "the C loop is written for strict completion"
    return no_compiler()


def loop(work: Workload, folder: Path, contexts: Sequence[PullContext]) -> Roofline:
    """The loop for contexts that all have the same ranks, built into ``folder``. Raises ``FailedError`` if it does not
    build."""
    spec, ranks = work.spec, len(contexts[0].edges)
    assert isinstance(spec, ScinSpec)
    context = np.dtype([("edges", EDGE, (ranks, spec.queue_pairs)), ("flags", _FLAG, ranks)])
    config = np.zeros(1, [("endpoints", _ENDPOINT, _ENDPOINTS), ("contexts", context, len(contexts))])
    for number, of in enumerate(contexts):
        for at, edge in enumerate(of.edges):
            config["contexts"]["flags"][0, number, at] = edge.flag_address, edge.flag_key, 0
            for role, (local, remote) in enumerate(zip(edge.local, edge.remote, strict=True)):
                row = edge_record(local, remote, edge.port, edge.udp_src_port)
                config["contexts"]["edges"][0, number, at, role] = row
                config["endpoints"][0, local.qp % _ENDPOINTS] = local.qp, number, at, role
    constants = {
        "CONTEXTS": len(contexts), "EDGES": ranks, "LANES": spec.lanes, "SLOTS": spec.slots, "WAVE": spec.wave,
        "MOST": _RETH + spec.payload,
    }  # fmt: skip
    return Roofline(work, folder, Path(__file__).with_suffix(".c"), constants, config)
