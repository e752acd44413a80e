"""Long sequences of numbers that move to disk when they grow."""

from __future__ import annotations

import tempfile

import numpy as np

from p4gen.verification.search.kernel import Words

IN_MEMORY = 1 << 24
"""The most numbers that are kept in memory."""


class Log:
    """A sequence of 32-bit numbers to which arrays are added. Numbers beyond ``most`` go to a temporary file."""

    def __init__(self, most: int = IN_MEMORY) -> None:
        self._most = most
        self._parts: list[Words] = []
        self._held = 0
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the log
        self._size = 0

    def __len__(self) -> int:
        return self._size + self._held

    def add(self, numbers: Words) -> None:
        """Add numbers at the end. Raises ``OSError`` if there is no room on disk."""
        self._parts.append(numbers)
        self._held += len(numbers)
        if self._held > self._most:
            self._move()

    def _move(self) -> None:
        for part in self._parts:
            self._file.write(np.ascontiguousarray(part).data)
        self._size += self._held
        self._parts, self._held = [], 0

    def all(self) -> Words:
        """All numbers: an array in memory, or a view of the file."""
        if not self._size:
            self._parts = [np.concatenate(self._parts)] if self._parts else [np.zeros(0, np.uint32)]
            return self._parts[0]
        self._move()
        self._file.flush()
        return np.memmap(self._file, np.uint32, "r", shape=(self._size,))
