"""Conversion of arrays to and from packets (big-endian elements in whole packets), and their reduction."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from p4gen.errors import InputError, MissingToolError
from p4gen.vocabulary import DType, Op, Overflow
from p4gen.vocabulary.message import MAX_RANKS

Array = npt.NDArray[Any]
"""An array of a dtype that collectives work on, of any shape."""

Tree = Sequence["int | Tree"]
"""The numbers of arrays in the order in which a node reduces them; a tree stands for the result of another node."""
_BLOCK: Final = 1 << 15
"""Elements that are reduced at once, so that what is computed between stays in the processor's caches."""


def array_type(dtype: DType) -> np.dtype[Any]:
    """NumPy's type of arrays. Raises ``MissingToolError`` without the package that has it."""
    name = dtype.number_format.numpy
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        found: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    except ImportError:
        raise MissingToolError(f"arrays of {dtype} need the package ml_dtypes: pip install 'p4gen[floats]'") from None
    return found


def combine(op: Op, overflow: Overflow | None, left: Array, right: Array) -> Array:
    """The element-wise reduction of two arrays as the switch computes it: sums saturate, or wrap around."""
    return reduced(op, [left, right], saturating=overflow is not Overflow.WRAP)


def reduced(op: Op, arrays: Sequence[Array], *, saturating: bool) -> Array:
    """The reduction of arrays of one dtype, computed by NumPy without overflow. The result is saturated or wrapped at
    the end."""
    dtype = dtype_of(arrays[0])
    form, function = dtype.number_format, _function(op, dtype)
    found, flat = np.empty(arrays[0].shape, array_type(dtype)), [each.reshape(-1) for each in arrays]
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, found.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            parts = [each[block] for each in flat]
            exact = found.dtype if form.integer and _stays_in_range(op, dtype, parts) else np.dtype(form.exact)
            total = functools.reduce(function, (part.astype(exact, copy=False) for part in parts))
            if saturating and form.integer and exact != found.dtype:
                total = total.clip(form.least, form.greatest)
            found.reshape(-1)[block] = total.astype(found.dtype, copy=False)
    return found


def _stays_in_range(op: Op, dtype: DType, parts: Sequence[Array]) -> bool:
    """Whether no reduction of some of the integers overflows: it saves a conversion of all of them."""
    if not op.overflows:
        return True
    bounds = ((min, np.min), (max, np.max))
    least, greatest = (sum(limit(0, int(of(part))) for part in parts) for limit, of in bounds)
    return dtype.number_format.least <= least and greatest <= dtype.number_format.greatest


def folded(op: Op, tree: Tree, arrays: Sequence[Array]) -> Array:
    """The reduction of arrays of floating-point numbers by switches that fold: each node takes what it has stored in
    the order of ``tree``, in the format in which it adds, and rounds once. Results are equal bit by bit, except that
    what is not a number is NumPy's."""
    dtype = dtype_of(arrays[0])
    parts = [arrays[each] if isinstance(each, int) else folded(op, each, arrays) for each in tree]
    if len(parts) == 1:
        return parts[0]
    wide = array_type(DType(dtype.number_format.wide or dtype))
    with np.errstate(over="ignore", invalid="ignore"):
        return functools.reduce(_function(op, dtype), [part.astype(wide) for part in parts]).astype(array_type(dtype))


def _function(op: Op, dtype: DType) -> Callable[[Array, Array], Array]:
    """NumPy's function of two arrays, but for what it leaves open: of two zeros -0 is the lesser one."""
    function: Callable[[Array, Array], Array] = getattr(np, op.reduction.numpy)
    if dtype.number_format.integer or not op.reduction.selects:
        return function

    def selected(a: Array, b: Array) -> Array:
        found = function(a, b)
        signs = function(np.copysign(1, a), np.copysign(1, b)).astype(found.dtype)
        return np.where((a == 0) & (b == 0), np.copysign(found, signs), found)

    return selected


def wrong_elements(got: Array, wanted: Array) -> npt.NDArray[np.intp]:
    """The indices of elements, flattened, that are wrong: further from the wanted ones than their dtype tolerates."""
    tolerance = dtype_of(wanted).number_format.tolerance
    if not tolerance:
        return np.flatnonzero(got != wanted)
    exact = np.float64
    return np.flatnonzero(~np.isclose(got.astype(exact), wanted.astype(exact), rtol=tolerance, atol=0.0))


def agreement(dtype: DType) -> str:
    """How results that ``wrong_elements`` accepts agree with NumPy's, as the end of a sentence."""
    tolerance = dtype.number_format.tolerance
    return f"is within one part in {round(1 / tolerance):,} of NumPy's" if tolerance else "equals NumPy's"


def to_wire(values: Array, packet: int) -> memoryview:
    """The array as bytes on the wire, padded with zeros to whole packets of ``packet`` bytes. They are not modified
    later."""
    wire = np.empty(_padded(values.size, packet, values.itemsize), _bits(values.itemsize).newbyteorder(">"))
    wire[: values.size] = np.ascontiguousarray(values).reshape(-1).view(_bits(values.itemsize))
    wire[values.size :] = 0
    return wire.view(np.uint8).data.toreadonly()


def room_for(like: Array, packet: int) -> memoryview:
    """A buffer for an array like ``like``, in whole packets of ``packet`` bytes."""
    return np.zeros(like.itemsize * _padded(like.size, packet, like.itemsize), np.uint8).data


def from_wire(room: memoryview, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The array in bytes as they are on the wire."""
    size = dtype.number_format.bytes
    wire = np.frombuffer(room, _bits(size).newbyteorder(">"))[: math.prod(shape)]
    return wire.astype(_bits(size)).view(array_type(dtype)).reshape(shape)


def data_of(values: Array, packet: int) -> memoryview:
    """The bytes of an array, padded with zeros to whole packets of ``packet`` bytes: its own memory, if nothing has to
    be padded."""
    flat, size = np.ascontiguousarray(values).reshape(-1), _padded(values.size, packet, values.itemsize)
    if size > flat.size:
        flat = np.concatenate([flat, np.zeros(size - flat.size, flat.dtype)])
    return flat.view(np.uint8).data.toreadonly()


def array_in(room: memoryview, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The array in a buffer that it has been received in."""
    return np.frombuffer(room, array_type(dtype))[: math.prod(shape)].reshape(shape)


def divide(values: Array, ranks: int) -> list[Array]:
    """The array in ``ranks`` parts of equal size. Raises ``InputError`` when it cannot be divided evenly."""
    flat = values.reshape(-1)
    if flat.size % ranks:
        raise InputError(f"{flat.size} elements do not divide among {ranks} ranks")
    each = flat.size // ranks
    return [flat[i * each : (i + 1) * each] for i in range(ranks)]


def dtype_of(values: Array) -> DType:
    """The dtype as control messages name it. Raises ``InputError`` for a dtype without a wire code."""
    return _named(values.dtype)


@functools.cache
def _named(numpy: np.dtype[Any]) -> DType:
    for dtype in DType:
        if numpy.name == dtype.number_format.numpy and numpy.isnative:
            return dtype
    raise InputError(f"elements are {numpy}; collectives work on {' and '.join(DType)}")


def check_root(root: int, ranks: int, roots: int = MAX_RANKS) -> None:
    """Raises ``InputError`` unless ``root`` is a rank of the group, and one of the ``roots`` that can be roots."""
    if not 0 <= root < ranks:
        raise InputError(f"root {root} is not a rank of this group of {ranks}")
    if root >= roots:
        raise InputError(f"root {root}: control messages of the program name ranks 0 to {roots - 1} as roots")


def _padded(elements: int, packet: int, size: int) -> int:
    lanes = packet // size
    return -(-elements // lanes) * lanes


@functools.cache
def _bits(size: int) -> np.dtype[Any]:
    """Unsigned integers with the bits of elements of ``size`` bytes. NumPy swaps the bytes of its own types only."""
    return np.dtype(f"u{size}")
