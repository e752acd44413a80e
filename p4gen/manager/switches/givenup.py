"""The decision which given-up edges are dead: on a busy machine they may only be slow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ANSWERS: Final = 100
"""An edge is dead when it has been given up for as long as this many answers of a switch take. On an idle machine that
is less than the second between two checks; where answers take half a second, it is most of a minute."""
LONGEST: Final = 60.0
"""Seconds after which an edge is dead, however long answers take."""


class GivenUp:
    """The edges that a switch has given up, over successive checks. Times are in seconds."""

    def __init__(self) -> None:
        self.counts: Mapping[int, int] | None = None
        """The ticks that found each edge given up, at the last check; the count of a given-up edge grows."""
        self._looked = 0.0
        self._since: dict[int, float] = {}

    def dead(self, counts: Mapping[int, int], now: float, answer: float) -> set[int]:
        """The edges that are dead, where a switch takes ``answer`` to answer."""
        before, looked = self.counts, self._looked
        self.counts, self._looked = counts, now
        if before is None:
            return set()
        stuck = [index for index, ticks in counts.items() if ticks > before.get(index, 0)]
        self._since = {index: self._since.get(index, looked) for index in stuck}
        return {i for i, since in self._since.items() if now - since >= min(ANSWERS * answer, LONGEST)}
