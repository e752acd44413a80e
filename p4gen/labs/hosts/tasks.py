"""What the lab asks a host for, and the task that it becomes: a batch of calls, made one after the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from p4gen.errors import FailedError, P4genError
from p4gen.labs.calls import CallOrder
from p4gen.labs.hosts.ranks import PreparedCall, Ranks
from p4gen.manager.ranks.calls import CallResult

_LATE_S: Final = 5.0
"""Seconds after its deadline in which a call must have failed."""


@dataclass(frozen=True)
class Batch:
    """Calls that all hosts of a group make, in this order."""

    calls: tuple[CallOrder, ...]
    seed: int
    first: int
    """The number of the first call in the run. All hosts draw a call's data from seed and number."""
    deadline: float
    """Seconds after which the batch has failed."""


@dataclass(frozen=True)
class Answer:
    """How a call has ended at a rank. Times are CLOCK_MONOTONIC, in ps."""

    started: int
    finished: int
    begun: int
    """How often it was started."""
    ring: bool
    """Whether it ended on a ring of the hosts."""
    problem: str
    """What is wrong with the result; "" if nothing is."""


class BatchTask:
    """A host's part in a batch (``p4gen.net.job.Task``), in real time. Each call is made on the host's loop, where the
    one before ends, and any other thread may wait for the end."""

    STATE: ClassVar[tuple[str, ...]] = ()

    def __init__(self, group: str, ranks: Ranks, calls: Sequence[PreparedCall], batch: Batch) -> None:
        self.name = group
        self._ranks, self._calls, self._batch = ranks, calls, batch
        self._results: list[CallResult] = []
        self._problem = ""
        self._until = 0.0
        self._times: Sequence[float] = ()
        self._over = threading.Event()

    def start(self, times: Sequence[float] = ()) -> None:
        """Begin to make the calls. ``times``: none begins before its own, in seconds of CLOCK_MONOTONIC."""
        self._times, self._until = times, time.monotonic() + self._batch.deadline
        self._next(None)

    @property
    def done(self) -> bool:
        """Whether all calls have ended, or one has failed."""
        return self._over.is_set()

    @property
    def problem(self) -> str:
        """Why a call has failed; "" if none has."""
        return self._problem

    def parts(self) -> dict[str, object]:
        """Nothing: real hosts are not frozen."""
        return {}

    def progress(self) -> float:
        """The number of calls that are done, with the part of the current one."""
        ended = len(self._results)
        return ended if self.done else ended + self._ranks.progress(self.name)

    def answers(self) -> list[Answer]:
        """Wait for the end, and forget the data. Raises ``FailedError`` if a call has failed."""
        if not self._over.wait(self._batch.deadline + _LATE_S):
            raise FailedError("the host's loop has ended, or is busy")
        if self._problem:
            raise FailedError(self._problem)
        answers = [
            Answer(r.started, r.finished, r.begun, r.ring, call.problem(r.value))
            for call, r in zip(self._calls, self._results, strict=True)
        ]
        # The rank's last call refers to this task, which would keep the data in memory until the next call.
        self._calls, self._results = (), [replace(result, value=None) for result in self._results]
        return answers

    def _next(self, ended: Future[CallResult] | None) -> None:
        """Make the next call, after one that has ended, when its time has come."""
        try:
            if ended is not None:
                self._results.append(ended.result())
        except Exception as error:
            self._fail(error)
            return
        number = len(self._results)
        early = self._times[number] - time.monotonic() if number < len(self._calls) and self._times else 0.0
        if number == len(self._calls):
            self._over.set()
        elif early > 0:
            timer = threading.Timer(early, self._make)
            timer.daemon = True
            timer.start()
        else:
            self._make()

    def _make(self) -> None:
        try:
            left = max(0.0, round(self._until - time.monotonic(), 1))
            self._calls[len(self._results)].begin(left).add_done_callback(self._next)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        name = self._batch.calls[len(self._results)].collective
        reason = error.reason if isinstance(error, P4genError) else f"{type(error).__name__}: {error}"
        self._problem = reason if reason.startswith(name) else f"{name}: {reason}"
        self._over.set()
