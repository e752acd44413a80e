"""Groups of one queue pair a rank (refined PSN synchronisation) under what makes old packets meet new collectives.

Windows are small, duplicates and delays reach across several Barriers, roots change with every collective, PSNs wrap,
and NICs repair loss in every way that their switches go with. With P4GEN_SIM_CASES=500 in its environment
``pytest --full tests/sim/test_soak.py`` makes 500 runs, ``scripts/test --full`` 600, each of a seed;
``P4GEN_SOAK_SEED`` is the first one. A run that hangs ends by its own diagnosis, not by a clock.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest

from p4gen.host.collectives.plan import Flow, PsnSync
from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import RECOVERIES, Recovery
from p4gen.net.collectives.config import Call, SimConfig, Work
from p4gen.net.collectives.simulation import simulate
from p4gen.net.world.faults import Faults, Impairment
from p4gen.papers.epic.spec import Mode
from p4gen.vocabulary.collective import Reliability
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import load_topology

from .runs import CASES, star, tiny

FIRST_SEED = int(os.environ.get("P4GEN_SOAK_SEED", "0"))
RUNS = CASES if CASES > 60 else 20
HUNG = (47, 58, 115, 155)
"""Seeds of runs that hung while an old ACK could move psnStart beyond the end of its own collective. They keep the
recovery of their programs."""
SILENCED = (68, 103, 154)
"""Seeds of runs of Mode II and ``ideal`` that hung while a missing result of a later collective silenced the timer."""
TOPOLOGIES = (star(3), star(4), load_topology("tree-3-2"))
PROGRAMS = tuple(
    tiny(groups=8, window=window, message=message, **fields)
    for window, message in ((1, 1), (2, 1), (2, 2))
    for fields in (
        {"mode": Mode.III},
        {"mode": Mode.III, "pipelines": 2},
        {"mode": Mode.III, "reliability": Reliability.SR},
        {"mode": Mode.II},
        {"mode": Mode.II, "reliability": Reliability.GBN},
    )
)
ROOTED = (Collective.BROADCAST, Collective.REDUCE)


def call(chance: random.Random, ranks: int) -> Call:
    """A collective of a few packets; those with a root, after which one direction stands still, come most often."""
    collective = chance.choice((*ROOTED, *ROOTED, *Collective))
    elements = ranks * chance.choice((1, 2, 8, 20))
    return Call(collective, 0 if collective is Collective.BARRIER else 4 * elements, chance.randrange(ranks))


def config(seed: int) -> SimConfig:
    """The run of a seed."""
    chance = random.Random(seed)
    topology, mode = chance.choice(TOPOLOGIES), chance.choice((Mode.III, Mode.III, Mode.III, Mode.II))
    impairment = Impairment(
        loss=chance.choice((0.0, 0.02, 0.1)),
        reorder=chance.choice((0.1, 0.3)),
        jitter=chance.choice((10, 60, 200)) * US,
        duplicate=chance.choice((0.1, 0.3)),
    )
    calls = tuple(call(chance, len(topology.rank_hosts)) for _ in range(chance.randint(4, 10)))
    run = SimConfig(
        topology,
        # Mode III acknowledges hop by hop, which is what old answers can spoil: three runs of four.
        chance.choice([program for program in PROGRAMS if program.mode is mode]),
        faults=Faults((impairment,)),
        seed=seed,
        initial_psn=chance.choice((None, 0xFFFFF0, 0xFFFFFF)),
        skew=chance.choice((0, 20, 200)) * US,
        engine="jit",
        sync=PsnSync.REFINED,
        flow=chance.choice(tuple(Flow)),
        work=(Work(calls),),
    )
    if seed in HUNG:
        return run
    recovery = chance.choice(RECOVERIES)
    if recovery is Recovery.IDEAL and mode is Mode.III:
        # Selective NAKs are for switches that know them.
        return replace(run, recovery=recovery, program=run.program.model_copy(update={"reliability": Reliability.SACK}))
    return replace(run, recovery=recovery)


@pytest.mark.parametrize("seed", sorted({*HUNG, *SILENCED, *range(FIRST_SEED, FIRST_SEED + RUNS)}))
@pytest.mark.sample(9)
def test_no_old_packet_hangs_a_group(seed: int) -> None:
    print(f"soak: seed {seed}")  # noqa: T201  # shown where it fails
    result = simulate(config(seed))
    assert result.ok, (seed, result.errors, result.diagnosis and result.diagnosis.lines())
