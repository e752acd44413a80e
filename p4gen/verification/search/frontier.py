"""The rows of a level of a search: in memory as far as there is room, the others on disk."""

from __future__ import annotations

import tempfile
from collections import deque
from typing import IO, Final

import numpy as np
import numpy.typing as npt

from p4gen.verification.search.kernel import Words

IN_MEMORY: Final = 256 << 20
"""Bytes of rows that are kept in memory."""

Rows = npt.NDArray[np.uint16] | Words


class Frontier:
    """Rows of ``width`` words in the order in which they were added, in pieces; words of 16 bits are enough for most.
    Rows beyond ``most`` bytes, and all rows added after them, go to a temporary file."""

    def __init__(self, width: int, most: int = IN_MEMORY) -> None:
        self._width, self._most = width, most
        self._pieces: deque[Rows] = deque()
        self._held = 0
        self._file: IO[bytes] | None = None
        self._on_disk: deque[tuple[bool, int]] = deque()
        """For each piece in the file, in the order of reading and writing: whether its words have 16 bits, and their
        number."""
        self._read = 0
        """Bytes of the file that have been read."""
        self.count = 0

    def add(self, rows: Words) -> None:
        """Add rows at the end. Raises ``OSError`` if there is no room on disk."""
        if not len(rows):
            return
        piece: Rows = rows.astype(np.uint16) if int(rows.max()) < 1 << 16 else np.ascontiguousarray(rows)
        if self._file is None and self._held + piece.nbytes <= self._most:
            self._pieces.append(piece)
            self._held += piece.nbytes
        else:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the level
            self._file.write(piece.data)
            self._on_disk.append((piece.itemsize == 2, piece.size))
        self.count += len(rows)

    def take(self, least: int) -> Words:
        """Take rows from the beginning: at least so many, if there are. No rows may be added after that."""
        taken: list[Words] = []
        count = 0
        while count < least and (self._pieces or self._on_disk):
            piece = self._pieces.popleft() if self._pieces else self._next()
            taken.append(piece.astype(np.uint32))
            count += len(piece)
        self.count -= count
        return np.concatenate(taken)

    def _next(self) -> Rows:
        assert self._file is not None
        short, size = self._on_disk.popleft()
        self._file.seek(self._read)
        data = self._file.read(size * (2 if short else 4))
        self._read += len(data)
        words: Rows = np.frombuffer(data, np.uint16) if short else np.frombuffer(data, np.uint32)
        return words.reshape(-1, self._width)
