"""The workers of a search in other processes, on this machine or on others, over Dask (``pip install p4gen[cluster]``).

They do the same as threads. Their findings about each other's states go from process to process, and do not pass
through the process that leads the search. That one runs the programs and hosts, and sends what is known about them to
all workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from operator import getitem
from types import TracebackType
from typing import Any, Final, TypeVar
from uuid import uuid4

from typing_extensions import override

from p4gen.cluster import connected
from p4gen.errors import FailedError
from p4gen.verification.search.kernel import Known, Shape, Words
from p4gen.verification.search.team import Team
from p4gen.verification.search.worker import Expanded, Fresh, Marks, Numbered, Parcel, Worker, first

T = TypeVar("T")

ROOM: Final = 1 << 19
"""Rows that a worker may find before it exchanges them: more than for threads, because an exchange takes longer."""
_PATIENCE: Final = 5
"""Seconds after which it is checked whether all workers are still there."""

_here: dict[str, Worker] = {}
"""The workers in this process, by search."""


def _make(search: str, *args: Any, **more: Any) -> None:
    _here[search] = Worker(*args, **more)


def _do(search: str, task: Callable[..., T], *args: Any, **more: Any) -> T:
    return task(_here[search], *args, **more)


def _end(search: str) -> None:
    _here.pop(search, None)


class Cluster(Team):
    """Workers that are processes of a Dask cluster (``Team``), one for each worker of the cluster. ``address`` is that
    of a scheduler, or local:N for N processes on this machine. Raises ``MissingToolError`` without Dask, and
    ``InputError`` for an address without a scheduler that has workers."""

    def __init__(self, address: str) -> None:
        self._search = uuid4().hex
        self._opened = ExitStack()
        self._client: Any = self._opened.enter_context(connected(address, "cluster"))
        self._addresses = sorted(self._client.scheduler_info(n_workers=-1)["workers"])
        self.workers = len(self._addresses)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._opened:
            if kind is None:
                self._client.run(_end, self._search)

    # --- tasks ---

    def _at(self, me: int, function: Callable[..., Any], *args: Any, **more: Any) -> Any:
        """Let a worker call a function. Returns the future of the result, which stays where it is."""
        return self._client.submit(
            function, *args, **more, workers=[self._addresses[me]], pure=False, retries=0, priority=0
        )

    def _do(self, me: int, task: Callable[..., Any], *args: Any, **more: Any) -> Any:
        return self._at(me, _do, self._search, task, *args, **more)

    def _each(self, task: Callable[..., T], *args: Any, **more: Any) -> list[T]:
        return self._results([self._do(me, task, *args, **more) for me in range(self.workers)])

    def _results(self, futures: Sequence[Any]) -> list[Any]:
        from distributed import wait  # noqa: PLC0415 - an extra

        with _lost():
            while True:
                try:
                    wait(futures, timeout=_PATIENCE)
                    # A worker may leave between the two, with its results.
                    return [future.result(timeout=_PATIENCE) for future in futures]
                except TimeoutError:
                    # Tasks for a worker that has left would wait for ever.
                    if not set(self._addresses).issubset(self._client.scheduler_info(n_workers=-1)["workers"]):
                        raise

    def _everywhere(self, value: Any) -> Any:
        with _lost():
            return self._client.scatter([value], broadcast=True, hash=False)[0]

    # --- Team ---

    @override
    def begin(self, shape: Shape, row: Words, most: int, *, liveness: bool) -> None:
        share, team = -(-most // self.workers), range(self.workers)
        more = {"liveness": liveness, "room": ROOM}
        made = [self._at(me, _make, self._search, me, len(team), shape, len(row), share, **more) for me in team]
        self._results(made)
        owner, parcel, fresh = first(row, self.workers)
        self._results([self._do(owner, Worker.number, [parcel]), self._do(owner, Worker.keep, [fresh])])

    @override
    def learn(self, known: Known) -> None:
        self._each(Worker.learn, self._everywhere(known))

    @override
    def advance(self) -> list[int]:
        return self._each(Worker.advance)

    @override
    def expand(self) -> list[Expanded]:
        return self._each(Worker.expand)

    @override
    def exchange(self) -> list[int]:
        """Nothing passes through this process but the numbers of states."""
        team = range(self.workers)
        parcels: list[list[Parcel]] = [[self._do(me, Worker.parcel, owner) for owner in team] for me in team]
        numbered = [self._do(owner, Worker.number, [parcels[me][owner] for me in team]) for owner in team]
        answers: list[list[Numbered]] = [
            [self._at(owner, getitem, numbered[owner], me) for me in team] for owner in team
        ]
        noted = [self._do(me, Worker.note, [answers[owner][me] for owner in team]) for me in team]
        fresh: list[list[Fresh]] = [[self._at(me, getitem, noted[me], owner) for owner in team] for me in team]
        return self._results([self._do(owner, Worker.keep, [fresh[me][owner] for me in team]) for owner in team])

    @override
    def origin(self, number: int) -> tuple[int, int]:
        (origin,) = self._results([self._do(number % self.workers, Worker.origin, number // self.workers)])
        return origin[0], origin[1]

    @override
    def ends(self) -> list[int]:
        return self._each(Worker.ends)

    @override
    def reaching(self) -> list[Marks]:
        return self._each(Worker.reaching)

    @override
    def bounded(self) -> list[Marks]:
        return self._each(Worker.bounded)

    @override
    def sweep(self, marks: Marks, *, every: bool) -> list[Marks | None]:
        return self._each(Worker.sweep, self._everywhere(marks), every=every)


@contextmanager
def _lost() -> Iterator[None]:
    """Report the loss of a worker as ``FailedError``: its states are nowhere else, so the search cannot go on."""
    from distributed import CancelledError, KilledWorker  # noqa: PLC0415 - an extra

    try:
        yield
    except (CancelledError, KilledWorker, OSError, KeyError) as error:  # a time-out is an OSError
        raise FailedError("the cluster has lost a worker, and its states") from error
