"""Queues of membership changes, one for each host that watches."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from p4gen.manager.api import Membership

ROOM: Final = 1000
"""Number of changes that wait for a slow consumer. If there are more, only the newest of each group is kept."""


class Watch(Iterator[Membership]):
    """All current memberships of a host, then every change. ``close`` ends the watch, from any thread."""

    def __init__(self, forget: Callable[[Watch], None]) -> None:
        self._forget = forget
        self._news: deque[Membership] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, news: Membership) -> None:
        """Queue a change. Never blocks."""
        with self._changed:
            if len(self._news) >= ROOM:
                newest = {item.group: item for item in self._news}
                self._news = deque(newest.values())
            self._news.append(news)
            self._changed.notify()

    def __next__(self) -> Membership:
        with self._changed:
            while not self._news and not self._closed:
                self._changed.wait()
            if self._closed:
                raise StopIteration
            return self._news.popleft()

    def close(self) -> None:
        """End the watch; a thread that waits in it goes on."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._forget(self)
