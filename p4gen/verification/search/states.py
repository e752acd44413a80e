"""A set of visited states, of their fingerprints, in machine code (Numba)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from p4gen.compiled.cached import compiled_with
from p4gen.errors import InputError
from p4gen.verification.search.kernel import Longs, Words

PARTS: Final = 16
"""The set consists of this many tables, which grow one after the other, so that growth needs little memory."""
LEAST: Final = 1024
"""Entries of a part at the beginning."""
FULLEST: Final = 0.8
BYTES: Final = 20
"""Bytes of memory for a state, at this load."""
_AHEAD: Final = 32
"""Entries that are read ahead, so that their transfers from memory overlap."""


class States:
    """A set of at most ``most`` states, with their indices: the n-th one has the index n.

    An entry is 96 bits of a fingerprint, and 32 of the index: 16 bytes. Its place follows from those bits, but the part
    from four others. Memory is reserved for all, and used as the set grows.
    """

    def __init__(self, most: int) -> None:
        self.count = 0
        self._size = LEAST
        self._stride = max(LEAST, -int(-most // (FULLEST * PARTS)) + LEAST)
        try:
            self._entries: Longs = np.zeros((PARTS * self._stride, 2), np.uint64)
        except MemoryError as error:
            raise InputError("--memory: this machine does not have so much") from error

    def insert(self, high: Longs, low: Longs) -> tuple[Words, Words]:
        """Add states. Returns the index of each, and the positions of those that are new."""
        while self.count + len(high) > FULLEST * PARTS * self._size and self._size < self._stride:
            self._grow()
        to, fresh = np.zeros(len(high), np.uint32), np.zeros(len(high), np.uint32)
        new = _insert(self._entries, self._stride, self._size, high, low, self.count, to, fresh)
        self.count += int(new)
        return to, fresh[:new]

    def _grow(self) -> None:
        size = min(self._size * 5 // 4, self._stride)
        for part in range(PARTS):
            begin = part * self._stride
            old = self._entries[begin : begin + self._size].copy()
            self._entries[begin : begin + self._size] = 0
            _move(old, self._entries[begin : begin + size])
        self._size = size


@compiled_with(inline="always")
def _home(low: Any, size: Any) -> Any:
    """The place where the search for an entry begins. Entries are nearly in the order of these places."""
    return (low & np.uint64(0xFFFFFFFF)) * np.uint64(size) >> np.uint64(32)


@compiled_with(nogil=True)
def _insert(entries: Any, stride: int, size: int, high: Any, low: Any, count: int, to: Any, fresh: Any) -> int:
    new = 0
    places = np.zeros(_AHEAD, np.uint64)
    for first in range(0, len(high), _AHEAD):
        last = min(first + _AHEAD, len(high))
        for i in range(first, last):
            part = (low[i] >> np.uint64(32)) & np.uint64(PARTS - 1)
            at = part * np.uint64(stride) + _home(low[i], size)
            places[i - first] = at
            to[i] = entries[at, 0] & np.uint64(1)  # nobody uses this value: it starts the entry's transfer from memory
        for i in range(first, last):
            at = places[i - first]
            begin = at - _home(low[i], size)
            end = begin + np.uint64(size)
            known = low[i] << np.uint64(32)
            while True:
                entry = entries[at, 1]
                if entry == 0:
                    entries[at, 0] = high[i]
                    entries[at, 1] = known | np.uint64(count + new + 1)
                    to[i] = count + new
                    fresh[new] = i
                    new += 1
                    break
                if entries[at, 0] == high[i] and entry & np.uint64(0xFFFFFFFF00000000) == known:
                    to[i] = (entry & np.uint64(0xFFFFFFFF)) - np.uint64(1)
                    break
                at += np.uint64(1)
                if at == end:
                    at = begin
    return new


@compiled_with(nogil=True)
def _move(old: Any, new: Any) -> None:
    """Move all entries of a part to a larger one, which is empty."""
    size = np.uint64(len(new))
    for i in range(len(old)):
        if old[i, 1] != 0:
            at = _home(old[i, 1] >> np.uint64(32), size)
            while new[at, 1] != 0:
                at += np.uint64(1)
                if at == size:
                    at = np.uint64(0)
            new[at, 0], new[at, 1] = old[i, 0], old[i, 1]
