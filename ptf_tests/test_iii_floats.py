"""Binary32 numbers in a pipe of Mode III, bit by bit. What the functions do is tested in Mode II (``test_floats``)."""

from __future__ import annotations

from typing import ClassVar

import floats
from floats import ONE, THREE, TWO, Case
from mode_iii import ROOT, ModeIIITest, ack_of, data_of, to

from p4gen.vocabulary import DType, Op, Reliability


class Floats(ModeIIITest):
    """Two edges' contributions at a root; what the payload's other lanes hold is 1 and 2."""

    reliability = tuple(Reliability)
    op: ClassVar[Op] = Op.SUM

    def unfit(self) -> str | None:
        spec = self.spec
        wrong = (spec.op, spec.dtype) != (self.op, DType.FLOAT32)
        return super().unfit() or (f"the program is a {spec.op} of {spec.dtype}" if wrong else None)

    def pairs(self, *cases: Case) -> None:
        """The results of all cases, as many in a packet as there are lanes."""
        flow, lanes = self.served(ROOT, edges=2), self.spec.lanes
        rest = {Op.SUM: THREE, Op.MIN: ONE, Op.MAX: TWO}[self.op]
        self.begin(flow)
        for offset, start in enumerate(range(0, len(cases), lanes), start=1):
            some, psn = cases[start : start + lanes], self.psn(offset)
            for edge, bits in enumerate(([a for a, _, _ in some], [b for _, b, _ in some])):
                self.push(flow, [edge], psn, {edge: floats.numbers(bits, lanes, (ONE, TWO)[edge])})
            result = floats.numbers([r for _, _, r in some], lanes, rest)
            self.check(flow.group, to([0, 1], ack_of(psn)), to([0, 1], data_of(psn, self.encode(result))))
            self.ack(flow.group, [0, 1], psn)


class SumsOfFloats(Floats):
    def runTest(self) -> None:
        self.pairs(*floats.TIES, *floats.NEAR_TIES, *floats.SUBNORMAL, *floats.UNDERFLOW, *floats.CANCELLED)
        self.control.reset()
        self.pairs(*floats.OVERFLOW, *floats.LARGE, *floats.NO_NUMBERS, *floats.ZEROS)


class MinimaOfFloats(Floats):
    op = Op.MIN

    def runTest(self) -> None:
        self.pairs(*floats.ORDERED, *floats.NO_NUMBERS)


class MaximaOfFloats(Floats):
    op = Op.MAX

    def runTest(self) -> None:
        self.pairs(*floats.greater(floats.ORDERED), *floats.NO_NUMBERS)
