"""How long to wait for an acknowledgement where nobody can say beforehand: RFC 6298, as TCP does it.

Hosts in real time share processors with switches and with whatever else runs. What takes a millisecond on an idle
machine may take a tenth of a second on a busy one, and a timer that is shorter than that sends everything again, which
makes it busier still.
"""

from __future__ import annotations

from typing import Final

_MOST: Final = 4
"""The longest wait, as a multiple of the shortest; it is also the first, before anything is known. TCP's is longer, but
TCP takes loss for congestion; here it may be a bad link, and then patience is time lost."""


class RoundTrips:
    """The retransmission timer of one requester; times in ps.

    One packet at a time is timed: set ``seq`` and ``since`` when it leaves for the first time, and ``seq`` to -1 when
    it has to leave again, for then nobody knows which of the two is acknowledged (Karn's rule). ``timeout`` is never
    below ``least``.
    """

    __slots__ = ("_least", "_mean", "_spread", "seq", "since", "timeout")

    def __init__(self, least: int) -> None:
        self.seq = -1
        """The packet that is timed; -1 for none."""
        self.since = 0
        self.timeout = _MOST * least
        self._least = least
        self._mean = self._spread = 0

    def acknowledged(self, now: int) -> None:
        """The packet that is timed has arrived (RFC 6298, 2.2 and 2.3)."""
        took = now - self.since
        self.seq = -1
        if self._mean:
            self._spread += (abs(self._mean - took) - self._spread) // 4
            self._mean += (took - self._mean) // 8
        else:
            self._mean, self._spread = took, took // 2
        self.timeout = min(max(self._mean + 4 * self._spread, self._least), _MOST * self._least)

    def expired(self) -> None:
        """Nothing has arrived in time: be more patient until a packet has been timed again (5.5)."""
        self.seq = -1
        self.timeout = min(2 * self.timeout, _MOST * self._least)
