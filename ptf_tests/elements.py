"""Elements and what reducing them means, from first principles: NumPy's 64-bit integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p4gen.spec import DType, Op

Values = npt.NDArray[np.int64]
"""A packet's elements, one a lane, wide enough that no sum of theirs overflows."""

_FUNCTIONS = {Op.SUM: np.add, Op.MIN: np.minimum, Op.MAX: np.maximum}


@dataclass(frozen=True)
class Numbers:
    """How elements are reduced, and what they are."""

    op: Op = Op.SUM
    dtype: DType = DType.INT32

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest element."""
        info = np.iinfo(self._numpy)
        return int(info.min), int(info.max)

    def encode(self, values: Values) -> bytes:
        """Elements as a payload: big-endian, one after the other."""
        return values.astype(self._numpy).astype(np.dtype(self._numpy).newbyteorder(">")).tobytes()

    def decode(self, payload: bytes) -> Values:
        """A payload's elements."""
        return np.frombuffer(payload, np.dtype(self._numpy).newbyteorder(">")).astype(np.int64)

    def reduced(self, values: Sequence[Values]) -> Values:
        """What NumPy says the op makes of contributions that do not overflow."""
        result: Values = _FUNCTIONS[self.op].reduce(np.stack(values), axis=0)
        return result

    def random(self, rng: np.random.Generator, ranks: int, lanes: int) -> list[Values]:
        """A contribution for each rank; no partial sum of them leaves the range of an element."""
        low, high = self.limits
        if self.op is Op.SUM:
            low, high = -(-low // ranks), high // ranks
        return list(rng.integers(low, high, (ranks, lanes), np.int64, endpoint=True))

    @property
    def _numpy(self) -> type[np.int32 | np.uint32]:
        return np.int32 if self.dtype is DType.INT32 else np.uint32
