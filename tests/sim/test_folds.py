"""Sums of stored floating-point numbers are those of the tree's nodes in rank order, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from p4gen.host.collectives.arrays import Tree, array_type, folded
from p4gen.net.collectives.simulation import SimConfig, Simulation
from p4gen.net.world.faults import Faults, Impairment
from p4gen.papers.epic.spec import Fold, Mode
from p4gen.vocabulary import DType, Op
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec

from .runs import star, tiny

TROUBLE = Faults((Impairment(loss=0.05, reorder=0.02, duplicate=0.01),))
SIZE = 600
RUNS = {Mode.I: 4, Mode.II: 2, Mode.III: 2}
EVERY_RUN = 50
"""Each with other losses, duplicates and packets that overtake others; all of them with ``--full``."""
TREE = TopologySpec.model_validate(
    {
        "name": "tree",
        "root": "s0",
        "switches": ["s0", "s1", "s2"],
        "hosts": ["h0", "h1", "h2", "h3"],
        "links": [["s1", "s0"], ["s2", "s0"], ["h0", "s1"], ["h1", "s1"], ["h2", "s2"], ["h3", "s2"]],
    }
)
TREES: list[tuple[TopologySpec, Tree]] = [(star(4), [0, 1, 2, 3]), (TREE, [[0, 1], [2, 3]])]


@pytest.mark.sample(2)
@pytest.mark.parametrize("mode", RUNS, ids=str)
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16], ids=str)
@pytest.mark.parametrize(("topology", "tree"), TREES, ids=lambda each: getattr(each, "name", ""))
def test_bits_do_not_depend_on_what_happens(
    mode: Mode, dtype: DType, topology: TopologySpec, tree: Tree, pytestconfig: pytest.Config
) -> None:
    if dtype is DType.BFLOAT16:
        pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: pip install 'p4gen[floats]'")
    ranks, elements = len(topology.rank_hosts), SIZE // dtype.number_format.bytes
    chance = np.random.default_rng(7)
    drawn = np.ldexp(chance.standard_normal((ranks, elements)), chance.integers(-9, 9, (ranks, elements)))
    drawn[:, 0] = 49152, -49152, 2.0**-9, 0  # in the opposite order the third one is lost
    values = list(drawn.astype(array_type(dtype)))
    right = folded(Op.SUM, tree, values)
    # Other orders make other sums: otherwise this test would show nothing.
    assert (folded(Op.SUM, [*range(ranks)][::-1], values) != right).any()
    for seed in range(EVERY_RUN if pytestconfig.getoption("--full") else RUNS[mode]):
        program = tiny(mode=mode, fold=Fold.ORDERED, dtype=dtype, groups=8)
        config = SimConfig(topology, program, Collective.ALLREDUCE, SIZE, faults=TROUBLE, seed=seed, engine="jit")
        simulation = Simulation(config)
        (group,) = simulation.groups
        for rank, mine in zip(group.ranks, values, strict=True):
            rank.values[0] = mine
        ended = simulation.run()
        assert ended.ended, (seed, ended.errors)
        for rank in group.ranks:
            result = rank.made[0].result()
            assert result is not None
            assert result.tobytes() == right.tobytes(), seed
