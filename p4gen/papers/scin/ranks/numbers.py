"""What NumPy makes of numbers that have scales, by the type of elements: the golden models of quantisation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p4gen.papers.scin.ranks import blocks, blocks_float16
from p4gen.papers.scin.ranks.blocks import Array

Blocks = tuple[Array, Array]
"""Elements, int8, with those of a block in the last axis, and scales, without it."""


@dataclass(frozen=True)
class BlockNumbers:
    """The arithmetic of a type of elements with scales."""

    scale: np.dtype[Any]
    """Of scales in arrays; in memory they are as the network has them."""
    not_a_number: int
    """The scale of a sum without numbers."""
    quantise: Callable[[Array], Blocks]
    """Of blocks of float64 numbers."""
    dequantise: Callable[[Array, Array], Array]
    """Float64 numbers of elements and scales."""
    add: Callable[[Array, Array], Blocks]
    """The sum over the first axis."""
    near: range
    """Scales of about the same size, for what is drawn."""
    valid: range
    """All scales of numbers."""


NUMBERS: Final[Mapping[str, BlockNumbers]] = {
    "mxint8": BlockNumbers(
        np.dtype(np.uint8), 255, blocks.to_mxint8, blocks.from_mxint8, blocks.add, range(100, 140), range(255)
    ),
    "int8_float16": BlockNumbers(
        np.dtype(np.uint16),
        blocks_float16.NOT_A_NUMBER,
        blocks_float16.to_int8,
        blocks_float16.from_int8,
        blocks_float16.add,
        range(0x2C00, 0x4400),
        range(blocks_float16.INFINITE),
    ),
}
"""By ``ScinSpec.dtype``."""
