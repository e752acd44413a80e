"""Faults of floating-point arithmetic: each breaks one rule of IEEE 754, or of how NaN and zeros are sent."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from p4gen.ptf.mutations import Mutation

PROGRAMS: dict[str, dict[str, object]] = {
    "floats": {"dtype": "float32"},
    "least of floats": {"dtype": "float32", "op": "min"},
}
"""In addition to a mode's own fields."""
TESTS = dict.fromkeys(PROGRAMS, ("test_floats",))

_in_sum = partial(Mutation, module="AggregateData", program="floats")
_in_least = partial(Mutation, module="AggregateData", program="least of floats")

FAULTS: tuple[Mutation, ...] = (
    _in_sum("round-half-up", find="((sum >> 3) | (sum >> 1) | sum) & 1", replace="1"),
    _in_sum("half-rounds-down", find="((sum >> 3) | (sum >> 1) | sum) & 1", replace="((sum >> 1) | sum) & 1"),
    _in_sum("sum-is-truncated", find="(sum >> 3) + up", replace="(sum >> 3)"),
    _in_sum("sticky-lost", find="{ aligned = aligned | 1; }", replace="{ }"),
    _in_sum("guard-off-by-one", find="(sum >> 2) & (", replace="(sum >> 1) & ("),
    _in_sum("far-numbers-are-near", find="if (distance > 31) { distance = 31; }", replace="distance = distance & 15;"),
    _in_sum("subnormal-flushed", find="if (lesser == 0) { lesser = 1; }", replace="if (lesser == 0) { addend = 0; }"),
    _in_sum("subnormal-has-a-leading-one", find="if (exponent == 0) { exponent = 1; } else {", replace="{"),
    _in_sum("underflow-is-sudden", find="sum[26:26] == 0 && exponent > 1", replace="sum[26:26] == 0 && exponent > 0"),
    _in_sum("carry-out-lost", find="exponent = exponent + 1;", replace=""),
    _in_sum("bit-lost-with-the-carry", find="(sum >> 1) | (sum & 1)", replace="sum >> 1"),
    _in_sum("exponent-wraps", find="if (result > INFINITY) { result = INFINITY; }", replace=""),
    _in_sum("inf-becomes-max", find="{ result = INFINITY; }", replace="{ result = INFINITY - 1; }"),
    _in_sum("greater-magnitude-comes-second", find="a[30:0] < b[30:0]", replace="a[30:0] > b[30:0]"),
    _in_sum("signs-compared-with-exponents", find="a[30:0] < b[30:0]", replace="a < b"),
    _in_sum("cancel-gives-minus-zero", find="sign = sign & small;", replace="sign = sign | small;"),
    _in_sum("zero-keeps-the-first-sign", find="sign = sign & small;", replace=""),
    _in_sum("nan-payload-leaks", find="large[30:0] > INFINITY[30:0] || ", replace=""),
    _in_sum("infinities-cancel-to-zero", find="(small ^ SIGN) == large) {", replace="false) {"),
    _in_sum("infinities-always-cancel", find="(small ^ SIGN) == large", replace="small == large"),
    _in_sum("infinite-contribution-counts", find=" && a[30:0] < INFINITY[30:0] && b", replace=" && b"),
    _in_least("min-ignores-nan", find="a[30:0] > INFINITY[30:0] || b[30:0] > INFINITY[30:0]", replace="false"),
    _in_least("min-ignores-one-nan", find="a[30:0] > INFINITY[30:0] || b", replace="b"),
    _in_least("negative-order-reversed", find="a[31:31] == 1 ? ~a : a | SIGN", replace="a ^ SIGN"),
    _in_least("zeros-are-equal", find="order_a < order_b", replace="a != SIGN && order_a < order_b"),
    _in_least("min-is-max", find="order_a < order_b", replace="order_a > order_b"),
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
_TIE = "if (number[11:0] == 0 && number[13:13] == 0) { up = 0; }"
_UNPACKED = "bit<8> exponent = (bit<8>)element[14:10];"
_PACKED = "bit<31> result = (number[30:0] >> 13) + up;"
_BFLOAT16_TIE = "if (number[14:0] == 0 && number[16:16] == 0) { up = 0; }"

HALF_FAULTS: tuple[Mutation, ...] = (
    _in_halves(
        "halves-swapped",
        find="pack_float16(high) ++ pack_float16(low)",
        replace="pack_float16(low) ++ pack_float16(high)",
    ),
    _in_halves("one-half-for-both", find="++ pack_float16(low)", replace="++ pack_float16(high)"),
    _in_halves(
        "half-ends-with-its-sign", find="element[9:0] ++ 13w0", replace="element[9:0] ++ element[15:15] ++ 12w0"
    ),
    _in_halves("subnormal-half-flushed", find=_UNPACKED, replace=f"{_UNPACKED} if (exponent == 0) {{ return 0; }}"),
    _in_halves(
        "subnormal-half-has-a-leading-one",
        find=_UNPACKED,
        replace=f"{_UNPACKED} if (exponent == 0) {{ exponent = 1; }}",
    ),
    _in_halves("infinite-half-is-finite", find="if (element[14:10] == 31) { exponent = 255; }", replace=""),
    _in_halves("half-loses-its-sign", find="return element[15:15] ++", replace="return 1w0 ++"),
    _in_halves("wide-sum-truncates", find=_PACKED, replace="bit<31> result = number[30:0] >> 13;"),
    _in_halves("wide-sum-rounds-half-up", find=_TIE, replace=""),
    _in_halves("wide-sum-rounds-half-down", find=_TIE, replace="if (number[11:0] == 0) { up = 0; }"),
    _in_halves("wide-sum-looks-at-even-only", find=_TIE, replace="if (number[13:13] == 0) { up = 0; }"),
    _in_halves(
        "half-underflow-is-sudden", find=_PACKED, replace=f"{_PACKED} if (number[30:23] == 0) {{ result = 0; }}"
    ),
    _in_halves("half-exponent-wraps", find="if (result > 0x7c00) { result = 0x7c00; }", replace=""),
    _in_halves("half-inf-becomes-max", find="{ result = 0x7c00; }", replace="{ result = 0x7bff; }"),
    _in_halves("half-nan-becomes-inf", find="if (number[30:0] > INFINITY[30:0])", replace="if (false)"),
    _in_halves("half-keeps-no-payload", find="number[22:13] == 0 ?", replace="true ?"),
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
    _in_bfloat16("bfloat16-truncates", find="number[31:16] + up", replace="number[31:16]"),
    _in_bfloat16("bfloat16-rounds-half-up", find=_BFLOAT16_TIE, replace=""),
    _in_bfloat16("bfloat16-looks-at-even-only", find=_BFLOAT16_TIE, replace="if (number[16:16] == 0) { up = 0; }"),
    _in_bfloat16("bfloat16-is-the-low-half", find="element ++ 16w0", replace="16w0 ++ element"),
)
"""Of formats that are added in binary32 and rounded once."""

FOLDED_PROGRAMS = PROGRAMS | HALF_PROGRAMS
"""The programs of a mode that folds what it has stored."""
FOLDED_FAULTS: tuple[Mutation, ...] = (*(replace(fault, module="FoldData") for fault in FAULTS), *HALF_FAULTS)
"""The faults of these."""
FOLDED_TESTS = dict.fromkeys(FOLDED_PROGRAMS, ("test_iii_folds",))
