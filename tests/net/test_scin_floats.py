"""Calls of floating-point numbers on the virtual network: results in an order that NumPy has, too, or near them all."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from p4gen.host.collectives.arrays import Array, folded
from p4gen.papers.scin.control import Pattern
from p4gen.papers.scin.ranks.calls import PullCall, draw
from p4gen.papers.scin.ranks.orders import accepted
from p4gen.papers.scin.spec import ScinSpec
from p4gen.vocabulary import Op

FLOATS = ("float32", "float16", "bfloat16")
PACKET = 8


def drawn(dtype: str, ranks: int, seed: int, packets: int = 40) -> list[Array]:
    call = PullCall("allreduce", ranks, PACKET * packets, 0, Pattern(0, 0), in_place=True)
    return list(
        draw(call, ScinSpec.model_validate({"dtype": dtype, "lanes": PACKET}), np.random.default_rng(seed)).values
    )


def bits(values: Array) -> Array:
    return values.view(f"u{values.itemsize}")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_results_of_any_order_are_accepted(dtype: str, ranks: int, seed: int) -> None:
    """Each packet has an order of its own."""
    given = drawn(dtype, ranks, seed)
    orders = list(permutations(range(ranks)))
    totals = [folded(Op.SUM, order, given) if ranks > 1 else given[0] for order in orders]
    found = np.concatenate(
        [totals[at % len(orders)][at * PACKET : (at + 1) * PACKET] for at in range(given[0].size // PACKET)]
    )
    assert (bits(accepted(found, given, PACKET)) == bits(found)).all()
    wrong = found.copy()
    bits(wrong)[3 * PACKET + 1] ^= 1
    differing = np.flatnonzero(bits(accepted(wrong, given, PACKET)) != bits(wrong))
    assert 3 * PACKET + 1 in differing
    assert set(differing // PACKET) == {3}


def test_a_packet_has_one_order(seed: int) -> None:
    """Elements of different orders are no result, though each of them is a sum."""
    given = [np.full(PACKET, value, np.float32) for value in (2.0**25, 1.5, -(2.0**25))]
    one, other = (folded(Op.SUM, order, given) for order in ((0, 1, 2), (0, 2, 1)))
    assert (one != other).all()
    mixed = np.where(np.arange(PACKET) < 4, one, other)
    assert (accepted(mixed, given, PACKET) != mixed).any()
    assert (accepted(mixed, given, 4) == mixed).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_of_many_ranks_sums_are_within_a_bound(dtype: str, seed: int) -> None:
    given, chance = drawn(dtype, 12, seed), np.random.default_rng(seed)
    for _ in range(20):
        found = folded(Op.SUM, tuple(map(int, chance.permutation(12))), given)
        assert (bits(accepted(found, given, PACKET)) == bits(found)).all()
    if dtype == "float32":
        exact = sum(each.astype(np.float64) for each in given)
        magnitude = sum(np.abs(each.astype(np.float64)) for each in given)
        wrong = np.asarray(exact + 24 * 2.0**-24 * magnitude).astype(np.float32)
    else:
        wrong = found.copy()
        bits(wrong)[:] += 2  # last places
    assert (accepted(wrong, given, PACKET) != wrong).mean() > 0.9
