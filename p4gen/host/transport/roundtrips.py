"""The retransmission timeout of hosts in real time, adapted to measured round trips.

Hosts in real time share processors with switches and other processes. What takes a millisecond on an idle machine may
take a tenth of a second on a busy one, and a timer that is too short retransmits everything, which increases the load.
As in RFC 6298, round trips are measured, except those of retransmitted packets, and a timeout makes the next one
longer; how long at most depends on how late the host's own timers are. Unlike there, the shortest of several round
trips counts, not their mean. In Mode II an acknowledgement waits for all ranks, so a loss at one rank and its timeout
are part of the others' round trips. With a mean, all timeouts would grow longer and longer.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar, Final

MOST: Final = 4
"""The longest timeout on an idle machine, as a multiple of the shortest; also the initial one. If a bad link causes the
loss, waiting longer is of no use."""
DELAYS: Final = 16
"""The longest timeout on a busy machine, in delays of a timer: four processes wait for a processor on a packet's way to
the next switches and back, and each packet for those before it."""
LONGEST: Final = 64
"""The longest timeout of all, as a multiple of the shortest."""
TIMES: Final = 4
"""The timeout, as a multiple of the round trip."""
REMEMBERED: Final = 8
"""Number of round trips that are remembered."""
CALM: Final = 8
"""After this many acknowledgements without a timeout the increased timeout ends. Under heavy loss hardly any packet can
be timed, because each waits for an earlier one that is missing."""


class RoundTrips:
    """The retransmission timeout of one requester. Times are in ps.

    One packet at a time is timed. Set ``seq`` and ``since`` when it is first sent, and ``seq`` to -1 when it is
    retransmitted: it is then unknown which transmission is acknowledged (Karn's algorithm). ``timeout`` is never below
    ``least``.
    """

    STATE: ClassVar = ("seq", "since", "timeout", "_took", "_estimate", "_least", "_patient")

    __slots__ = ("_estimate", "_least", "_patient", "_took", "seq", "since", "timeout")

    def __init__(self, least: int) -> None:
        self.seq = -1
        """The packet that is timed; -1 if none is."""
        self.since = 0
        self.timeout = MOST * least
        self._least = self._estimate = least
        self._took: deque[int] = deque(maxlen=REMEMBERED)
        self._patient = CALM
        """Number of further acknowledgements for which the increased timeout remains."""

    def acknowledged(self, upto: int, now: int, late: int = 0) -> None:
        """All packets before ``upto`` are acknowledged, some of them just now. ``late`` is how late timers are."""
        if 0 <= self.seq < upto:
            self._took.append(now - self.since)
            self.seq = -1
            self._estimate = min(max(TIMES * min(self._took), self._least), self._most(late))
            self._patient = 0
            self.timeout = self._estimate
        elif self._patient:
            self._patient -= 1
            if not self._patient:
                self.timeout = self._estimate

    def expired(self, late: int = 0) -> None:
        """The timeout has expired: increase it until a packet has been timed again or ``CALM`` acknowledgements have
        arrived."""
        self.seq = -1
        self._patient = CALM
        self.timeout = max(self.timeout, min(2 * self.timeout, self._most(late)))

    def _most(self, late: int) -> int:
        return min(max(MOST * self._least, DELAYS * late), LONGEST * self._least)
