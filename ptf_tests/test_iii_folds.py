"""Floating-point numbers that are stored, and folded in the order of ranks, bit for bit; halves in binary32, rounded
once. Mode I does so by default, Mode III with ``fold ordered``."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

import floats
import halves
import numpy as np
import numpy.typing as npt
from folds import Rows
from halves import Case
from mode_iii import REDUCE_TO_CHILD, ROOT, Flow, ModeIIITest, ack_of, data_of, to

from p4gen.vocabulary import DType, Op, Reliability

FLOATS = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)
HALVES = (DType.FLOAT16, DType.BFLOAT16)


class Folds(Rows, ModeIIITest):
    """Contributions to a root in the order of ranks, which arrive in any order."""

    reliability = tuple(Reliability)
    op: ClassVar[Op] = Op.SUM
    dtypes: ClassVar[tuple[DType, ...]] = FLOATS

    def unfit(self) -> str | None:
        spec = self.spec
        if not spec.folds:
            return "the program reduces contributions as they arrive"
        wrong = spec.op is not self.op or spec.dtype not in self.dtypes
        return super().unfit() or (f"the program is a {spec.op} of {spec.dtype}" if wrong else None)

    @property
    def halves(self) -> halves.Cases:
        return halves.CASES[self.spec.dtype]

    @property
    def half_step(self) -> int:
        """Half of the last place of the greatest number."""
        return 0x4C00 if self.spec.dtype is DType.FLOAT16 else 0x7B00

    def cases(self, binary32: Sequence[floats.Case], name: str) -> list[Case]:
        """Cases of the program's dtype: these, or those of halves with this name."""
        if self.spec.dtype is DType.FLOAT32:
            return [((a, b), result) for a, b, result in binary32]
        return list(getattr(self.halves, name))

    def fold(self, flow: Flow, offset: int, rows: npt.NDArray[Any], result: npt.NDArray[Any]) -> None:
        """A packet of each source, a row of bits each, in any order of arrival."""
        psn = self.psn(offset)
        inputs = dict(zip(flow.sources, map(self.values, rows), strict=True))
        self.push(flow, self.random.sample(flow.sources, len(flow.sources)), psn, inputs)
        data = data_of(psn, self.encode(self.values(result)), asks=True)
        self.check(flow.group, to(flow.sources, ack_of(psn)), to(flow.outputs, data))
        self.ack(flow.group, flow.outputs, psn)
        self.expect_nothing()

    def check_cases(self, cases: Sequence[Case]) -> int:
        """All cases; returns in how many packets. An element for each, and zeros in the others."""
        packets, elements = 0, self.spec.elements
        for count in sorted({len(contributions) for contributions, _ in cases}):
            self.control.reset()
            flow = self.begun(ROOT, edges=count)
            some = [case for case in cases if len(case[0]) == count]
            for offset, start in enumerate(range(0, len(some), elements), start=1):
                part = some[start : start + elements]
                rows, result = np.zeros((count, elements), np.uint32), np.zeros(elements, np.uint32)
                rows[:, : len(part)] = np.array([contributions for contributions, _ in part]).T
                result[: len(part)] = [right for _, right in part]
                self.fold(flow, offset, rows, result)
                packets += 1
        return packets


class FoldOrderIsRankOrder(Folds):
    """Sums that depend on the order, because digits are lost in binary32: that of ranks counts."""

    def runTest(self) -> None:
        large, one = 0x4B800000, floats.ONE  # 2^24
        lost = [((large, one, large | floats.MINUS), 0), ((large, large | floats.MINUS, one), one)]
        self.check_cases(lost if self.spec.dtype is DType.FLOAT32 else self.halves.ordered)


class ArrivalOrderDoesNotMatter(Folds):
    """Any numbers, in each order of arrival: the same bits."""

    def runTest(self) -> None:
        flow = self.begun(ROOT, edges=3)
        rows = self.drawn(3)
        result = self.folded(rows)
        inputs = dict(zip(flow.sources, map(self.values, rows), strict=True))
        for offset, order in enumerate(itertools.permutations(flow.sources), start=1):
            psn = self.psn(offset)
            self.push(flow, order, psn, inputs)
            data = data_of(psn, self.encode(self.values(result)), asks=True)
            self.check(flow.group, to(flow.sources, ack_of(psn)), to(flow.outputs, data))
            self.ack(flow.group, flow.outputs, psn)


class RoundsToEven(Folds):
    def runTest(self) -> None:
        self.check_cases(self.cases(floats.TIES, "ties"))


class TiesBothWays(Folds):
    """Just above the middle of two numbers, and just below it."""

    def runTest(self) -> None:
        self.check_cases(self.cases(floats.NEAR_TIES, "near_ties"))


class SubnormalsKept(Folds):
    def runTest(self) -> None:
        self.check_cases(self.cases(floats.SUBNORMAL, "subnormal"))


class GradualUnderflow(Folds):
    def runTest(self) -> None:
        self.check_cases(self.cases(floats.UNDERFLOW, "underflow"))


class OverflowToInfinity(Folds):
    """A sum that is too large is infinite, and its packet is counted; an infinite contribution is no overflow."""

    def runTest(self) -> None:
        self.check_cases(self.cases(floats.LARGE, "large"))
        self.equal("overflows counted", self.counts("overflows"), {})
        packets = self.check_cases(self.cases(floats.OVERFLOW, "overflow"))
        self.equal("overflows counted", self.counts("overflows"), {0: packets})


class OverflowIsCountedInEachHalf(Folds):
    """One sum that is just too large, in each element by itself."""

    dtypes = HALVES

    def runTest(self) -> None:
        flow = self.begun(ROOT, edges=2)
        for element in (0, 1, self.spec.elements - 1):
            rows, result = np.zeros((2, self.spec.elements), np.uint32), np.zeros(self.spec.elements, np.uint32)
            rows[:, element] = self.halves.infinity - 1, self.half_step
            result[element] = self.halves.infinity
            self.fold(flow, 1 + sum(self.counts("overflows").values()), rows, result)
        self.equal("overflows counted", self.counts("overflows"), {0: 3})


class InfMinusInf(Folds):
    def runTest(self) -> None:
        infinity = floats.INFINITY
        opposite = [(infinity, infinity | floats.MINUS, floats.NAN)]
        self.check_cases(self.cases(opposite, "no_numbers"))


class NanIsCanonical(Folds):
    """Whatever is not a number makes the one quiet NaN that a switch sends; a contribution alone stays what it is."""

    def runTest(self) -> None:
        self.check_cases(self.cases(floats.NO_NUMBERS, "no_numbers"))
        alone: list[Case] = [((each,), each) for each, _, _ in floats.NO_NUMBERS]
        self.check_cases(alone if self.spec.dtype is DType.FLOAT32 else self.halves.alone)


class NegativeZeroSurvives(Folds):
    def runTest(self) -> None:
        self.check_cases(self.cases(floats.ZEROS, "zeros"))


class CancellationIsExact(Folds):
    def runTest(self) -> None:
        self.check_cases(self.cases(floats.CANCELLED, "cancelled"))


class MinOfNan(Folds):
    """The least number; not a number if one is none."""

    op = Op.MIN

    def runTest(self) -> None:
        self.check_cases(self.cases((*floats.ORDERED, *floats.NO_NUMBERS), "minima"))


class MaxOfZeros(Folds):
    """The greatest number, where +0 is greater than -0."""

    op = Op.MAX

    def runTest(self) -> None:
        self.check_cases(self.cases((*floats.greater(floats.ORDERED), *floats.NO_NUMBERS), "maxima"))


class HalfPairsInALane(Folds):
    """Each half of a lane has its own sum: any numbers, in all elements."""

    dtypes = HALVES

    def runTest(self) -> None:
        flow = self.begun(ROOT, edges=4)
        for offset in range(1, 4):
            rows = self.drawn(4)
            self.fold(flow, offset, rows, self.folded(rows))


class BfloatRoundsOnce(Folds):
    """Sums that are others if each step is rounded."""

    dtypes = HALVES

    def runTest(self) -> None:
        self.check_cases(self.halves.rounded_once)


class WideAccumulator(Folds):
    """Partial sums that no element can hold: too large, or with more digits."""

    dtypes = HALVES

    def runTest(self) -> None:
        greatest = self.halves.infinity - 1
        minus = greatest | halves.MINUS
        step = self.half_step
        self.check_cases(
            halves.negative(((greatest, step, step | halves.MINUS), greatest), ((greatest, step, minus), step))
        )
        self.equal("overflows counted", self.counts("overflows"), {})


class NonSourceIsSkipped(Folds):
    """-0 and -0 are -0, whatever the buffer holds of the edge that the result goes to: a zero in its place would change
    them."""

    def runTest(self) -> None:
        flow = self.begun(REDUCE_TO_CHILD, edges=3)
        minus = 1 << self.spec.dtype.number_format.bits - 1
        rows = np.full((len(flow.sources), self.spec.elements), minus)
        self.fold(flow, 1, rows, rows[0])
