"""How long requests to switches take, as a histogram."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Bounds in seconds of the counts in ``Durations``; the last count is of what took longer."""


@dataclass(frozen=True)
class Durations:
    """How often something took how long: ``counts`` by ``BOUNDS_S``, none if nothing was measured."""

    counts: tuple[int, ...] = ()
    seconds: float = 0.0
    """All together."""

    def __post_init__(self) -> None:
        if len(self.counts) not in (0, len(BOUNDS_S) + 1):
            raise ValueError(f"{len(self.counts)} counts of durations; there are {len(BOUNDS_S) + 1}")

    def plus(self, seconds: float) -> Durations:
        """With one more."""
        counts = list(self.counts or (0,) * (len(BOUNDS_S) + 1))
        counts[bisect_left(BOUNDS_S, seconds)] += 1
        return Durations(tuple(counts), self.seconds + seconds)
