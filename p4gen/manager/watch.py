"""News for hosts, in order, at each one's own pace."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from p4gen.manager.api import Membership

ROOM: Final = 1000
"""News that wait for a slow consumer; when there are more, only the newest of each group stay."""


class Watch(Iterator[Membership]):
    """All memberships of a host as they are, then every change. ``close`` ends it, from any thread."""

    def __init__(self, forget: Callable[[Watch], None]) -> None:
        self._forget = forget
        self._news: deque[Membership] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, news: Membership) -> None:
        """Queue a change for whoever watches; it never blocks."""
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
        """Nothing more comes."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._forget(self)
