"""Floating-point numbers as integers: the bounds that the classes state, against sums in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from p4gen.errors import InputError
from p4gen.host.collectives.arrays import Array
from p4gen.host.collectives.quantised import BLOCK, Blocks, Fixed, check_quantised
from p4gen.vocabulary import DType

NUMBERS = st.one_of(
    st.floats(-1.0, 1.0, width=32),
    st.floats(allow_nan=False, allow_infinity=False, width=32, min_value=-(2.0**120), max_value=2.0**120),
    st.just(0.0),
)


def agreed(codes: list[Array]) -> Array:
    greatest: Array = np.max(codes, axis=0)
    return greatest


@st.composite
def gradients(draw: st.DrawFn, most: int = 6) -> list[Array]:
    """Values of some ranks, of one size; blocks of them are of very different magnitudes."""
    ranks, size = draw(st.integers(1, most)), draw(st.integers(0, 3 * BLOCK))
    kind = draw(st.sampled_from((np.float32, np.float64)))
    return [draw(arrays(kind, size, elements=NUMBERS, fill=NUMBERS)) for _ in range(ranks)]


@given(gradients())
def test_blocks_keep_their_bound_and_never_overflow(values: list[Array]) -> None:
    ranks, dtype = len(values), DType.INT32
    form = dtype.number_format
    blocks = Blocks(dtype, ranks)
    codes = agreed([blocks.codes(each) for each in values])
    quantised = [blocks.quantise(each, codes) for each in values]
    assert not any(each.saturated for each in quantised)
    for count in range(1, ranks + 1):  # whatever a switch has added so far
        partial = np.sum([each.elements.astype(np.int64) for each in quantised[:count]], axis=0)
        assert (np.abs(partial) <= form.greatest).all()
    total = np.sum([each.elements.astype(np.int64) for each in quantised], axis=0)
    found = blocks.numbers(total.astype(quantised[0].elements.dtype), codes, np.dtype(np.float64))
    right = np.sum([each.astype(np.float64) for each in values], axis=0)
    largest = (
        np.max([np.abs(each.astype(np.float64)) for each in values], axis=0, initial=0) if values[0].size else right
    )
    for start in range(0, right.size, BLOCK):
        block = slice(start, start + BLOCK)
        exponent = max(-96, math.frexp(float(largest[block].max()))[1])
        bound = ranks * 2.0 ** (exponent - form.bits + 1 + math.ceil(math.log2(ranks)))
        assert (np.abs(found[block] - right[block]) <= bound * (1 + 1e-9)).all()


@given(gradients(), st.integers(-20, 20))
def test_fixed_factors_keep_their_bound_where_nothing_saturates(values: list[Array], power: int) -> None:
    ranks, dtype = len(values), DType.INT32
    fixed = Fixed(dtype, ranks, 2.0**power)
    quantised = [fixed.quantise(each) for each in values]
    limit = int(dtype.number_format.greatest) // ranks
    inside = np.ones(values[0].size, bool)
    for each, found in zip(values, quantised, strict=True):
        assert (np.abs(found.elements.astype(np.int64)) <= limit).all()
        outside = np.abs(np.rint(each.astype(np.float64) * fixed.factor)) > limit
        assert found.saturated == np.count_nonzero(outside)
        inside &= ~outside
    total = np.sum([each.elements.astype(np.int64) for each in quantised], axis=0)
    right = np.sum([each.astype(np.float64) for each in values], axis=0)
    wrong = np.abs(fixed.numbers(total, np.dtype(np.float64)) - right)[inside]
    assert (wrong <= ranks / (2 * fixed.factor) + 1e-12 * np.abs(right[inside])).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2.0**129])
def test_a_block_with_a_number_that_is_none_is_nan_at_all_ranks(bad: float) -> None:
    """So a scaler of gradients sees it; other blocks are right."""
    values = [np.ones(2 * BLOCK), np.ones(2 * BLOCK)]
    values[1][3] = bad
    blocks = Blocks(DType.INT32, 2)
    codes = agreed([blocks.codes(each) for each in values])
    total = blocks.quantise(values[0], codes).elements + blocks.quantise(values[1], codes).elements
    found = blocks.numbers(total, codes, np.dtype(np.float32))
    assert np.isnan(found[:BLOCK]).all()
    assert (found[BLOCK:] == 2).all()


def test_fixed_factors_count_what_is_no_number() -> None:
    found = Fixed(DType.INT32, 2, 1.0).quantise(np.array([np.nan, np.inf, -np.inf, 1e10, 3.0]))
    assert found.elements.tolist() == [(1 << 30) - 1, (1 << 30) - 1, 1 - (1 << 30), (1 << 30) - 1, 3]
    assert found.saturated == 4


def test_too_many_ranks_for_an_element_are_refused() -> None:
    check_quantised(DType.INT32, 1 << 29)
    with pytest.raises(InputError, match="floating-point numbers cannot be added as int32"):
        check_quantised(DType.INT32, (1 << 29) + 1)


@pytest.mark.parametrize("dtype", [DType.UINT32, DType.FLOAT32])
def test_elements_without_a_sign_or_with_fractions_are_refused(dtype: DType) -> None:
    with pytest.raises(InputError, match=f"2 ranks' floating-point numbers cannot be added as {dtype}"):
        check_quantised(dtype, 2)
