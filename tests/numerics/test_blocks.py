"""SCIN's block-scaled sums: against exact arithmetic, in any order of the ranks."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.experiments.experiment import Order
from p4gen.papers.scin.codes import GUARD, LARGEST, NOT_A_NUMBER
from p4gen.papers.scin.experiments import FACET
from p4gen.papers.scin.ranks.blocks import add, from_mxint8, to_mxint8

BLOCK = 4
ELEMENTS = st.lists(st.integers(-LARGEST, LARGEST), min_size=BLOCK, max_size=BLOCK)
OPERAND = st.tuples(ELEMENTS, st.integers(60, 200))


def exact(elements: list[int], scale: int) -> list[Fraction]:
    return [Fraction(m) * Fraction(2) ** (scale - 133) for m in elements]


def summed(operands: list[tuple[list[int], int]]) -> tuple[list[int], int]:
    elements = np.array([e for e, _ in operands], np.int8)
    result, scale = add(elements[:, np.newaxis], np.array([[s] for _, s in operands], np.uint8))
    return [int(m) for m in result[0]], int(scale[0])


@given(st.lists(OPERAND, min_size=1, max_size=32))
def test_a_sum_is_the_exact_one_rounded_once(operands: list[tuple[list[int], int]]) -> None:
    elements, scale = summed(operands)
    top = max(scale for _, scale in operands)
    cut = len(operands) * Fraction(2) ** (top - 133 - GUARD)  # what is cut off below the guard bits
    step = Fraction(2) ** (scale - 133)
    for i, found in enumerate(exact(elements, scale)):
        true = sum(exact(e, s)[i] for e, s in operands)
        limit = step / 2 + cut
        if abs(elements[i]) == LARGEST:  # 127.5 and more saturate
            limit += step / 2
        assert abs(found - true) <= limit


@given(st.lists(OPERAND, min_size=3, max_size=4))
def test_the_order_of_ranks_does_not_matter(operands: list[tuple[list[int], int]]) -> None:
    results = {repr(summed(list(order))) for order in permutations(operands)}
    assert len(results) == 1


@given(ELEMENTS, st.integers(0, 254))
def test_one_operand_comes_back_with_as_many_bits(elements: list[int], scale: int) -> None:
    found, result = summed([(elements, scale)])
    step = Fraction(2) ** (result - 133)
    assert result <= scale, "it becomes smaller where there is room for that"
    for before, after, element in zip(exact(elements, scale), exact(found, result), found, strict=True):
        # A power of two below 0 has the leading one of the next smaller number, and saturates.
        assert abs(before - after) <= (step if element == -LARGEST else 0 if result else step)


def test_special_blocks() -> None:
    assert summed([([0] * BLOCK, 180), ([0] * BLOCK, 3)]) == ([0] * BLOCK, 0)
    assert summed([([5, 0, 0, 1], 100), ([1] * BLOCK, NOT_A_NUMBER)]) == ([0] * BLOCK, NOT_A_NUMBER)
    elements, scale = summed([([LARGEST] * BLOCK, 254), ([LARGEST] * BLOCK, 254)])
    assert (elements, scale) == ([LARGEST] * BLOCK, 254), "it saturates"


@pytest.mark.parametrize("gap", range(41))
def test_distant_scales(gap: int) -> None:
    """A smaller operand counts as long as it reaches the guard bits; beyond, only what a floor leaves of it."""
    elements, scale = summed([([64, -64, 100, 1], 200), ([127, 127, -127, 0], 200 - gap)])
    for i, (large, small) in enumerate(zip([64, -64, 100, 1], [127, 127, -127, 0], strict=True)):
        true = exact([large], 200)[0] + exact([small], 200 - gap)[0]
        assert abs(exact([elements[i]], scale)[0] - true) <= Fraction(2) ** (scale - 133)


@given(st.lists(st.floats(-1e30, 1e30), min_size=BLOCK, max_size=BLOCK))
def test_numbers_become_blocks(numbers: list[float]) -> None:
    elements, scale = to_mxint8(np.array([numbers]))
    found = from_mxint8(elements, scale)[0]
    step = np.ldexp(1.0, int(scale[0]) - 133)
    greatest = max(map(abs, numbers))
    assert greatest == 0 or scale[0] == 0 or 64 <= np.abs(elements).max() <= LARGEST
    assert all(abs(a - b) <= step for a, b in zip(found, numbers, strict=True))


def test_infinities_and_nans_break_their_block_alone() -> None:
    numbers = np.array([[1.0, np.nan], [np.inf, 1.0], [1.0, 2.0], [0.0, 0.0]])
    elements, scales = to_mxint8(numbers)
    assert scales.tolist() == [255, 255, 128, 0]
    back = from_mxint8(elements, scales)
    assert np.isnan(back[:2]).all()
    np.testing.assert_array_equal(back[2:], numbers[2:])


def test_the_order_of_table_1(seed: int) -> None:
    report = FACET.experiments["table-1"].perform(Order("paper", seed))
    assert len(report.rows) == 10
    assert report.ok, [check.text for check in report.checks if not check.ok]
