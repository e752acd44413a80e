"""Gradients as elements of packets: int32 that switches add, which float32 are multiplied by a factor for, or float32
themselves."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

FACTOR: Final = 1 << 20
LEAST, GREATEST = -(1 << 31), (1 << 31) - 1
"""What a sum is that does not fit, and a number that does not."""
Array = npt.NDArray[Any]


def whole(numbers: Array) -> Array:
    """Numbers as int32: of float32 the nearest to their product with the factor, within the limits."""
    if np.issubdtype(numbers.dtype, np.integer):
        return numbers
    return np.clip(np.rint(np.multiply(numbers, FACTOR, dtype=np.float64)), LEAST, GREATEST).astype(np.int32)


def saturated(elements: Array) -> bool:
    """Whether elements, or their sums in a wider type, have reached a limit."""
    return bool(np.any((elements <= LEAST) | (elements >= GREATEST)))


def packed(elements: Array) -> bytes:
    """Elements in network byte order: int32, or float32."""
    return elements.astype(">i4" if np.issubdtype(elements.dtype, np.integer) else ">f4").tobytes()


def unpacked(data: bytes, *, floats: bool) -> Array:
    """Undo ``packed``."""
    return np.frombuffer(data, ">f4" if floats else ">i4")
