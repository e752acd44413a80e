"""Time, virtual or real, in integer picoseconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

NS: Final = 1_000
US: Final = 1_000_000
MS: Final = 1_000_000_000
SECOND: Final = 1_000_000_000_000

Action = Callable[[Any], None]


class Clock(Protocol):
    """What hosts see of the event loop."""

    now: int
    """Picoseconds since some start."""

    def at(self, time: int, action: Action, arg: Any = None) -> None:
        """Call ``action(arg)`` at ``time``, or in real time soon after; calls for the same time happen in the order of
        these requests."""


def duration_text(ps: int) -> str:
    """A duration for people, as ``"12.3 us"``."""
    for unit, name in ((SECOND, "s"), (MS, "ms"), (US, "us"), (NS, "ns")):
        if abs(ps) >= unit:
            return f"{ps / unit:.4g} {name}"
    return f"{ps} ps"
