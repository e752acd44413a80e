"""Mode I on each kind of topology: all six collectives equal NumPy's results, whatever links lose, delay and repeat."""

from __future__ import annotations

import pytest

from p4gen.net.collectives.config import SimConfig, Work
from p4gen.net.collectives.simulation import simulate
from p4gen.papers.epic.spec import Mode
from p4gen.vocabulary.topology import load_topology

from .runs import all_six, tiny, trouble

TROUBLE = trouble(loss=0.05, reorder=0.02, duplicate=0.01)
SEEDS = 3
EVERY_SEED = 100
"""With ``--full``."""


@pytest.mark.parametrize("topology", ["tree-3-2", "star-8", "leaf-spine"])
@pytest.mark.long
def test_all_six_collectives_of_many_seeds(topology: str, seed: int, pytestconfig: pytest.Config) -> None:
    network = load_topology(topology)
    work = (Work(all_six(len(network.rank_hosts))),)
    resent = 0
    for each in range(seed, seed + (EVERY_SEED if pytestconfig.getoption("--full") else SEEDS)):
        result = simulate(SimConfig(network, tiny(mode=Mode.I), faults=TROUBLE, work=work, seed=each, engine="jit"))
        assert result.ok, (each, result.errors, result.diagnosis and result.diagnosis.lines())
        resent += result.resent
    assert resent > 0
