"""Runs of SwitchML for ``p4gen sim run``: AllReduce of workers around one switch, every element beside NumPy's."""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from p4gen.host.collectives.workers import Vector
from p4gen.net.order import RunOrder
from p4gen.net.sums import SumRun, check, patience
from p4gen.net.world.network import Network
from p4gen.papers.switchml.frames import Update
from p4gen.papers.switchml.member import MlWorker
from p4gen.papers.switchml.placing import fitted, placed
from p4gen.papers.switchml.spec import SwitchmlSpec
from p4gen.program.compilation import compile_spec


class MlRun(SumRun):
    """The run that an order asks for. Raises ``InputError`` if the program cannot serve it."""

    def __init__(self, order: RunOrder[SwitchmlSpec]) -> None:
        topology = order.topology
        spec = fitted(order.program, topology)
        check(order, spec)
        timeout = patience(topology, spec.slots, spec.payload_bytes) if order.timeout is None else order.timeout
        placement, self.job = placed(topology, spec)
        (switch,), program = topology.switches, compile_spec(spec).program
        network = Network(
            topology, placement, {switch: program}, order.faults, order.seed, order.engine, payload=spec.payload_bytes
        )
        network.kinds.describe = Update.described
        super().__init__(order, spec.program, network, {switch: spec}, timeout)
        self.tasks = [
            self.task(f"rank {number}", number, MlWorker(spec, self.job, network.nics[host], timeout))
            for number, host in enumerate(topology.rank_hosts)
        ]

    @override
    def drawn(self, chance: np.random.Generator, shape: tuple[int, int]) -> Vector:
        low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
        return chance.integers(low, high, shape, np.int32, endpoint=True)
