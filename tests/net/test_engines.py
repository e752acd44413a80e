"""Networks run alike, packet by packet, whether the interpreter or the native engine runs the programs.

``P4GEN_SIM_CASES=500 pytest --full tests/net/test_engines.py`` compares 500 runs of each kind, each of a seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from sim import test_soak as groups

from p4gen.host.transport.clock import US
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.dcqcn_timed import TimedDcqcnConfig
from p4gen.host.transport.verbs import Recovery
from p4gen.model import EngineName
from p4gen.net.collectives.simulation import Simulation
from p4gen.net.job import Job
from p4gen.net.traffic.traffic import Pattern, Traffic, TrafficConfig, by_position
from p4gen.net.traffic.traffic_simulation import TrafficSimulation
from p4gen.net.world.watching import Passage
from p4gen.papers.themis.spec import Evidence, Spread, ThemisSpec
from p4gen.vocabulary.topology import Buffer, Ecn, Pfc, load_topology

from .test_soak import everything

RUNS = int(os.environ.get("P4GEN_SIM_CASES", "12"))


def collectives(seed: int, engine: EngineName) -> Simulation:
    """Groups whose switches reduce, under what makes old packets meet new collectives."""
    config = groups.config(seed)
    chance = random.Random(seed)
    pace = chance.choice((None, 30_000_000_000))
    pfc = chance.choice((None, None, Pfc(xoff=2_000)))
    topology = config.topology.model_copy(update={"recirculation_delay": chance.choice((0, 0, 300_000)), "pfc": pfc})
    work = tuple(replace(work, pace=pace) for work in config.work)
    return Simulation(replace(config, topology=topology, work=work, engine=engine))


def traffic(seed: int, engine: EngineName) -> TrafficSimulation:
    """Flows and rings over two spines, sprayed or not, with lost, late and marked packets."""
    chance = random.Random(seed)
    clos = load_topology("clos:2x2x2")
    buffer = chance.choice((None, Buffer(size=60_000, alpha=1)))
    ecn = chance.choice((None, Ecn(low=1_000, high=8_000)))
    links = {"queue": chance.choice((20_000, 1_000_000)), "ecn": ecn}
    pfc = chance.choice((None, Pfc(xoff=4_000))) if buffer is None else None
    changed = {"defaults": clos.defaults.model_copy(update=links), "buffer": buffer, "pfc": pfc}
    topology = clos.model_copy(update=changed)
    dcqcn = chance.choice((
        None, DcqcnConfig(increase_timer=5 * US, nack_cuts=True), TimedDcqcnConfig(increase_timer=10 * US),
    ))  # fmt: skip
    program = ThemisSpec(
        spread=chance.choice(tuple(Spread)), evidence=Evidence.QUEUE, queue=16, queue_banks=4, paths=2, path_sets=1,
        connections=16, ports=8,
    )  # fmt: skip
    pattern = chance.choice(tuple(Pattern))
    size = chance.choice((24_000, 48_000))
    return TrafficSimulation(
        TrafficConfig(
            topology, program, tuple(Traffic(pattern, hosts, size) for hosts in by_position(topology)), seed=seed,
            message=chance.choice((4_000, 12_000)), timeout=chance.choice((20, 100)) * US,
            recovery=chance.choice(tuple(Recovery)), faults=everything(chance), arrays=chance.choice((False, True)),
            skew=chance.choice((0, 5)) * US, dcqcn=dcqcn, engine=engine,
        )
    )  # fmt: skip


def seen(job: Job[Any, Any]) -> tuple[Any, list[Passage]]:
    """The result of a run, and what has passed over all links."""
    passed: list[Passage] = []
    job.network.watch(passed.append)
    result = job.run()
    return {each.name: getattr(result, each.name) for each in fields(result) if each.name != "config"}, passed


@pytest.mark.parametrize("seed", range(RUNS))
@pytest.mark.parametrize("make", [collectives, traffic])
@pytest.mark.sample(16)
def test_both_engines_run_alike(make: Callable[[int, EngineName], Job[Any, Any]], seed: int) -> None:
    print(f"engines: seed {seed}")  # noqa: T201  # shown where it fails
    one, other = seen(make(seed, "jit")), seen(make(seed, "interp"))
    assert (one[0]["stuck"], one[0]["errors"]) == ((), ())
    assert one == other
