"""Reductions and number formats: the one place that defines each of them.

Generated programs, control messages, CommLib and the tests get all properties of a reduction from here. To
add one, add a member of ``Op`` (or of ``DType``): its code on the wire, its P4 expression, its NumPy function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from p4gen.layout import Field, Word

NUMBERS_LAYOUT: Final = Word(Field("op", 2, "op"), Field("dtype", 3, "dtype"))
"""How control messages have op and dtype (``p4gen.spec.message``)."""


@dataclass(frozen=True)
class NumberFormat:
    """The number format of an element."""

    code: int
    """The code in control messages; never reused for another format."""
    p4: str
    """The P4 type whose operators compute with such elements."""


class DType(StrEnum):
    """Types of an element, by the names that NumPy has for them."""

    number_format: NumberFormat

    INT32 = "int32", NumberFormat(code=0, p4="int<32>")
    UINT32 = "uint32", NumberFormat(code=1, p4="lane_t")

    def __new__(cls, name: str, number_format: NumberFormat | None = None) -> DType:
        """A member: its value is the name. ``DType(name)`` looks one up without calling this."""
        assert number_format is not None
        member = str.__new__(cls, name)
        member._value_ = name
        member.number_format = number_format
        return member

    def from_lane(self, name: str) -> str:
        """The P4 variable ``name``, a ``lane_t``, as a number of this type."""
        return name if self.number_format.p4 == "lane_t" else f"({self.number_format.p4}){name}"

    def to_lane(self, expression: str) -> str:
        """A P4 expression of this type as a ``lane_t``."""
        return expression if self.number_format.p4 == "lane_t" else f"(lane_t)({expression})"


@dataclass(frozen=True)
class Reduction:
    """How two elements are combined. All reductions commute; on integers all but saturating sums also associate."""

    code: int
    """The code in control messages; never reused for another reduction."""
    noun: str
    """The result's name in text."""
    p4: Callable[[DType], str]
    """The P4 expression that combines the lanes ``held`` and ``element``, a ``lane_t``."""
    numpy: str
    """The NumPy function of two arrays that defines the right result, applied in 64 bits, where no sum overflows."""
    identity: Callable[[int, int], int]
    """The identity element, given the least and the greatest element."""
    saturating: Callable[[DType], str] | None = None
    """If it can overflow: the P4 expression that saturates, whereas ``p4`` wraps around."""
    dtypes: tuple[DType, ...] = tuple(DType)
    """The dtypes for which it is defined."""

    @property
    def overflows(self) -> bool:
        """Whether a result can leave the range of its dtype."""
        return self.saturating is not None


def _lesser(less: str) -> Callable[[DType], str]:
    """The held element if the comparison ``less`` holds, otherwise the packet's."""
    return lambda d: f"{d.from_lane('held')} {less} {d.from_lane('element')} ? held : element"


class Op(StrEnum):
    """Reductions, and ``dynamic``, which is all of them."""

    definition: Reduction | None

    SUM = (
        "sum",
        Reduction(
            code=0,
            noun="sum",
            p4=lambda _: "held + element",
            saturating=lambda d: d.to_lane(f"{d.from_lane('held')} |+| {d.from_lane('element')}"),
            numpy="add",
            identity=lambda _least, _greatest: 0,
        ),
    )
    MIN = (
        "min",
        Reduction(code=1, noun="minimum", p4=_lesser("<"), numpy="minimum", identity=lambda _least, greatest: greatest),
    )
    MAX = (
        "max",
        Reduction(code=2, noun="maximum", p4=_lesser(">"), numpy="maximum", identity=lambda least, _greatest: least),
    )
    DYNAMIC = "dynamic"
    """Op and dtype are those that the control message announces (EPIC 3.3.2)."""

    def __new__(cls, name: str, definition: Reduction | None = None) -> Op:
        """A member: its value is the name. ``Op(name)`` looks one up without calling this."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.definition = definition
        return member

    @property
    def reduction(self) -> Reduction:
        """The definition; ``ValueError`` for ``dynamic``, which is not a single reduction."""
        if self.definition is None:
            raise ValueError(f"op {self} is not a single reduction")
        return self.definition

    @property
    def overflows(self) -> bool:
        """Whether a program with this op can produce results outside their dtype's range."""
        return any(op.reduction.overflows for op in ((self,) if self.definition else OPS))


OPS: Final = tuple(op for op in Op if op.definition is not None)
"""All ops except ``dynamic``."""


@dataclass(frozen=True)
class Numbers:
    """An op and the dtype it works on, as a control message announces them."""

    op: Op
    dtype: DType

    @property
    def code(self) -> int:
        """Op and dtype as control messages have them."""
        return NUMBERS_LAYOUT.pack(op=self.op.reduction.code, dtype=self.dtype.number_format.code)

    @property
    def symbol(self) -> str:
        """The member of the generated programs' ``numbers_t``."""
        return f"{self.op.name}_{self.dtype.name}"


def numbers_of(code: int) -> Numbers | None:
    """The op and dtype that a control message announces by ``code``; None for an unassigned code."""
    return next((numbers for numbers in NUMBERS if numbers.code == code), None)


NUMBERS: Final = tuple(sorted((Numbers(op, d) for op in OPS for d in op.reduction.dtypes), key=lambda n: n.code))
"""All that can be announced, by code."""
