"""Faults of SCIN's programs of floating-point numbers."""

from __future__ import annotations

from functools import partial
from typing import Final

from p4gen.ptf.float_faults import BFLOAT16, FLOAT16, LEAST, SUMS, seeded
from p4gen.ptf.mutations import Mutation

PROGRAMS: Final[dict[str, dict[str, object]]] = {
    "floats": {"dtype": "float32"},
    "least of floats": {"dtype": "float32", "op": "min"},
    "halves": {"dtype": "float16"},
    "bfloat16": {"dtype": "bfloat16"},
}
"""In addition to the fields of all small programs."""
TESTS: Final = dict.fromkeys(PROGRAMS, ("test_scin_floats",))
_MODULE: Final = "AggregateData"
_in_bfloat16 = partial(Mutation, module=_MODULE, program="bfloat16")

FAULTS: Final[tuple[Mutation, ...]] = (
    *seeded(SUMS, _MODULE, "floats"),
    *seeded(LEAST, _MODULE, "least of floats"),
    *seeded(FLOAT16, _MODULE, "halves"),
    *seeded(BFLOAT16, _MODULE, "bfloat16"),
    Mutation("bits-are-added", _MODULE, "add_float32(held, element)", "held + element", program="floats"),
    _in_bfloat16(
        "rounded-at-each-step",
        find="number = add_float32(held, number);",
        replace="number = unpack_bfloat16(pack_bfloat16(add_float32(held, number)));",
    ),
    _in_bfloat16(
        "slot-keeps-the-bits",
        find="partial.write(slot, number);",
        replace="partial.write(slot, slot_use == use_t.MERGE ? number : (lane_t)element);",
    ),
    _in_bfloat16("read-without-the-slot", find="number = held;", replace="number = 0;"),
)
