"""Rows of bits, a contribution each, and what a switch makes of them that folds them in their order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import floats
import halves
import numpy as np
import numpy.typing as npt
from inc import IncTest

from p4gen.host.collectives.arrays import array_type
from p4gen.vocabulary import DType

Limits = tuple[int, int]


def one_too_many(limits: Limits, edges: int) -> Iterator[tuple[list[int], int, bool]]:
    """The elements of edges, of which one leads beyond the limits or, later, back inside; their saturating sum; and
    whether it has saturated."""
    for beyond, end, edge in itertools.product((True, False), limits, range(1, edges)):
        step = 1 if (end > 0) is beyond else -1
        yield [end, *(step if at == edge else 0 for at in range(1, edges))], end if beyond else end + step, beyond


NAN = {DType.FLOAT32: floats.NAN, DType.FLOAT16: halves.FLOAT16.nan, DType.BFLOAT16: halves.BFLOAT16.nan}


class Rows(IncTest):
    """Contributions of floating-point numbers as rows of bits of the program's dtype."""

    def values(self, bits: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Elements of these bits."""
        return bits.astype(f"u{self.spec.dtype.number_format.bytes}").view(array_type(self.spec.dtype))

    def folded(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """NumPy's sum in binary32 in the order of rows, rounded once; bits."""
        with np.errstate(all="ignore"):
            wide = [self.values(row).astype(np.float32) for row in rows]
            total = wide[0]
            for each in wide[1:]:
                total = total + each
            bits = total.astype(array_type(self.spec.dtype)).view(f"u{self.spec.dtype.number_format.bytes}")
        return np.where(np.isnan(total), NAN[self.spec.dtype], bits)

    def drawn(self, rows: int) -> npt.NDArray[Any]:
        """Bits of any numbers."""
        return self.np_random.integers(0, 1 << self.spec.dtype.number_format.bits, (rows, self.spec.elements))
