"""Time, virtual or real, in integer picoseconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

NS: Final = 1_000
US: Final = 1_000_000
MS: Final = 1_000_000_000
SECOND: Final = 1_000_000_000_000

TURNS: Final = 16
"""Turns of a loop in real time after which most of a delay is forgotten, if timers are punctual again."""

Action = Callable[[Any], None]


class Clock(Protocol):
    """The part of an event loop that hosts use."""

    @property
    def now(self) -> int:
        """Picoseconds since an arbitrary start."""
        ...

    @property
    def late(self) -> int:
        """How late, in ps, timers have been lately because the machine is busy; 0 in virtual time."""
        ...

    def at(self, time: int, action: Action, arg: Any = None) -> None:
        """Call ``action(arg)`` at ``time``, or in real time soon after. Calls for the same time are made in the order
        of the requests."""


def duration_text(ps: int) -> str:
    """A duration as text, like ``"12.3 us"``."""
    for unit, name in ((SECOND, "s"), (MS, "ms"), (US, "us"), (NS, "ns")):
        if abs(ps) >= unit:
            return f"{ps / unit:.4g} {name}"
    return f"{ps} ps"
