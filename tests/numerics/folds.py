"""A fold (``p4gen.vocabulary.folds``), applied to arrays: a packet has a row of lanes for each source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from jinja2 import Environment

from p4gen.model import Model
from p4gen.model.jit import Batch
from p4gen.p4.compile import compile_text
from p4gen.resources import resource
from p4gen.vocabulary.folds import Fold

Words = npt.NDArray[np.uint32]

HARNESS = """
#include <core.p4>
#include <v1model.p4>
typedef bit<32> lane_t;
{functions}
header task_t {{ bit<32> sources; bit<7> zeros; bit<1> full; }}
header row_t {{ {fields} }}
struct headers_t {{ task_t task; {rows} }}
struct metadata_t {{ }}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{
    state start {{ packet.extract(hdr.task); {extracts} transition accept; }}
}}
control FoldLane(inout lane_t element, {parameters}in bit<32> sources, inout bit<1> full) {{
    apply {{
        lane_t stored_0 = element;
        {fold}
    }}
}}
control V(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{
    {instances}
    apply {{
        bit<32> sources = hdr.task.sources;
        bit<1> full = 0;
        {calls}
        hdr.task.full = full;
        std.egress_spec = 1;
    }}
}}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control C(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr.task); packet.emit(hdr.row_0); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def functions_of(called: Sequence[str]) -> str:
    """P4 functions by their names."""
    environment = Environment(trim_blocks=True, lstrip_blocks=True, autoescape=False)
    names = [name for name in ("floats", "halves") if called]
    texts = [(resource("templates") / f"shared/{name}.p4.j2").read_text() for name in names]
    return "\n".join(environment.from_string(text).render(floats=called) for text in texts)


def harness(called: Sequence[str], lines: Sequence[str], sources: int, lanes: int) -> str:
    """A program that replaces the first of ``sources`` rows of ``lanes`` lanes by what ``lines`` make of those that the
    packet names, and says whether a lane has left its range. ``called`` are the functions that it needs."""
    more = range(1, sources)
    arguments = "".join(f"hdr.row_{i}.lane_%d, " for i in more)
    return HARNESS.format(
        functions=functions_of(called),
        fields=" ".join(f"lane_t lane_{i};" for i in range(lanes)),
        rows=" ".join(f"row_t row_{i};" for i in range(sources)),
        extracts=" ".join(f"packet.extract(hdr.row_{i});" for i in range(sources)),
        parameters="".join(f"in lane_t stored_{i}, " for i in more),
        fold="\n        ".join(lines),
        instances=" ".join(f"FoldLane() lane_{i};" for i in range(lanes)),
        calls="\n        ".join(
            f"lane_{i}.apply(hdr.row_0.lane_{i}, {arguments.replace('%d', str(i))}sources, full);" for i in range(lanes)
        ),
    )


class Switch:
    """A switch that runs ``harness``."""

    def __init__(
        self, called: Sequence[str], lines: Sequence[str], sources: int, lanes: int = 64, engine: str = "jit"
    ) -> None:
        chosen: Any = engine
        text = harness(called, lines, sources, lanes)
        self.sources, self.lanes = sources, lanes
        self.model = Model(compile_text(text, "fold.p4").program, engine=chosen)

    @classmethod
    def of(cls, fold: Fold, sources: int, lanes: int = 64, engine: str = "jit") -> Self:
        """One that folds ``sources`` lanes."""
        return cls(fold.functions, fold.lines("element", range(sources)), sources, lanes, engine)

    def __call__(self, rows: Words, chosen: int | None = None) -> tuple[Words, npt.NDArray[np.bool_]]:
        """The lanes that ``rows`` make, one row a source, and for each packet whether a lane has left its range.
        ``chosen``: the bitmap of sources, all by default."""
        count = rows.shape[1] // self.lanes
        assert rows.shape == (self.sources, count * self.lanes)
        size = 5 + 4 * self.lanes
        packets = np.zeros((count, 5 + 4 * self.lanes * self.sources), np.uint8)
        packets[:, :4] = np.frombuffer(((1 << self.sources) - 1 if chosen is None else chosen).to_bytes(4), np.uint8)
        wire = rows.astype(">u4").reshape(self.sources, count, self.lanes).transpose(1, 0, 2)
        packets[:, 5:] = np.ascontiguousarray(wire).view(np.uint8).reshape(count, -1)
        if self.model.engine != "jit":
            frames = [self.model.process(0, packet.tobytes())[0][1] for packet in packets]
            out = np.frombuffer(b"".join(frames), np.uint8).reshape(count, size)
        else:
            offsets = np.arange(count + 1, dtype=np.int64) * packets.shape[1]
            sent = self.model.process_batch(Batch(packets.reshape(-1), offsets, np.zeros(count, np.int32)))
            assert len(sent) == count
            assert sent.ends is None
            out = sent.data[: sent.offsets[-1]].reshape(count, size)
        lanes = np.ascontiguousarray(out[:, 5:]).view(">u4").astype(np.uint32).reshape(-1)
        return lanes, out[:, 4] & 1 == 1
