"""Conversion of arrays to and from packets (big-endian elements in whole packets), and their reduction."""

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
"""An array of a dtype that collectives work on, of any shape."""


def combine(op: Op, overflow: Overflow | None, left: Array, right: Array) -> Array:
    """The element-wise reduction of two arrays as the switch computes it: sums saturate, or wrap around."""
    return reduced(op, [left, right], saturating=overflow is not Overflow.WRAP)


def reduced(op: Op, arrays: Sequence[Array], *, saturating: bool) -> Array:
    """The reduction of arrays of one dtype, computed by NumPy without overflow. The result is saturated or wrapped at
    the end."""
    form = dtype_of(arrays[0]).number_format
    total: Array = functools.reduce(getattr(np, op.reduction.numpy), [each.astype(form.exact) for each in arrays])
    if saturating:
        total = total.clip(form.least, form.greatest)
    return total.astype(form.numpy)


def differing(got: Array, wanted: Array) -> npt.NDArray[np.intp]:
    """The indices of elements, flattened, that are wrong: further from the wanted ones than their dtype tolerates."""
    tolerance = dtype_of(wanted).number_format.tolerance
    if not tolerance:
        return np.flatnonzero(got != wanted)
    return np.flatnonzero(~np.isclose(got, wanted, rtol=tolerance, atol=0.0))


def agreement(dtype: DType) -> str:
    """How results that ``differing`` accepts agree with NumPy's, as the end of a sentence."""
    tolerance = dtype.number_format.tolerance
    return f"is within one part in {round(1 / tolerance):,} of NumPy's" if tolerance else "equals NumPy's"


def to_wire(values: Array, packet: int) -> memoryview:
    """The array as bytes on the wire, padded with zeros to whole packets of ``packet`` bytes. They are not modified
    later."""
    wire = np.zeros(_padded(values.size, packet, values.itemsize), np.dtype(values.dtype).newbyteorder(">"))
    wire[: values.size] = values.reshape(-1)
    return memoryview(wire.tobytes())


def room_for(like: Array, packet: int) -> memoryview:
    """A buffer for an array like ``like``, in whole packets of ``packet`` bytes."""
    return memoryview(bytearray(like.itemsize * _padded(like.size, packet, like.itemsize)))


def from_wire(room: memoryview, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The array in a received buffer."""
    native = np.dtype(dtype.number_format.numpy)
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
        if values.dtype == np.dtype(dtype.number_format.numpy):
            return dtype
    raise InputError(f"elements are {values.dtype}; collectives work on {' and '.join(DType)}")


def check_root(root: int, ranks: int) -> None:
    """Raises ``InputError`` unless ``root`` is a rank of the group."""
    if not 0 <= root < ranks:
        raise InputError(f"root {root} is not a rank of this group of {ranks}")


def _padded(elements: int, packet: int, size: int) -> int:
    lanes = packet // size
    return -(-elements // lanes) * lanes
