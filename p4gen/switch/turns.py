"""A lock whose holder may be in machine code, and comes out of it when others want the lock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

_PAUSE_S: Final = 20e-6


class Turns:
    """A reentrant lock. Set ``wake`` to what makes the holder release it soon; whoever waits for the lock calls it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._counting = threading.Lock()
        self._waiting = 0
        self.wake: Callable[[], None] = lambda: None

    @property
    def wanted(self) -> bool:
        """Whether others wait for the lock."""
        return self._waiting > 0

    def let_others(self) -> None:
        """Return when nobody waits for the lock. The caller does not hold it."""
        while self.wanted:
            time.sleep(_PAUSE_S)

    def __enter__(self) -> Turns:
        if not self._lock.acquire(blocking=False):
            self._count(1)
            try:
                self.wake()
                self._lock.acquire()
            finally:
                self._count(-1)
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _count(self, change: int) -> None:
        with self._counting:
            self._waiting += change
