"""The asking side of ``requests``: answers come in any order, over any pair of streams."""

from __future__ import annotations

import itertools
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import IO, Any

from p4gen.errors import FailedError

_ANSWER_S = 120.0


class Asker(ABC):
    """Sends requests, and has a future of each answer from ``listen`` on."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._open: dict[int, Future[dict[str, Any]]] = {0: Future()}
        """Requests that are not answered yet; 0 stands for the other side's message that it is ready."""
        self.hello = self._open[0]
        self._ended = False

    @abstractmethod
    def out(self) -> IO[bytes]:
        """The stream of requests."""

    @abstractmethod
    def answers(self) -> Iterable[bytes]:
        """The stream of answers, by lines."""

    @abstractmethod
    def gone(self) -> FailedError:
        """Why requests are not answered any more."""

    def listen(self) -> None:
        """Start the thread that reads answers."""
        threading.Thread(target=self._listen, name=f"{self.name} answers", daemon=True).start()

    @property
    def ready(self) -> bool:
        """Whether the other side has reported that it is ready."""
        return self.hello.done() and self.hello.exception() is None

    def ask(self, do: str, **fields: Any) -> Future[dict[str, Any]]:
        """Send a request. The future has the result, or ``FailedError`` with the other side's reason."""
        future: Future[dict[str, Any]] = Future()
        out = self.out()
        with self._lock:
            number = next(self._numbers)
            gone = self._ended
            if not gone:
                self._open[number] = future
                try:
                    out.write(json.dumps({"id": number, "do": do} | fields).encode() + b"\n")
                    out.flush()
                except OSError:
                    self._open.pop(number, None)
                    gone = True
        if gone:
            future.set_exception(self.gone())
        return future

    def call(self, do: str, timeout: float = _ANSWER_S, **fields: Any) -> dict[str, Any]:
        """Send a request and wait for the result. Raises ``FailedError``."""
        try:
            return self.ask(do, **fields).result(timeout)
        except FutureTimeoutError:
            raise FailedError(f"{self.name} does not answer '{do}' in {timeout:g} s") from None

    def refused(self, reason: str) -> FailedError:
        """The error of a request that the other side has answered with one."""
        return FailedError(f"{self.name}: {reason}")

    def _listen(self) -> None:
        try:
            for line in self.answers():
                said = json.loads(line)
                with self._lock:
                    future = self._open.pop(said["id"], None)
                if future is None:
                    continue
                if "error" in said:
                    future.set_exception(self.refused(said["error"]))
                else:
                    future.set_result(said["result"])
        except (OSError, ValueError):
            pass  # closed while reading, or truncated in the middle of a line
        with self._lock:
            self._ended = True
            left = list(self._open.values())
            self._open.clear()
        if left:
            gone = self.gone()
            for future in left:
                future.set_exception(gone)
