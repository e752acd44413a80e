"""Elements with float16 scales, the paper's: what sums are rounded to."""

from __future__ import annotations

import numpy as np
from pulls import Call
from scaled import ScaledTest

from p4gen.papers.scin.codes import LARGEST
from p4gen.papers.scin.ranks.blocks_float16 import INFINITE, NOT_A_NUMBER, TOP

ONE = 0x3C00
"""The scale 1.0."""
UNITS = 10
"""Powers of two from its last place to it."""


class Float16Test(ScaledTest):
    """Calls whose elements have float16 scales."""

    def unfit(self) -> str | None:
        return None if self.spec.dtype == "int8_float16" else "elements have no float16 scales"

    def of_blocks(self, call: Call, index: int) -> tuple[set[int], set[int]]:
        """The elements of a packet of a result, and the scales."""
        elements, scales = self.summed(call, index)
        return set(elements.tolist()), set(scales.tolist())


class EqualsTheIntegers(Float16Test):
    """Results are those of the golden model for all distances of exponents, from any to subnormal scales."""

    def runTest(self) -> None:
        gaps = [gap for gap in range(31) for _ in range(2)]
        size = self.spec.blocks
        call = self.call(self.served(), -(-len(gaps) // size))
        for index in range(call.packets):
            for block, gap in enumerate(gaps[index * size : (index + 1) * size]):
                top = self.random.randrange(max(gap, self.random.choice([0, 15])), 31)
                for edge in (1, 2, 3):
                    below = (0, gap, gap // 2)[edge - 1]
                    call.scales[edge][index][block] = (top - below) << UNITS | self.random.getrandbits(UNITS)
                    part = slice(block * self.spec.scale_block, (block + 1) * self.spec.scale_block)
                    call.operands[edge][index][part] >>= self.random.randrange(8)
        self.finish(self.started(call))


class ScalesAreRoundedToTheNearest(Float16Test):
    """A scale between two numbers is the nearest, of a tie the even one; the least bit of a sum makes it none."""

    def runTest(self) -> None:
        call = self.call(self.served(), 6)
        two, unit = ONE + (1 << UNITS), ONE - (UNITS << UNITS)
        least = 0x080  # with an element of 1, the lowest bit of a sum
        cases = ((1, 0, unit), (3, 0, unit), (1, 1, unit), (3, -1, unit), (1, 1, least), (3, -1, least))
        for index, (units, more, last) in enumerate(cases):
            small = unit if units == 1 else unit + 0x600  # one, or three last places of 1.0
            self.fill(call, index, {1: 127, 2: 127, 3: more}, {1: two, 2: small, 3: last})
        for index, scale in enumerate((two, two + 2, two + 1, two + 1, two + 1, two + 1)):
            self.equal("scale", self.of_blocks(call, index)[1], {scale})
        self.finish(self.started(call))


class GreatestScale(Float16Test):
    """What is too great has the greatest scale, and elements saturate, on both sides alike."""

    def runTest(self) -> None:
        call = self.call(self.served(), 3)
        self.fill(call, 0, {1: 127, 2: 127, 3: 1}, dict.fromkeys((1, 2, 3), TOP))
        self.fill(call, 1, {1: -128, 2: -128, 3: -128}, dict.fromkeys((1, 2, 3), TOP))
        self.fill(call, 2, {1: 127, 2: 0, 3: 0}, dict.fromkeys((1, 2, 3), TOP))
        call.operands[2][0][::2] = -127
        self.equal("elements", self.of_blocks(call, 0), ({1, LARGEST}, {TOP}))
        self.equal("elements", self.of_blocks(call, 1), ({-LARGEST}, {TOP}))
        self.equal("elements", self.of_blocks(call, 2), ({LARGEST}, {TOP}))
        self.finish(self.started(call))


class SmallScales(Float16Test):
    """Subnormal scales, and those next to them; what is not zero has a scale, be its greatest element 1."""

    def runTest(self) -> None:
        call = self.call(self.served(), 5)
        for index, (scale, elements) in enumerate(
            (
                (1, {1: 127, 2: 127, 3: 127}),
                (1, {1: 1, 2: 0, 3: 0}),
                (1023, {1: 127, 2: 60, 3: 3}),
                (1024, {1: 64, 2: 0, 3: 0}),
                (1025, {1: 127, 2: -127, 3: 127}),
            )
        ):
            self.fill(call, index, elements, dict.fromkeys((1, 2, 3), scale))
        self.equal("ones", self.of_blocks(call, 0), ({127}, {3}))
        self.equal("one", self.of_blocks(call, 1), ({1}, {1}))
        self.finish(self.started(call))


class SaturatesWhereAScaleIsRoundedDown(Float16Test):
    """The scale of 441 is 3, 441 / 127 rounded, and 441 / 3 is more than an element can be."""

    def runTest(self) -> None:
        call = self.call(self.served(), 2)
        for index, sign in enumerate((1, -1)):
            self.fill(call, index, {1: 127 * sign, 2: 60 * sign, 3: 127 * sign}, {1: 1, 2: 1, 3: 2})
            self.equal("result", self.of_blocks(call, index), ({127 * sign}, {3}))
        self.finish(self.started(call))


class ZeroBlock(Float16Test):
    """Zeros have the scale 0, also where operands cancel each other, or where their scales are 0."""

    def runTest(self) -> None:
        call = self.call(self.served(), 4)
        self.fill(call, 0, {1: 0, 2: 0, 3: 0}, dict.fromkeys((1, 2, 3), ONE))
        self.fill(call, 1, {1: 100, 2: -60, 3: -40}, dict.fromkeys((1, 2, 3), TOP))
        self.fill(call, 2, {1: 127, 2: -128, 3: 1}, dict.fromkeys((1, 2, 3), 0))
        self.fill(call, 3, {1: 0, 2: -1, 3: 0}, {1: TOP, 2: 1, 3: TOP})
        for index in range(3):
            self.equal("zeros", self.of_blocks(call, index), ({0}, {0}))
        self.equal("almost zeros", self.of_blocks(call, 3)[0], {-LARGEST})
        self.finish(self.started(call))


class WhatIsNoScaleSpreadsInItsBlockOnly(Float16Test):
    """Infinity, NaN and what is negative are no scales: their blocks have no numbers, and others have theirs."""

    def runTest(self) -> None:
        codes = (INFINITE, INFINITE + 1, 0x8000, 0xBC00, 0xFE00)
        call = self.call(self.served(), len(codes))
        for index, code in enumerate(codes):
            for edge in (1, 2, 3):
                call.scales[edge][index] = np.full(self.spec.blocks, ONE + edge, np.uint16)
            call.scales[1 + index % 3][index][self.spec.blocks - 1] = code
        for index in range(len(codes)):
            elements, scales = self.summed(call, index)
            self.equal("blocks without numbers", scales.tolist().count(NOT_A_NUMBER), 1)
            self.equal("their elements", set(elements[-self.spec.scale_block :].tolist()), {0})
        self.finish(self.started(call))


class WhatWasQuantisedComesBack(Float16Test):
    """An only source's block with an element of 127 is written as it is; one without gets a smaller scale."""

    def runTest(self) -> None:
        call = self.call(self.served(sources=0b010), 4)
        for index in range(4):
            call.operands[2][index] = np.maximum(call.operands[2][index], -LARGEST)
            call.operands[2][index][:: self.spec.scale_block] = LARGEST if index else -LARGEST
            codes = [self.random.randrange(1, INFINITE) for _ in range(self.spec.blocks)]
            call.scales[2][index] = np.array(codes, np.uint16)
        for index in range(3):
            elements, scales = self.summed(call, index)
            self.equal("elements", elements.tolist(), call.operands[2][index].tolist())
            self.equal("scales", scales.tolist(), call.scales[2][index].tolist())
        self.fill(call, 3, {2: 64}, {2: ONE})
        self.equal("half", self.of_blocks(call, 3)[0], {LARGEST})
        self.finish(self.started(call))


class HalfIsRoundedAwayFromZero(Float16Test):
    """Elements are rounded to the nearest, on both sides of zero alike."""

    def runTest(self) -> None:
        call = self.call(self.served(), 1)
        self.fill(call, 0, {1: 0, 2: 0, 3: 0}, dict.fromkeys((1, 2, 3), ONE))
        some = {0: 254, 1: 1, 2: -1, 3: 3, 4: -3, 5: 5, 6: -252, 7: 253}
        for at, total in some.items():
            call.operands[1][0][at :: self.spec.scale_block] = total // 2
            call.operands[3][0][at :: self.spec.scale_block] = total - total // 2
        elements, scales = self.summed(call, 0)
        self.equal("scales", set(scales.tolist()), {ONE + (1 << UNITS)})
        self.equal("elements", elements[: len(some)].tolist(), [127, 1, -1, 2, -2, 3, -126, 127])
        self.finish(self.started(call))
