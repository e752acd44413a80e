"""A constant sending rate: that of a connection over a path that is planned for it."""

from __future__ import annotations

from typing import ClassVar, Final

from p4gen.host.transport.clock import SECOND

_BURST: Final = 1 << 16
"""Bytes that may be sent at once to make up for a time in which another connection used the line, or no packet was
ready. Without them, each such time would make the connection slower than its rate."""


class Pace:
    """The rate of one connection, in place of DCQCN's ``ReactionPoint``: a bucket of ``_BURST`` bytes."""

    STATE: ClassVar = ("_due",)

    def __init__(self, rate: int) -> None:
        self.rate = float(rate)
        """Bit/s, with the overhead on the wire."""
        self._due = 0
        """The time, in ps, at which everything sent would have left at this rate."""

    def on_cnp(self, now: int) -> None:
        """Ignore a CNP: the rate is planned."""

    def on_nack(self, now: int) -> None:
        """Ignore a NAK: the rate is planned."""

    def pace(self, now: int, size: int) -> int:
        """The time, in ps, for which ``size`` bytes sent now occupy the connection."""
        self._due = max(self._due, now - self._time(_BURST)) + self._time(size)
        return max(0, self._due - now)

    def _time(self, size: int) -> int:
        return int(size * 8 * SECOND / self.rate)
