"""Elements and their reduction, from first principles: NumPy's 64-bit integers, and its floating-point numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p4gen.host.collectives.arrays import array_type
from p4gen.vocabulary import DType, Op

Values = npt.NDArray[Any]
"""A packet's elements: int64, wide enough that no sum of theirs overflows, or floating-point numbers."""
WHOLE = {DType.FLOAT32: 1 << 23, DType.FLOAT16: 1 << 10, DType.BFLOAT16: 1 << 7}
"""Up to here sums of two whole numbers are exact."""


@dataclass(frozen=True)
class Numbers:
    """The operation and the number format of elements."""

    op: Op = Op.SUM
    dtype: DType = DType.INT32

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest element; of floating-point numbers, whole ones whose sums are exact."""
        form = self.dtype.number_format
        return (int(form.least), int(form.greatest)) if form.integer else (-WHOLE[self.dtype], WHOLE[self.dtype])

    def encode(self, values: Values) -> bytes:
        """Elements as a payload: big-endian, one after the other."""
        size = self.dtype.number_format.bytes
        return np.ascontiguousarray(values.astype(self._numpy)).view(f"u{size}").astype(f">u{size}").tobytes()

    def decode(self, payload: bytes) -> Values:
        """A payload's elements."""
        wide, size = np.int64 if self.dtype.number_format.integer else self._numpy, self.dtype.number_format.bytes
        return np.frombuffer(payload, f">u{size}").astype(f"u{size}").view(self._numpy).astype(wide)

    def reduced(self, values: Sequence[Values]) -> Values:
        """NumPy's reduction of contributions, without overflow."""
        result: Values = getattr(np, self.op.reduction.numpy).reduce(np.stack(values), axis=0)
        return result

    def in_range(self, result: Values, *, saturating: bool) -> Values:
        """The result in the range of an element: saturated (for two contributions) or wrapped."""
        low, high = self.limits
        return np.clip(result, low, high) if saturating else (result - low) % (high + 1 - low) + low

    def random(self, rng: np.random.Generator, ranks: int, lanes: int) -> list[Values]:
        """A contribution for each rank; no partial result of them leaves the range of an element."""
        low, high = self.limits
        if self.op.overflows:
            low, high = -(-low // ranks), high // ranks
        return list(rng.integers(low, high, (ranks, lanes), np.int64, endpoint=True))

    @property
    def _numpy(self) -> np.dtype[Any]:
        return array_type(self.dtype)
