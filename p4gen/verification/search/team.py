"""The workers of a search, as threads: what all of them do, one step after the other."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Protocol, TypeVar

from p4gen.verification.search.kernel import Known, Shape, Words
from p4gen.verification.search.worker import Expanded, Marks, Worker, first

T = TypeVar("T")


class Team(Protocol):
    """Workers, wherever they are. States are numbered as in ``worker``."""

    @property
    def workers(self) -> int:
        """How many they are."""
        ...

    def __enter__(self) -> Team:
        """Themselves."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Send them away."""
        ...

    def begin(self, shape: Shape, row: Words, most: int, *, liveness: bool) -> None:
        """Make the workers, with room for ``most`` states in all. The first state is ``row``."""
        ...

    def advance(self) -> list[int]:
        """See ``Worker.advance``."""
        ...

    def learn(self, known: Known) -> None:
        """More is known about the parts."""
        ...

    def expand(self) -> list[Expanded]:
        """Expand rows of this level."""
        ...

    def exchange(self) -> list[int]:
        """Let the owners have what was found. Returns the numbers of states of each."""
        ...

    def origin(self, number: int) -> tuple[int, int]:
        """The state and the event that led to a state first."""
        ...

    def ends(self) -> list[int]:
        """See ``Worker.ends``."""
        ...

    def reaching(self) -> list[Marks]:
        """See ``Worker.reaching``."""
        ...

    def bounded(self) -> list[Marks]:
        """See ``Worker.bounded``."""
        ...

    def sweep(self, marks: Marks, *, every: bool) -> list[Marks | None]:
        """See ``Worker.sweep``."""
        ...


class Threads:
    """Workers that are threads of this process."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers)
        self._team: list[Worker] = []

    def __enter__(self) -> Threads:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def _all(self, task: Callable[[Worker], T]) -> list[T]:
        return list(self._pool.map(task, self._team))

    def begin(self, shape: Shape, row: Words, most: int, *, liveness: bool) -> None:
        """See ``Team``."""
        share = -(-most // self.workers)
        self._team = [Worker(me, self.workers, shape, len(row), share, liveness=liveness) for me in range(self.workers)]
        owner, parcel, fresh = first(row, self.workers)
        self._team[owner].number([parcel])
        self._team[owner].keep([fresh])

    def advance(self) -> list[int]:
        """See ``Team``."""
        return self._all(Worker.advance)

    def learn(self, known: Known) -> None:
        """See ``Team``."""
        self._all(lambda worker: worker.learn(known))

    def expand(self) -> list[Expanded]:
        """See ``Team``."""
        return self._all(Worker.expand)

    def exchange(self) -> list[int]:
        """See ``Team``."""
        team = self._team
        numbered = list(
            self._pool.map(lambda me: team[me].number([each.parcel(me) for each in team]), range(self.workers))
        )
        fresh = list(self._pool.map(lambda me: team[me].note([found[me] for found in numbered]), range(self.workers)))
        return list(self._pool.map(lambda me: team[me].keep([found[me] for found in fresh]), range(self.workers)))

    def origin(self, number: int) -> tuple[int, int]:
        """See ``Team``."""
        return self._team[number % self.workers].origin(number // self.workers)

    def ends(self) -> list[int]:
        """See ``Team``."""
        return self._all(Worker.ends)

    def reaching(self) -> list[Marks]:
        """See ``Team``."""
        return self._all(Worker.reaching)

    def bounded(self) -> list[Marks]:
        """See ``Team``."""
        return self._all(Worker.bounded)

    def sweep(self, marks: Marks, *, every: bool) -> list[Marks | None]:
        """See ``Team``."""
        return self._all(lambda worker: worker.sweep(marks, every=every))
