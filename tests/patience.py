"""How tests wait: for a condition, with a bound that says only that it will never come to pass."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 300.0
"""No measure of anything: this machine may have other work to do, and be slower for that by any factor."""


def until(condition: Callable[[], object], what: Callable[[], str] = lambda: "", poll: float = 0.01) -> None:
    """Wait for ``condition``; AssertionError, with what ``what`` says, when nothing can be hoped for any more."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"it did not come to pass. {what()}"
        time.sleep(poll)
