"""What those see who watch the links and the switches of a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Passage:
    """The passage of a frame over a link, for watchers. ``arrived`` is None when the frame was lost; ``reason`` says
    why."""

    src: str
    dst: str
    sent: int
    arrived: int | None
    frame: bytes
    reason: str = ""


Watcher = Callable[[Passage], None]
Observer = Callable[[int, bytes, Sequence[bytes]], None]
"""Takes the time at which a frame arrived, the frame, and what a switch sends for it."""
