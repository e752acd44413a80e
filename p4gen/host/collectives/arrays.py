"""Arrays and what they are on the wire: big-endian 32-bit elements in whole packets; and the reductions of a rank."""

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
"""int32 or uint32, as the program works on; any shape."""


def combine(op: Op, overflow: Overflow | None, left: Array, right: Array) -> Array:
    """Two arrays reduced as the switch does it: sums stop at the ends of their range unless they wrap."""
    return reduced(op, [left, right], saturating=overflow is not Overflow.WRAP)


def reduced(op: Op, arrays: Sequence[Array], *, saturating: bool) -> Array:
    """Arrays of one dtype as NumPy reduces them in 64 bits; what leaves the range saturates or wraps in the end."""
    dtype = arrays[0].dtype
    total: Array = functools.reduce(getattr(np, op.reduction.numpy), [each.astype(np.int64) for each in arrays])
    if saturating:
        info = np.iinfo(dtype)
        total = total.clip(info.min, info.max)
    return total.astype(dtype)


def to_wire(values: Array, packet: int) -> memoryview:
    """The bytes that go out, filled up with zeros to whole packets of ``packet`` bytes; they never change."""
    wire = np.zeros(_padded(values.size, packet), np.dtype(values.dtype).newbyteorder(">"))
    wire[: values.size] = values.reshape(-1)
    return memoryview(wire.tobytes())


def room_for(elements: int, packet: int) -> memoryview:
    """Room for as many elements to come in, in whole packets."""
    return memoryview(bytearray(4 * _padded(elements, packet)))


def from_wire(room: memoryview, dtype: DType, shape: tuple[int, ...]) -> Array:
    """What came in, in a dtype and shape."""
    native = np.dtype(str(dtype))
    wire = np.frombuffer(room, native.newbyteorder(">"))[: math.prod(shape)]
    return wire.astype(native).reshape(shape)


def divide(values: Array, ranks: int) -> list[Array]:
    """One part for each rank, in order; ``InputError`` when they would not be of one size."""
    flat = values.reshape(-1)
    if flat.size % ranks:
        raise InputError(f"{flat.size} elements do not divide among {ranks} ranks")
    each = flat.size // ranks
    return [flat[i * each : (i + 1) * each] for i in range(ranks)]


def dtype_of(values: Array) -> DType:
    """The dtype that a control message announces; ``InputError`` when there is none for it."""
    for dtype in DType:
        if values.dtype == np.dtype(str(dtype)):
            return dtype
    raise InputError(f"elements are {values.dtype}; collectives work on {' and '.join(DType)}")


def check_root(root: int, ranks: int) -> None:
    """``InputError`` unless ``root`` is one of the group's ranks."""
    if not 0 <= root < ranks:
        raise InputError(f"root {root} is not a rank of this group of {ranks}")


def _padded(elements: int, packet: int) -> int:
    lanes = packet // 4
    return -(-elements // lanes) * lanes
