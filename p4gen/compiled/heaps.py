"""Heaps of records that begin with a time and a number: four records are below each, none of which comes before it.

Comparisons have no branches, because a processor cannot foresee their results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from p4gen.compiled.cached import compiled
from p4gen.compiled.machine import copy, load64

_NUMBER: Final = 8
"""From the time to the number."""


@compiled
def _before(one: int, other: int) -> bool:
    """Whether the record at an address comes before another one."""
    first, second = load64(one), load64(other)
    return bool((first < second) | ((first == second) & (load64(one + _NUMBER) < load64(other + _NUMBER))))


def heap(record: np.dtype[Any]) -> tuple[Callable[[int, int, int], int], Callable[[int, int], None]]:
    """Two functions of a heap of such records. Each takes its address and the number of records.

    The first one makes room for a record, from its time, whose number is greater than all others: it returns the place.
    The second one removes the first record.
    """
    size = record.itemsize

    @compiled
    def make_room(heap: int, count: int, time: int) -> int:
        place = count
        while place > 0:
            above = (place - 1) >> 2
            if load64(heap + above * size) <= time:
                break
            copy(heap + place * size, heap + above * size, size)
            place = above
        return place

    @compiled
    def drop_first(heap: int, count: int) -> None:
        last = heap + (count - 1) * size
        free = heap
        while True:  # the last record most likely belongs to the lowest places: it is not compared yet
            first = 4 * free - 3 * heap + size
            if first >= last:
                break
            if first + 3 * size < last:
                second, third, fourth = first + size, first + 2 * size, first + 3 * size
                first = second if _before(second, first) else first
                third = fourth if _before(fourth, third) else third
                first = third if _before(third, first) else first
            else:
                for other in range(first + size, last, size):
                    first = other if _before(other, first) else first
            copy(free, first, size)
            free = first
        place = (free - heap) // size
        while place > 0:
            above = (place - 1) >> 2
            if _before(heap + above * size, last):
                break
            copy(heap + place * size, heap + above * size, size)
            place = above
        copy(heap + place * size, last, size)

    return make_room, drop_first
