"""Which edges that a switch has given up are to be believed dead: on a busy machine they are only slow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ANSWERS: Final = 100
"""An edge is dead when it has been given up for as long as this many answers of a switch take: on an idle machine less
than the second between two looks, on one where answers take half a second most of a minute."""
LONGEST: Final = 60.0
"""Seconds after which it is, however long answers take."""


class GivenUp:
    """The edges of a switch that it has given up, look by look. Times are in seconds."""

    def __init__(self) -> None:
        self.counts: Mapping[int, int] | None = None
        """The ticks that found each edge given up, as last read; a given-up edge's count grows."""
        self._looked = 0.0
        self._since: dict[int, float] = {}

    def dead(self, counts: Mapping[int, int], now: float, answer: float) -> set[int]:
        """The edges to be left, where a switch takes ``answer`` to say something."""
        before, looked = self.counts, self._looked
        self.counts, self._looked = counts, now
        if before is None:
            return set()
        stuck = [index for index, ticks in counts.items() if ticks > before.get(index, 0)]
        self._since = {index: self._since.get(index, looked) for index in stuck}
        return {i for i, since in self._since.items() if now - since >= min(ANSWERS * answer, LONGEST)}
