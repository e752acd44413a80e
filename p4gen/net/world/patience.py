"""The time after which a run without progress is given up: every timer that waits must have expired before."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from p4gen.host.transport.clock import MS, US
from p4gen.net.world.loop import Loop

_TIMEOUTS: Final = 50
"""Number of NIC timeouts without progress, at least."""
_LEAST: Final = 20 * US
"""The least timeout that counts, where NICs have a shorter one or none."""
_WAITS: Final = 4
"""Number of longest waits without progress, at least: a packet that is sent again after a long wait may be lost,
too."""


class Patience:
    """How long a run goes on without progress. Times are in ps.

    ``done`` counts progress. ``loop`` has the events that wait, such as packets in flight and NICs' timers. ``waits``
    is the longest wait of switches' timers, which ticks drive. ``timeout`` is the NICs'.
    """

    STATE: ClassVar = ("_done", "since", "_longest")

    def __init__(self, loop: Loop, timeout: int, done: Callable[[], int], waits: Callable[[], int]) -> None:
        self._loop = loop
        self._least = _TIMEOUTS * max(timeout, _LEAST) + MS
        self._count = done
        self._waits = waits
        self._done = -1
        self.since = loop.now
        """The time at which progress was last observed."""
        self._longest = 0
        """The longest wait that was observed since."""

    def begin(self) -> None:
        """Start waiting: the run has begun, or new tasks have."""
        self._done, self.since, self._longest = -1, self._loop.now, 0

    def over(self) -> bool:
        """Whether the run is to be given up. Called again and again while it runs."""
        loop = self._loop
        done = self._count()
        if done != self._done:
            self._done, self.since, self._longest = done, loop.now, 0
            return False
        silence = loop.now - self.since
        if silence <= max(self._least, _WAITS * self._longest):
            return False
        self._longest = max(self._longest, loop.latest - loop.now, self._waits())
        return silence > _WAITS * self._longest
