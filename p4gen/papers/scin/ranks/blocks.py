"""Block-scaled numbers, and how a switch adds them: quantisation in the network (section 3.4.4).

A block is a row of elements with one scale. In MXINT8, of OCP's Microscaling Formats (MX) v1.0, an element is a signed
byte m and a scale a byte e: the value is m * 2^(e - 127 - 6), and e = 255 stands for a block without numbers. Arrays
have the blocks' elements in their last axis.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from p4gen.papers.scin.codes import FRACTION, GUARD, LARGEST, NOT_A_NUMBER, TOP

Array = npt.NDArray[Any]
BIAS: Final = 127
_FURTHEST: Final = 31
"""An element that is this many bits below the largest scale is 0, or -1 if it is negative."""


def to_mxint8(numbers: Array) -> tuple[Array, Array]:
    """Elements (int8, as ``numbers``) and scales (uint8, without the last axis) of blocks of float64 numbers.

    The scale is the power of two at or below the greatest magnitude (MX v1.0, section 6.3), elements are rounded to
    even and saturate at ±127. A block with an infinity or a NaN has the scale 255.
    """
    finite = np.asarray(np.isfinite(numbers).all(axis=-1))
    numbers = np.where(finite[..., np.newaxis], numbers, 0.0)
    greatest = np.abs(numbers).max(axis=-1)
    _, exponent = np.frexp(np.where(greatest > 0, greatest, 1.0))
    scale = np.where(greatest > 0, np.clip(exponent - 1 + BIAS, 0, TOP), 0)
    elements = np.rint(np.ldexp(numbers, BIAS + FRACTION - scale[..., np.newaxis]))
    elements = np.clip(elements, -LARGEST, LARGEST).astype(np.int8)
    return elements, np.where(finite, scale, NOT_A_NUMBER).astype(np.uint8)


def from_mxint8(elements: Array, scales: Array) -> Array:
    """The numbers of blocks, float64."""
    exponent = scales.astype(np.int32)[..., np.newaxis] - BIAS - FRACTION
    numbers = np.ldexp(elements.astype(np.float64), exponent)
    return np.where((scales == NOT_A_NUMBER)[..., np.newaxis], np.nan, numbers)


def add(elements: Array, scales: Array) -> tuple[Array, Array]:
    """The sum over the first axis, up to 32 ranks, in integers of 32 bits: the order of the ranks does not matter.

    Elements are aligned to the greatest scale, with ``GUARD`` bits below it, added, and rounded once (half up).
    """
    scales = scales.astype(np.int64)
    top = scales.max(axis=0)
    shift = np.minimum(top - scales, _FURTHEST)[..., np.newaxis]
    aligned = (elements.astype(np.int64) << GUARD) >> shift
    total = aligned.sum(axis=0)
    used = np.bitwise_or.reduce(np.where(total < 0, ~total, total), axis=-1)
    _, bits = np.frexp(used.astype(np.float64))  # exact: 28 bits
    drop = np.maximum(bits - 1 - FRACTION, GUARD - top)
    wide = drop[..., np.newaxis]
    half = np.where(wide > 0, np.int64(1) << np.maximum(wide - 1, 0), 0)
    rounded = np.where(wide > 0, (total + half) >> np.maximum(wide, 0), total << np.maximum(-wide, 0))
    result = np.clip(rounded, -LARGEST, LARGEST)
    scale = np.minimum(top - GUARD + drop, TOP)
    empty, broken = ~(total != 0).any(axis=-1), top == NOT_A_NUMBER
    result = np.where((empty | broken)[..., np.newaxis], 0, result)
    scale = np.where(broken, NOT_A_NUMBER, np.where(empty, 0, scale))
    return result.astype(np.int8), scale.astype(np.uint8)
