"""The event loop: virtual time advances from event to event."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, ClassVar, Protocol

from p4gen.host.transport.clock import Action, Clock

_NEVER = 1 << 200


class Loop(Clock, Protocol):
    """A clock of virtual time, which advances in ``run``."""

    @property
    def handled(self) -> int:
        """Number of events handled so far."""
        ...

    @property
    def idle(self) -> bool:
        """Whether no event is pending."""
        ...

    @property
    def latest(self) -> int:
        """The time of the last pending event; now if there is none."""
        ...

    def run(self, until: int | None = None, count: int | None = None) -> None:
        """Handle events until none is left, at most ``count`` of them. With ``until``, handle those that are not later,
        and advance the time to it."""


class EventLoop:
    """A ``p4gen.host.transport.clock.Clock`` whose time advances in ``run``."""

    STATE: ClassVar = ("now", "handled", "events", "_number")
    late = 0

    def __init__(self) -> None:
        self.now = 0
        self.handled = 0
        """Number of events handled so far."""
        self._events: list[tuple[int, int, Action, Any]] = []
        self._number = 0

    def at(self, time: int, action: Action, arg: Any = None) -> None:
        """Call ``action(arg)`` at ``time``, which is not before now. Calls for the same time are made in the order of
        the requests."""
        self._number += 1
        heappush(self._events, (time, self._number, action, arg))

    @property
    def events(self) -> list[tuple[int, int, Action, Any]]:
        """The pending events in order: time, running number, action, argument. Set them between runs only."""
        return sorted(self._events)

    @events.setter
    def events(self, events: list[tuple[int, int, Action, Any]]) -> None:
        self._events = events  # a sorted list is a heap

    @property
    def idle(self) -> bool:
        """Whether no event is pending."""
        return not self._events

    @property
    def latest(self) -> int:
        """The time of the last pending event; now if there is none."""
        return max((event[0] for event in self._events), default=self.now)

    def run(self, until: int | None = None, count: int | None = None) -> None:
        """Handle events until none is left, at most ``count`` of them. With ``until``, handle those that are not later,
        and advance the time to it."""
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
