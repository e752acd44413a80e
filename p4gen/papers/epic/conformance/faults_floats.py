"""Faults of floating-point arithmetic: each breaks one rule of IEEE 754, or of how NaN and zeros are sent."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from p4gen.ptf.float_faults import BFLOAT16, FLOAT16, LEAST, SUMS, seeded
from p4gen.ptf.mutations import Mutation

PROGRAMS: dict[str, dict[str, object]] = {
    "floats": {"dtype": "float32"},
    "least of floats": {"dtype": "float32", "op": "min"},
}
"""In addition to a mode's own fields."""
TESTS = dict.fromkeys(PROGRAMS, ("test_floats",))

FAULTS: tuple[Mutation, ...] = (
    *seeded(SUMS, "AggregateData", "floats"),
    Mutation(
        "infinite-contribution-counts",
        "AggregateData",
        " && a[30:0] < INFINITY[30:0] && b",
        " && b",
        program="floats",
    ),
    *seeded(LEAST, "AggregateData", "least of floats"),
)

HALF_PROGRAMS: dict[str, dict[str, object]] = {
    "halves": {"dtype": "float16"},
    "least of halves": {"dtype": "float16", "op": "min"},
    "bfloat16": {"dtype": "bfloat16"},
}
"""In addition to the fields of a mode that folds what it has stored."""

_in_halves = partial(Mutation, module="FoldData", program="halves")
_in_least_half = partial(Mutation, module="FoldData", program="least of halves")
_in_bfloat16 = partial(Mutation, module="FoldData", program="bfloat16")

HALF_FAULTS: tuple[Mutation, ...] = (
    _in_halves(
        "halves-swapped",
        find="pack_float16(high) ++ pack_float16(low)",
        replace="pack_float16(low) ++ pack_float16(high)",
    ),
    _in_halves("one-half-for-both", find="++ pack_float16(low)", replace="++ pack_float16(high)"),
    *seeded(FLOAT16, "FoldData", "halves"),
    _in_halves("half-overflow-uncounted", find="number[30:0] >= 0xf7ff000 &&", replace="false &&"),
    _in_halves("half-overflow-counted-late", find="number[30:0] >= 0xf7ff000", replace="number[30:0] >= 0xf800000"),
    _in_halves("infinite-half-counts", find=" && number[30:0] < INFINITY[30:0]", replace=""),
    _in_least_half("half-min-ignores-nan", find="a[14:0] > 0x7c00 || b[14:0] > 0x7c00", replace="false"),
    _in_least_half("half-negative-order-reversed", find="a[15:15] == 1 ? ~a : a | 0x8000", replace="a ^ 0x8000"),
    _in_least_half("half-min-is-max", find="order_a < order_b", replace="order_a > order_b"),
    _in_least_half("least-halves-swapped", find="high ++ low", replace="low ++ high"),
    _in_bfloat16(
        # To 8 digits of the significand, as if each step packed its sum.
        "half-rounds-each-step",
        find="((exponent - 1) << 23) + (sum >> 3) + up",
        replace="((exponent - 1) << 23) + (((sum + 0x3ffff + ((sum >> 19) & 1)) >> 19) << 16) + (up & 0)",
    ),
    *seeded(BFLOAT16, "FoldData", "bfloat16"),
)
"""Of formats that are added in binary32 and rounded once."""

FOLDED_PROGRAMS = PROGRAMS | HALF_PROGRAMS
"""The programs of a mode that folds what it has stored."""
FOLDED_FAULTS: tuple[Mutation, ...] = (*(replace(fault, module="FoldData") for fault in FAULTS), *HALF_FAULTS)
"""The faults of these."""
FOLDED_TESTS = dict.fromkeys(FOLDED_PROGRAMS, ("test_iii_folds",))
