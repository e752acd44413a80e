"""Faults to seed into SCIN's programs of elements with float16 scales; the scenarios must detect each."""

from __future__ import annotations

from functools import partial
from typing import Final

from p4gen.ptf.mutations import Mutation

HALVES: Final = "float16 scales"
"""The program that they are seeded into."""
PROGRAM: Final[dict[str, object]] = {"dtype": "int8_float16", "lanes": 128, "block": 64, "waves": 4}
"""In addition to the fields of all small programs."""
_BOUNDED: Final = "if (quotient > 127) { quotient = 127; }"
_EMPTY: Final = "if (empty == 1) { quotient = 0; }"
_NO_SCALE: Final = "if (largest > 0x7bff) {"
_scale = partial(Mutation, module="TrackScales", program=HALVES)
_lane = partial(Mutation, module="AggregateBlocks", program=HALVES)
_round = partial(Mutation, module="Requantise", program=HALVES)

FAULTS: Final = (
    _scale("leading-one-forgotten", find="(scale & 0x3ff) | 0x400", replace="(scale & 0x3ff)"),
    _scale("leading-one-of-subnormals", find="? scale : (scale", replace="? scale | 0x400 : (scale"),
    _scale("subnormals-have-exponent-0", find="? (bit<8>)1 :", replace="? (bit<8>)0 :"),
    _scale("factor-of-largest", find="significand_of(own.block_0)", replace="significand_of(top.block_0)"),
    _lane("products-unaligned", find="<< 8) >> shift;", replace="<< 8);"),
    _lane("products-lose-guard", find="factor << 8) >> shift;", replace="factor) >> shift << 8;"),
    _lane("elements-unsigned", find="(int<32>)(int<8>)element", replace="(int<32>)(bit<32>)element"),
    _round("greatest-is-positive", find="sum[31:31] == 1 ? -sum : sum;", replace="sum[31:31] == 1 ? 0 : sum;"),
    _round("greatest-is-last", find="return other > magnitude ? other : magnitude;", replace="return other;"),
    _round("quotient-has-24-bits", find="if (quotient[24:24] == 1) { above = above + 1; }", replace=""),
    _round("rest-forgotten", find="- quotient) { sticky = 1; }", replace="- quotient) { }"),
    _round("scale-rounded-down", find="(twice + ((bit<64>)1 << dropped) - 1 + odd)", replace="twice"),
    _round("ties-go-up", find="- 1 + odd) >>", replace=") >>"),
    _round("ties-go-down", find="- 1 + odd) >>", replace="- 1) >>"),
    _round("scale-infinite", find="if (scale > 0x7bff) { scale = 0x7bff; }", replace=""),
    _round("least-scale-is-zero", find="if (scale == 0) { scale = 1; }", replace=""),
    _round("zeros-have-a-scale", find="if (greatest == 0) { scale = 0; }", replace=""),
    _round("scale-below-subnormals", find="if (above > zeros + 1) { exponent", replace="if (true) { exponent"),
    _round("any-code-is-a-scale", find=_NO_SCALE, replace="if (false) {"),
    _round("infinity-is-a-scale", find=_NO_SCALE, replace="if (largest > 0x7c00) {"),
    _round("negative-is-a-scale", find=_NO_SCALE, replace="if (largest[14:10] == 31) {"),
    _round("code-without-numbers-kept", find="rounding.scale = 0x7e00;", replace="rounding.scale = largest;"),
    _round("elements-without-scale", find=_EMPTY, replace=""),
    _round("reciprocal-rounded-down", find="reciprocal + 1;", replace="reciprocal;"),
    _round("element-rounded-down", find="(twice + divisor) >> 1;", replace="twice >> 1;"),
    _round("element-wraps", find=_BOUNDED, replace=""),
    _round("element-up-to-128", find=_BOUNDED, replace=_BOUNDED.replace("127", "128")),
    _round("element-without-sign", find="if (sum[31:31] == 1) { element = -element; }", replace=""),
    _round(
        "blocks-mixed", find="meta.scales.largest.block_1, rounding)", replace="meta.scales.largest.block_0, rounding)"
    ),
)
