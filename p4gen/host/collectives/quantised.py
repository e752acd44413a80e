"""Floating-point numbers on switches that add integers: by a fixed factor, or by blocks with agreed exponents.

EPIC §I.1 and ATP multiply by a fixed factor; SwitchML first agrees on the largest exponent of each block of all ranks.
Both keep n quantised numbers so small that their sum is no overflow on any switch. NumPy rounds to the nearest integer,
half to even.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p4gen.errors import InputError
from p4gen.host.collectives.arrays import Array, array_type
from p4gen.vocabulary import DType

BLOCK: Final = 256
"""Elements that share an exponent."""
_ZERO, _NOT_FINITE = 0, 255
"""Exponent codes of blocks of zeros, and of blocks with an element that is not finite or too large."""
_BIAS: Final = 126
_LEAST, _GREATEST = -96, _NOT_FINITE - 1 - _BIAS
"""The exponents that codes say. The factors of lesser ones are no numbers of float32."""


@dataclass(frozen=True)
class Quantised:
    """Numbers for a switch, and how many of them are not as near to their originals as rounding makes them."""

    elements: Array
    saturated: int


def check_quantised(dtype: DType, ranks: int) -> None:
    """Raises ``InputError`` if floating-point numbers of so many ranks cannot be added as elements of ``dtype``."""
    form = dtype.number_format
    if not form.integer or form.least >= 0 or _headroom(dtype, ranks) < 1:
        raise InputError(f"{ranks} ranks' floating-point numbers cannot be added as {dtype}")


@dataclass(frozen=True)
class Fixed:
    """Numbers times ``factor``, as elements of ``dtype``, of ``ranks`` ranks.

    Numbers that are too large for a rank's share of the range saturate, and are counted; a NaN becomes the largest one.
    The sum of the others differs from the right one by at most ``ranks`` / (2 ``factor``), before it is rounded to the
    caller's format.
    """

    dtype: DType
    ranks: int
    factor: float

    def quantise(self, values: Array) -> Quantised:
        """The elements for the numbers ``values``, in one dimension."""
        limit = int(self.dtype.number_format.greatest) // self.ranks
        scaled = np.multiply(values, self.factor, dtype=np.float64)
        np.rint(scaled, out=scaled)
        fitting = np.clip(scaled, -limit, limit)
        saturated = int(np.count_nonzero(fitting != scaled))  # a NaN, too
        elements = np.nan_to_num(fitting, copy=False, nan=limit) if saturated else fitting
        return Quantised(elements.astype(array_type(self.dtype)), saturated)

    def numbers(self, total: Array, kind: np.dtype[Any]) -> Array:
        """The numbers that reduced elements stand for, in a floating-point type."""
        return (total / self.factor).astype(kind)


@dataclass(frozen=True)
class Blocks:
    """Numbers as elements of ``dtype``, of ``ranks`` ranks: each block of ``BLOCK`` has a power of two as its factor.

    If the agreed exponent of a block is e, so that all ranks' numbers in it are below 2**e, the sum differs from the
    right one by at most ranks * 2**(e - bits(dtype) + 1 + ceil(log2(ranks))), and e is at most 1 above the exponent of
    the largest number (for numbers below 2**-96: e is -96). Nothing saturates. A block in which a rank has a NaN, an
    infinity or a number of 2**128 and more becomes NaN at all ranks.
    """

    dtype: DType
    ranks: int

    @staticmethod
    def codes(values: Array) -> Array:
        """The code of each block's exponent, uint8: the greatest of all ranks' codes is the agreed one."""
        largest = np.abs(_blocks(values)).max(axis=1, initial=0)
        with np.errstate(invalid="ignore"):
            exponents = np.frexp(largest)[1]
        found = np.clip(exponents, _LEAST, _GREATEST + 1) + _BIAS
        return np.where(largest == 0, _ZERO, np.where(np.isfinite(largest), found, _NOT_FINITE)).astype(np.uint8)

    def quantise(self, values: Array, codes: Array) -> Quantised:
        """The elements for the numbers ``values``, in one dimension, with agreed codes."""
        shift = self._shifts(codes)
        # Products with powers of two are exact in float32, too: those that are no normal numbers round to 0 anyway.
        kind = np.float32 if values.dtype == np.float32 else np.float64
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            scaled = np.multiply(_blocks(values), np.ldexp(kind(1), shift)[:, np.newaxis], dtype=kind)
        if (codes == _NOT_FINITE).any():
            scaled[codes == _NOT_FINITE] = 0
        elements = np.rint(scaled, out=scaled).astype(array_type(self.dtype))
        return Quantised(elements.reshape(-1)[: values.size], 0)

    def numbers(self, total: Array, codes: Array, kind: np.dtype[Any]) -> Array:
        """The numbers that reduced elements stand for, in a floating-point type; of blocks without finite numbers
        NaN."""
        wide = np.promote_types(kind, np.float32).type
        rows = _blocks(total).astype(wide)
        rows *= np.ldexp(wide(1), -self._shifts(codes))[:, np.newaxis]
        if (codes == _NOT_FINITE).any():
            rows[codes == _NOT_FINITE] = np.nan
        return rows.reshape(-1)[: total.size].astype(kind, copy=False)

    def _shifts(self, codes: Array) -> Array:
        """The exponent of each block's factor."""
        exponents: Array = np.maximum(codes.astype(np.int32) - _BIAS, _LEAST)
        return _headroom(self.dtype, self.ranks) - exponents


def _blocks(values: Array) -> Array:
    """Values in rows of a block, the last one filled up with zeros."""
    rows = -(-values.size // BLOCK)
    if values.size == rows * BLOCK:
        return values.reshape(rows, BLOCK)
    padded = np.zeros((rows, BLOCK), values.dtype)
    padded.reshape(-1)[: values.size] = values
    return padded


def _headroom(dtype: DType, ranks: int) -> int:
    """The exponent below which all ranks' elements stay, so that their sum stays below the greatest power of two."""
    return dtype.number_format.bits - 2 - math.ceil(math.log2(ranks))
