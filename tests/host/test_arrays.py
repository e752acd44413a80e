"""Arrays of each dtype on the wire, and their reduction as switches compute it."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from p4gen.compiled.elements import copy_elements
from p4gen.errors import InputError, MissingToolError
from p4gen.host.collectives.arrays import (
    array_in,
    array_type,
    data_of,
    dtype_of,
    folded,
    from_wire,
    reduced,
    room_for,
    to_wire,
    wrong_elements,
)
from p4gen.vocabulary import DType, Op

PACKET = 32


def values(dtype: DType, *numbers: float) -> npt.NDArray[Any]:
    if dtype is DType.BFLOAT16:
        pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: pip install 'p4gen[floats]'")
    return np.array(numbers, np.float64).astype(array_type(dtype))


@pytest.mark.parametrize("dtype", list(DType))
def test_arrays_come_back_as_they_went(dtype: DType) -> None:
    """Big-endian elements in whole packets, of an odd number."""
    sent = values(dtype, *range(35)).reshape(5, 7)
    wire = to_wire(sent, PACKET)
    size = dtype.number_format.bytes
    assert len(wire) == len(room_for(sent, PACKET)) == -(-35 * size // PACKET) * PACKET
    assert bytes(wire[:size]) == bytes(size)
    assert not any(wire[35 * size :])
    got = from_wire(wire, dtype, sent.shape)
    assert got.dtype == sent.dtype
    assert np.array_equal(got, sent)
    assert dtype_of(got) is dtype


@pytest.mark.parametrize("dtype", list(DType))
def test_what_is_sent_is_the_arrays_memory_unless_it_has_to_be_padded(dtype: DType) -> None:
    whole = values(dtype, *range(64))
    assert np.shares_memory(np.frombuffer(data_of(whole, PACKET), np.uint8), whole)
    sent = values(dtype, *range(35)).reshape(5, 7)
    data = data_of(sent, PACKET)
    assert len(data) == len(room_for(sent, PACKET))
    assert not any(data[sent.nbytes :])
    for array in (sent, sent.T):
        assert np.array_equal(array_in(data_of(array, PACKET), dtype, array.shape), array)


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("size", [0, 4, 28, 32, 36, 256, 1020])
def test_nics_turn_the_bytes_of_elements_around(width: int, size: int) -> None:
    source = np.random.default_rng(size).integers(0, 256, size + 1, np.uint8)
    to = np.zeros(size + 1, np.uint8)
    copy_elements(to.ctypes.data + 1, source.ctypes.data + 1, size, width)
    assert to[1:].tobytes() == source[1:].view(f"u{width}").byteswap().tobytes()
    assert to[0] == 0


@pytest.mark.parametrize(
    ("dtype", "bits"), [(DType.FLOAT16, "3c00c000"), (DType.BFLOAT16, "3f80c000"), (DType.FLOAT32, "3f800000c0000000")]
)
def test_the_first_element_of_a_lane_is_in_its_high_half(dtype: DType, bits: str) -> None:
    assert bytes(to_wire(values(dtype, 1, -2), PACKET)).hex().startswith(bits)


@pytest.mark.parametrize(
    ("dtype", "one", "tiny", "above"),
    [
        (DType.FLOAT16, 1.0, 2.0**-12, 1 + 2.0**-10),
        (DType.BFLOAT16, 1.0, 2.0**-9, 1 + 2.0**-7),
        (DType.FLOAT32, 1.0, 2.0**-24, 1.0),
    ],
)
def test_a_node_rounds_once(dtype: DType, one: float, tiny: float, above: float) -> None:
    """Four parts that are too small alone count where one node adds them, not where each passes a node of its own."""
    arrays = [values(dtype, one), *[values(dtype, tiny)] * 4]
    assert folded(Op.SUM, [0, 1, 2, 3, 4], arrays)[0] == above
    assert folded(Op.SUM, [[[[0, 1], 2], 3], 4], arrays)[0] == one
    assert dtype_of(folded(Op.SUM, [0, 1], arrays)) is dtype
    assert folded(Op.SUM, [[0], [[1]]], arrays)[0] == one
    assert reduced(Op.SUM, arrays, saturating=True)[0] == (above if dtype is not DType.FLOAT32 else 1 + 2.0**-22)


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16])
def test_of_zeros_the_negative_one_is_less(dtype: DType) -> None:
    some = [values(dtype, 0.0, -0.0, 0.0, -0.0, 1), values(dtype, -0.0, 0.0, 0.0, -0.0, -0.0)]
    for result in (folded(Op.MIN, [0, 1], some), reduced(Op.MIN, some, saturating=True)):
        assert [*np.signbit(result)] == [True, True, False, True, True]
    for result in (folded(Op.MAX, [0, 1], some), reduced(Op.MAX, some, saturating=True)):
        assert [*np.signbit(result)] == [False, False, False, True, False]


def test_results_of_halves_are_compared_with_what_they_tolerate() -> None:
    wanted, got = values(DType.FLOAT16, 1000, 1000, 0, 1), values(DType.FLOAT16, 1001, 1020, 0, 1)
    assert list(wrong_elements(got, wanted)) == [1]


def test_without_ml_dtypes_only_bfloat16_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(name)

    real = np.dtype

    def known(name: str) -> Any:
        if name == "bfloat16":
            raise TypeError(name)
        return real(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    monkeypatch.setattr(np, "dtype", known)
    assert array_type(DType.FLOAT16) == np.float16
    with pytest.raises(MissingToolError, match=r"arrays of bfloat16 need the package ml_dtypes: pip install 'p4gen\[f"):
        array_type(DType.BFLOAT16)


def test_arrays_of_other_types_are_refused() -> None:
    for wrong in (np.zeros(3, np.int16), np.zeros(3, np.float64), np.zeros(3, ">i4"), np.zeros(3, ">f2")):
        with pytest.raises(
            InputError, match="collectives work on int32 and uint32 and float32 and float16 and bfloat16"
        ):
            dtype_of(wrong)


@pytest.mark.parametrize("limit", [(1 << 31) // 5, (1 << 31) // 5 + 1, (1 << 31) - 1])
def test_sums_are_exact_whether_they_may_overflow_or_not(limit: int) -> None:
    """Blocks in which no sum can leave the range are added without a wider type."""
    arrays = list(np.random.default_rng(limit).integers(-limit, limit, (5, 70_000), np.int32))
    for array in arrays:
        array[40_000] = limit
    exact = np.sum(arrays, axis=0, dtype=np.int64)
    assert np.array_equal(reduced(Op.SUM, arrays, saturating=True), exact.clip(-(1 << 31), (1 << 31) - 1))
    assert np.array_equal(reduced(Op.SUM, arrays, saturating=False), exact.astype(np.int32))
    assert np.array_equal(reduced(Op.MIN, arrays, saturating=True), np.min(arrays, axis=0))
