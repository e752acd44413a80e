"""When a run that makes no progress is given up: not before whatever waits has had its time."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from p4gen.host.transport.clock import MS, US
from p4gen.net.world.loop import EventLoop

_TIMEOUTS: Final = 50
"""Timeouts of NICs without progress, at least."""
_LEAST: Final = 20 * US
"""What counts as a timeout where NICs have a shorter one, or none."""
_WAITS: Final = 4
"""Times the longest wait without progress, at least: what is sent again after a long wait may be lost, too."""


class Patience:
    """How long a run goes on without progress. Times are in ps.

    ``done`` counts what has made progress. What waits is an event of ``loop``, packets in flight and NICs' timers among
    them, or a timer of a switch, which ticks drive: ``waits`` is the longest wait of those. ``timeout`` is the NICs'.
    """

    STATE: ClassVar = ("_done", "since", "_longest")

    def __init__(self, loop: EventLoop, timeout: int, done: Callable[[], int], waits: Callable[[], int]) -> None:
        self._loop = loop
        self._least = _TIMEOUTS * max(timeout, _LEAST) + MS
        self._count = done
        self._waits = waits
        self._done = -1
        self.since = loop.now
        """When progress was last observed."""
        self._longest = 0
        """The longest wait that was observed since."""

    def begin(self) -> None:
        """Wait from now on."""
        self._done, self.since, self._longest = -1, self._loop.now, 0

    def over(self) -> bool:
        """Whether the run is to be given up. Asked again and again while it runs."""
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
