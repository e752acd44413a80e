"""Number formats: the one place that defines what an element is.

Programs, control messages, hosts and tests get all properties of a format from here. ``DType.register`` adds one, from
anywhere that is loaded before a spec is read, such as the ``__init__.py`` of a family. Formats that are not integers
need reductions of their own (``p4gen.vocabulary.reductions``), as P4's operators do not compute with them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self

from p4gen.layout import Field, Word
from p4gen.vocabulary.registered import Registered

NUMBERS_LAYOUT: Final = Word(Field("op", 2, "op"), Field("dtype", 3, "dtype"))
"""How control messages have op and dtype (``p4gen.vocabulary.message``)."""
LANE: Final = "lane_t"
"""The P4 type of an element in a packet and in a register: as many bits as the format has."""


@dataclass(frozen=True)
class NumberFormat:
    """The number format of an element."""

    code: int
    """The code in control messages; never reused for another format."""
    bits: int
    """Bits of an element; whole bytes."""
    numpy: str
    """NumPy's name of the type of such elements in arrays; big-endian on the wire."""
    p4: str
    """The P4 type whose operators compute with such elements; ``lane_t`` if those of a lane do."""
    least: float
    greatest: float
    exact: str = "int64"
    """The NumPy type in which results are computed for comparison: no sum of a collective overflows in it."""
    tolerance: float = 0.0
    """By how much a right result may differ from NumPy's, relative to it; 0 for integers."""
    per_lane: int = 1
    """Elements in a lane, the first of them in its high bits."""
    wide: str | None = None
    """The dtype in which a switch adds such elements; it rounds their sum once. None: their own."""
    leaves_wide: bool = False
    """Whether sums can leave the range of ``wide``, too."""

    @property
    def lane_bits(self) -> int:
        """Bits of a lane, which has ``per_lane`` elements."""
        return self.bits * self.per_lane

    @property
    def bytes(self) -> int:
        """Bytes of an element in arrays and packets."""
        return self.bits // 8

    @property
    def integer(self) -> bool:
        """Whether elements are integers, with which P4's operators compute."""
        return self.exact == "int64"


FLOAT32: Final = NumberFormat(2, 32, "float32", LANE, -math.inf, math.inf, exact="float64", tolerance=2.0**-18)
"""IEEE 754 binary32. A sum of 32 numbers of one sign, each step of which is rounded, is within the tolerance."""

FLOAT16: Final = NumberFormat(
    3, 16, "float16", LANE, -math.inf, math.inf, exact="float32", tolerance=2.0**-8, per_lane=2, wide="float32"
)
"""IEEE 754 binary16. A sum that is rounded at each of up to seven nodes is within the tolerance."""
BFLOAT16: Final = replace(FLOAT16, code=4, numpy="bfloat16", tolerance=2.0**-5, leaves_wide=True)
"""The first half of binary32. NumPy has it by the package ml_dtypes (``p4gen.host.collectives.arrays``)."""


def integer(code: int, bits: int, *, signed: bool) -> NumberFormat:
    """The format of integers of this width, in two's complement if ``signed``."""
    if signed:
        return NumberFormat(code, bits, f"int{bits}", f"int<{bits}>", -(1 << bits - 1), (1 << bits - 1) - 1)
    return NumberFormat(code, bits, f"uint{bits}", LANE, 0, (1 << bits) - 1)


class DType(Registered):
    """Types of an element, by name."""

    number_format: NumberFormat

    INT32: ClassVar[DType]
    UINT32: ClassVar[DType]
    FLOAT32: ClassVar[DType]
    FLOAT16: ClassVar[DType]
    BFLOAT16: ClassVar[DType]

    @classmethod
    def register(cls, name: str, number_format: NumberFormat) -> Self:
        """A new type of elements. Raises ``ValueError`` if its name or its code is taken, or does not fit."""
        check_code("dtype", number_format.code, {str(one): one.number_format.code for one in cls})
        if number_format.bits % 8:
            raise ValueError(f"dtype {name}: {number_format.bits} bits are not whole bytes")
        member = cls._add(name)
        member.number_format = number_format
        return member

    def from_lane(self, name: str) -> str:
        """The P4 variable ``name``, a ``lane_t``, as a number of this type."""
        return name if self.number_format.p4 == LANE else f"({self.number_format.p4}){name}"

    def function(self, name: str) -> str:
        """The name of the P4 function that computes with elements of this type (``shared/floats.p4.j2``)."""
        return f"{name}_{self}"

    def to_lane(self, expression: str) -> str:
        """A P4 expression of this type as a ``lane_t``."""
        return expression if self.number_format.p4 == LANE else f"({LANE})({expression})"


def check_code(kind: str, code: int, taken: dict[str, int]) -> None:
    """``ValueError`` unless ``code`` fits its field of control messages, and nothing else has it."""
    high, low = NUMBERS_LAYOUT.ends(kind)
    if not 0 <= code < 1 << high - low + 1:
        raise ValueError(f"{kind}: the code {code} does not fit the {high - low + 1} bits of control messages")
    for name, other in taken.items():
        if other == code:
            raise ValueError(f"{kind}: {name} has the code {code} already")


DType.INT32 = DType.register("int32", integer(0, 32, signed=True))
DType.UINT32 = DType.register("uint32", integer(1, 32, signed=False))
DType.FLOAT32 = DType.register("float32", FLOAT32)
DType.FLOAT16 = DType.register("float16", FLOAT16)
DType.BFLOAT16 = DType.register("bfloat16", BFLOAT16)
