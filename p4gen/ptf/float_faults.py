"""Faults of floating-point arithmetic in P4 (``templates/shared``), for programs of all families that have it: each
breaks a rule of IEEE 754, or of how NaN and zeros are sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from p4gen.ptf.mutations import Mutation

Faults = Sequence[tuple[str, str, str]]
"""Name, and what is found and replaced."""

SUMS: Final[Faults] = (
    ("round-half-up", "((sum >> 3) | (sum >> 1) | sum) & 1", "1"),
    ("half-rounds-down", "((sum >> 3) | (sum >> 1) | sum) & 1", "((sum >> 1) | sum) & 1"),
    ("sum-is-truncated", "(sum >> 3) + up", "(sum >> 3)"),
    ("sticky-lost", "{ aligned = aligned | 1; }", "{ }"),
    ("guard-off-by-one", "(sum >> 2) & (", "(sum >> 1) & ("),
    ("far-numbers-are-near", "if (distance > 31) { distance = 31; }", "distance = distance & 15;"),
    ("subnormal-flushed", "if (lesser == 0) { lesser = 1; }", "if (lesser == 0) { addend = 0; }"),
    ("subnormal-has-a-leading-one", "if (exponent == 0) { exponent = 1; } else {", "{"),
    ("underflow-is-sudden", "sum[26:26] == 0 && exponent > 1", "sum[26:26] == 0 && exponent > 0"),
    ("carry-out-lost", "exponent = exponent + 1;", ""),
    ("bit-lost-with-the-carry", "(sum >> 1) | (sum & 1)", "sum >> 1"),
    ("exponent-wraps", "if (result > INFINITY) { result = INFINITY; }", ""),
    ("inf-becomes-max", "{ result = INFINITY; }", "{ result = INFINITY - 1; }"),
    ("greater-magnitude-comes-second", "a[30:0] < b[30:0]", "a[30:0] > b[30:0]"),
    ("signs-compared-with-exponents", "a[30:0] < b[30:0]", "a < b"),
    ("cancel-gives-minus-zero", "sign = sign & small;", "sign = sign | small;"),
    ("zero-keeps-the-first-sign", "sign = sign & small;", ""),
    ("nan-payload-leaks", "large[30:0] > INFINITY[30:0] || ", ""),
    ("infinities-cancel-to-zero", "(small ^ SIGN) == large) {", "false) {"),
    ("infinities-always-cancel", "(small ^ SIGN) == large", "small == large"),
)
"""Of ``add_float32``."""
LEAST: Final[Faults] = (
    ("min-ignores-nan", "a[30:0] > INFINITY[30:0] || b[30:0] > INFINITY[30:0]", "false"),
    ("min-ignores-one-nan", "a[30:0] > INFINITY[30:0] || b", "b"),
    ("negative-order-reversed", "a[31:31] == 1 ? ~a : a | SIGN", "a ^ SIGN"),
    ("zeros-are-equal", "order_a < order_b", "a != SIGN && order_a < order_b"),
    ("min-is-max", "order_a < order_b", "order_a > order_b"),
)
"""Of ``min_float32``."""

_TIE: Final = "if (number[11:0] == 0 && number[13:13] == 0) { up = 0; }"
_UNPACKED: Final = "bit<8> exponent = (bit<8>)element[14:10];"
_PACKED: Final = "bit<31> result = (number[30:0] >> 13) + up;"
_BFLOAT16_TIE: Final = "if (number[14:0] == 0 && number[16:16] == 0) { up = 0; }"

FLOAT16: Final[Faults] = (
    ("half-ends-with-its-sign", "element[9:0] ++ 13w0", "element[9:0] ++ element[15:15] ++ 12w0"),
    ("subnormal-half-flushed", _UNPACKED, f"{_UNPACKED} if (exponent == 0) {{ return 0; }}"),
    ("subnormal-half-has-a-leading-one", _UNPACKED, f"{_UNPACKED} if (exponent == 0) {{ exponent = 1; }}"),
    ("infinite-half-is-finite", "if (element[14:10] == 31) { exponent = 255; }", ""),
    ("half-loses-its-sign", "return element[15:15] ++", "return 1w0 ++"),
    ("wide-sum-truncates", _PACKED, "bit<31> result = number[30:0] >> 13;"),
    ("wide-sum-rounds-half-up", _TIE, ""),
    ("wide-sum-rounds-half-down", _TIE, "if (number[11:0] == 0) { up = 0; }"),
    ("wide-sum-looks-at-even-only", _TIE, "if (number[13:13] == 0) { up = 0; }"),
    ("half-underflow-is-sudden", _PACKED, f"{_PACKED} if (number[30:23] == 0) {{ result = 0; }}"),
    ("half-exponent-wraps", "if (result > 0x7c00) { result = 0x7c00; }", ""),
    ("half-inf-becomes-max", "{ result = 0x7c00; }", "{ result = 0x7bff; }"),
    ("half-nan-becomes-inf", "if (number[30:0] > INFINITY[30:0])", "if (false)"),
    ("half-keeps-no-payload", "number[22:13] == 0 ?", "true ?"),
)
"""Of ``unpack_float16`` and ``pack_float16``."""
BFLOAT16: Final[Faults] = (
    ("bfloat16-truncates", "number[31:16] + up", "number[31:16]"),
    ("bfloat16-rounds-half-up", _BFLOAT16_TIE, ""),
    ("bfloat16-looks-at-even-only", _BFLOAT16_TIE, "if (number[16:16] == 0) { up = 0; }"),
    ("bfloat16-is-the-low-half", "element ++ 16w0", "16w0 ++ element"),
)
"""Of ``unpack_bfloat16`` and ``pack_bfloat16``."""


def seeded(faults: Faults, module: str, program: str) -> Iterator[Mutation]:
    """The faults in a program of a family's list. ``module`` is the one whose lanes call the functions."""
    return (Mutation(name, module, find, replace, program) for name, find, replace in faults)
