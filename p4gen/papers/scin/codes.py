"""Numbers that ranks and switches exchange in SCIN's arrivals and flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from p4gen.vocabulary import DType


@dataclass(frozen=True)
class Scaled:
    """Signed bytes in blocks, each of which has a scale."""

    code: int
    """Of the type of elements."""
    scale_bytes: int
    """Of a scale."""
    block: int
    """Elements of a block, unless a spec says otherwise."""
    scale: str
    """What a scale is, for readers of a program."""


SCALED: Final[Mapping[str, Scaled]] = {
    "mxint8": Scaled(5, 1, 32, "MX, E8M0: the exponent of a power of two"),
    "int8_float16": Scaled(6, 2, 64, "float16, not negative"),
}
"""Types of elements that have scales, by name."""
NUMBERS: Final = {str(dtype): dtype.number_format.code for dtype in DType} | {
    name: scaled.code for name, scaled in SCALED.items()
}
"""Types of elements, as arrivals announce them."""

FRACTION: Final = 6
"""Bits of an element of MXINT8 behind the point."""
GUARD: Final = 15
"""Bits below an element that a sum keeps."""
LARGEST: Final = 127
"""The greatest element."""
NOT_A_NUMBER: Final = 255
"""The scale of a block without numbers."""
TOP: Final = 254
"""The greatest scale of numbers."""


class Status(IntEnum):
    """How a call ended, as its flag says it."""

    SUCCESS = 0
    DISAGREEMENT = 1
    """A rank announced something else than the others."""
    REFUSED = 2
    """A rank's NIC refused a READ or a WRITE."""
    SILENCE = 3
    """There was no progress for as many ticks as the program has patience."""
