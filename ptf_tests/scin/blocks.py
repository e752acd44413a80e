"""Operands of blocks with scales, and what the golden models make of them (``p4gen.papers.scin.ranks.numbers``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from p4gen.papers.scin.ranks.numbers import NUMBERS, BlockNumbers
from p4gen.papers.scin.spec import ScinSpec

Values = npt.NDArray[Any]


def draw(spec: ScinSpec, packets: int, chance: Random) -> tuple[list[Values], list[Values]]:
    """A source's elements and scales, by packet: any elements, scales that are near each other or far apart."""
    elements, scales, numbers = [], [], NUMBERS[spec.dtype]
    for _ in range(packets):
        elements.append(np.array([chance.randrange(-128, 128) for _ in range(spec.lanes)], np.int64))
        scales.append(np.array([_scale(numbers, chance) for _ in range(spec.blocks)], numbers.scale))
    return elements, scales


def _scale(numbers: BlockNumbers, chance: Random) -> int:
    middle = numbers.near[len(numbers.near) // 2]
    return chance.choice([chance.choice(numbers.near), chance.choice(numbers.valid), middle])


def summed(spec: ScinSpec, elements: Sequence[Values], scales: Sequence[Values]) -> tuple[Values, Values]:
    """A packet of the result: its elements and the scales of its blocks."""
    stack = np.stack(elements).astype(np.int8).reshape(len(elements), spec.blocks, spec.scale_block)
    total, scale = NUMBERS[spec.dtype].add(stack, np.stack(scales))
    return total.reshape(-1), scale


def of_wave(spec: ScinSpec, scales: Mapping[int, Values]) -> bytes:
    """The scales of a wave, from those of its packets by their place in it; those of others are zero."""
    form = NUMBERS[spec.dtype].scale.newbyteorder(">")
    none = np.zeros(spec.blocks, form)
    return b"".join(scales.get(part, none).astype(form).tobytes() for part in range(spec.wave))
