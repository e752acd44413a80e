"""Threads that run jobs, whose results are futures."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from p4gen.manager.api import AgentError


@dataclass
class Job:
    """A job for a switch, with its result."""

    run: Callable[[], Any]
    done: Future[Any]


class Worker(ABC):
    """A thread that runs jobs one after the other. ``close`` and ``_submit`` may be called from any thread."""

    def __init__(self, name: str, thread: str) -> None:
        self.name = name
        self.busy_since: float | None = None
        """The time (``time.monotonic``) since which it runs a job; None if it does not."""
        self._jobs: deque[Job] = deque()
        self._wakes = threading.Condition()
        self._closed = False
        self._ended: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name=thread, daemon=True)

    @abstractmethod
    def _otherwise(self) -> tuple[float, Callable[[], Any]]:
        """For a thread without jobs: the seconds to wait for one, and the function to call then."""

    @abstractmethod
    def _leave(self) -> None:
        """Clean up when the thread ends."""

    def close(self, timeout: float = 0.0) -> None:
        """End the thread, and wait for it for ``timeout`` seconds. A thread whose agent hangs is abandoned."""
        with self._wakes:
            self._closed = True
            self._wakes.notify()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _submit(self, run: Callable[[], Any], *, first: bool = False) -> Future[Any]:
        job = Job(run, Future())
        with self._wakes:
            if self._closed or self._ended is not None:
                job.done.set_exception(self._ended or AgentError(f"{self.name}: the manager ends", unreachable=True))
            else:
                (self._jobs.appendleft if first else self._jobs.append)(job)
                self._wakes.notify()
        return job.done

    def _work(self) -> None:
        try:
            while True:
                job = self._next()
                if job is None:
                    break
                self._run(job)
        except BaseException as error:
            self._end(error)
            raise
        self._leave()
        self._end(AgentError(f"{self.name}: the manager ends", unreachable=True))

    def _next(self) -> Job | None:
        """The next job; None at the end."""
        with self._wakes:
            while not self._closed:
                if self._jobs:
                    return self._jobs.popleft()
                seconds, run = self._otherwise()
                if seconds <= 0 or not self._wakes.wait(seconds):
                    return Job(run, Future())
            return None

    def _run(self, job: Job) -> None:
        self.busy_since = time.monotonic()
        try:
            result = job.run()
        except Exception as error:
            job.done.set_exception(error)
        except BaseException as error:
            job.done.set_exception(error)
            raise
        else:
            job.done.set_result(result)
        finally:
            self.busy_since = None

    def _end(self, error: BaseException) -> None:
        with self._wakes:
            self._ended = error
            for job in self._jobs:
                job.done.set_exception(error)
            self._jobs.clear()
