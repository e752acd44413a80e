"""Conversion of arrays to and from packets (big-endian 32-bit elements in whole packets), and their reduction."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from p4gen.errors import InputError
from p4gen.spec import DType, Op, Overflow

Array = npt.NDArray[Any]
"""An array of int32 or uint32, of any shape."""


def combine(op: Op, overflow: Overflow | None, left: Array, right: Array) -> Array:
    """The element-wise reduction of two arrays as the switch computes it: sums saturate, or wrap around."""
    return reduced(op, [left, right], saturating=overflow is not Overflow.WRAP)


def reduced(op: Op, arrays: Sequence[Array], *, saturating: bool) -> Array:
    """The reduction of arrays of one dtype, computed by NumPy in 64 bits. The result is saturated or wrapped at the
    end."""
    dtype = arrays[0].dtype
    total: Array = functools.reduce(getattr(np, op.reduction.numpy), [each.astype(np.int64) for each in arrays])
    if saturating:
        info = np.iinfo(dtype)
        total = total.clip(info.min, info.max)
    return total.astype(dtype)


def to_wire(values: Array, packet: int) -> memoryview:
    """The array as bytes on the wire, padded with zeros to whole packets of ``packet`` bytes. They are not modified
    later."""
    wire = np.zeros(_padded(values.size, packet), np.dtype(values.dtype).newbyteorder(">"))
    wire[: values.size] = values.reshape(-1)
    return memoryview(wire.tobytes())


def room_for(elements: int, packet: int) -> memoryview:
    """A buffer for ``elements`` elements, in whole packets of ``packet`` bytes."""
    return memoryview(bytearray(4 * _padded(elements, packet)))


def from_wire(room: memoryview, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The array in a received buffer."""
    native = np.dtype(str(dtype))
    wire = np.frombuffer(room, native.newbyteorder(">"))[: math.prod(shape)]
    return wire.astype(native).reshape(shape)


def divide(values: Array, ranks: int) -> list[Array]:
    """The array in ``ranks`` parts of equal size. Raises ``InputError`` when it cannot be divided evenly."""
    flat = values.reshape(-1)
    if flat.size % ranks:
        raise InputError(f"{flat.size} elements do not divide among {ranks} ranks")
    each = flat.size // ranks
    return [flat[i * each : (i + 1) * each] for i in range(ranks)]


def dtype_of(values: Array) -> DType:
    """The dtype as control messages name it. Raises ``InputError`` for a dtype without a wire code."""
    for dtype in DType:
        if values.dtype == np.dtype(str(dtype)):
            return dtype
    raise InputError(f"elements are {values.dtype}; collectives work on {' and '.join(DType)}")


def check_root(root: int, ranks: int) -> None:
    """Raises ``InputError`` unless ``root`` is a rank of the group."""
    if not 0 <= root < ranks:
        raise InputError(f"root {root} is not a rank of this group of {ranks}")


def _padded(elements: int, packet: int) -> int:
    lanes = packet // 4
    return -(-elements // lanes) * lanes
