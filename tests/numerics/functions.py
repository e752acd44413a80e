"""The functions of a generated program, applied to arrays: one packet has ``LANES`` pairs of elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p4gen.model import Model
from p4gen.model.jit import Batch
from p4gen.p4.compile import compile_text
from p4gen.papers.epic.spec import EpicSpec
from p4gen.program.compose import compose
from p4gen.program.text import render

LANES = 64
"""Pairs in a packet."""
TEMPLATE = "shared/floats.p4.j2"

HARNESS = """
#include <core.p4>
#include <v1model.p4>
typedef bit<32> lane_t;
{functions}
header row_t {{ {fields} }}
struct headers_t {{ row_t a; row_t b; }}
struct metadata_t {{ }}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{
    state start {{ packet.extract(hdr.a); packet.extract(hdr.b); transition accept; }}
}}
control Pair(inout lane_t element, in lane_t held) {{ apply {{ element = {name}(held, element); }} }}
control V(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{
    {instances}
    apply {{ {calls} std.egress_spec = 1; }}
}}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control C(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr.a); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""

Words = npt.NDArray[np.uint32]


def functions_of(spec: EpicSpec) -> str:
    """The lines of a generated program that come from the template of functions."""
    made = render(compose(spec), line_directives=False)
    lines = zip(made.text.splitlines(), made.origins, strict=True)
    return "\n".join(line for line, (template, _) in lines if template == TEMPLATE)


def harness(spec: EpicSpec, name: str) -> str:
    """A program that replaces a row of ``LANES`` elements by what the function makes of them and a second row."""
    numbers = range(LANES)
    return HARNESS.format(
        functions=functions_of(spec),
        name=name,
        fields=" ".join(f"lane_t lane_{i};" for i in numbers),
        instances=" ".join(f"Pair() pair_{i};" for i in numbers),
        calls=" ".join(f"pair_{i}.apply(hdr.a.lane_{i}, hdr.b.lane_{i});" for i in numbers),
    )


def model(spec: EpicSpec, name: str, engine: str) -> Model:
    """The model of ``harness``."""
    chosen: Any = engine
    return Model(compile_text(harness(spec, name), f"{name}.p4").program, engine=chosen)


def applied(switch: Model, a: Words, b: Words) -> Words:
    """The function's results for all pairs, whose number is a multiple of ``LANES``."""
    rows = np.stack([b.reshape(-1, LANES), a.reshape(-1, LANES)], axis=1).astype(">u4")
    if switch.engine != "jit":
        frames = [switch.process(0, row.tobytes())[0][1] for row in rows]
        return np.frombuffer(b"".join(frames), ">u4").astype(np.uint32)
    count = len(rows)
    data = np.frombuffer(rows.tobytes(), np.uint8)
    batch = Batch(data, np.arange(count + 1, dtype=np.int64) * 8 * LANES, np.zeros(count, np.int32))
    out = switch.process_batch(batch)
    assert len(out) == count
    assert out.ends is None
    return out.data[: out.offsets[-1]].view(">u4").astype(np.uint32)
