"""Additions and comparisons of IEEE 754's binary32 numbers with their results, written out bit by bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from elements import Values

Case = tuple[int, int, int]
"""Two numbers and the result, as bits. The order of the two does not matter."""

ONE, TWO, THREE = 0x3F800000, 0x40000000, 0x40400000
NEXT = ONE + 1
HALF_STEP = 0x33800000
"""2^-24, half of the distance from one to the next number."""
STEP_BELOW = 0x33000000
"""2^-25, half of the distance from one to the number before it."""
LEAST = 0x00000001
"""2^-149, the least subnormal number."""
NORMAL = 0x00800000
"""2^-126, the least normal number."""
GREATEST, INFINITY = 0x7F7FFFFF, 0x7F800000
NAN = 0x7FC00000
"""The only one that a switch makes."""
MINUS = 1 << 31


def negative(*cases: Case) -> tuple[Case, ...]:
    """The cases, and the same with all signs inverted."""
    return (*cases, *((a ^ MINUS, b ^ MINUS, result ^ MINUS) for a, b, result in cases))


TIES = negative(
    (ONE, HALF_STEP, ONE),
    (NEXT, HALF_STEP, NEXT + 1),
    (0x4B800000, ONE, 0x4B800000),  # 2^24
    (0x4B800001, ONE, 0x4B800002),
    (ONE, STEP_BELOW | MINUS, ONE),
    (0x3F7FFFFF, STEP_BELOW, ONE),
    (0x3FFFFFFF, 0x34800000, TWO),  # in the middle only once the significand has overflowed
)
NEAR_TIES = negative(
    (ONE, HALF_STEP + 1, NEXT),
    (ONE, HALF_STEP - 1, ONE),
    (NEXT, HALF_STEP - 1, NEXT),
    (NEXT, HALF_STEP + 1, NEXT + 1),
    (ONE, STEP_BELOW + 1 | MINUS, 0x3F7FFFFF),
    (ONE, STEP_BELOW - 1 | MINUS, ONE),
    (ONE, LEAST, ONE),
    (0x3FFFFFFF, HALF_STEP + 1, TWO),  # the significand overflows
    (0x3FFFFFFF, 0x34800001, TWO + 1),
)
SUBNORMAL = negative(
    (LEAST, LEAST, 2),
    (LEAST | MINUS, 3, 2),
    (0x00400000, 0x00400000, NORMAL),
    (NORMAL - 1, LEAST, NORMAL),
    (NORMAL - 1, NORMAL - 1, 0x00FFFFFE),
    (0, LEAST, LEAST),
)
UNDERFLOW = negative(
    (NORMAL, LEAST | MINUS, NORMAL - 1),
    (NORMAL + 1, NORMAL | MINUS, LEAST),
    (0x01000000, 0x00FFFFFF | MINUS, LEAST),
    (0x01000001, 0x01000000 | MINUS, 2),
    (0x0C000000, 0x0BFFFFFF | MINUS, 0x00400000),
)
OVERFLOW = negative(
    (GREATEST, GREATEST, INFINITY),
    (GREATEST, 0x73000000, INFINITY),  # half of the last place: to the even number, which is infinite
    (0x7F000000, 0x7F000000, INFINITY),
)
LARGE = negative(
    (GREATEST, 0x72FFFFFF, GREATEST),
    (GREATEST, ONE, GREATEST),
    (INFINITY, ONE, INFINITY),
    (INFINITY, GREATEST | MINUS, INFINITY),
    (INFINITY, INFINITY, INFINITY),
)
NO_NUMBERS = (
    (0x7F800001, ONE, NAN),
    (0xFFFFFFFF, INFINITY, NAN),
    (0x7FC12345, 0, NAN),
    (0xFF812345, 0x7FFFFFFF, NAN),
    (NAN, MINUS, NAN),
)
ZEROS = (
    (MINUS, MINUS, MINUS),
    (MINUS, 0, 0),
    (0, 0, 0),
    (ONE, ONE | MINUS, 0),
    (LEAST, LEAST | MINUS, 0),
    (GREATEST, GREATEST | MINUS, 0),
    (MINUS, ONE, ONE),
    (MINUS, LEAST | MINUS, LEAST | MINUS),
)
CANCELLED = negative(
    (NEXT, ONE | MINUS, 0x34000000),
    (0x4B800001, 0xCB800000, TWO),
    (ONE, 0xBF7FFFFF, HALF_STEP),
    (0x40000001, 0xBFFFFFFF, 0x34C00000),
)
ORDERED = (
    (ONE, TWO, ONE),
    (ONE | MINUS, TWO | MINUS, TWO | MINUS),
    (ONE | MINUS, ONE, ONE | MINUS),
    (LEAST, 0, 0),
    (LEAST | MINUS, 0, LEAST | MINUS),
    (NORMAL, NORMAL - 1, NORMAL - 1),
    (INFINITY, GREATEST, GREATEST),
    (INFINITY | MINUS, GREATEST | MINUS, INFINITY | MINUS),
    (MINUS, 0, MINUS),
)
"""Two numbers and the lesser one; the other is the greater."""


def greater(cases: Sequence[Case]) -> tuple[Case, ...]:
    """The cases of a minimum as those of a maximum."""
    return tuple((a, b, b if result == a else a) for a, b, result in cases)


def numbers(bits: Sequence[int], lanes: int, rest: int) -> Values:
    """Elements of these bits, and ``rest`` in all other lanes."""
    words = np.full(lanes, rest, np.uint32)
    words[: len(bits)] = bits
    return words.view(np.float32)
