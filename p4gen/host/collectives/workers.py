"""Workers: applications of hosts that add vectors with others, by a protocol of their own."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

import numpy as np
import numpy.typing as npt

from p4gen.host.transport.clock import Clock

Vector = npt.NDArray[Any]
Compare = Callable[[Vector, Sequence[Vector]], tuple[Vector, npt.NDArray[np.bool_]]]
"""Of a sum and the vectors of all workers: NumPy's sum, and where the other one is wrong."""

_BACKED_OFF: Final = 64


@dataclass
class WorkerStats:
    """What a worker has counted."""

    sent: int = 0
    resent: int = 0
    results: int = 0
    strays: int = 0
    """Results that it does not wait for: repeated ones, mostly."""


@dataclass
class Patience:
    """How long a worker waits for a result before it sends again, in ps: RFC 6298, from ``least`` to 64 times that."""

    least: int
    now: int = 0
    _smoothed: int = 0
    _deviation: int = 0

    def __post_init__(self) -> None:
        self.now = self.least

    def measured(self, round_trip: int) -> None:
        """The result has come of what was sent only once."""
        if self._smoothed:
            self._deviation += (abs(round_trip - self._smoothed) - self._deviation) // 4
            self._smoothed += (round_trip - self._smoothed) // 8
        else:
            self._smoothed, self._deviation = round_trip, round_trip // 2
        self.now = min(max(self.least, self._smoothed + 4 * self._deviation), _BACKED_OFF * self.least)

    def expired(self) -> None:
        """No result has come in time."""
        self.now = min(2 * self.now, _BACKED_OFF * self.least)


class Part(Protocol):
    """An application of a host that has state."""

    def forget_times(self) -> None:
        """Forget times that nothing depends on, and what is counted."""
        ...


class Worker(Part, Protocol):
    """A host's application that adds vectors with others."""

    stats: WorkerStats
    on_sum: Callable[[Any], None]
    """Called with the sum of a vector, once all of it has come."""

    def add(self, vector: Any) -> None:
        """Begin with a vector. The one before has its sum."""
        ...

    def waiting(self) -> Iterator[str]:
        """What it waits for, a line each."""
        ...


class Resending:
    """What workers have in common that send a packet again which has brought no result when a timer of ``timeout`` ps,
    or of the round trips, expires. Packets are known by their numbers."""

    STATE: ClassVar[tuple[str, ...]] = ("_waits", "_sent", "_expires", "_patience", "stats")

    def __init__(self, clock: Clock, timeout: int) -> None:
        self._clock, self._patience = clock, Patience(timeout)
        self._waits: dict[int, int] = {}
        """When each packet without a result is sent again. Those sent last are the last ones."""
        self._sent: dict[int, int] = {}
        """When each of them was sent, if only once."""
        self._expires: int | None = None
        """When the timer expires, if it runs."""
        self.stats = WorkerStats()

    @abstractmethod
    def _send(self, number: int) -> None:
        """Send a packet, perhaps again: ``_sent`` says so."""

    def counts(self) -> Counter[str]:
        """What it has counted, as queue pairs have it."""
        stats = self.stats
        return Counter(sent=stats.sent + stats.resent, resent=stats.resent, timeouts=stats.resent)

    def close(self) -> None:
        """Send nothing any more."""
        self._waits.clear()

    def forget_times(self) -> None:
        """Forget what has been counted; what is sent again, is so after the whole timeout."""
        self.stats = WorkerStats()
        self._patience = Patience(self._patience.least)
        self._waits = dict.fromkeys(self._waits, self._patience.now)
        self._expires = None if self._expires is None else self._patience.now
        self._sent = dict.fromkeys(self._sent, 0)

    def _begin(self, number: int) -> None:
        """Send a packet for the first time."""
        self.stats.sent += 1
        self._sent[number] = self._clock.now
        self._wait(number)

    def _again(self, number: int) -> None:
        """Send a packet again."""
        self.stats.resent += 1
        self._sent.pop(number, None)
        del self._waits[number]
        self._wait(number)

    def _end(self, number: int) -> None:
        """The result has come."""
        self.stats.results += 1
        del self._waits[number]
        if number in self._sent:
            self._patience.measured(self._clock.now - self._sent.pop(number))

    def _wait(self, number: int) -> None:
        due = self._clock.now + self._patience.now
        self._waits[number] = due
        self._send(number)
        self._set_timer(due)

    def _set_timer(self, due: int) -> None:
        if self._expires is None or due < self._expires:
            self._expires = due
            self._clock.at(due, self._expire)

    def _expire(self, _: object) -> None:
        if self._expires is None or self._clock.now < self._expires:
            return  # it has been set to another time
        self._expires = None
        overdue = [number for number, due in self._waits.items() if due <= self._clock.now]
        if overdue:
            self._patience.expired()
        for number in overdue:
            self._again(number)
        if self._waits:
            self._set_timer(min(self._waits.values()))


def exactly(total: Vector, vectors: Sequence[Vector]) -> tuple[Vector, npt.NDArray[np.bool_]]:
    """Compare a sum of integers, which wraps (``Compare``)."""
    expected = np.array(np.sum(vectors, axis=0, dtype=total.dtype))
    return expected, np.asarray(total != expected)


class WorkerTask:
    """A worker that adds a vector in each of ``calls``, one after the other, and compares each sum with NumPy's
    (``p4gen.net.job.Task``, ``p4gen.verification.parts.hosts.SearchedTask``).

    ``number`` is its place among those whose vectors are added, which are ``group``; ``vectors`` are those of all of
    them, by call, from 0; ``begun`` is called when it begins with one; ``server`` is what else the host does for sums.
    """

    STATE: ClassVar = ("ended", "ended_at", "problem")

    def __init__(
        self,
        name: str,
        number: int,
        worker: Worker,
        clock: Clock,
        calls: int,
        vectors: Callable[[int], Sequence[Vector]],
        compare: Compare = exactly,
        begun: Callable[[], None] = lambda: None,
        group: int = 0,
        server: Part | None = None,
    ) -> None:
        self.name, self.worker, self.group, self.problem = name, worker, group, ""
        self.ended = self.ended_at = 0
        """Sums that it has, and when it got the last one."""
        self._number, self._clock, self._calls = number, clock, calls
        self._vectors, self._compare, self._begun = vectors, compare, begun
        self._parts: dict[str, Part] = {"worker": worker} | ({} if server is None else {"server": server})
        worker.on_sum = self._take

    @property
    def done(self) -> bool:
        """Whether it has all its sums."""
        return self.ended == self._calls

    def start(self) -> None:
        """Begin with the next vector, as soon as the network runs."""
        self._clock.at(self._clock.now, self._begin)

    def parts(self) -> dict[str, object]:
        """The task itself, and what the host does for it."""
        return {"task": self, **self._parts}

    def forget_times(self) -> None:
        """Forget times, and what is counted."""
        for part in self._parts.values():
            part.forget_times()
        self.ended_at = 0

    def _begin(self, _: object) -> None:
        self._begun()
        self.worker.add(self._vectors(self.ended)[self._number])

    def _take(self, total: Vector) -> None:
        expected, wrong = self._compare(total, self._vectors(self.ended))
        if wrong.any() and not self.problem:
            at = int(np.flatnonzero(wrong)[0])
            found, right = (
                f"{each[at]:#x}" if each.dtype.kind in "iu" else str(each[at]) for each in (total, expected)
            )
            what = f"element {at} is {found}, NumPy's is {right}; {int(wrong.sum()):,} elements differ"
            self.problem = f"{self.name}, call {self.ended + 1}: {what}"
        self.ended += 1
        self.ended_at = self._clock.now
        if not self.done:
            self.start()
