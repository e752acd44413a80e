"""Calls on elements with scales: every byte of memory beside the golden models, whatever is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from p4gen.errors import InputError
from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import Recovery
from p4gen.net.order import RunOrder
from p4gen.net.result import RunResult
from p4gen.net.world.faults import Faults, Impairment, Outage
from p4gen.papers.scin.control import Pattern
from p4gen.papers.scin.ranks.memory import Layout, block_type, quantised
from p4gen.papers.scin.ranks.numbers import NUMBERS
from p4gen.papers.scin.ranks.options import CALL
from p4gen.papers.scin.running import PullRun
from p4gen.papers.scin.runs import FACET
from p4gen.papers.scin.simulation import PullConfig, PullSimulation
from p4gen.papers.scin.spec import ScinSpec
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import load_topology

STAR = load_topology("star-4")
SMALL = {
    "dtype": "mxint8", "lanes": 32, "waves": 4, "wave": 4, "contexts": 4, "edges": 4, "ports": 8, "patience": 4000,
}  # fmt: skip
FLOAT16 = SMALL | {"dtype": "int8_float16", "lanes": 128}
EVERYTHING = Faults((Impairment(loss=0.02, reorder=0.05, duplicate=0.05, corrupt=0.02),))
TROUBLES = {
    "loss of 10 %": Faults((Impairment(loss=0.1),)),
    "bursts": Faults((Impairment(loss=0.05, burst=3),)),
    "disorder": Faults((Impairment(reorder=0.1, duplicate=0.1),)),
    "corruption": Faults((Impairment(corrupt=0.05),)),
    "a link down": Faults(outages=(Outage("h1", 3 * US, 23 * US),)),
}


def order(collective: str = Collective.ALLREDUCE, **fields: Any) -> RunOrder[ScinSpec]:
    """Two calls of 84 blocks; ``options`` are those of the call."""
    spec = ScinSpec.model_validate(SMALL | fields.pop("spec", {}))
    given = ({"sources": "0,2", "destinations": "1,2"} if collective == CALL else {}) | fields.pop("options", {})
    options = {name: option.parse(given.get(name, option.default)) for name, option in FACET.options.items()}
    base = RunOrder(
        STAR,
        spec,
        str(collective),
        None if collective == Collective.BARRIER else 84 * spec.unit_bytes,
        repeat=2,
        faults=EVERYTHING,
        seed=1,
        recovery=None,
        timeout=None,
        retry_count=None,
        dcqcn=None,
        engine="jit",
        options=options,
    )
    return replace(base, **fields)


def passed(asked: RunOrder[ScinSpec]) -> RunResult:
    result = PullRun(asked).run()
    assert (result.stuck, result.errors, result.silent) == ((), (), ())
    return result


@pytest.mark.long
@pytest.mark.sample(3)
@pytest.mark.parametrize("in_place", ["yes", "no"])
@pytest.mark.parametrize("collective", [*Collective, CALL])
def test_every_call_equals_the_golden_model(collective: str, in_place: str, seed: int) -> None:
    passed(order(collective, options={"in_place": in_place}, seed=seed))


@pytest.mark.long
@pytest.mark.sample(3)
@pytest.mark.parametrize("recovery", [Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT])
@pytest.mark.parametrize("resumption", ["strict", "rxe"])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_losses_are_mended(trouble: str, resumption: str, recovery: Recovery, seed: int) -> None:
    options = {"resumption": resumption}
    passed(order(faults=TROUBLES[trouble], options=options, recovery=recovery, seed=seed, repeat=4))


@pytest.mark.long
@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "spec",
    [
        {"block": 64, "lanes": 64},
        {"wave": 1, "lanes": 128},
        {"completion": "ordered"},
        {"waves": 1},
        {"dtype": "int8_float16", "lanes": 64, "block": 32, "completion": "ordered"},
    ],
)
def test_other_programs(spec: dict[str, Any], seed: int) -> None:
    passed(order(spec=spec, seed=seed))


@pytest.mark.long
def test_groups_at_once_and_late_ranks(seed: int) -> None:
    passed(order(concurrent=3, options={"late": "30us"}, seed=seed))


@pytest.mark.long
def test_nothing_is_sent_twice_without_losses(seed: int) -> None:
    assert passed(order(faults=Faults(), seed=seed)).values["again"] == 0


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("numbers", [1, 32, 100, 129, 513])
@pytest.mark.parametrize("spec", [SMALL, SMALL | {"lanes": 128, "block": 64}, FLOAT16])
def test_memory_holds_what_was_put_there(spec: dict[str, Any], numbers: int, parts: int, seed: int) -> None:
    layout = Layout(ScinSpec.model_validate(spec))
    given = np.random.default_rng(seed).normal(size=numbers * parts)
    blocks = layout.taken(given, parts)
    packets = layout.packets(blocks, parts)
    held = layout.wire(blocks, parts)
    assert len(held) == parts * layout.size(packets)
    np.testing.assert_array_equal(layout.array(held, parts, packets, blocks.size), blocks)


def test_scales_are_behind_their_wave() -> None:
    layout = Layout(ScinSpec.model_validate(SMALL))
    blocks = np.zeros(5, block_type(NUMBERS["mxint8"], 32))
    blocks["elements"], blocks["scale"] = np.arange(1, 6)[:, np.newaxis], np.arange(101, 106)
    first = b"".join(bytes([number]) * 32 for number in range(1, 5)) + bytes(range(101, 105))
    assert layout.wire(blocks, 1) == first + bytes([5]) * 32 + bytes([105, 0, 0, 0])


def test_float16_scales_are_as_the_network_has_them() -> None:
    layout = Layout(ScinSpec.model_validate(FLOAT16 | {"wave": 1}))
    blocks = np.zeros(2, block_type(NUMBERS["int8_float16"], 64))
    blocks["elements"], blocks["scale"] = np.array([[1], [2]]), [0x3C00, 0x0001]
    assert layout.wire(blocks, 1) == bytes([1]) * 64 + bytes([2]) * 64 + bytes([0x3C, 0, 0, 1])


@pytest.mark.long
def test_calls_with_float16_scales_survive_everything(seed: int) -> None:
    passed(order(spec={"dtype": "int8_float16", "lanes": 64}, options={"resumption": "rxe"}, seed=seed))


@pytest.mark.long
def test_ranks_register_numbers() -> None:
    everybody = Pattern(0b1111, 0b1111)
    simulation = PullSimulation(PullConfig(STAR, ScinSpec.model_validate(SMALL), (everybody,)))
    ranks = simulation.communicators(range(1))
    given = [np.linspace(-1, 1, 100) * (rank + 1) for rank in range(4)]
    operands = [rank.register(numbers) for rank, numbers in zip(ranks, given, strict=True)]
    for rank, operand, numbers in zip(ranks, operands, given, strict=True):
        np.testing.assert_allclose(operand.array(), numbers, atol=2**-6 * np.abs(numbers).max())
        rank.all_reduce(operand)
    simulation.settle()
    for operand in operands:
        assert operand.array().shape == (100,)
        np.testing.assert_allclose(operand.array(), sum(given), atol=2**-5 * 10)
    with pytest.raises(InputError, match=r"elements are int32; .* reduces mxint8"):
        ranks[0].register(np.zeros(3, np.int32))
    assert ranks[0].register(quantised(NUMBERS["mxint8"], given[0], 32)).elements == 128
