"""Programs whose calls say whether they are quantised: exact ones beside others, every byte of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p4gen.errors import InputError
from p4gen.host.transport.verbs import Recovery
from p4gen.net.order import RunOrder
from p4gen.net.world.faults import Faults, Impairment
from p4gen.papers.scin.codes import Status
from p4gen.papers.scin.control import Pattern
from p4gen.papers.scin.ranks.memory import Layout
from p4gen.papers.scin.running import PullRun
from p4gen.papers.scin.runs import FACET
from p4gen.papers.scin.simulation import PullConfig, PullSimulation
from p4gen.papers.scin.spec import ScinSpec
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import load_topology

STAR = load_topology("star-4")
SMALL = {
    "dtype": "mxint8", "exact": "int32", "lanes": 32, "waves": 4, "wave": 4, "contexts": 4, "edges": 4, "ports": 8,
    "patience": 4000,
}  # fmt: skip
EVERYTHING = Faults((Impairment(loss=0.02, reorder=0.05, duplicate=0.05, corrupt=0.02),))
EVERYBODY = Pattern(0b1111, 0b1111)


def run(collective: Collective, quantise: str, spec: dict[str, Any], seed: int, **options: str) -> PullRun:
    """Four calls of 84 blocks, or as many bytes of whole numbers."""
    program = ScinSpec.model_validate(SMALL | spec)
    given = {"quantise": quantise} | options
    read = {name: option.parse(given.get(name, option.default)) for name, option in FACET.options.items()}
    size = 0 if collective is Collective.BARRIER else 84 * program.unit_bytes
    order = RunOrder(
        STAR,
        program,
        str(collective),
        size or None,
        repeat=4,
        faults=EVERYTHING,
        seed=seed,
        recovery=Recovery.GO_BACK_N,
        timeout=None,
        retry_count=None,
        dcqcn=None,
        engine="jit",
        options=read,
    )
    return PullRun(order)


@pytest.mark.parametrize("quantise", ["alternate", "no"])
@pytest.mark.parametrize(
    ("collective", "spec"),
    [
        (Collective.ALLREDUCE, {}),
        (Collective.ALLREDUCE, {"completion": "ordered"}),
        (Collective.ALLREDUCE, {"dtype": "int8_float16", "lanes": 128}),
        (Collective.REDUCE_SCATTER, {}),
        (Collective.ALLGATHER, {}),
        (Collective.BROADCAST, {}),
        (Collective.BARRIER, {}),
    ],
    ids=str,
)
def test_every_byte_is_right(collective: Collective, spec: dict[str, Any], quantise: str, seed: int) -> None:
    made = run(collective, quantise, spec, seed)
    result = made.result(made.finish())
    assert result.errors == ()
    assert result.stuck == ()
    in_turn = quantise == "alternate"
    assert [made.call_of(number)[1].scaled for number in range(4)] == [in_turn, False, in_turn, False]


def test_ranks_that_disagree_are_told_so() -> None:
    """Nobody's memory changes: the call ends with a status, and who has broken the agreement has an error."""
    spec = ScinSpec.model_validate(SMALL)
    simulation = PullSimulation(PullConfig(STAR, spec, (EVERYBODY,)))
    ranks = simulation.communicators(range(1))
    whole, rest = np.arange(24, dtype=np.int32), np.ones(96)
    operands = [rank.register(whole if rank.rank == 2 else rest) for rank in ranks]
    assert len({operand.packets for operand in operands}) == 1
    held = [bytes(operand.region.buffer) for operand in operands]
    for rank, operand in zip(ranks, operands, strict=True):
        rank.all_reduce(operand)
    with pytest.raises(InputError, match="the switch refuses the arrival: ranks call different things"):
        simulation.settle()
    others = [rank.status for rank in ranks if rank.done]
    assert others
    assert set(others) == {Status.DISAGREEMENT}
    assert [bytes(operand.region.buffer) for operand in operands] == held


def test_an_array_says_whether_its_call_is_exact() -> None:
    spec = ScinSpec.model_validate(SMALL)
    assert Layout.of(spec, np.zeros(8, np.int32)).spec == spec.exact_form
    assert Layout.of(spec, np.zeros(8)).spec == spec
    assert spec.exact_form.payload == spec.payload
    plain = ScinSpec.model_validate(SMALL | {"exact": None})
    assert Layout.of(plain, np.zeros(8, np.int32)).spec == plain


def test_operand_and_result_have_the_same_elements() -> None:
    simulation = PullSimulation(PullConfig(STAR, ScinSpec.model_validate(SMALL), (EVERYBODY,)))
    rank = simulation.communicators(range(1))[0]
    with pytest.raises(InputError, match="an operand and a result of different elements"):
        rank.all_reduce(rank.register(np.zeros(8, np.int32)), rank.register(np.zeros(32)))


def test_calls_that_are_all_alike_have_no_choice() -> None:
    with pytest.raises(InputError, match=r"quantise: error: the calls of scin_.* are all alike \(--exact\)"):
        run(Collective.ALLREDUCE, "no", {"exact": None}, 1)
