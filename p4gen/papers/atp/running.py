"""Runs of ATP for ``p4gen sim run``: AllReduce of workers and parameter servers, every element beside NumPy's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from p4gen.host.collectives.workers import Vector
from p4gen.net.order import RunOrder
from p4gen.net.sums import SumRun, check, patience
from p4gen.net.world.network import Network
from p4gen.papers.atp.frames import Packet
from p4gen.papers.atp.numbers import FACTOR, GREATEST
from p4gen.papers.atp.placing import fitted, member, placed
from p4gen.papers.atp.server import ServerStats
from p4gen.papers.atp.spec import AtpSpec
from p4gen.program.compilation import compile_spec


class AtpRun(SumRun):
    """The run that an order asks for, whose concurrent groups are jobs. Raises ``InputError`` if the program cannot
    serve it."""

    verdict = "every rank's result is NumPy's, but for rounding"

    def __init__(self, order: RunOrder[AtpSpec]) -> None:
        topology, window = order.topology, order.options["in_flight"]
        spec = fitted(order.program, topology, order.concurrent)
        check(order, spec)
        self._spec, packets = spec, window * order.concurrent
        timeout = patience(topology, packets, spec.payload_bytes) if order.timeout is None else order.timeout
        placement, program = placed(topology, spec, order.concurrent), compile_spec(spec).program
        network = Network(
            topology, placement, dict.fromkeys(topology.switches, program), order.faults, order.seed, order.engine,
            payload=spec.payload_bytes,
        )  # fmt: skip
        network.kinds.describe = Packet.described
        super().__init__(order, spec.program, network, dict.fromkeys(topology.switches, spec), timeout)
        self.tasks, self.servers = [], []
        for group, job in enumerate(placement.groups):
            name = f" of job {group + 1}" if order.concurrent > 1 else ""
            for number, host in enumerate(job.tree.ranks):
                worker = member(spec, job, number, network.nics[host], timeout, window)
                self.servers += [worker.server] if worker.server is not None else []
                rank = topology.rank_hosts.index(host)
                self.tasks.append(self.task(f"rank {rank}{name}", number, worker, group))

    @override
    def drawn(self, chance: np.random.Generator, shape: tuple[int, int]) -> Vector:
        workers, elements = shape
        limit = (GREATEST / FACTOR) / workers
        rows = chance.uniform(-limit, limit, shape)
        large = chance.random(elements // self._spec.lanes) < self.order.options["large"]
        rows[:, np.repeat(large, self._spec.lanes)] *= workers
        return rows.astype(np.float32)

    @override
    def compared(self, total: Vector, vectors: Sequence[Vector]) -> tuple[Vector, npt.NDArray[np.bool_]]:
        expected = np.array(np.sum(vectors, axis=0, dtype=np.float64))
        rounding = len(vectors) / (2 * FACTOR) + np.finfo(np.float32).eps * np.abs(expected)
        return expected, np.asarray(np.abs(total - expected) > rounding)

    @override
    def lines(self) -> Sequence[str]:
        stats = [server.stats for server in self.servers]
        found = ServerStats(*(sum(column) for column in zip(*map(astuple, stats), strict=True)))
        packets = (
            f"servers got {found.packets:,} packets, {found.whole:,} of them with all workers' sum; "
            f"{found.collisions:,} had met other packets' aggregators"
        )
        return (packets, f"{found.again:,} results sent again, floats asked for {found.asked:,} times")
