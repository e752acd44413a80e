"""Floating point in integer operations, bit by bit against NumPy (IEEE 754-2019, binary32)."""

from __future__ import annotations

import os

import numpy as np
import pytest

from p4gen.model import Model
from p4gen.papers.epic.spec import EpicSpec
from p4gen.vocabulary import DType, Op

from .functions import LANES, Words, applied, model

NAN = np.uint32(0x7FC00000)
PAIRS = int(os.environ.get("P4GEN_FLOATS", "1000000")) // LANES * LANES
"""Pairs of each kind of draw together; ``scripts/test --full`` has 10^8."""
STEP = 1 << 20

CLASSES = np.array(
    [
        0, 1, 2, 3, 0x00400000, 0x007FFFFE, 0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x01FFFFFF,
        0x0C000000, 0x33000000, 0x337FFFFF, 0x33800000, 0x33800001, 0x34000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001,
        0x3FFFFFFF, 0x40000000, 0x4B000000, 0x4B7FFFFF, 0x4B800000, 0x4B800001, 0x4C000000, 0x73000000, 0x737FFFFF,
        0x73800000, 0x7E800000, 0x7EFFFFFF, 0x7F000000, 0x7F7FFFFE, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FBFFFFF,
        0x7FC00000, 0x7FFFFFFF,
    ],
    np.uint32,
)  # fmt: skip
"""Zero, subnormals, both ends of exponents, halves of the last place, infinity, quiet and signalling NaN."""


def wanted(op: Op, a: Words, b: Words) -> Words:
    """The results by NumPy. Of two zeros the minimum is -0 and the maximum +0, which NumPy leaves open."""
    x, y = a.view(np.float32), b.view(np.float32)
    with np.errstate(all="ignore"):
        result: np.ndarray = getattr(np, op.reduction.numpy)(x, y)
    bits = result.view(np.uint32).copy()
    zeros = (x == 0) & (y == 0)
    if op is Op.MIN:
        bits[zeros] = (a | b)[zeros]
    elif op is Op.MAX:
        bits[zeros] = (a & b)[zeros]
    bits[np.isnan(result)] = NAN
    return bits


def check(switch: Model, op: Op, a: Words, b: Words) -> None:
    got, right = applied(switch, a, b), wanted(op, a, b)
    wrong = np.flatnonzero(got != right)
    told = [f"{op}({a[i]:08x}, {b[i]:08x}) = {got[i]:08x}, not {right[i]:08x}" for i in wrong[:5]]
    assert not told, f"{len(wrong)} of {len(a)}: {told}"


def padded(values: Words) -> Words:
    return np.resize(values, -(-len(values) // LANES) * LANES)


def every_pair(values: Words) -> tuple[Words, Words]:
    a, b = np.meshgrid(values, values)
    return padded(a.ravel()), padded(b.ravel())


def drawn(chance: np.random.Generator, count: int) -> tuple[Words, Words]:
    """Any bits; exponents that are near each other; numbers that nearly cancel."""
    a = chance.integers(0, 1 << 32, count, np.uint32)
    b = chance.integers(0, 1 << 32, count, np.uint32)
    near = (a >> np.uint32(23)) + chance.integers(-26, 27, count).astype(np.uint32) & np.uint32(0xFF)
    kind = np.arange(count) % 4
    b = np.where(kind == 1, b & np.uint32(0x807FFFFF) | near << np.uint32(23), b)
    b = np.where(kind == 2, (a ^ np.uint32(1 << 31)) + chance.integers(-3, 4, count).astype(np.uint32), b)
    subnormal = np.uint32(0x80FFFFFF)
    return np.where(kind == 3, a & subnormal, a), np.where(kind == 3, b & subnormal, b)


@pytest.fixture(scope="module", params=[Op.SUM, Op.MIN, Op.MAX], ids=str)
def op(request: pytest.FixtureRequest) -> Op:
    found: Op = request.param
    return found


@pytest.fixture(scope="module")
def switch(op: Op) -> Model:
    assert op.reduction.function is not None
    return model(EpicSpec(dtype=DType.FLOAT32, op=op), DType.FLOAT32.function(op.reduction.function), "jit")


def test_all_pairs_of_classes(switch: Model, op: Op) -> None:
    check(switch, op, *every_pair(np.concatenate([CLASSES, CLASSES | np.uint32(1 << 31)])))


def test_drawn_pairs(switch: Model, op: Op, seed: int) -> None:
    chance = np.random.default_rng(seed)
    for done in range(0, PAIRS, STEP):
        check(switch, op, *drawn(chance, min(STEP, PAIRS - done)))


def test_the_interpreter_agrees(switch: Model, op: Op, seed: int) -> None:
    assert op.reduction.function is not None
    other = model(EpicSpec(dtype=DType.FLOAT32, op=op), DType.FLOAT32.function(op.reduction.function), "interp")
    check(other, op, *drawn(np.random.default_rng(seed), 20 * LANES))
