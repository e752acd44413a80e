"""Sums, minima and maxima of binary32 numbers, bit by bit, in each order of arrival (IEEE 754-2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import floats
from floats import ONE, THREE, TWO, Case
from test_arithmetic import Arithmetic

from p4gen.groups.group import GroupContext
from p4gen.vocabulary import DType, Op


class Pairs(Arithmetic):
    """Two ranks' contributions, in both orders; a lane for each case, and in the other lanes 1 and 2."""

    op: ClassVar[Op | None] = Op.SUM
    dtype: ClassVar[DType | None] = DType.FLOAT32

    def pairs(self, cases: Sequence[Case], group: GroupContext | None = None) -> None:
        """The results of all cases, as many in a packet as there are lanes."""
        group, lanes = group or self.group_of(2), self.spec.lanes
        rest = {Op.SUM: THREE, Op.MIN: ONE, Op.MAX: TWO}[self.numbers.op]
        for start in range(0, len(cases), lanes):
            some = cases[start : start + lanes]
            one = floats.numbers([a for a, _, _ in some], lanes, ONE)
            other = floats.numbers([b for _, b, _ in some], lanes, TWO)
            result = floats.numbers([r for _, _, r in some], lanes, rest)
            self.round(group, [one, other], result)
            self.round(group, [other, one], result)


class RoundsToEven(Pairs):
    """A sum in the middle of two numbers becomes the one whose last bit is 0."""

    def runTest(self) -> None:
        self.pairs(floats.TIES)


class RoundsToNearest(Pairs):
    """The smallest part beyond the middle, or short of it, decides."""

    def runTest(self) -> None:
        self.pairs(floats.NEAR_TIES)


class SubnormalsKept(Pairs):
    def runTest(self) -> None:
        self.pairs(floats.SUBNORMAL)


class GradualUnderflow(Pairs):
    """Differences below the least normal number are subnormal, and exact."""

    def runTest(self) -> None:
        self.pairs(floats.UNDERFLOW)


class OverflowToInfinity(Pairs):
    """A sum that is too large is infinite, and its packet is counted; an infinite contribution is no overflow."""

    def runTest(self) -> None:
        group = self.group_of(2)
        self.pairs(floats.LARGE, group)
        self.equal("overflows counted", self.counts("overflows"), {})
        self.pairs(floats.OVERFLOW, group)
        packets = 2 * -(-len(floats.OVERFLOW) // self.spec.lanes)
        self.equal("overflows counted", self.counts("overflows"), {0: packets})


class InfMinusInf(Pairs):
    def runTest(self) -> None:
        self.pairs([(floats.INFINITY, floats.INFINITY | floats.MINUS, floats.NAN)])


class NanIsCanonical(Pairs):
    """Whatever is not a number makes the one quiet NaN that a switch sends, without the payload."""

    def runTest(self) -> None:
        self.pairs(floats.NO_NUMBERS)


class NegativeZeroSurvives(Pairs):
    """-0 and -0 are -0; every other sum that is zero is +0."""

    def runTest(self) -> None:
        self.pairs(floats.ZEROS)


class CancellationIsExact(Pairs):
    def runTest(self) -> None:
        self.pairs(floats.CANCELLED)


class MinOfNumbers(Pairs):
    op = Op.MIN

    def runTest(self) -> None:
        self.pairs(floats.ORDERED)


class MinOfNan(Pairs):
    op = Op.MIN

    def runTest(self) -> None:
        self.pairs(floats.NO_NUMBERS)


class MaxOfNumbers(Pairs):
    op = Op.MAX

    def runTest(self) -> None:
        self.pairs(floats.greater(floats.ORDERED))


class MaxOfNan(Pairs):
    op = Op.MAX

    def runTest(self) -> None:
        self.pairs(floats.NO_NUMBERS)
