"""What a search of states explores of SwitchML: the workers of a job add a vector, a packet after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from typing_extensions import override

from p4gen.errors import InputError
from p4gen.host.collectives.workers import WorkerTask
from p4gen.host.transport.clock import MS
from p4gen.host.transport.nic import Nic
from p4gen.model import Model
from p4gen.net.world.faults import Faults
from p4gen.net.world.network import Network
from p4gen.p4 import ir
from p4gen.p4.compile import program_from
from p4gen.papers.switchml.control import MlJob, configuration
from p4gen.papers.switchml.frames import Update, sent
from p4gen.papers.switchml.member import MlWorker, Vector
from p4gen.papers.switchml.placing import fitted, placed
from p4gen.papers.switchml.spec import SwitchmlSpec
from p4gen.verification.parts.hosts import SearchedTask
from p4gen.verification.world import Budget, Rules, Scope, World
from p4gen.vocabulary.topology import load_topology

TOPOLOGY: Final = "star-2"
MOST_WORKERS, MOST_PACKETS = 4, 120
"""An element has a byte of its own for each worker, and a packet another number in it."""


@dataclass(frozen=True)
class SumScope(Scope):
    """The workers of a star add a vector of ``packets`` packets; their job has all slots of the program."""

    program: SwitchmlSpec
    packets: int = 3
    stale: bool = False
    """Whether an earlier generation of the job was cut off when only its first worker had sent."""

    def vector(self, worker: int) -> Vector:
        """A worker's elements, which tell workers and packets apart in every sum."""
        numbers = np.arange(1, self.packets + 1, dtype=np.int32) << 8 * worker
        return np.repeat(numbers, self.program.lanes)

    @override
    def sound(self) -> SumScope | None:
        if self.fault is None and self.program.checks_offsets:
            return None
        return replace(self, program=sound(self.program), fault=None)

    @override
    def sentence(self) -> str:
        where = f"{self.subject}"
        left = "; registers of an earlier generation" if self.stale else ""
        return f"{where}: {self.packets} packets from each worker; {self.budget.sentence()}{left}"

    @override
    def world(self) -> World:
        topology, ranks = self.topology, self.topology.rank_hosts
        if len(ranks) > MOST_WORKERS or self.packets > MOST_PACKETS:
            raise InputError(f"a search of SwitchML has {MOST_WORKERS} workers and {MOST_PACKETS} packets at most")
        spec = fitted(self.program, topology)
        placement, job = placed(topology, spec, 2 if self.stale else 1)
        (switch,), text = topology.switches, self.text(spec)
        programs = {switch: program_from(text, f"{spec.program}.p4")}
        network = Network(topology, placement, programs, Faults(), 1, self.engine, payload=spec.payload_bytes)
        network.kinds.describe = Update.described
        if self.stale:
            self._leave(network.switches[switch], programs[switch], job)
        return World(
            network,
            {switch: spec},
            placement.mac,
            placement.ip,
            {host: partial(self._tasks, job, number) for number, host in enumerate(ranks)},
            Rules(no_drops=True),
            0,
            placement.switches,
            {switch: text},
        )

    def _leave(self, switch: Model, program: ir.Program, job: MlJob) -> None:
        """Set registers to what vectors of the first worker leave in both versions."""
        earlier, before, worker = Model(program, engine=self.engine), replace(job, epoch=1), job.workers[0]
        configuration(self.program, [before]).install(earlier)
        for version in (0, 1):
            update = Update(job.number, before.epoch, version, 0, version, bytes([1]) * self.program.payload_bytes)
            earlier.process(worker.port, sent(self.program, before, 1, update, 0))
        for register in switch.register_names:
            switch.register_cells(register)[:] = list(earlier.register_cells(register))

    def _tasks(self, job: MlJob, number: int, nic: Nic) -> Sequence[SearchedTask]:
        vectors = [self.vector(worker) for worker in range(len(job.workers))]
        worker = MlWorker(self.program, job, nic, MS)
        return [WorkerTask(f"rank {number}", number, worker, nic.clock, 1, lambda _: vectors)]


def sound(spec: SwitchmlSpec) -> SwitchmlSpec:
    """The program that refuses vectors that come late."""
    return SwitchmlSpec.model_validate(spec.model_dump(exclude_unset=True) | {"offsets": "checked"})


def ladder(spec: SwitchmlSpec) -> Iterator[tuple[str, SumScope]]:
    """Small scopes in which listed faults are searched for, cheap ones first."""
    one = spec.model_copy(update={"slots": 1})
    base = SumScope(load_topology(TOPOLOGY), one)
    yield "three packets", base
    yield "two slots", replace(base, program=spec.model_copy(update={"slots": 2}), packets=5)
    yield "an earlier generation", replace(base, stale=True)
    yield "a forgery", replace(base, budget=Budget(forgeries=1))
    yield "a loss", replace(base, budget=Budget(losses=1))
    yield "an early timeout", replace(base, budget=Budget(timeouts=1))
    if not spec.needs_intact:
        yield "damage", replace(base, budget=Budget(corruptions=1))
    if spec.checks_offsets:
        yield "a duplicate", replace(base, budget=Budget(duplicates=1))
        yield "a delay", replace(base, budget=Budget(delays=1))
    yield "two losses", replace(base, budget=Budget(losses=2))
    yield (
        "star-3, a loss and an early timeout",
        replace(base, topology=load_topology("star-3"), budget=Budget(losses=1, timeouts=1)),
    )
