"""The loop that carries frames to and from a switch; other threads and signal handlers wake and stop it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable


class Carrier:
    """A loop that waits for descriptors, ``_woken`` among them."""

    def __init__(self) -> None:
        self.before_waiting: Callable[[], None] | None = None
        """Called by ``run`` whenever it is about to wait."""
        self._stopping = False
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)

    @property
    def wakeup(self) -> int:
        """A descriptor for ``signal.set_wakeup_fd``: writing to it ends the wait."""
        return self._waker.fileno()

    def stop(self) -> None:
        """Make ``run`` return soon."""
        self._stopping = True
        self.wake()

    def wake(self) -> None:
        """End the waiting of ``run``, which then calls ``between``."""
        with contextlib.suppress(OSError):
            self._waker.send(b"x")

    def _awake(self) -> None:
        """Read all wake-ups so far, so that the next wait blocks."""
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)

    def _close_waker(self) -> None:
        self._woken.close()
        self._waker.close()
