"""SCIN and MultiWrite under everything at once: buffers down to the smallest, late ranks, old packets in new calls.

``P4GEN_SIM_CASES=500 pytest --full tests/net/test_soak.py`` makes 500 runs of each, each of a seed. EPIC's are in
``tests/sim/test_soak.py``, Themis's in ``test_themis_end_to_end.py``.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import Recovery
from p4gen.net.world.faults import Faults, Impairment
from p4gen.papers.multiwrite.running import WriteRun
from p4gen.papers.scin.running import PullRun
from p4gen.papers.scin.runs import FACET

from . import test_multiwrite_runs as writes
from . import test_scin_runs as pulls

RUNS = int(os.environ.get("P4GEN_SIM_CASES", "12"))
NICS = (Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT)


def everything(chance: random.Random) -> Faults:
    """Loss up to 10 %, in bursts; disorder that reaches across calls."""
    return Faults((
        Impairment(
            loss=chance.choice((0.0, 0.02, 0.1)),
            burst=chance.choice((1, 2)),
            reorder=chance.choice((0.0, 0.2)),
            jitter=chance.choice((2, 10, 60)) * US,
            duplicate=chance.choice((0.0, 0.2)),
            corrupt=chance.choice((0.0, 0.02)),
        ),
    ))  # fmt: skip


def scin(seed: int) -> PullRun:
    """SCIN's run of a seed."""
    chance = random.Random(seed)
    waves, wave = chance.choice(((1, 1), (1, 4), (2, 1), (4, 4)))
    spec = {"waves": waves, "wave": wave, "completion": chance.choice(pulls.COMPLETIONS)}
    options = {
        "resumption": chance.choice(FACET.options["resumption"].values),
        "in_place": chance.choice(("yes", "no")),
        "late": chance.choice(("0us", "3us", "300us")),
    }
    fields: dict[str, Any] = {
        "collective": chance.choice(list(FACET.collectives)),
        "repeat": chance.choice((1, 3, 12)),
        "recovery": chance.choice(NICS),
        "faults": everything(chance),
    }
    return PullRun(pulls.order(spec=spec, options=options, seed=seed, **fields))


def multiwrite(seed: int) -> WriteRun:
    """MultiWrite's run of a seed."""
    chance = random.Random(seed)
    collective = chance.choice((writes.ALLGATHER, writes.DISPATCH))
    spec = {
        "slots": chance.choice((2, 4, 8)),
        "repair": chance.choice(("source", "hop")),
        "place": chance.choice(("symmetric", "append")),
    }
    fields: dict[str, Any] = {
        "size": 8 * 128 * 4 if collective == writes.ALLGATHER else None,
        "repeat": chance.choice((1, 2, 5)),
        "recovery": chance.choice(NICS),
        "faults": everything(chance),
    }
    topology = chance.choice(("star-4", "star-8", "leaf-spine"))
    return WriteRun(writes.order(topology, collective, spec=spec, seed=seed, **fields))


@pytest.mark.parametrize("seed", range(RUNS))
@pytest.mark.parametrize("make", [scin, multiwrite])
@pytest.mark.sample(16)
def test_everything_at_once(make: Callable[[int], PullRun | WriteRun], seed: int) -> None:
    print(f"soak: seed {seed}")  # noqa: T201  # shown where it fails
    result = make(seed).run()
    assert (result.stuck, result.errors) == ((), ())
