"""Reductions: the one place that defines each of them; number formats are in ``p4gen.vocabulary.formats``.

Generated programs, control messages, CommLib and the tests get all properties of a reduction from here.
``Op.register`` adds one: its code on the wire, its P4 expression, its NumPy function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

from p4gen.vocabulary.formats import NUMBERS_LAYOUT, DType, check_code
from p4gen.vocabulary.registered import Registered


@dataclass(frozen=True)
class Reduction:
    """How two elements are combined. All reductions commute; on integers all but saturating sums also associate.

    P4's operators combine integers. For other numbers there are P4 functions, which carry the reduction's name and the
    dtype's (``function``).
    """

    code: int
    """The code in control messages; never reused for another reduction."""
    noun: str
    """The result's name in text."""
    p4: Callable[[DType], str]
    """The P4 expression that combines the lanes ``held`` and ``element``, a ``lane_t``."""
    numpy: str
    """The NumPy function of two arrays that defines the right result, applied to ``NumberFormat.exact``."""
    identity: Callable[[int, int], int]
    """The identity element, given the least and the greatest element."""
    saturating: Callable[[DType], str] | None = None
    """If it can overflow: the P4 expression that saturates, whereas ``p4`` wraps around."""
    only: tuple[DType, ...] = ()
    """The dtypes for which it is defined, if not all integers."""
    function: str | None = None
    """The function for numbers that are not integers, without the dtype's name; None if there is none."""
    selects: bool = False
    """Whether a result is one of the two elements, so that it is never rounded."""

    @property
    def overflows(self) -> bool:
        """Whether a result can leave the range of its dtype."""
        return self.saturating is not None

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The dtypes for which it is defined."""
        return self.only or tuple(dtype for dtype in DType if dtype.number_format.integer or self.function)

    def combined(self, dtype: DType) -> str:
        """The P4 expression that combines the lanes ``held`` and ``element``, of any dtype."""
        if dtype.number_format.integer or self.function is None:
            return self.p4(dtype)
        return f"{dtype.function(self.function)}(held, element)"


def _lesser(less: str) -> Callable[[DType], str]:
    """The held element if the comparison ``less`` holds, otherwise the packet's."""
    return lambda d: f"{d.from_lane('held')} {less} {d.from_lane('element')} ? held : element"


class Op(Registered):
    """Reductions, and ``dynamic``, which is all of them."""

    definition: Reduction | None

    SUM: ClassVar[Op]
    MIN: ClassVar[Op]
    MAX: ClassVar[Op]
    DYNAMIC: ClassVar[Op]
    """Op and dtype are those that the control message announces (EPIC 3.3.2)."""

    @classmethod
    def register(cls, name: str, definition: Reduction | None) -> Self:
        """A new reduction. Raises ``ValueError`` if its name or its code is taken, or does not fit."""
        if definition is not None:
            check_code("op", definition.code, {str(op): op.definition.code for op in cls if op.definition})
        member = cls._add(name)
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
        return any(op.reduction.overflows for op in ((self,) if self.definition else single_ops()))


Op.SUM = Op.register(
    "sum",
    Reduction(
        code=0,
        noun="sum",
        p4=lambda _: "held + element",
        saturating=lambda d: d.to_lane(f"{d.from_lane('held')} |+| {d.from_lane('element')}"),
        numpy="add",
        identity=lambda _least, _greatest: 0,
        function="add",
    ),
)
Op.MIN = Op.register(
    "min",
    Reduction(
        code=1,
        noun="minimum",
        p4=_lesser("<"),
        numpy="minimum",
        identity=lambda _least, greatest: greatest,
        function="min",
        selects=True,
    ),
)
Op.MAX = Op.register(
    "max",
    Reduction(
        code=2,
        noun="maximum",
        p4=_lesser(">"),
        numpy="maximum",
        identity=lambda least, _greatest: least,
        function="max",
        selects=True,
    ),
)
Op.DYNAMIC = Op.register("dynamic", None)


def single_ops() -> tuple[Op, ...]:
    """All ops except ``dynamic``."""
    return tuple(op for op in Op if op.definition is not None)


@dataclass(frozen=True)
class Numbers:
    """An op and the dtype it works on, as a control message announces them."""

    op: Op
    dtype: DType

    @property
    def code(self) -> int:
        """Op and dtype in ``NUMBERS_LAYOUT``'s bits."""
        return NUMBERS_LAYOUT.pack(op=self.op.reduction.code, dtype=self.dtype.number_format.code)

    @property
    def symbol(self) -> str:
        """The member of the generated programs' ``numbers_t``."""
        return f"{self.op.upper()}_{self.dtype.upper()}"


def all_numbers() -> tuple[Numbers, ...]:
    """All that can be announced, by code."""
    found = (Numbers(op, dtype) for op in single_ops() for dtype in op.reduction.dtypes)
    return tuple(sorted(found, key=lambda numbers: numbers.code))


def numbers_of(code: int) -> Numbers | None:
    """The op and dtype that a control message announces by ``code``; None for an unassigned code."""
    return next((numbers for numbers in all_numbers() if numbers.code == code), None)
