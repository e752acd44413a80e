"""Elements of MXINT8, whose scales are powers of two: what sums are rounded to."""

from __future__ import annotations

import numpy as np
from scaled import ScaledTest

from p4gen.papers.scin.codes import LARGEST, NOT_A_NUMBER


class MxTest(ScaledTest):
    """Calls whose elements have powers of two as scales."""

    def unfit(self) -> str | None:
        return None if self.spec.dtype == "mxint8" else "elements have no powers of two as scales"


class EqualsTheIntegers(MxTest):
    """Results are those of the golden model for all distances of scales from 0 to 40, and beyond."""

    def runTest(self) -> None:
        gaps = [*range(41), 90, 254]
        size = self.spec.blocks
        call = self.call(self.served(), -(-len(gaps) // size))
        for index in range(call.packets):
            for block, gap in enumerate(gaps[index * size : (index + 1) * size]):
                top = 254 if gap > 90 else self.random.randrange(max(gap, 20), 255)
                for edge in (1, 2, 3):
                    call.scales[edge][index][block] = top - (0 if edge == 1 else gap if edge == 2 else gap // 2)
                    small = self.random.randrange(1, 8)
                    part = slice(block * self.spec.scale_block, (block + 1) * self.spec.scale_block)
                    call.operands[edge][index][part] >>= small if gap % 2 else 0
        self.finish(self.started(call))


class SmallScales(MxTest):
    """No scale is below 0, and none above that of the greatest numbers."""

    def runTest(self) -> None:
        call = self.call(self.served(), 6)
        for index, scale in enumerate((0, 1, 14, 16, 23, 254)):
            self.fill(call, index, {1: 127, 2: 127, 3: 3}, dict.fromkeys((1, 2, 3), scale))
        for edge in (1, 2, 3):
            call.operands[edge][1] = np.zeros(self.spec.lanes, np.int64)
        call.operands[2][1][0] = 1
        self.started(call)
        self.both(call, *range(min(6, self.spec.slots)))


class ZeroBlock(MxTest):
    """Zeros have the scale 0, also where operands cancel each other; what is almost zero is kept."""

    def runTest(self) -> None:
        call = self.call(self.served(), 3)
        scales = dict.fromkeys((1, 2, 3), 127)
        self.fill(call, 0, {1: 0, 2: 0, 3: 0}, scales)
        self.fill(call, 1, {1: 100, 2: -60, 3: -40}, scales)
        self.fill(call, 2, {1: 0, 2: -1, 3: 0}, {1: 127, 2: 80, 3: 127})
        self.started(call)
        for index in range(3):
            elements, scale = self.summed(call, index)
            zero = index < 2
            self.equal("scales are 0", scale.tolist(), [0] * self.spec.blocks) if zero else None
            self.equal("elements", set(elements.tolist()), {0} if zero else {-LARGEST})
        self.both(call, 0, 1, 2)


class NanSpreadsInItsBlockOnly(MxTest):
    """A block without numbers at one source has none in the result; other blocks have theirs."""

    def runTest(self) -> None:
        call = self.call(self.served(), 3)
        for edge in (1, 2, 3):
            for index in range(3):
                call.scales[edge][index] = np.full(self.spec.blocks, 120 + edge, np.uint8)
        call.scales[2][1][self.spec.blocks - 1] = NOT_A_NUMBER
        self.started(call)
        found = [scale for index in range(3) for scale in self.summed(call, index)[1].tolist()]
        self.equal("blocks without numbers", found.count(NOT_A_NUMBER), 1)
        self.both(call, 0, 1, 2)


class ClampsAt127(MxTest):
    """What would be rounded to 128, or is -128, saturates."""

    def runTest(self) -> None:
        call = self.call(self.served(), 3)
        self.fill(call, 0, {1: 127, 2: 127, 3: 0}, {1: 130, 2: 123, 3: 130})
        self.fill(call, 1, {1: -128, 2: 0, 3: 0}, {1: 130, 2: 100, 3: 99})
        self.fill(call, 2, {1: -127, 2: -127, 3: -127}, {1: 130, 2: 123, 3: 123})
        self.started(call)
        for index, wanted in enumerate((127, -127, -64)):
            self.equal("elements", set(self.summed(call, index)[0].tolist()), {wanted})
        self.both(call, 0, 1, 2)
