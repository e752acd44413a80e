"""The speed of the virtual network, in packet-hops per second: star of eight, AllReduce without faults, native engine.

A packet-hop is one packet on one link: a contribution and its result are two. The time is processor time of the run
alone, without compiling or loading code.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass, replace

from p4gen.errors import FailedError
from p4gen.net.collectives.simulation import SimConfig, Simulation
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.topology import load_topology

SIZE = 4 << 20
_WARM = 1 << 16
"""Bytes of a run before the measured one, which loads the machine code of network and program."""


@dataclass(frozen=True)
class NetRate:
    """The result: packet-hops, seconds of processor time, seconds of wall time."""

    program: str
    topology: str
    size: int
    packet_hops: int
    events: int
    cpu: float
    wall: float

    @property
    def per_second(self) -> float:
        """Packet-hops per second of processor time."""
        return self.packet_hops / self.cpu


def measure_net(spec: CollectiveSpec, seed: int, size: int = SIZE) -> NetRate:
    """Run and time an AllReduce of ``size`` bytes per rank. Raises ``FailedError`` if its result is wrong."""
    config = SimConfig(load_topology("star-8"), spec, size=size, seed=seed, engine="jit")
    Simulation(replace(config, size=_WARM)).run()
    simulation = Simulation(config)
    gc.collect()
    gc.freeze()
    try:
        cpu, wall = time.process_time(), time.perf_counter()
        result = simulation.run()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    finally:
        gc.unfreeze()
    if not result.ok:
        raise FailedError("the measured AllReduce failed", *result.errors)
    return NetRate(spec.program, "star-8", size, result.packet_hops, result.events, cpu, wall)
