"""Folds of binary16 and bfloat16 elements with their results, written out bit by bit."""

from __future__ import annotations

from dataclasses import dataclass

from p4gen.vocabulary import DType

Case = tuple[tuple[int, ...], int]
"""Contributions in the order of ranks, and the result, as bits."""
MINUS = 0x8000


def negative(*cases: Case) -> tuple[Case, ...]:
    """The cases, and the same with all signs inverted."""
    return (*cases, *((tuple(each ^ MINUS for each in some), result ^ MINUS) for some, result in cases))


def swapped(*cases: Case) -> tuple[Case, ...]:
    """The cases, and the same in the opposite order of ranks."""
    return (*cases, *((some[::-1], result) for some, result in cases))


@dataclass(frozen=True)
class Cases:
    """What a format's sums have to be."""

    one: int
    infinity: int
    nan: int
    """The only one that a sum makes."""
    ties: tuple[Case, ...]
    near_ties: tuple[Case, ...]
    subnormal: tuple[Case, ...]
    underflow: tuple[Case, ...]
    overflow: tuple[Case, ...]
    large: tuple[Case, ...]
    cancelled: tuple[Case, ...]
    rounded_once: tuple[Case, ...]
    """Sums that are others if each step is rounded to an element."""
    ordered: tuple[Case, ...]
    """Sums that are others in other orders, because binary32 has too few digits for their parts."""

    @property
    def no_numbers(self) -> tuple[Case, ...]:
        """Contributions that are not numbers, and infinite ones that make none."""
        infinity, quiet = self.infinity, self.nan
        return swapped(
            ((infinity + 1, self.one), quiet),
            ((0xFFFF, infinity), quiet),
            ((quiet + 0x23, 0), quiet),
            ((infinity | MINUS, infinity), quiet),
            ((infinity, self.one, infinity | MINUS), quiet),
        )

    @property
    def zeros(self) -> tuple[Case, ...]:
        """-0 and -0 are -0; every other sum that is zero is +0."""
        one = self.one
        return (
            *swapped(((MINUS, 0), 0), ((MINUS, one), one), ((one, one | MINUS), 0)),
            ((MINUS, MINUS), MINUS),
            ((MINUS, MINUS, MINUS), MINUS),
            ((1, 1 | MINUS, MINUS), 0),
        )

    @property
    def alone(self) -> tuple[Case, ...]:
        """Single contributions, which stay what they are."""
        some = (0, 1, self.one, self.infinity - 1, self.infinity, self.infinity + 1, self.nan, 0x7FFF)
        return negative(*(((each,), each) for each in some))

    @property
    def minima(self) -> tuple[Case, ...]:
        """Contributions and the least of them."""
        one, infinity = self.one, self.infinity
        return swapped(
            ((one, one + 1), one),
            ((one | MINUS, one + 1 | MINUS), one + 1 | MINUS),
            ((one | MINUS, one), one | MINUS),
            ((1, 0), 0),
            ((1 | MINUS, 0), 1 | MINUS),
            ((infinity, infinity - 1), infinity - 1),
            ((infinity | MINUS, infinity - 1 | MINUS), infinity | MINUS),
            ((0, MINUS), MINUS),
            ((0, MINUS, 0), MINUS),
            ((one, infinity + 1), self.nan),
            ((infinity | MINUS, self.nan + 1), self.nan),
        )

    @property
    def maxima(self) -> tuple[Case, ...]:
        """Contributions and the greatest of them: the minima with all signs inverted, but for what is not a number."""
        return tuple(
            (tuple(each ^ MINUS for each in some), least if least == self.nan else least ^ MINUS)
            for some, least in self.minima
        )

    @property
    def sums(self) -> tuple[Case, ...]:
        """All sums."""
        finite = (*self.ties, *self.near_ties, *self.subnormal, *self.underflow, *self.cancelled, *self.rounded_once)
        rest = (*self.ordered, *self.zeros, *self.overflow, *self.large, *self.no_numbers, *self.alone)
        return (*finite, *rest)


FLOAT16 = Cases(
    one=0x3C00,
    infinity=0x7C00,
    nan=0x7E00,
    ties=negative(
        ((0x3C00, 0x1000), 0x3C00),  # 1 and 2^-11, half of the distance from one to the next
        ((0x3C01, 0x1000), 0x3C02),
        ((0x6800, 0x3C00), 0x6800),  # 2,048
        ((0x6801, 0x3C00), 0x6802),
        ((0x3FFF, 0x1000), 0x4000),  # the significand overflows
        ((0x3C00, 0x8C00), 0x3C00),  # 2^-12, half of the distance below
    ),
    near_ties=negative(
        ((0x3C00, 0x1001), 0x3C01),
        ((0x3C00, 0x0FFF), 0x3C00),
        ((0x3C01, 0x0FFF), 0x3C01),
        ((0x3C00, 0x0001), 0x3C00),
        ((0x3C00, 0x1000, 0x0002), 0x3C01),  # 2^-23 decides
        ((0x3C01, 0x1000, 0x8002), 0x3C01),
        ((0x3C00, 0x8C01), 0x3BFF),
    ),
    subnormal=negative(
        ((0x0001, 0x0001), 0x0002),
        ((0x0001, 0x8003), 0x8002),
        ((0x0200, 0x0200), 0x0400),
        ((0x03FF, 0x0001), 0x0400),
        ((0x03FF, 0x03FF), 0x07FE),
        ((0x0000, 0x0155), 0x0155),
    ),
    underflow=negative(
        ((0x0400, 0x8001), 0x03FF),
        ((0x0401, 0x8400), 0x0001),
        ((0x0800, 0x87FF), 0x0001),
        ((0x0801, 0x8800), 0x0002),
    ),
    overflow=negative(
        ((0x7BFF, 0x7BFF), 0x7C00),
        ((0x7BFF, 0x4C00), 0x7C00),  # half of the last place: to the even number, which is infinite
        ((0x7800, 0x7800), 0x7C00),
    ),
    large=negative(
        ((0x7BFF, 0x4BFF), 0x7BFF),
        ((0x7BFF, 0x3C00), 0x7BFF),
        ((0x7C00, 0x3C00), 0x7C00),
        ((0x7C00, 0xFBFF), 0x7C00),
        ((0x7C00, 0x7C00), 0x7C00),
    ),
    cancelled=negative(
        ((0x3C01, 0xBC00), 0x1400), ((0x3C00, 0xBBFF), 0x1000), ((0x7BFF, 0x3C00, 0xFBFF), 0x3C00)
    ),
    rounded_once=negative(
        ((0x3C00, 0x0C00, 0x0C00, 0x0C00), 0x3C01),  # 2^-12 three times
        ((0x3C01, 0x1000, 0x0400), 0x3C02),
        ((0x3C00, 0x1000, 0x0C00, 0x8C00), 0x3C00),
        ((0x7BFF, 0x7BFF, 0xFBFF), 0x7BFF),  # what a step would make infinite
        ((0x7BFF, 0x4C00, 0xCC00), 0x7BFF),
    ),
    ordered=negative(
        ((0x7800, 0x1800, 0xF800), 0x0000), ((0x7800, 0xF800, 0x1800), 0x1800), ((0x1800, 0x7800, 0xF800), 0x0000)
    )[:3],
)  # fmt: skip
"""IEEE 754 binary16: 5 bits of exponent, 10 of the significand."""

BFLOAT16 = Cases(
    one=0x3F80,
    infinity=0x7F80,
    nan=0x7FC0,
    ties=negative(
        ((0x3F80, 0x3B80), 0x3F80),  # 1 and 2^-8
        ((0x3F81, 0x3B80), 0x3F82),
        ((0x4380, 0x3F80), 0x4380),  # 256
        ((0x4381, 0x3F80), 0x4382),
        ((0x3FFF, 0x3B80), 0x4000),
        ((0x3F80, 0xBB00), 0x3F80),
    ),
    near_ties=negative(
        ((0x3F80, 0x3B81), 0x3F81),
        ((0x3F80, 0x3B7F), 0x3F80),
        ((0x3F81, 0x3B7F), 0x3F81),
        ((0x3F80, 0x0001), 0x3F80),
        ((0x3F80, 0x3B80, 0x3500), 0x3F81),  # 2^-21 decides
        ((0x3F81, 0x3B80, 0xB500), 0x3F81),
        ((0x3F80, 0xBB01), 0x3F7F),
    ),
    subnormal=negative(
        ((0x0001, 0x0001), 0x0002),
        ((0x0001, 0x8003), 0x8002),
        ((0x0040, 0x0040), 0x0080),
        ((0x007F, 0x0001), 0x0080),
        ((0x007F, 0x007F), 0x00FE),
        ((0x0000, 0x0055), 0x0055),
    ),
    underflow=negative(
        ((0x0080, 0x8001), 0x007F),
        ((0x0081, 0x8080), 0x0001),
        ((0x0100, 0x80FF), 0x0001),
        ((0x0101, 0x8100), 0x0002),
    ),
    overflow=negative(
        ((0x7F7F, 0x7F7F), 0x7F80),  # infinite in binary32, too
        ((0x7F7F, 0x7B00), 0x7F80),  # only when it is rounded
        ((0x7F00, 0x7F00), 0x7F80),
    ),
    large=negative(
        ((0x7F7F, 0x7AFF), 0x7F7F),
        ((0x7F7F, 0x3F80), 0x7F7F),
        ((0x7F80, 0x3F80), 0x7F80),
        ((0x7F80, 0xFF7F), 0x7F80),
        ((0x7F80, 0x7F80), 0x7F80),
    ),
    cancelled=negative(
        ((0x3F81, 0xBF80), 0x3C00), ((0x3F80, 0xBF7F), 0x3B80), ((0x4B00, 0x3F80, 0xCB00), 0x3F80)
    ),
    rounded_once=negative(
        ((0x3F80, 0x3B00, 0x3B00, 0x3B00), 0x3F81),  # 2^-9 three times
        ((0x3F81, 0x3B80, 0x3480), 0x3F82),
        ((0x3F80, 0x3B80, 0x3B00, 0xBB00), 0x3F80),
        ((0x7F7F, 0x7B00, 0xFB00), 0x7F7F),
    ),
    ordered=negative(
        ((0x4B80, 0x3F80, 0xCB80), 0x0000), ((0x4B80, 0xCB80, 0x3F80), 0x3F80), ((0x3F80, 0x4B80, 0xCB80), 0x0000)
    )[:3],
)  # fmt: skip
"""bfloat16: 8 bits of exponent, 7 of the significand."""

CASES = {DType.FLOAT16: FLOAT16, DType.BFLOAT16: BFLOAT16}
MOST = 4
"""Contributions of a case."""
