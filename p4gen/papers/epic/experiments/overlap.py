"""EPIC's Figure 14 (section 7.3): a ReduceScatter and an AllGather of two groups at the same time."""

from __future__ import annotations

from typing import Final

from p4gen.errors import FailedError
from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Experiment, Order, Report
from p4gen.host.collectives.algorithms import Algorithm
from p4gen.host.transport.clock import MS, SECOND
from p4gen.model import EngineName
from p4gen.net.collectives.config import Call, SimConfig, Work
from p4gen.net.collectives.hosts import simulate_hosts
from p4gen.net.collectives.simulation import simulate
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.studies.sweep import roomy
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import load_topology

NETWORK: Final = "star-8"
CALLS: Final = {"reducescatter": Collective.REDUCE_SCATTER, "allgather": Collective.ALLGATHER}
BOTH: Final = "both"
EPIC: Final = "EPIC-II"
RING: Final = "ring"
SIZE: Final = 4 << 20
REPEAT: Final = 4
LANES: Final = 256
OVERHEAD: Final = 58 + 24
"""Bytes of headers and ICRC, and of preamble and gap."""


def measured(solution: str, what: str, seed: int, engine: EngineName) -> float:
    """Gb/s of algorithm throughput of all groups together. Raises ``FailedError`` if a result is wrong."""
    named = CALLS.values() if what == BOTH else (CALLS[what],)
    work = tuple(Work((Call(each, SIZE),) * REPEAT) for each in named)
    topology, program = roomy(load_topology(NETWORK)), EpicSpec(lanes=LANES, window=64, message=4, groups=1)
    config = SimConfig(topology, program, work=work, seed=seed, engine=engine, timeout=MS)
    result = simulate(config) if solution == EPIC else simulate_hosts(config, Algorithm.RING)
    if not result.ok or result.last_result is None:
        raise FailedError(f"{solution}, {what}: {result.errors or result.diagnosis}")
    return SIZE * REPEAT * len(work) * 8e-9 * SECOND / result.last_result


def _perform(order: Order) -> Report:
    found = order.run(
        [
            Cell(f"{solution}/{what}", measured, (solution, what, order.seed, order.engine))
            for solution in (EPIC, RING)
            for what in (*CALLS, BOTH)
        ]
    )
    topology = load_topology(NETWORK)
    payload, ranks = 4 * LANES, len(topology.hosts)
    link = topology.defaults.bandwidth / 1e9 * payload / (payload + OVERHEAD)
    parts = {solution: found[f"{solution}/{BOTH}"] / link for solution in (EPIC, RING)}
    most = ranks / (ranks - 1)
    return Report(
        ("solution", *CALLS, BOTH, "both / link"),
        tuple(
            (solution, *(found[f"{solution}/{what}"] for what in (*CALLS, BOTH)), part)
            for solution, part in parts.items()
        ),
        (
            Check(f"EPIC-II: both carry {parts[EPIC]:.2f} times what a link does, at least 1.8", parts[EPIC] >= 1.8),
            Check(
                f"ring: both carry {parts[RING]:.2f} times what a link does, at most {most:.2f}", parts[RING] <= most
            ),
        ),
        (
            f"Gb/s of algorithm throughput on {NETWORK}: {REPEAT} calls of {SIZE >> 20} MiB one after the other in "
            "each group; both groups have all hosts",
            f"a link carries {link:.1f} Gb/s of data in packets of {payload} bytes",
            f"a rank sends or receives {ranks - 1} of {ranks} parts of an array, so the throughput of one call can be "
            f"{most:.2f} times that of a link",
            "the paper gives no numbers: EPIC's throughputs add up to twice a link's, NCCL's stay below it",
        ),
        {},
    )


OVERLAP: Final = Experiment({"quick": "calls of 4 MiB: seconds"}, _perform, check="quick")
