"""The event loop: virtual time goes from event to event."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, ClassVar

from p4gen.host.transport.clock import Action

_NEVER = 1 << 200


class EventLoop:
    """A clock (``p4gen.host.transport.clock.Clock``) that is wound by ``run``."""

    STATE: ClassVar = ("now", "handled", "events", "_number")

    def __init__(self) -> None:
        self.now = 0
        self.handled = 0
        """Events so far."""
        self._events: list[tuple[int, int, Action, Any]] = []
        self._number = 0

    def at(self, time: int, action: Action, arg: Any = None) -> None:
        """Call ``action(arg)`` at ``time``, not before now; ties go in the order of these calls."""
        self._number += 1
        heappush(self._events, (time, self._number, action, arg))

    @property
    def events(self) -> list[tuple[int, int, Action, Any]]:
        """What is to happen, in order: time, number of the request, action and argument. Set it between runs only."""
        return sorted(self._events)

    @events.setter
    def events(self, events: list[tuple[int, int, Action, Any]]) -> None:
        self._events = events  # in order, it is a heap too

    @property
    def idle(self) -> bool:
        """Nothing will ever happen again."""
        return not self._events

    def run(self, until: int | None = None, count: int | None = None) -> None:
        """Handle events: at most ``count``, none later than ``until`` (it is then), else until there are none."""
        events = self._events
        left = count if count is not None else -1
        handled = 0
        end = until if until is not None else _NEVER
        while events and handled != left and events[0][0] <= end:
            self.now, _, action, arg = heappop(events)
            action(arg)
            handled += 1
        self.handled += handled
        if until is not None and handled != left:
            self.now = max(self.now, until)
