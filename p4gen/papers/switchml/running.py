"""Runs of SwitchML for ``p4gen sim run``: AllReduce of workers around one switch, every element beside NumPy's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from typing_extensions import override

from p4gen.errors import Diagnostic, InputError, Option
from p4gen.host.transport.clock import SECOND, US
from p4gen.host.transport.nic import Nic
from p4gen.net.job import Job, Progress, Stuck
from p4gen.net.order import RunOrder
from p4gen.net.result import RunResult, ending
from p4gen.net.world.network import Network
from p4gen.papers.switchml.frames import Update
from p4gen.papers.switchml.member import MlWorker, Vector
from p4gen.papers.switchml.placing import fitted, placed
from p4gen.papers.switchml.spec import SwitchmlSpec
from p4gen.papers.switchml.tasks import WorkerTask
from p4gen.program.compilation import compile_spec
from p4gen.vocabulary.topology import TopologySpec

_SIZE: Final = 1 << 20
_HEADERS: Final = 74
"""Bytes on the wire of a packet beside its elements."""


class MlRun(Job[WorkerTask, RunResult]):
    """The run that an order asks for. Raises ``InputError`` if the program cannot serve it."""

    def __init__(self, order: RunOrder[SwitchmlSpec]) -> None:
        self.order, topology = order, order.topology
        self.spec = spec = fitted(order.program, topology)
        if any(given is not None for given in (order.dcqcn, order.recovery, order.retry_count)):
            raise InputError(f"{spec.program}: its workers have no queue pairs, so neither recovery nor DCQCN")
        if topology.pfc is not None:
            raise InputError(f"{topology.name}: pfc: workers of {spec.program} are not paused")
        if any(impairment.corrupt for impairment in order.faults.impairments):
            raise InputError(f"{spec.program}: nothing in an update covers its elements: no packets may be corrupted")
        size = _SIZE if order.size is None else order.size
        if size <= 0 or size % spec.payload_bytes:
            raise InputError(Diagnostic(Option("size"), f"it has to be a positive multiple of {spec.payload_bytes}"))
        self._elements = size // 4
        timeout = _timeout(spec, topology) if order.timeout is None else order.timeout
        placement, self.job = placed(topology, spec)
        (switch,) = topology.switches
        program = compile_spec(spec).program
        network = Network(
            topology, placement, {switch: program}, order.faults, order.seed, order.engine, payload=spec.payload_bytes
        )
        network.kinds.describe = Update.described
        super().__init__(network, {switch: spec}, timeout)
        self._vectors: dict[int, Sequence[Vector]] = {}
        self.tasks = [
            self._task(number, network.nics[host], timeout) for number, host in enumerate(topology.rank_hosts)
        ]

    def _task(self, number: int, nic: Nic, timeout: int) -> WorkerTask:
        worker = MlWorker(self.job, self.spec.lanes, nic, timeout)
        return WorkerTask(number, worker, self.network.loop, self.order.repeat, self.vectors, self.wake)

    def vectors(self, call: int) -> Sequence[Vector]:
        """The vectors of all workers in a call, from 0; those of calls that all workers have ended are forgotten."""
        if call not in self._vectors:
            chance = np.random.default_rng([self.order.seed, call])
            low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
            shape = len(self.order.topology.rank_hosts), self._elements
            self._vectors[call] = list(chance.integers(low, high, shape, np.int32, endpoint=True))
            first = min(task.ended for task in self.tasks)
            self._vectors = {number: drawn for number, drawn in self._vectors.items() if number >= first}
        return self._vectors[call]

    @property
    @override
    def title(self) -> str:
        where = f"{len(self.tasks)} ranks on {self.order.topology.name}, {self.spec.program}"
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
            lines=() if stuck else times,
            verdict="every rank's result equals NumPy's",
            values={"program": self.spec.program, "gbps": round(rate / 1e9, 3)},
            **counted,
        )


def _timeout(spec: SwitchmlSpec, topology: TopologySpec) -> int:
    """Four times the time in which all slots' packets pass the slowest link, 100 us at least, ps."""
    slowest: int = min(topology.setting(link, "bandwidth") for link in topology.links)
    return max(100 * US, 4 * 8 * spec.slots * (spec.payload_bytes + _HEADERS) * SECOND // slowest)
