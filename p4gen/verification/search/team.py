"""The workers of a search: the interface, and workers that are threads. All of them do one step after the other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Protocol, TypeVar

from typing_extensions import override

from p4gen.verification.search.kernel import Known, Shape, Words
from p4gen.verification.search.worker import Expanded, Marks, Worker, first

T = TypeVar("T")


class Team(Protocol):
    """Workers of any kind. States are numbered as in ``worker``."""

    workers: int
    """Number of workers."""

    @abstractmethod
    def __enter__(self) -> Team: ...

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    @abstractmethod
    def begin(self, shape: Shape, row: Words, most: int, *, liveness: bool) -> None:
        """Make the workers, with room for ``most`` states in all. The first state is ``row``."""
        ...

    @abstractmethod
    def advance(self) -> list[int]:
        """Go to the next level in all workers. Returns how many states each has there."""
        ...

    @abstractmethod
    def learn(self, known: Known) -> None:
        """Give all workers more knowledge about the parts."""
        ...

    @abstractmethod
    def expand(self) -> list[Expanded]:
        """Expand rows of this level, as many as there is room for."""
        ...

    @abstractmethod
    def exchange(self) -> list[int]:
        """Give each worker's findings to the owners of the states. Returns the numbers of states of each."""
        ...

    @abstractmethod
    def origin(self, number: int) -> tuple[int, int]:
        """The state and the event that led to a state first."""
        ...

    @abstractmethod
    def ends(self) -> list[int]:
        """The number of states of each worker that nothing leaves."""
        ...

    @abstractmethod
    def reaching(self) -> list[Marks]:
        """The marks of each worker's ends."""
        ...

    @abstractmethod
    def bounded(self) -> list[Marks]:
        """The marks of those of each worker's states that no packet leaves."""
        ...

    @abstractmethod
    def sweep(self, marks: Marks, *, every: bool) -> list[Marks | None]:
        """Mark the states that lead to marked ones: by some transition or, with ``every``, by every packet. Returns the
        marks of each worker's states, None where there is no new one."""
        ...


class Threads(Team):
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

    @override
    def begin(self, shape: Shape, row: Words, most: int, *, liveness: bool) -> None:
        share = -(-most // self.workers)
        self._team = [Worker(me, self.workers, shape, len(row), share, liveness=liveness) for me in range(self.workers)]
        owner, parcel, fresh = first(row, self.workers)
        self._team[owner].number([parcel])
        self._team[owner].keep([fresh])

    @override
    def advance(self) -> list[int]:
        return self._all(Worker.advance)

    @override
    def learn(self, known: Known) -> None:
        self._all(lambda worker: worker.learn(known))

    @override
    def expand(self) -> list[Expanded]:
        return self._all(Worker.expand)

    @override
    def exchange(self) -> list[int]:
        team = self._team
        numbered = list(
            self._pool.map(lambda me: team[me].number([each.parcel(me) for each in team]), range(self.workers))
        )
        fresh = list(self._pool.map(lambda me: team[me].note([found[me] for found in numbered]), range(self.workers)))
        return list(self._pool.map(lambda me: team[me].keep([found[me] for found in fresh]), range(self.workers)))

    @override
    def origin(self, number: int) -> tuple[int, int]:
        return self._team[number % self.workers].origin(number // self.workers)

    @override
    def ends(self) -> list[int]:
        return self._all(Worker.ends)

    @override
    def reaching(self) -> list[Marks]:
        return self._all(Worker.reaching)

    @override
    def bounded(self) -> list[Marks]:
        return self._all(Worker.bounded)

    @override
    def sweep(self, marks: Marks, *, every: bool) -> list[Marks | None]:
        return self._all(lambda worker: worker.sweep(marks, every=every))
