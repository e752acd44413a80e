"""Block-scaled sums with float16 scales: against exact arithmetic, in any order of the ranks."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p4gen.papers.scin.codes import LARGEST
from p4gen.papers.scin.ranks.blocks_float16 import GUARD, INFINITE, NOT_A_NUMBER, TOP, add, from_int8, to_int8

BLOCK = 4
ELEMENTS = st.lists(st.integers(-128, LARGEST), min_size=BLOCK, max_size=BLOCK)
SCALES = st.one_of(st.integers(0, TOP), st.integers(0x3800, 0x4000), st.integers(0, 0x800))
OPERAND = st.tuples(ELEMENTS, SCALES)
Block = tuple[list[int], int]


def value(code: int) -> Fraction:
    return Fraction(float(np.array([code], np.uint16).view(np.float16)[0]))


def step(code: int) -> Fraction:
    """A last place of a scale."""
    return Fraction(2) ** (max(code >> 10, 1) - 25)


def summed(operands: list[Block]) -> Block:
    elements = np.array([e for e, _ in operands], np.int8)
    result, scale = add(elements[:, np.newaxis], np.array([[s] for _, s in operands], np.uint16))
    return [int(m) for m in result[0]], int(scale[0])


def nearest(exact: Fraction, codes: range) -> int:
    """The code of the nearest number, the even one of two."""
    return min(codes, key=lambda code: (abs(value(code) - exact), code & 1))


@settings(max_examples=50)
@given(st.lists(OPERAND, min_size=1, max_size=32))
def test_a_sum_is_the_exact_one_rounded_once(operands: list[Block]) -> None:
    elements, scale = summed(operands)
    top = max(code for _, code in operands)
    cut = len(operands) * step(top) / 2**GUARD  # what is cut off below the guard bits
    true = [sum((e[i] * value(code) for e, code in operands), Fraction(0)) for i in range(BLOCK)]
    greatest = max(map(abs, true))
    if scale not in (0, 1, TOP):
        assert abs(value(scale) - greatest / LARGEST) <= step(scale) / 2 + cut / LARGEST
    for element, exact in zip(elements, true, strict=True):
        off = abs(element * value(scale) - exact)
        if abs(element) < LARGEST:
            assert off <= value(scale) / 2 + cut
        elif scale != TOP:  # 127.5 and more saturate: a scale is half a last place too small at most
            assert off <= value(scale) / 2 + step(scale) * LARGEST / 2 + cut


@given(ELEMENTS, st.integers(0, TOP))
def test_one_operand_is_exact(elements: list[int], code: int) -> None:
    """Products lose nothing, so that the scale and the elements are rounded exactly."""
    found, scale = summed([(elements, code)])
    greatest = max(map(abs, elements)) * value(code)
    if greatest:
        around = range(max(scale - 2, 1), min(scale + 3, INFINITE))
        assert scale == nearest(greatest / LARGEST, around)
    for before, after in zip(elements, found, strict=True):
        exact = abs(before * value(code) / value(scale)) if greatest else Fraction(0)
        rounded = min(int(exact + Fraction(1, 2)), LARGEST)
        assert after == (rounded if before >= 0 else -rounded)


@given(ELEMENTS, st.integers(0, TOP))
def test_what_was_quantised_comes_back(elements: list[int], code: int) -> None:
    """A block with a greatest element of 127, as max-abs scales make it, is its own sum."""
    block = [*(max(element, -LARGEST) for element in elements), LARGEST]
    assert summed([(block, code)]) == ((block, code) if code else ([0] * (BLOCK + 1), 0))


@settings(max_examples=20)
@given(st.lists(OPERAND, min_size=3, max_size=4))
def test_the_order_of_ranks_does_not_matter(operands: list[Block]) -> None:
    assert len({repr(summed(list(order))) for order in permutations(operands)}) == 1


@pytest.mark.parametrize("code", [0x7C00, 0x7E01, 0x8000, 0x9000, 0xFC00, 0xFFFF])
def test_what_is_no_scale_breaks_its_block(code: int) -> None:
    assert summed([([5, 0, 0, 1], 0x3C00), ([1] * BLOCK, code)]) == ([0] * BLOCK, NOT_A_NUMBER)
    assert np.isnan(from_int8(np.ones((1, BLOCK), np.int8), np.array([code], np.uint16))).all()


def test_special_blocks() -> None:
    assert summed([([0] * BLOCK, TOP), ([7] * BLOCK, 0)]) == ([0] * BLOCK, 0)
    assert summed([([100] * BLOCK, 5), ([-100] * BLOCK, 5)]) == ([0] * BLOCK, 0)
    assert summed([([1] * BLOCK, 1)]) == ([1] * BLOCK, 1), "no scale is below the least number"
    assert summed([([-128, 127, 1, 0], TOP)] * 32) == ([-127, 127, 32, 0], TOP), "it saturates"
    assert summed([([127] * 3 + [0], 1)] * 3 + [([60, 0, 0, 0], 1)]) == ([127, 127, 127, 0], 3)


def test_accumulators_have_32_bits() -> None:
    greatest = 32 * 128 * 2047 << GUARD
    assert greatest < 1 << 31


@given(st.lists(st.floats(-1e6, 1e6), min_size=BLOCK, max_size=BLOCK))
def test_numbers_become_blocks(numbers: list[float]) -> None:
    elements, scale = to_int8(np.array([numbers]))
    found, width = from_int8(elements, scale)[0], float(value(int(scale[0])))
    greatest = max(map(abs, numbers))
    assert (int(scale[0]) == 0) == (greatest == 0)
    slack = LARGEST * float(step(int(scale[0]))) / 2 * (np.abs(elements[0]) == LARGEST)
    assert (np.abs(found - numbers) <= (width / 2 + slack) * (1 + 1e-9)).all()


def test_infinities_and_nans_break_their_block_alone() -> None:
    numbers = np.array([[1.0, np.nan], [np.inf, 1.0], [127.0, -2.0], [0.0, 0.0], [1e9, -1e9]])
    elements, scales = to_int8(numbers)
    assert scales.tolist() == [NOT_A_NUMBER, NOT_A_NUMBER, 0x3C00, 0, TOP]
    assert elements[2:].tolist() == [[127, -2], [0, 0], [127, -127]]
    assert np.isnan(from_int8(elements, scales)[:2]).all()
