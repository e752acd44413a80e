"""What a worker does in runs and in searches: it adds vectors, and compares each sum with NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from p4gen.host.transport.clock import Clock
from p4gen.papers.switchml.member import MlWorker, Vector


class WorkerTask:
    """Rank ``number`` adds a vector in each of ``calls``, one after the other (``p4gen.net.job.Task``,
    ``p4gen.verification.parts.hosts.SearchedTask``).

    ``vectors`` are those of all ranks, by call; ``begun`` is called when the rank begins with one.
    """

    STATE: ClassVar = ("ended", "ended_at", "problem")

    def __init__(
        self,
        number: int,
        worker: MlWorker,
        clock: Clock,
        calls: int,
        vectors: Callable[[int], Sequence[Vector]],
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        self.name, self.worker, self.problem = f"rank {number}", worker, ""
        self.ended = self.ended_at = 0
        """Sums that it has, and when it got the last one."""
        self._number, self._clock, self._calls, self._vectors, self._begun = number, clock, calls, vectors, begun
        worker.on_sum = self._take

    @property
    def done(self) -> bool:
        """Whether it has all its sums."""
        return self.ended == self._calls

    def start(self) -> None:
        """Begin with the next vector, as soon as the network runs."""
        self._clock.at(self._clock.now, self._begin)

    def parts(self) -> dict[str, object]:
        """The task itself, and its worker."""
        return {"task": self, "worker": self.worker}

    def forget_times(self) -> None:
        """Forget times, and what is counted."""
        self.worker.forget_times()
        self.ended_at = 0

    def _begin(self, _: object) -> None:
        self._begun()
        self.worker.add(self._vectors(self.ended)[self._number])

    def _take(self, total: Vector) -> None:
        expected = np.array(np.sum(self._vectors(self.ended), axis=0, dtype=np.int32))
        wrong = np.flatnonzero(total != expected)
        if wrong.size and not self.problem:
            at = int(wrong[0])
            what = f"element {at} is {total[at]:#x}, NumPy's is {expected[at]:#x}; {wrong.size:,} elements differ"
            self.problem = f"{self.name}, call {self.ended + 1}: {what}"
        self.ended += 1
        self.ended_at = self._clock.now
        if not self.done:
            self.start()
