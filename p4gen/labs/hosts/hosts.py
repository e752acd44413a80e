"""The lab's side of a host's daemon (``hostd``): requests and answers over its standard input and output."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from p4gen.errors import FailedError
from p4gen.labs.processes import Process

_ANSWER_S = 120.0
_ENDING_S = 5.0
"""Seconds that a daemon may take to end once its pipes are closed: the kernel closes them first, also of a process that
is killed."""


class HostClient:
    """Communicates with the daemon of ``process``, which was started with pipes."""

    def __init__(self, name: str, process: Process) -> None:
        self.name, self.process = name, process
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._open: dict[int, Future[dict[str, Any]]] = {0: Future()}
        """Requests that are not answered yet; 0 stands for the daemon's message that it is ready."""
        self.hello = self._open[0]
        self._ended = False

    def listen(self) -> None:
        """Start the thread that reads answers."""
        threading.Thread(target=self._listen, name=f"{self.name} answers", daemon=True).start()

    @property
    def ready(self) -> bool:
        """Whether the daemon has reported that it is ready."""
        return self.hello.done() and self.hello.exception() is None

    def ask(self, do: str, **fields: Any) -> Future[dict[str, Any]]:
        """Send a request. The future has the result, or ``FailedError`` with the daemon's reason."""
        future: Future[dict[str, Any]] = Future()
        assert self.process.popen is not None
        assert self.process.popen.stdin is not None
        with self._lock:
            number = next(self._numbers)
            gone = self._ended
            if not gone:
                self._open[number] = future
                try:
                    self.process.popen.stdin.write(json.dumps({"id": number, "do": do} | fields).encode() + b"\n")
                    self.process.popen.stdin.flush()
                except OSError:
                    self._open.pop(number, None)
                    gone = True
        if gone:
            future.set_exception(self._gone())
        return future

    def call(self, do: str, timeout: float = _ANSWER_S, **fields: Any) -> dict[str, Any]:
        """Send a request and wait for the result. Raises ``FailedError``."""
        try:
            return self.ask(do, **fields).result(timeout)
        except FutureTimeoutError:
            raise FailedError(f"{self.name} does not answer '{do}' in {timeout:g} s") from None

    def _gone(self) -> FailedError:
        """Why requests are not answered any more; waits for the end of the daemon, to report its status."""
        assert self.process.popen is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.popen.wait(_ENDING_S)
        if self.process.running:
            return FailedError(f"{self.name}'s daemon is ending")
        return self.process.failure(f"{self.process.name} has ended")

    def _listen(self) -> None:
        assert self.process.popen is not None
        assert self.process.popen.stdout is not None
        try:
            for line in self.process.popen.stdout:
                said = json.loads(line)
                with self._lock:
                    future = self._open.pop(said["id"], None)
                if future is None:
                    continue
                if "error" in said:
                    future.set_exception(FailedError(f"{self.name}: {said['error']}"))
                else:
                    future.set_result(said["result"])
        except (OSError, ValueError):
            pass  # closed while reading, or truncated in the middle of a line
        with self._lock:
            self._ended = True
            left = list(self._open.values())
            self._open.clear()
        if left:
            gone = self._gone()
            for future in left:
                future.set_exception(gone)
