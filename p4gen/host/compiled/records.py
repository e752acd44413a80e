"""What Python sees of a compiled world's records and frames."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from p4gen.compiled import frames
from p4gen.compiled.memory import PROBLEMS, TOO_LONG, World
from p4gen.rocev2.headers import is_ipv6


def column(name: str) -> Any:
    """A property that is a number of the object's record, ``_row``."""

    def get(of: Any) -> int:
        return int(of._row[name])

    def put(of: Any, value: int) -> None:
        of._row[name] = value

    return property(get, put)


class Counters:
    """Counters of a record, by the names that Python has for them."""

    def __init__(self, record: Any, names: dict[str, str]) -> None:
        self._record, self._names = record, names

    def __getattr__(self, name: str) -> int:
        try:
            return int(self._record[self._names[name]])
        except KeyError:
            raise AttributeError(name) from None


class Frames:
    """The frames of a compiled world, as Python reads and writes them."""

    def __init__(self, of: World) -> None:
        self.world = of
        self._pool, self._lengths = of.pool.data, of.lengths["value"]
        self._slot = int(of.all["slot"][0])
        self.answers: Any = None
        """What answers compiled code. It has to live as long as the world."""

    def get(self, frame: int) -> bytes:
        """A frame's bytes."""
        start = frame * self._slot
        return bytes(self._pool[start : start + int(self._lengths[frame])])

    def put(self, contents: bytes) -> int:
        """A new frame. Raises ``ValueError`` for one that is too long."""
        if len(contents) > self._slot:
            raise ValueError(PROBLEMS[TOO_LONG])
        frame: int = frames.take(self.world.place, len(contents))
        self.change(frame, contents)
        return frame

    def change(self, frame: int, contents: bytes) -> None:
        """Replace a frame by one of the same size."""
        start = frame * self._slot
        self._pool[start : start + len(contents)] = contents


def address_of(memory: memoryview) -> int:
    """The address of memory; 0 if it is empty."""
    return np.frombuffer(memory, np.uint8).ctypes.data if memory.nbytes else 0


def address_words(ip: int) -> tuple[int, int]:
    """The columns of an IP address (``p4gen.compiled.memory.HOST``)."""
    return struct.unpack("=qq", ip.to_bytes(16)) if is_ipv6(ip) else (ip, 0)
