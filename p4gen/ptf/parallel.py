"""Runs suites in parallel, and ends all of them at once when their results are no longer wanted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_PATIENCE_S = 5.0
"""Seconds to wait for suites that were told to end. Their processes end with this process in any case."""


class Stop:
    """Tells running suites to end: ``fileno`` is readable once ``set`` has been called."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._set = False

    def fileno(self) -> int:
        """A descriptor for ``select``."""
        return self._reader

    @property
    def is_set(self) -> bool:
        """Whether ``set`` has been called."""
        return self._set

    def set(self) -> None:
        """Tell all running suites to end."""
        if not self._set:
            self._set = True
            os.close(self._writer)

    def close(self) -> None:
        """Close the descriptors. No thread may be waiting for them."""
        self.set()
        os.close(self._reader)


@contextlib.contextmanager
def in_parallel(run: Callable[[T, Stop], R], items: Sequence[T], jobs: int) -> Iterator[Iterator[R]]:
    """The results of ``run(item, stop)`` in the order of ``items``. At most ``jobs`` run at a time.

    When the block ends early, ``stop`` is set for those that run, and no other is started.
    """
    stop = Stop()
    pool = ThreadPoolExecutor(jobs)
    futures = [pool.submit(run, item, stop) for item in items]
    try:
        yield (future.result() for future in futures)
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
        if not wait(futures, _PATIENCE_S).not_done:
            stop.close()
