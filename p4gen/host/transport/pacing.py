"""A sending rate that stays the same: of a connection over a path that is planned for it."""

from __future__ import annotations

from typing import ClassVar, Final

from p4gen.host.transport.clock import SECOND

_BURST: Final = 1 << 16
"""Bytes that may be sent at once to make up for a time in which the line was another connection's, or no packet was
ready: otherwise each such time would make the connection slower than its rate."""


class Pace:
    """The rate of one connection, in place of DCQCN's ``ReactionPoint``: a bucket of ``_BURST`` bytes."""

    STATE: ClassVar = ("_due",)

    def __init__(self, rate: int) -> None:
        self.rate = float(rate)
        """Bit/s, with the overhead on the wire."""
        self._due = 0
        """When all that has been sent would have left at this rate, ps."""

    def on_cnp(self, now: int) -> None:
        """Nothing changes."""

    def on_nack(self, now: int) -> None:
        """Nothing changes."""

    def pace(self, now: int, size: int) -> int:
        """The time, in ps, for which ``size`` bytes sent now occupy the connection."""
        self._due = max(self._due, now - self._time(_BURST)) + self._time(size)
        return max(0, self._due - now)

    def _time(self, size: int) -> int:
        return int(size * 8 * SECOND / self.rate)
