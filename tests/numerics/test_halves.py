"""binary16 and bfloat16: conversions, and folds with one rounding, bit by bit against NumPy and ml_dtypes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from p4gen.host.collectives.arrays import array_type
from p4gen.vocabulary import DType, Op
from p4gen.vocabulary.folds import Fold
from p4gen.vocabulary.reductions import Numbers

from .folds import Switch, Words

pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: pip install 'p4gen[floats]'")

Halves = npt.NDArray[np.uint16]
"""Elements as bits."""
LANES = 64
PATTERNS = 1 << 16
EVERYTHING = os.environ.get("P4GEN_HALVES") == "all"
"""Whether all pairs of elements are added: 2^32 of each format, some minutes; ``scripts/test --full`` does it."""
SAMPLE = 1 << 20
INFINITY = {DType.FLOAT16: 0x7C00, DType.BFLOAT16: 0x7F80}
NAN = {DType.FLOAT16: 0x7E00, DType.BFLOAT16: 0x7FC0}
SCALE = {DType.FLOAT16: 112, DType.BFLOAT16: 0}
"""Sums are of elements times 2^-SCALE, exactly."""
OPS = {Op.SUM: np.add, Op.MIN: np.minimum, Op.MAX: np.maximum}

pytestmark = pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16], ids=str)


def numbers(dtype: DType, bits: Halves) -> npt.NDArray[np.float32]:
    """Elements as numbers of binary32, which has all of them."""
    with np.errstate(invalid="ignore"):
        return bits.view(array_type(dtype)).astype(np.float32)


def rounded(dtype: DType, values: npt.NDArray[np.float32]) -> Halves:
    """The bits of the nearest elements; what is not a number becomes the canonical one."""
    with np.errstate(over="ignore", invalid="ignore"):
        bits = values.astype(array_type(dtype)).view(np.uint16).copy()
    bits[np.isnan(values)] = NAN[dtype]
    return bits


def lanes_of(bits: Halves) -> Words:
    """Pairs of elements, the first in the high half."""
    return bits[..., 0::2].astype(np.uint32) << np.uint32(16) | bits[..., 1::2]


def halves_of(lanes: Words) -> Halves:
    return np.stack([lanes >> np.uint32(16), lanes & np.uint32(0xFFFF)], axis=-1).reshape(-1).astype(np.uint16)


def wanted(dtype: DType, op: Op, rows: Halves) -> tuple[Halves, npt.NDArray[np.bool_]]:
    """A fold of rows by NumPy in binary32, rounded once; and which elements became infinite."""
    if op is not Op.SUM:
        values = numbers(dtype, rows)
        found = OPS[op].reduce(values, axis=0)
        bits = rounded(dtype, found)
        # Of zeros, whose order NumPy leaves open, -0 is the lesser one.
        negative = (rows == 0x8000).any(axis=0) if op is Op.MIN else ~(rows == 0).any(axis=0)
        bits[found == 0] = np.where(negative, 0x8000, 0)[found == 0]
        return bits, np.zeros(len(bits), np.bool_)
    total, large = numbers(dtype, rows[0]), np.zeros(rows.shape[1], np.bool_)
    for row in rows[1:]:
        value = numbers(dtype, row)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = total + value
        large |= np.isinf(sums) & np.isfinite(total) & np.isfinite(value)
        total = sums
    bits = rounded(dtype, total)
    return bits, large | (np.isfinite(total) & (bits & 0x7FFF == INFINITY[dtype]))


def check(switch: Switch, dtype: DType, op: Op, rows: Halves, note: str = "", chosen: Sequence[int] = ()) -> None:
    """Fold ``rows``, or those that are ``chosen``."""
    lanes, full = switch(lanes_of(rows), sum(1 << each for each in chosen) or None)
    got, (right, large) = halves_of(lanes), wanted(dtype, op, rows[list(chosen)] if chosen else rows)
    wrong = np.flatnonzero(got != right)
    told = [f"{op} of {[f'{x:04x}' for x in rows[:, i]]} = {got[i]:04x}, not {right[i]:04x}" for i in wrong[:5]]
    assert not told, f"{note}: {len(wrong)} of {len(got)}: {told}"
    assert np.array_equal(full, large.reshape(-1, 2 * switch.lanes).any(axis=1)), note


def drawn(chance: np.random.Generator, rows: int, elements: int) -> Halves:
    """Any bits; bits that differ little, which nearly cancel; small numbers; large ones."""
    bits = chance.integers(0, PATTERNS, (rows, elements), np.uint16)
    near = (bits[0] ^ (np.arange(rows, dtype=np.uint16)[:, None] << np.uint16(15))) + chance.integers(
        0, 4, (rows, elements), np.uint16
    )
    kind = np.arange(elements) % 4
    bits = np.where(kind == 1, near, bits)
    bits = np.where(kind == 2, bits & np.uint16(0x87FF), bits)
    return np.where(kind == 3, bits & np.uint16(0xFBFF) | np.uint16(0x7800), bits).astype(np.uint16)


def fold(dtype: DType, op: Op = Op.SUM) -> Fold:
    return Fold(Numbers(op, dtype), counts=op.overflows)


def test_unpacking_is_exact(dtype: DType) -> None:
    """All elements become the binary32 numbers that NumPy makes of them, times a power of two."""
    name = dtype.function("unpack")
    every = np.arange(PATTERNS, dtype=np.uint16)
    for half, lanes in (("31:16", every.astype(np.uint32) << np.uint32(16)), ("15:0", every.astype(np.uint32))):
        got, _ = Switch([name], [f"element = {name}(stored_0[{half}]);"], 1)(lanes[None, :])
        right = np.ldexp(numbers(dtype, every), -SCALE[dtype])
        # Not of what is not a number, whose payload a processor may change.
        assert np.array_equal(got[~np.isnan(right)], right.view(np.uint32)[~np.isnan(right)])
        assert np.array_equal(np.isnan(got.view(np.float32)), np.isnan(right))


def test_an_element_alone_stays_what_it_is(dtype: DType) -> None:
    """All elements, those that are not numbers included: a Broadcast changes nothing."""
    every = np.arange(PATTERNS, dtype=np.uint16)
    lanes, full = Switch.of(fold(dtype), 1)(lanes_of(every)[None, :])
    assert np.array_equal(halves_of(lanes), every)
    assert not full.any()


def test_packing_rounds_to_the_nearest(dtype: DType, seed: int) -> None:
    """Any binary32 number; those in the middle of two elements, and beside the middle."""
    name = dtype.function("pack")
    chance = np.random.default_rng(seed)
    every = numbers(dtype, np.arange(PATTERNS, dtype=np.uint16))
    every = every[np.isfinite(every)]
    with np.errstate(over="ignore"):
        middle = (every + rounded(dtype, every * np.float32(1.01)).view(array_type(dtype)).astype(np.float32)) / 2
    beside = (
        np.ldexp(middle, -SCALE[dtype]).view(np.uint32)[:, None] + np.array([-1, 0, 1]).astype(np.uint32)
    ).reshape(-1)
    some = np.concatenate([chance.integers(0, 1 << 32, SAMPLE, np.uint32), beside])
    near = chance.integers(0, 36, SAMPLE).astype(np.uint32) << np.uint32(23) if dtype is DType.FLOAT16 else some
    some = np.concatenate([some, near[:SAMPLE] | some[:SAMPLE] & np.uint32(0x807FFFFF)])
    some = np.resize(some, -(-len(some) // LANES) * LANES)
    got, _ = Switch([name], [f"element = 16w0 ++ {name}(stored_0);"], 1)(some[None, :])
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.ldexp(some.view(np.float32), SCALE[dtype])
    right = rounded(dtype, values)
    number = ~np.isnan(values)
    wrong = np.flatnonzero(number & (got != right))
    told = [f"{some[i]:08x}: {got[i]:04x}, not {right[i]:04x}" for i in wrong[:5]]
    assert not told, told
    assert (got[~number] & 0x7FFF > INFINITY[dtype]).all()


@pytest.mark.parametrize("op", OPS, ids=str)
@pytest.mark.parametrize("sources", [2, 3, 8])
def test_folds(dtype: DType, op: Op, sources: int, seed: int) -> None:
    switch = Switch.of(fold(dtype, op), sources)
    for _ in range(1 if op is not Op.SUM else max(1, 4 // sources)):
        rows = drawn(np.random.default_rng(seed), sources, SAMPLE // sources // (2 * LANES) * 2 * LANES)
        check(switch, dtype, op, rows)


def test_only_sources_are_folded(dtype: DType, seed: int) -> None:
    """Each set of four sources: others are not added as zeros, which would make +0 of -0."""
    switch = Switch.of(fold(dtype), 4)
    for chosen in range(1, 16):
        rows = drawn(np.random.default_rng(seed), 4, 2 * LANES * 20)
        rows[:, ::7] = 0x8000
        some = [each for each in range(4) if chosen >> each & 1]
        if len(some) == 1:
            lanes, _ = switch(lanes_of(rows), chosen)
            assert np.array_equal(halves_of(lanes), rows[some[0]])
        else:
            check(switch, dtype, Op.SUM, rows, "", some)


def test_sums_are_not_rounded_between(dtype: DType) -> None:
    """1 and 2^-12 four times: only a sum that keeps all digits until the end is above 1. So are sums that a step would
    make infinite."""
    one, tiny = (0x3C00, 0x0C00) if dtype is DType.FLOAT16 else (0x3F80, 0x3B00)
    rows = np.zeros((5, 2 * LANES), np.uint16)
    rows[0, 0], rows[1:, 0] = one, tiny
    greatest = INFINITY[dtype] - 1
    rows[0, 1], rows[1, 1], rows[2, 1] = greatest, 0x5C00, greatest | 0x8000  # 256 in binary16
    switch = Switch.of(fold(dtype), 5)
    got = halves_of(switch(lanes_of(rows))[0])
    assert got[0] == one + 1
    if dtype is DType.FLOAT16:
        assert got[1] == 0x5C00
    check(switch, dtype, Op.SUM, rows)


@pytest.mark.long
def test_the_interpreter_agrees(dtype: DType, seed: int) -> None:
    rows = drawn(np.random.default_rng(seed), 3, 10240)
    for op in OPS:
        check(Switch.of(fold(dtype, op), 3, engine="interp"), dtype, op, rows)


def every_pair(dtype: DType) -> tuple[Switch, Any]:
    return Switch.of(fold(dtype), 2, 256), np.arange(PATTERNS, dtype=np.uint16)


def test_pairs(dtype: DType, seed: int) -> None:
    """All pairs, or some first elements with all second ones."""
    switch, second = every_pair(dtype)
    first = np.arange(PATTERNS) if EVERYTHING else np.random.default_rng(seed).choice(PATTERNS, 32, replace=False)
    for start in range(0, len(first), 32):
        some = first[start : start + 32].astype(np.uint16)
        rows = np.stack([np.repeat(some, PATTERNS), np.tile(second, len(some))])
        check(switch, dtype, Op.SUM, rows, f"first elements {some}")
