"""Sums of floating-point numbers, which depend on the order in which a packet's operands came.

All elements of a packet are added in the same order. With up to four sources its result must be, bit by bit, what NumPy
makes of them in one of their orders, as float32 and rounded once; with more, each sum of N numbers must be within
(N - 1) 2^-24 of the sum of their magnitudes, and of the last place of its own type (Higham, Accuracy and Stability of
Numerical Algorithms, section 4.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Final

import numpy as np

from p4gen.host.collectives.arrays import Array, folded
from p4gen.vocabulary import Op

_MOST: Final = 4
_UNIT: Final = 2.0**-24
"""How far a rounded float32 number is from what it was, relative to it."""


def accepted(found: Array, operands: Sequence[Array], packet: int) -> Array:
    """What a result should be in which packets of ``packet`` elements have been added: ``found`` where that is right,
    and elsewhere a right one."""
    if len(operands) < 2:
        return operands[0]
    right = _ordered if len(operands) <= _MOST else _bounded
    return right(found, operands, packet)


def _ordered(found: Array, operands: Sequence[Array], packet: int) -> Array:
    bits = f"u{found.itemsize}"
    wanted, open_ = None, np.ones(-(-found.size // packet), bool)
    for order in _orders(len(operands)):
        total = folded(Op.SUM, order, operands)
        equal = _packets(total.view(bits) == found.view(bits), packet) & open_
        if wanted is None:
            wanted = total.copy()
        at = np.repeat(equal, packet)[: found.size]
        wanted[at] = total[at]
        open_ &= ~equal
        if not open_.any():
            break
    assert wanted is not None
    return wanted


def _orders(count: int) -> Iterator[tuple[int, ...]]:
    """Orders that may have other sums: the first two commute."""
    return (order for order in permutations(range(count)) if order[0] < order[1])


def _packets(right: Array, packet: int) -> Array:
    """Whether all elements of each packet are right."""
    starts = np.arange(0, right.size, packet)
    return np.asarray(np.logical_and.reduceat(right, starts))


def _bounded(found: Array, operands: Sequence[Array], _packet: int) -> Array:
    wide = np.stack([each.astype(np.float64) for each in operands])
    exact, magnitude = wide.sum(0), np.abs(wide).sum(0)
    bound = (len(operands) - 1) * _UNIT * magnitude
    # The result is the element nearest to a number within the bound.
    low, high = (side.astype(np.float32).astype(found.dtype) for side in (exact - bound, exact + bound))
    right = (found.astype(np.float64) >= low.astype(np.float64)) & (found.astype(np.float64) <= high.astype(np.float64))
    return np.where(right, found, exact.astype(np.float32).astype(found.dtype))
