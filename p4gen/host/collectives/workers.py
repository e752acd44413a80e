"""Workers: applications of hosts that add vectors with others, by a protocol of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass
class WorkerStats:
    """What a worker has counted."""

    sent: int = 0
    resent: int = 0
    results: int = 0
    strays: int = 0
    """Results that it does not wait for: repeated ones, mostly."""


class Worker(Protocol):
    """A host's application that adds vectors with others."""

    stats: WorkerStats
    on_sum: Callable[[Any], None]
    """Called with the sum of a vector, once all of it has come."""

    def add(self, vector: Any) -> None:
        """Begin with a vector. The one before has its sum."""
        ...

    def waiting(self) -> Iterator[str]:
        """What it waits for, a line each."""
        ...
