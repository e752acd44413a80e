"""Sends ticks to switches of Mode III, in real time."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

INTERVAL_S = 0.020
"""Seconds between two ticks of an edge. Two ticks without progress start a retransmission."""
MOST_PER_SECOND = 1000
"""The most ticks per second for a switch; with many edges the interval is longer."""
_RATE_S = 1.0


@dataclass(eq=False)
class _Switch:
    frames: Sequence[bytes]
    send: Callable[[Sequence[bytes]], bool]
    next: int = 0
    """The next frame to send."""
    owed: float = 0.0
    """The fraction of a frame that is due, less than one."""
    sent: deque[tuple[float, int]] = field(default_factory=deque)
    """Times and numbers of the frames sent in about the last second."""


class TickSender:
    """A thread that sends the ticks of all switches, in small batches spread over the interval.

    A frame is sent every ``interval_s`` seconds, or less often if a switch would get more than ``MOST_PER_SECOND``. If
    the thread is late, missed ticks are not made up for. The thread runs only while there are ticks to send.
    """

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self.interval_s = interval_s
        self._switches: dict[str, _Switch] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def interval_of(self, edges: int) -> float:
        """The interval, in s, between ticks of an edge, for a switch with this number of edges."""
        return max(self.interval_s, edges / MOST_PER_SECOND)

    def set(self, name: str, frames: Sequence[bytes], send: Callable[[Sequence[bytes]], bool]) -> None:
        """Send these frames to a switch repeatedly, instead of those set before; without frames, stop.

        ``send`` takes some frames and returns whether it could send them. It must neither block nor raise.
        """
        with self._changed:
            if not frames:
                self._switches.pop(name, None)
                return
            before = self._switches.get(name)
            switch = self._switches[name] = _Switch(tuple(frames), send)
            if before is not None:
                switch.sent = before.sent
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ticks", daemon=True)
                self._thread.start()

    def rate(self, name: str) -> float:
        """Number of ticks sent to a switch in about the last second."""
        with self._changed:
            switch = self._switches.get(name)
            if switch is None:
                return 0.0
            now = time.monotonic()
            _forget(switch, now)
            if not switch.sent:
                return 0.0
            return sum(count for _, count in switch.sent) / max(now - switch.sent[0][0], self.interval_s)

    def close(self) -> None:
        """Stop sending, and end the thread."""
        with self._changed:
            self._switches.clear()
            thread, self._thread = self._thread, None
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        beat = time.monotonic()
        while True:
            beat = max(beat + self.interval_s, time.monotonic())
            with self._changed:
                if self._changed.wait_for(lambda: not self._switches, beat - time.monotonic()):
                    if self._thread is threading.current_thread():
                        self._thread = None
                    return
                due = [(switch, self._turn(switch)) for switch in self._switches.values()]
            now = time.monotonic()
            for switch, frames in due:
                if frames and switch.send(frames):
                    with self._changed:
                        switch.sent.append((now, len(frames)))
                        _forget(switch, now)

    def _turn(self, switch: _Switch) -> list[bytes]:
        """The frames to send now: all of them, or as many as the switch may get in an interval."""
        count = len(switch.frames)
        switch.owed += min(count, MOST_PER_SECOND * self.interval_s)
        whole = min(int(switch.owed), count)
        switch.owed -= whole
        found = [switch.frames[(switch.next + i) % count] for i in range(whole)]
        switch.next = (switch.next + whole) % count
        return found


def _forget(switch: _Switch, now: float) -> None:
    while switch.sent and switch.sent[0][0] < now - _RATE_S:
        switch.sent.popleft()
