"""How long to wait for an acknowledgement where nobody can say beforehand: from what round trips have taken.

Hosts in real time share processors with switches and with whatever else runs. What takes a millisecond on an idle
machine may take a tenth of a second on a busy one, and a timer that is shorter than that sends everything again, which
makes it busier still. As in RFC 6298, round trips are measured, never of what was sent twice, and a timeout makes the
next wait longer. Not as there, the shortest of some round trips counts and not their mean: in Mode II an
acknowledgement waits for all ranks, so one rank's loss and its timer are in the others' round trips, and from a mean
they would all learn to wait longer and longer.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar, Final

_MOST: Final = 4
"""The longest wait, as a multiple of the shortest; it is also the first, before anything is known. Loss may come from a
bad link, and then patience is time lost."""
_TIMES: Final = 4
"""The wait, as a multiple of the round trip."""
_REMEMBERED: Final = 8
"""Round trips."""
_CALM: Final = 8
"""After so many acknowledgements without a timeout, patience is over: where much is lost, hardly a packet can be timed,
for each waits behind one that is missing."""


class RoundTrips:
    """The retransmission timer of one requester; times in ps.

    One packet at a time is timed: set ``seq`` and ``since`` when it leaves for the first time, and ``seq`` to -1 when
    it has to leave again, for then nobody knows which of the two is acknowledged (Karn's rule). ``timeout`` is never
    below ``least``.
    """

    STATE: ClassVar = ("seq", "since", "timeout", "_took", "_estimate", "_least", "_patient")

    __slots__ = ("_estimate", "_least", "_patient", "_took", "seq", "since", "timeout")

    def __init__(self, least: int) -> None:
        self.seq = -1
        """The packet that is timed; -1 for none."""
        self.since = 0
        self.timeout = _MOST * least
        self._least = self._estimate = least
        self._took: deque[int] = deque(maxlen=_REMEMBERED)
        self._patient = _CALM
        """Acknowledgements for which the timeout stays longer than what round trips take."""

    def acknowledged(self, upto: int, now: int) -> None:
        """All packets before ``upto`` have arrived, some of them just now."""
        if 0 <= self.seq < upto:
            self._took.append(now - self.since)
            self.seq = -1
            self._estimate = min(max(_TIMES * min(self._took), self._least), _MOST * self._least)
            self._patient = 0
            self.timeout = self._estimate
        elif self._patient:
            self._patient -= 1
            if not self._patient:
                self.timeout = self._estimate

    def expired(self) -> None:
        """Nothing has arrived in time: be more patient until a packet has been timed again, or all seems well."""
        self.seq = -1
        self._patient = _CALM
        self.timeout = min(2 * self.timeout, _MOST * self._least)
