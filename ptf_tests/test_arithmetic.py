"""What the program's op does with its dtype's elements: the limits, the overflow, the sign."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from elements import Numbers, Values
from mode_ii import ModeIITest

from p4gen.groups.group import GroupContext
from p4gen.rocev2 import psn as serial
from p4gen.vocabulary import DType, Op, reductions


class Arithmetic(ModeIITest):
    """Rounds whose results are computed in 64 bits, from the definition of the op.

    Subclasses say which op and dtype they are about, if not any; with op dynamic it is announced.
    """

    op: ClassVar[Op | None] = None
    dtype: ClassVar[DType | None] = None
    saturating: ClassVar[bool | None] = None

    def setUp(self) -> None:
        super().setUp()
        if self.spec.op is Op.DYNAMIC:
            chosen = self.random.choice(self.fitting())
            self.numbers = Numbers(chosen.op, chosen.dtype)

    def fitting(self) -> list[reductions.Numbers]:
        """What the program computes, or may be announced to it, of the op and dtype that this is about."""
        fitting = (n for n in self.spec.choices if self.op in (None, n.op) and self.dtype in (None, n.dtype))
        return [n for n in fitting if self.saturating is None or n.dtype.number_format.integer]

    def unfit(self) -> str | None:
        spec = self.spec
        if self.fitting() and self.saturating in (None, spec.saturating):
            return None
        what = "has op dynamic" if spec.op is Op.DYNAMIC else f"is a {spec.op} of {spec.dtype}"
        return f"the program {what}{' that saturates' if spec.saturating else ''}"

    def group_of(self, ranks: int, *, context: int = 0, first_port: int = 0, psn: int | None = None) -> GroupContext:
        self._psn = serial.add(self.random_psn(), -1)
        return super().group_of(ranks, context=context, first_port=first_port, psn=psn)

    def round(self, group: GroupContext, values: list[Values], expected: Values) -> None:
        """One PSN: contributions in the order of ranks make ``expected``."""
        self._psn = serial.add(self._psn, 1)
        psn = self._psn
        self.contribute(group, range(len(values)), psn, values)
        self.expect_results(group, [(psn, expected)])

    def mixed(self, *elements: int) -> Values:
        """These elements in the first lanes, ones in the rest: each lane must mind its own overflow."""
        values = self.lanes(1)
        values[: len(elements)] = elements
        return values


class SaturatesAtTheTop(Arithmetic):
    op, saturating = Op.SUM, True

    def runTest(self) -> None:
        group, top = self.group_of(3), self.limits[1]
        inputs = [self.mixed(top, top - 1, top - 2, top, 0), self.mixed(1, 1, 1, 0, top), self.mixed(0, 1, 0, 0, top)]
        self.round(group, inputs, np.minimum(np.sum(inputs, axis=0), top))
        # All lanes at once, far beyond.
        inputs = [self.lanes(top)] * 3
        self.round(group, inputs, self.lanes(top))


class SaturatesAtTheBottom(Arithmetic):
    op, dtype, saturating = Op.SUM, DType.INT32, True

    def runTest(self) -> None:
        group, bottom = self.group_of(3), self.limits[0]
        inputs = [
            self.mixed(bottom, bottom + 1, bottom + 2, bottom),
            self.mixed(-1, -1, -1, 0),
            self.mixed(0, -1, 0, 0),
        ]
        self.round(group, inputs, np.maximum(np.sum(inputs, axis=0), bottom))
        self.round(group, [self.lanes(bottom)] * 3, self.lanes(bottom))


class EachLaneSaturatesAlone(Arithmetic):
    """One lane at a time is beyond an end of the range: it alone saturates, and its neighbours' sums are exact."""

    op, saturating = Op.SUM, True

    def runTest(self) -> None:
        group, (bottom, top) = self.group_of(2), self.limits
        for lane in range(self.spec.lanes):
            for end, step in ((top, 1), *(((bottom, -1),) if bottom < 0 else ())):
                one, other = self.random_values(2)
                one[lane], other[lane] = end, step * (1 + lane)
                expected = one + other
                expected[lane] = end
                self.round(group, [one, other], expected)


class SignedExtremesCancel(Arithmetic):
    """Nothing saturates on the way when the sum of two fits."""

    op, dtype = Op.SUM, DType.INT32

    def runTest(self) -> None:
        group, (bottom, top) = self.group_of(2), self.limits
        inputs = [self.mixed(bottom, top, bottom, -1), self.mixed(top, bottom, 1, 1)]
        self.round(group, inputs, np.sum(inputs, axis=0))


class OverflowIsCounted(Arithmetic):
    """The program counts the packets in which a lane saturated, by group."""

    op, saturating = Op.SUM, True

    def runTest(self) -> None:
        context = self.spec.groups - 1
        group, top = self.group_of(2, context=context), self.limits[1]
        for one, other in ((top, 0), (top - 1, 1), (top // 2, top - top // 2)):
            self.round(group, [self.lanes(one), self.lanes(other)], self.lanes(top))
        self.equal("overflows counted", self.counts("overflows"), {})
        self.round(group, [self.lanes(top), self.mixed(1, 0)], self.lanes(top))
        self.equal("overflows counted", self.counts("overflows"), {context: 1})


class WrapsAround(Arithmetic):
    op, saturating = Op.SUM, False

    def runTest(self) -> None:
        group, (bottom, top) = self.group_of(3), self.limits
        inputs = [self.mixed(top, top, bottom, bottom), self.mixed(1, top, bottom, 0), self.mixed(0, 2, 0, -1)]
        if bottom == 0:
            inputs[2] = self.mixed(0, 2, 0, 1)
        self.round(group, inputs, self.numbers.in_range(np.sum(inputs, axis=0), saturating=False))
        everywhere = [self.np_random.integers(bottom, top, self.spec.lanes, np.int64, endpoint=True) for _ in range(3)]
        self.round(group, everywhere, self.numbers.in_range(np.sum(everywhere, axis=0), saturating=False))


class SumIsUnsigned(Arithmetic):
    """An element with its highest bit set is large, not negative."""

    op, dtype = Op.SUM, DType.UINT32

    def runTest(self) -> None:
        inputs = [self.mixed(1 << 31, (1 << 31) - 1, 1 << 31), self.mixed(1, 1 << 31, (1 << 31) - 1)]
        self.round(self.group_of(2), inputs, np.sum(inputs, axis=0))


class ExtremesMeet(Arithmetic):
    """The ends of the range and both sides of the sign's bit against each other, with each rank in the lead."""

    def runTest(self) -> None:
        bottom, top = self.limits
        edge = 1 << self.numbers.dtype.number_format.bits - 1
        elements = [bottom, top, 0, 1, *([-1] if bottom < 0 else [edge - 1, edge, edge + 1])]
        pairs = [(a, b) for a in elements for b in elements]
        group = self.group_of(2)
        for start in range(0, len(pairs), self.spec.lanes):
            some = pairs[start : start + self.spec.lanes]
            inputs = [self.mixed(*(a for a, _ in some)), self.mixed(*(b for _, b in some))]
            result = self.reduced(inputs)
            if self.numbers.dtype.number_format.integer:
                result = self.numbers.in_range(result, saturating=self.spec.saturating)
            self.round(group, inputs, result)
        for count in (3, 4):
            self.control.reset()
            inputs = self.random_values(count)
            self.round(self.group_of(count), inputs, self.reduced(inputs))


class EachLaneIsItsOwn(Arithmetic):
    """A single element set in one packet turns up in its own lane and nowhere else, for every lane."""

    def runTest(self) -> None:
        group = self.group_of(2)
        rest = self.numbers.op.reduction.identity(*self.limits)
        ramp = np.arange(1, self.spec.lanes + 1, dtype=np.int64)
        self.round(group, [ramp, self.lanes(rest)], ramp)
        form = self.numbers.dtype.number_format
        bits = form.bits if form.integer else 24
        high, middle = ramp << bits - 12, ramp << bits // 4
        self.round(group, [self.lanes(rest), high], high)
        self.round(group, [middle, ramp[::-1].copy()], self.reduced([middle, ramp[::-1]]))
