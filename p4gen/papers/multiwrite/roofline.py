"""The loop by hand that handles writes and ACKs as the program does (``roofline.c``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from p4gen.bench.roofline import EDGE, Roofline, edge_record, no_compiler
from p4gen.bench.workload import Workload
from p4gen.papers.multiwrite.control import WriteContext
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.vocabulary import ProgramSpec

_ENDPOINTS: Final = 1024
_ENDPOINT = np.dtype([("qp", "<u4"), ("context", "<u4"), ("edge", "<u4")])
_WINDOW = np.dtype([("base", "<u8"), ("key", "<u4"), ("reach", "<u4")])
_BODY: Final = 16 + 4
"""RETH and immediate data."""


def why_not(spec: ProgramSpec) -> str | None:
    """Why there is no loop for a program; None when there is one."""
    assert isinstance(spec, MultiwriteSpec)
    if spec.wide or spec.holds or spec.pipelines > 1 or not spec.icrc.checked:
        return "the C loop is written for bitmaps of 32 bits, one pipeline, and switches that hold no writes"
    return no_compiler()


def loop(work: Workload, folder: Path, contexts: Sequence[WriteContext]) -> Roofline:
    """The loop for a switch whose edge's ports are their numbers less 1, built into ``folder``. Raises ``FailedError``
    if it does not build."""
    spec = work.spec
    assert isinstance(spec, MultiwriteSpec)
    context = [
        ("last_place", "<u8"), ("source", "<u4"), ("key", "<u4"), ("edges", EDGE, spec.edges),
        ("windows", _WINDOW, spec.edges),
    ]  # fmt: skip
    config = np.zeros(1, [("endpoints", _ENDPOINT, _ENDPOINTS), ("contexts", context, len(contexts))])
    for number, of in enumerate(contexts):
        row = config["contexts"][0][number : number + 1]
        row["last_place"], row["source"], row["key"] = of.window_bytes - spec.payload, of.source - 1, of.rkey
        for edge in of.edges:
            at, window = edge.edge - 1, edge.window
            row["edges"][0, at] = edge_record(edge.local, edge.remote, at, edge.udp_src_port)
            row["windows"][0, at] = (0, 0, 0) if window is None else (window.base, window.rkey, edge.reach)
            config["endpoints"][0, edge.local.qp % _ENDPOINTS] = edge.local.qp, number, at
    constants = {
        "CONTEXTS": len(contexts), "EDGES": spec.edges, "PAYLOAD": spec.payload, "SLOTS": spec.slots,
        "MOST": _BODY + spec.payload,
    }  # fmt: skip
    return Roofline(work, folder, Path(__file__).with_suffix(".c"), constants, config)
