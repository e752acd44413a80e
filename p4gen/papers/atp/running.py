"""Runs of ATP for ``p4gen sim run``: AllReduce of workers and parameter servers, every element beside NumPy's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from p4gen.host.collectives.workers import Vector, WorkerTask
from p4gen.net.order import RunOrder
from p4gen.net.sums import SumRun, check, patience
from p4gen.net.world.network import Network
from p4gen.papers.atp.control import configuration
from p4gen.papers.atp.frames import Packet
from p4gen.papers.atp.hosts import members
from p4gen.papers.atp.numbers import FACTOR, GREATEST
from p4gen.papers.atp.placing import PlacedJob, fitted, placed_job, sites
from p4gen.papers.atp.server import AtpServer, ServerStats
from p4gen.papers.atp.spec import AtpSpec
from p4gen.plan.placement.plain import place_plain
from p4gen.program.compilation import compile_spec


class AtpRun(SumRun):
    """The run that an order asks for. Its concurrent groups are jobs: the first one has its server on the last rank's
    host, the second one on that of the rank before. Raises ``InputError`` if the program cannot serve it."""

    verdict = "every rank's result is NumPy's, but for rounding"

    def __init__(self, order: RunOrder[AtpSpec]) -> None:
        topology, ranks = order.topology, len(order.topology.rank_hosts)
        spec = fitted(order.program, topology, order.concurrent)
        check(order, spec.program, spec.payload)
        self._spec, self._window = spec, order.options["in_flight"]
        packets = self._window * order.concurrent
        self._wait = patience(topology, packets, spec.payload) if order.timeout is None else order.timeout
        self._plain = place_plain(topology, dict.fromkeys(topology.switches, spec), ())
        program = compile_spec(spec).program
        network = Network(
            topology, self._plain, dict.fromkeys(topology.switches, program), order.faults, order.seed, order.engine,
            payload=spec.payload,
        )  # fmt: skip
        network.kinds.describe = Packet.described
        super().__init__(order, spec.program, network, dict.fromkeys(topology.switches, spec), self._wait)
        sends = order.options["server"] == "worker"
        jobs = [
            placed_job(topology, self._plain, number, sends=sends, server=(ranks - number) % ranks)
            for number in range(1, order.concurrent + 1)
        ]
        for switch, here in sites(topology, self._plain, jobs).items():
            configuration(spec, here).install(network.switches[switch])
        self.servers: list[AtpServer] = []
        self.tasks = [task for group, placed in enumerate(jobs) for task in self._join(group, placed)]

    def _join(self, group: int, placed: PlacedJob) -> Iterator[WorkerTask]:
        """The workers of a job and its server, on their hosts' NICs."""
        network, name = self.network, f" of job {group + 1}" if self.order.concurrent > 1 else ""
        for number, host in enumerate(placed.hosts):
            nic = network.nics[host]
            worker, server = members(placed, number, self._plain, nic, self._spec.lanes, self._wait, self._window)
            if server is not None:
                self.servers.append(server)
            rank = self.order.topology.rank_hosts.index(host)
            yield self.task(f"rank {rank}{name}", number, worker, group)

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
