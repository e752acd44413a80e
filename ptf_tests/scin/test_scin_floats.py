"""Floating-point numbers, bit by bit as NumPy has them: added as float32 in the order of arrival, and rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations, product
from typing import ClassVar

import numpy as np
from pulls import NAK, Call, PullTest, Values, ranks

from p4gen.errors import MissingToolError
from p4gen.host.collectives.arrays import array_type
from p4gen.papers.scin.control import PullContext
from p4gen.vocabulary import DType

FRACTION = {"float32": 23, "float16": 10, "bfloat16": 7}
"""Bits of a significand."""


class FloatTest(PullTest):
    """Calls whose operands are given as bits."""

    dtypes: ClassVar[tuple[str, ...]] = tuple(FRACTION)

    def unfit(self) -> str | None:
        if self.spec.dtype not in self.dtypes:
            return f"elements are {self.spec.dtype}"
        try:
            array_type(DType(self.spec.dtype))
        except MissingToolError as error:
            return str(error)
        return None

    def setUp(self) -> None:
        super().setUp()
        self.chance = np.random.default_rng(self.random.getrandbits(64))

    @property
    def width(self) -> int:
        """Bits of an element."""
        return 8 * self.spec.element_bytes

    def numbers(self, bits: Sequence[int]) -> Values:
        """Elements of these bits."""
        return np.array(bits, f"u{self.spec.element_bytes}").view(array_type(DType(self.spec.dtype)))

    def bits(self, numbers: Values) -> Values:
        """The bits of elements."""
        return numbers.view(f"u{self.spec.element_bytes}")

    def drawn(self) -> Values:
        """A packet of numbers that are near each other, so that sums are rounded, and in other orders differ."""
        scale = self.chance.integers(-FRACTION[self.spec.dtype], 2, self.spec.lanes)
        values = self.chance.standard_normal(self.spec.lanes) * 2.0**scale
        return values.astype(np.float32).astype(array_type(DType(self.spec.dtype)))

    def call_of(self, context: PullContext, packets: Sequence[Sequence[Values]], before: Call | None = None) -> Call:
        """All ranks arrive at a call: of each packet, the elements of every source."""
        operands = {edge: [packet[at] for packet in packets] for at, edge in enumerate(ranks(context.sources))}
        first = Call(context, 0, len(packets), 0, operands, form=self.spec)
        if before is not None:
            first = replace(first, number=before.number + 1, before=before.before + before.packets)
        return self.started(first)


class Cases(FloatTest):
    """Each special number with each, in both orders: subnormal ones, zeros, ties, infinite ones, what is no number."""

    def special(self) -> list[int]:
        """Numbers at which rules of IEEE 754 begin and end, as bits; each with either sign."""
        fraction, sign = FRACTION[self.spec.dtype], 1 << (self.width - 1)
        bias, step = (1 << (self.width - fraction - 2)) - 1, 1 << fraction
        infinity, one = (2 * bias + 1) * step, bias * step
        half = one - (fraction + 1) * step  # of the distance from one to the next number
        numbers = [
            0, 1, 3, step - 1, step, step + 1, 2 * step,
            one, one + 1, one + step - 1, half, half + 1, half - 1, half - step, half + 2 * step + 1,
            infinity - (fraction + 2) * step,  # half of the distance from the greatest number to what would be next
            infinity - 1, infinity, infinity + 1, infinity + step // 2 + 1,
        ]  # fmt: skip
        return [bits | negative for bits in numbers for negative in (0, sign)]

    def check(self) -> None:
        """All pairs of these."""
        bits, lanes = self.special(), self.spec.lanes
        pairs = list(product(bits, bits))
        pairs += [(0, 0)] * (-len(pairs) % lanes)
        packets = [
            [self.numbers([pair[side] for pair in pairs[at : at + lanes]]) for side in (0, 1)]
            for at in range(0, len(pairs), lanes)
        ]
        self.finish(self.call_of(self.served(0b011, 0b100), packets))


class Float32Cases(Cases):
    """float32."""

    dtypes = ("float32",)

    def runTest(self) -> None:
        self.check()


class Float16Cases(Cases):
    """float16."""

    dtypes = ("float16",)

    def runTest(self) -> None:
        self.check()


class Bf16Cases(Cases):
    """bfloat16."""

    dtypes = ("bfloat16",)

    def runTest(self) -> None:
        self.check()


class AnyOrderIsOneOfNumPys(FloatTest):
    """A result is that of the order in which its packets came; other orders give other ones, unless one is chosen."""

    def runTest(self) -> None:
        count = min(self.spec.edges, 4)
        context = self.served((1 << count) - 1, 0b001)
        orders = list(permutations(range(1, count + 1)))
        call, differing = None, 0
        for at in range(0, len(orders), self.spec.slots):
            some = orders[at : at + self.spec.slots]
            call = self.call_of(context, [self.parts(count) for _ in some], call)
            for index, order in enumerate(some):
                found = self.added([call.operands[edge][index] for edge in order])
                differing += bool((self.bits(found) != self.bits(self.result(call, index))).any())
                self.respond(call, order, index)
                self.expect(self.writes(call, index, data=found))
            self.ack(call, 1, len(some) - 1)
            self.expect(self.flags(call))
            self.took_flag(call)
        self.equal("orders that matter", differing > 0, self.spec.op == "sum")

    def parts(self, count: int) -> list[Values]:
        """Numbers of each source. In one lane two large ones cancel, and small ones are lost if they come before."""
        found = [self.drawn() for _ in range(count)]
        large, small = (2.0**15, 1.5 * 2.0**-10) if self.spec.dtype == "float16" else (2.0**25, 1.5)
        for values, part in zip(found, (large, -large, *[small] * (count - 2)), strict=True):
            values[0] = part
        return found


class SumIsRoundedOnce(FloatTest):
    """Parts of the last place of an element add up in the switch, though each alone would be lost."""

    dtypes = ("float16", "bfloat16")

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.spec.op == "sum" else "nothing is rounded")

    def runTest(self) -> None:
        fraction = FRACTION[self.spec.dtype]
        large = self.numbers([self.bits(np.ones(1, array_type(DType(self.spec.dtype))))[0] + 1] * self.spec.lanes)
        small = np.full(self.spec.lanes, 2.0 ** -(fraction + 2)).astype(large.dtype)
        call = self.call_of(self.served(0b111, 0b010), [[large, small, small]])
        self.respond(call, [1, 2, 3], 0)
        self.expect(self.writes(call, 0, data=large + np.full(self.spec.lanes, 2.0**-fraction).astype(large.dtype)))


class ResultComesAgainTheSame(FloatTest):
    """What is written again are the same bits."""

    def runTest(self) -> None:
        call = self.call_of(self.served(), [[self.drawn() for _ in range(3)] for _ in range(2)])
        self.respond(call, [1, 2, 3], 0, 1)
        self.expect(self.writes(call, 0, 1))
        self.ack(call, 2, 0, NAK)
        self.expect([self.write(call, 2, index, again=True) for index in (0, 1)])


class AloneLeavesAsItCame(FloatTest):
    """The operand of the only source is the result, bit for bit, also what is not a number."""

    def runTest(self) -> None:
        count = self.spec.slots
        packets = [
            [self.numbers([self.random.getrandbits(self.width) for _ in range(self.spec.lanes)])] for _ in range(count)
        ]
        infinity = self.bits(np.full(1, np.inf).astype(packets[0][0].dtype))[0]
        packets[0][0] = self.numbers([int(infinity) + 1 + number for number in range(self.spec.lanes)])
        self.finish(self.call_of(self.served(0b010, 0b101), packets))
