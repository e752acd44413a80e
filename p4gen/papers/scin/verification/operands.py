"""What ranks of a search have in memory: operands that tell calls, packets and ranks apart, and their sums.

A *piece* of memory is what one WRITE changes: a packet, and behind the last one of a wave the scales of that wave, if
elements have some.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from p4gen.papers.scin.ranks.blocks import Array
from p4gen.papers.scin.ranks.memory import Layout, joined, summed
from p4gen.papers.scin.spec import ScinSpec

_ELEMENT: Final = 4
"""Bytes of a whole number."""
MOST_RANKS: Final = 3
"""An operand has a byte of its own of each whole number for each rank."""
_ELEMENTS: Final = 113
"""Elements with scales are below it: a prime, so that those of packets differ."""

_SCALES: Final = 13
"""Scales that operands have: those of different ranks are of different magnitudes."""


def operand(number: int, rank: int, payload: int) -> bytes:
    """The packet ``number`` of a rank's operands, from 0 in all calls together; of whole numbers."""
    return ((number + 1) << 8 * rank).to_bytes(_ELEMENT) * (payload // _ELEMENT)


def result(number: int, sources: int, payload: int) -> bytes:
    """The sum of it over the sources."""
    total = sum((number + 1) << 8 * rank for rank in range(MOST_RANKS) if sources >> rank & 1)
    return total.to_bytes(_ELEMENT) * (payload // _ELEMENT)


def operands(spec: ScinSpec, numbers: range, rank: int) -> bytes:
    """The memory of a rank's operand, in the call with these packets."""
    if spec.scaled:
        return Layout(spec).wire(_blocks(spec, numbers, rank), 1)
    return b"".join(operand(number, rank, spec.payload) for number in numbers)


def results(spec: ScinSpec, numbers: range, sources: int) -> bytes:
    """The memory of its result."""
    if spec.scaled:
        given = [_blocks(spec, numbers, rank) for rank in range(MOST_RANKS) if sources >> rank & 1]
        return Layout(spec).wire(summed(Layout(spec).numbers, given), 1)
    return b"".join(result(number, sources, spec.payload) for number in numbers)


def pieces(spec: ScinSpec, packets: int) -> Sequence[slice]:
    """Where each packet of a call is in memory; the last of a wave has the wave's scales with it."""
    found = []
    for at in range(packets):
        first = at * spec.payload + at // spec.wave * spec.scale_bytes
        ends = at == packets - 1 or at % spec.wave == spec.wave - 1
        found.append(slice(first, first + spec.payload + ends * spec.scale_bytes))
    return found


def _blocks(spec: ScinSpec, numbers: range, rank: int) -> Array:
    form, near = Layout(spec).numbers, Layout(spec).numbers.near
    packet = np.array(numbers).reshape(-1, 1, 1)
    block, element = np.arange(spec.blocks).reshape(1, -1, 1), np.arange(spec.scale_block)
    elements = (11 * packet + 37 * rank + 5 * block + 7 * element) % _ELEMENTS - _ELEMENTS // 2
    scales = near.start + (packet + 3 * rank + block)[..., 0] * (len(near) // _SCALES) % len(near)
    return joined(form, elements.reshape(-1, spec.scale_block).astype(np.int8), scales.reshape(-1).astype(form.scale))
