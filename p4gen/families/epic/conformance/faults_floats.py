"""Faults of floating-point arithmetic: each breaks one rule of IEEE 754, or of how NaN and zeros are sent."""

from __future__ import annotations

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
