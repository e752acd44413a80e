from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from p4gen.rocev2 import psn

PSNS = st.integers(0, psn.PSN_MASK)


@given(PSNS, st.integers(-(1 << 23), (1 << 23) - 1))
def test_diff_undoes_add(base: int, count: int) -> None:
    assert psn.diff(psn.add(base, count), base) == count


@given(PSNS)
def test_half_the_space_ahead_is_old_one_less_is_new(base: int) -> None:
    assert not psn.is_newer(psn.add(base, psn.HALF), base)
    assert psn.is_newer(psn.add(base, psn.HALF - 1), base)
    assert not psn.is_newer(base, base)


@given(PSNS, st.integers(1, psn.HALF - 1))
def test_of_two_one_is_newer(base: int, count: int) -> None:
    ahead = psn.add(base, count)
    assert psn.is_newer(ahead, base)
    assert not psn.is_newer(base, ahead)


def test_wrap() -> None:
    assert psn.add(0xFFFFFF, 1) == 0
    assert psn.add(0, -1) == 0xFFFFFF
    assert psn.diff(2, 0xFFFFFE) == 4
