"""Blocks of bytes with a float16 scale, as the paper has them, and how a switch adds them (section 3.4.4).

An element is a signed byte m and a scale c a float16 number, the greatest magnitude of its block divided by 127
(symmetric, max-abs): the value is m * c. A scale is no number unless its sign is plus and it is finite; so the greatest
scale has the greatest code, and whoever has no numbers at one source has none in the sum. Arrays have the blocks'
elements in their last axis; scales are the codes of float16 numbers, uint16.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from p4gen.papers.scin.codes import LARGEST

Array = npt.NDArray[Any]
GUARD: Final = 8
"""Bits below the product of an element and a significand that a sum keeps: 18 bits of a product, 5 of 32 ranks, and a
sign leave as many of 32."""
FRACTION: Final = 10
"""Bits of a significand behind the point."""
POINT: Final = 25
"""A number is its significand, as a whole number, times 2^(exponent - POINT)."""
INFINITE: Final = 0x7C00
"""The least code that is no number."""
NOT_A_NUMBER: Final = 0x7E00
"""The scale of a sum without numbers: float16's quiet NaN."""
TOP: Final = INFINITE - 1
"""The greatest scale of numbers, 65,504."""
GREATEST: Final = 65504.0
LEAST: Final = 2.0**-24
"""The least scale of a block that is not all zeros."""
NAMES: Final = {
    "guard": GUARD,
    "fraction": FRACTION,
    "point": POINT,
    "nan": NOT_A_NUMBER,
    "top": TOP,
    # A number of 31 bits has a quotient by 127 of 24 bits, or 25. With e = 127 * inverse - 2^38 = 119, the product with
    # the inverse is too great by less than 2^31 * 119 / 127, less than 2^38 / 127: rounded down, it is right.
    "inverse_bits": 38,
    "inverse": -(-(1 << 38) // LARGEST),
    "above": 24 - 1 - FRACTION - GUARD,
    # Numerators are below 128 * divisor where that matters, and divisors have 11 bits.
    "dividend": 7 + 2 * (FRACTION + 1),
}
"""For templates."""


def exponents(codes: Array) -> Array:
    """Of scales: from 1, which is also that of subnormal numbers."""
    found: Array = np.maximum(codes.astype(np.int64) >> FRACTION, 1)
    return found


def significands(codes: Array) -> Array:
    """Of scales: whole numbers of up to 11 bits."""
    codes = codes.astype(np.int64)
    found: Array = np.where(codes >> FRACTION, 1 << FRACTION, 0) + (codes & (1 << FRACTION) - 1)
    return found


def _nearest(scales: Array) -> Array:
    """The codes of the nearest float16 numbers, ties to even; 0 has its own, and nothing else has it."""
    bounded = np.where(scales > 0, np.clip(scales, LEAST, GREATEST), 0.0)
    return bounded.astype(np.float16).view(np.uint16)


def to_int8(numbers: Array) -> tuple[Array, Array]:
    """Elements (int8, as ``numbers``) and scales (uint16, without the last axis) of blocks of float64 numbers.

    Elements are rounded to even and saturate at ±127. A block with an infinity or a NaN has a scale that is no number.
    """
    finite = np.asarray(np.isfinite(numbers).all(axis=-1))
    numbers = np.where(finite[..., np.newaxis], numbers, 0.0)
    codes = _nearest(np.abs(numbers).max(axis=-1) / LARGEST)
    scale = np.where(codes == 0, 1.0, codes.view(np.float16).astype(np.float64))
    elements = np.clip(np.rint(numbers / scale[..., np.newaxis]), -LARGEST, LARGEST).astype(np.int8)
    return elements, np.where(finite, codes, NOT_A_NUMBER).astype(np.uint16)


def from_int8(elements: Array, codes: Array) -> Array:
    """The numbers of blocks, float64."""
    scale = np.ldexp(significands(codes).astype(np.float64), exponents(codes) - POINT)
    scale = np.where(codes >= INFINITE, np.nan, scale)
    return np.asarray(elements.astype(np.float64) * scale[..., np.newaxis])


def add(elements: Array, codes: Array) -> tuple[Array, Array]:
    """The sum over the first axis, up to 32 ranks, in integers of 32 bits: the order of the ranks does not matter.

    Products of elements and significands are exact. They are aligned to the greatest exponent of their block, with
    ``GUARD`` bits below it, rounded down, and added. The scale of the sum is its greatest magnitude divided by 127, the
    nearest float16 number; an element is the sum divided by it, half rounded away from zero.
    """
    top = codes.max(axis=0)
    highest = exponents(top)
    products = elements.astype(np.int64) * significands(codes)[..., np.newaxis]
    total = ((products << GUARD) >> (highest - exponents(codes))[..., np.newaxis]).sum(axis=0)
    greatest = np.abs(total).max(axis=-1)
    # Exact: float64 is too fine for a quotient of 31 bits by 127 to become a tie of float16 that it is not.
    result = _nearest(np.ldexp(greatest / LARGEST, highest - POINT - GUARD))
    below = exponents(result) + GUARD - highest
    divisor = np.maximum(significands(result), 1) << np.maximum(below, 0) + 1
    magnitude = np.abs(total) << (np.maximum(-below, 0) + 1)[..., np.newaxis]
    quotient = (magnitude + (divisor >> 1)[..., np.newaxis]) // divisor[..., np.newaxis]
    rounded = np.sign(total) * np.minimum(quotient, LARGEST)
    broken = top >= INFINITE
    rounded = np.where(broken[..., np.newaxis], 0, rounded)
    return rounded.astype(np.int8), np.where(broken, NOT_A_NUMBER, result).astype(np.uint16)
