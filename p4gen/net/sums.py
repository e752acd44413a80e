"""Runs of workers that add vectors by datagrams of their own, as applications of NICs: every sum beside NumPy's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from p4gen.errors import Diagnostic, InputError, Option
from p4gen.host.collectives.workers import Vector, Worker, WorkerTask, exactly
from p4gen.host.transport.clock import SECOND, US
from p4gen.net.job import Job, Progress, Stuck
from p4gen.net.order import RunOrder
from p4gen.net.result import RunResult, ending
from p4gen.net.world.network import Network
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.serving import AddingSpec
from p4gen.vocabulary.topology import TopologySpec

_SIZE: Final = 1 << 20
_HEADERS: Final = 74
"""Bytes on the wire of a packet beside its elements."""


class SumRun(Job[WorkerTask, RunResult]):
    """The run that an order asks for, of a program of this name. A family gives it ``tasks``."""

    def __init__(
        self, order: RunOrder[Any], program: str, network: Network, specs: Mapping[str, ProgramSpec],
        timeout: int,
    ) -> None:  # fmt: skip
        super().__init__(network, specs, timeout)
        self.order, self._program = order, program
        self._elements = (_SIZE if order.size is None else order.size) // 4
        self._vectors: dict[tuple[int, int], Sequence[Vector]] = {}

    @abstractmethod
    def drawn(self, chance: np.random.Generator, shape: tuple[int, int]) -> Vector:
        """Random vectors, a row for each worker."""

    def compared(self, total: Vector, vectors: Sequence[Vector]) -> tuple[Vector, npt.NDArray[np.bool_]]:
        """NumPy's sum of vectors, and where a worker's is wrong."""
        return exactly(total, vectors)

    def task(self, name: str, number: int, worker: Worker, group: int = 0) -> WorkerTask:
        """A task of the run."""
        vectors, clock = partial(self.vectors, group), self.network.loop
        return WorkerTask(name, number, worker, clock, self.order.repeat, vectors, self.compared, self.wake, group)

    def vectors(self, group: int, call: int) -> Sequence[Vector]:
        """The vectors of all workers of a group in a call, from 0; those of calls that all workers have ended are
        forgotten."""
        if (group, call) not in self._vectors:
            members = [task for task in self.tasks if task.group == group]
            chance = np.random.default_rng([self.order.seed, call, *([group] if group else [])])
            self._vectors[group, call] = list(self.drawn(chance, (len(members), self._elements)))
            first = min(task.ended for task in members)
            self._vectors = {at: rows for at, rows in self._vectors.items() if at[0] != group or at[1] >= first}
        return self._vectors[group, call]

    @property
    @override
    def title(self) -> str:
        where = f"{len(self.order.topology.rank_hosts)} ranks on {self.order.topology.name}, {self._program}"
        return f"allreduce of {4 * self._elements:,} bytes, {where}"

    @override
    def arrived(self) -> int:
        return sum(task.worker.stats.results for task in self.tasks)

    @override
    def finish(self, progress: Progress | None = None) -> Stuck | None:
        for task in self.tasks:
            task.start()
        return super().finish(progress)

    @override
    def result(self, stuck: Stuck | None) -> RunResult:
        stats = [task.worker.stats for task in self.tasks]
        duration = self.network.loop.now if stuck else max(task.ended_at for task in self.tasks)
        counted = self.counted(duration)
        counted["sent"] = sum(each.sent + each.resent for each in stats)
        counted["resent"] = counted["timeouts"] = sum(each.resent for each in stats)
        rate = 32 * self._elements * self.order.repeat * SECOND / max(duration, 1)
        waiting = (f"{task.name} {line}" for task in self.tasks for line in task.worker.waiting())
        times = (*ending(duration, self.order.repeat, stuck), f"{rate / 1e9:.2f} Gb/s of each vector")
        return RunResult(
            errors=tuple(task.problem for task in self.tasks if task.problem),
            stuck=() if stuck is None else (*stuck.reasons, *waiting),
            lines=() if stuck else (*times, *self.lines()),
            verdict=self.verdict,
            values={"program": self._program, "gbps": round(rate / 1e9, 3)},
            **counted,
        )

    def lines(self) -> Sequence[str]:
        """Lines of a report that only runs of this kind have."""
        return ()

    verdict: str = "every rank's result equals NumPy's"
    """The line of a report if nothing is wrong."""


def check(order: RunOrder[Any], spec: AddingSpec) -> None:
    """Raises ``InputError`` for an order that means nothing to such workers, or whose size does not fit."""
    program, payload = spec.program, spec.payload_bytes
    if any(given is not None for given in (order.dcqcn, order.recovery, order.retry_count)):
        raise InputError(f"{program}: its workers have no queue pairs, so neither recovery nor DCQCN")
    if order.topology.pfc is not None:
        raise InputError(f"{order.topology.name}: pfc: workers of {program} are not paused")
    if spec.needs_intact and any(impairment.corrupt for impairment in order.faults.impairments):
        raise InputError(f"{program}: nothing in a packet covers its elements: no packets may be corrupted")
    if order.size is not None and (order.size <= 0 or order.size % payload):
        raise InputError(Diagnostic(Option("size"), f"it has to be a positive multiple of {payload}"))


def patience(topology: TopologySpec, packets: int, payload: int) -> int:
    """A time after which packets are sent again, ps: four times that in which so many of them pass the slowest link,
    100 us at least."""
    slowest: int = min(topology.setting(link, "bandwidth") for link in topology.links)
    return max(100 * US, 4 * 8 * packets * (payload + _HEADERS) * SECOND // slowest)
