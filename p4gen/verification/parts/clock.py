"""A clock that stands still: calls that are due now are made at once, and a timer expires when the search decides
so."""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

from p4gen.host.transport.clock import Action


class StillClock:
    """A ``p4gen.host.transport.clock.Clock`` for searches of states. ``now`` is 0 except while a timer expires."""

    STATE: ClassVar = ("waiting",)
    late = 0

    def __init__(self) -> None:
        self.now = 0
        self.waiting: tuple[tuple[Action, int], ...] = ()
        """The timers that run, in the order in which they were set, each with its delay."""
        self._due: deque[tuple[Action, Any]] = deque()

    def at(self, time: int, action: Action, arg: Any = None) -> None:
        """Call ``action(arg)`` at ``time``: soon, or when this timer expires."""
        if time <= self.now:
            self._due.append((action, arg))
        elif arg is not None:
            raise TypeError(f"a timer with an argument: {action!r}")
        else:
            others = tuple(timer for timer in self.waiting if timer[0] != action)
            self.waiting = (*others, (action, time - self.now))

    def settle(self) -> None:
        """Make all calls that are due now, and all calls for now that these request."""
        while self._due:
            action, arg = self._due.popleft()
            action(arg)

    def timers(self) -> list[Action]:
        """The timers that may expire next: of several of one object, the one with the shortest delay."""
        first: dict[int, tuple[int, Action]] = {}
        for action, delay in self.waiting:
            whose = _whose(action)
            if whose not in first or delay < first[whose][0]:
                first[whose] = delay, action
        return [action for _, action in first.values()]

    def names(self) -> list[tuple[int, str]]:
        """The timers that may expire next: the identity of the object whose timer it is, and its purpose."""
        return [(_whose(action), getattr(action, "__name__", "").strip("_")) for action in self.timers()]

    def expire(self, action: Action) -> None:
        """Let a timer expire, and make the calls that are then due."""
        (delay,) = [delay for timer, delay in self.waiting if timer == action]
        self.waiting = tuple(timer for timer in self.waiting if timer[0] != action)
        self.now = delay
        action(None)
        self.settle()


def _whose(action: Action) -> int:
    return id(getattr(action, "__self__", action))
