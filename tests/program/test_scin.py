"""SCIN's programs: the specs that there are, that each of them builds, and the entries that contexts need."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p4gen.builder import build
from p4gen.errors import InputError
from p4gen.families import load_spec
from p4gen.groups.group import Endpoint
from p4gen.model import Model
from p4gen.papers.scin.control import PullContext, PullEdge, configuration
from p4gen.papers.scin.spec import ScinSpec
from p4gen.program import compose
from p4gen.program.compilation import compile_spec

SMALL = ScinSpec(lanes=8, waves=2, wave=2, contexts=2, edges=2, ports=4)


def edge(number: int, **fields: Any) -> PullEdge:
    near = tuple(Endpoint(2, 0x0A000001, 0x100 + 4 * number + role) for role in range(3))
    far = tuple(Endpoint(4, 0x0A000100 + number, 9 + role) for role in range(3))
    made = PullEdge(number, number, near, far, 0x1000, 7)
    return replace(made, **fields)


CONTEXT = PullContext(0, (edge(1), edge(2)), 0b11, 0b01)


@pytest.mark.parametrize(
    "fields",
    [
        {"op": "min"},
        {"dtype": "uint32"},
        {"overflow": "wrap"},
        {"icrc": "set"},
        {"icrc": "ignore"},
        {"completion": "ordered"},
        {"dtype": "mxint8", "lanes": 64},
        {"dtype": "mxint8", "lanes": 64, "block": 64, "icrc": "ignore", "completion": "ordered"},
        {"dtype": "int8_float16", "lanes": 128, "completion": "ordered"},
        {"dtype": "mxint8", "lanes": 32, "exact": "int32"},
        {"dtype": "int8_float16", "lanes": 64, "exact": "int32", "completion": "ordered"},
        {"variant": "early-release"},
    ],
)
def test_every_program_builds(tmp_path: Path, fields: dict[str, Any]) -> None:
    spec = load_spec(flags={"mode": "scin", "lanes": 8, "edges": 2, "waves": 2} | fields)
    build(spec, tmp_path, use_p4c=False)


@pytest.mark.parametrize(("completion", "more"), [("strict", 0), ("ordered", 24)])
def test_state_is_what_the_formula_says(completion: str, more: int) -> None:
    spec = ScinSpec.model_validate({"lanes": 256, "completion": completion})
    bits = sum(module.state_bits for module in compose(spec).modules)
    contexts, ranks, slots, lanes = 4, 8, 64, 256
    assert bits == contexts * (slots * (64 + 32 * lanes) + 89 + more + 96 + 32 + 48 + 64 + 54 + (32 + 192 + 32) * ranks)
    assert abs(bits / 8 / 266_000 - 1) < 0.05


@pytest.mark.parametrize(
    ("dtype", "block", "bytes_of_scales"),
    [("mxint8", 32, 81_920), ("mxint8", 64, 40_960), ("int8_float16", 32, 163_840), ("int8_float16", None, 81_920)],
)
def test_state_with_scales_is_what_the_formula_says(dtype: str, block: int | None, bytes_of_scales: int) -> None:
    spec = ScinSpec.model_validate({"dtype": dtype, "block": block, "lanes": 1024})
    size = 2 if dtype == "int8_float16" else 1
    bits = sum(module.state_bits for module in compose(spec).modules)
    contexts, ranks, waves, slots, lanes, scales = 4, 8, 16, 64, 1024, 4096 // spec.scale_block
    plain = slots * (64 + 32 * lanes) + 89 + 96 + 32 + 48 + 64 + 54 + (32 + 192 + 32) * ranks
    assert bits == contexts * (plain + waves * (64 + 8 * size * scales * (ranks + 2)) + 48 + 24)
    assert contexts * waves * scales * size * (ranks + 2) == bytes_of_scales
    if (dtype, block) == ("mxint8", 64):
        assert abs(bits / 8 / 1_060_000 - 1) < 0.05


def test_calls_that_choose_take_a_bit_of_state_more() -> None:
    fields = {"dtype": "mxint8", "lanes": 64}
    alike, choosing = (
        sum(module.state_bits for module in compose(ScinSpec.model_validate(fields | more)).modules)
        for more in ({}, {"exact": "int32"})
    )
    assert choosing == alike + ScinSpec().contexts


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dtype": "int8"}, "dtype: error: dtype = 'int8': must be int32, uint32"),
        ({"dtype": "float32", "overflow": "wrap"}, "overflow: error: overflow = 'wrap': sums of float32 do not wrap"),
        ({"dtype": "mxint8", "op": "max"}, "op: error: op = 'max': blocks with scales are added only"),
        ({"dtype": "mxint8", "lanes": 16}, "lanes: error: lanes = 16: a packet has whole blocks, of 32 elements"),
        ({"dtype": "mxint8", "lanes": 32, "wave": 1}, "wave: error: wave = 1: a wave has 1 blocks; it needs 4"),
        ({"dtype": "mxint8", "wave": 32}, "wave: error: wave = 32: a wave of 32 packets has scales for more"),
        ({"dtype": "int8_float16", "op": "min"}, "op: error: op = 'min': blocks with scales are added only"),
        (
            {"dtype": "int8_float16", "lanes": 32, "block": 32, "wave": 1},
            "wave: error: wave = 1: a wave has 1 blocks; it needs 2",
        ),
        ({"dtype": "int8_float16", "wave": 32}, "wave: error: wave = 32: a wave of 32 packets has scales for more"),
        (
            {"dtype": "int8_float16", "lanes": 32},
            "lanes: error: lanes = 32: a packet has whole blocks, of 64 elements",
        ),
        ({"lanes": 2048}, "lanes: error: lanes = 2048: must be 8, 16, 32, 64"),
        ({"exact": "int32"}, "exact: error: exact = 'int32': int32 has no scales: all calls are exact"),
        ({"dtype": "mxint8", "exact": "uint32"}, "exact: error: exact = 'uint32': must be int32"),
        ({"block": 64}, "block: error: block = 64: int32 has no scales"),
        ({"waves": 3}, "waves: error: waves = 3: must be 1, 2, 4, 8"),
        ({"pipelines": 2}, "pipelines: error: pipelines = 2: a call has its state in one pipeline"),
        ({"edges": 16, "ports": 8}, "edges: error: edges = 16: each has a port, and the switch has 8"),
        (
            {"variant": "early-release", "completion": "ordered"},
            "variant: error: variant = 'early-release': early-release is a design with strict completion",
        ),
        ({"beside": "themis"}, "beside: error: beside = 'themis': SCIN's programs have no second family"),
        ({"arch": "t2na"}, "arch: error: arch = 't2na': SCIN's programs are for v1model"),
    ],
)
def test_what_does_not_fit_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        load_spec(flags={"mode": "scin"} | fields)
    assert str(refused.value).startswith(message)


def test_a_switch_takes_the_entries_of_a_context() -> None:
    found = configuration(SMALL, [CONTEXT])
    found.install(Model(compile_spec(SMALL).program))
    assert [len(group.replicas) for group in found.multicast_groups] == [2, 2, 1]


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (replace(CONTEXT, context=2), "the program has 2, numbered from 0"),
        (replace(CONTEXT, epoch=0), "epoch 0 is not in 1 to 255"),
        (replace(CONTEXT, sources=0b111), "its masks name ranks 0x4, which have no edges"),
        (replace(CONTEXT, destinations=0), "a context has sources and destinations"),
        (replace(CONTEXT, edges=(edge(1), edge(1))), "two of its edges are edge 1"),
        (replace(CONTEXT, edges=(edge(1), edge(3))), "edge 3: the program has 2, numbered from 1"),
        (replace(CONTEXT, edges=(edge(1), edge(2, port=4))), "edge 2: there is no port 4; the switch has 4 ports"),
        (replace(CONTEXT, edges=(edge(1), edge(2, local=edge(1).local))), "has another connection"),
        (replace(CONTEXT, edges=(edge(1), edge(2, local=edge(2).local[:2]))), "a rank has 3 queue pairs"),
    ],
)
def test_contexts_that_cannot_be_served_are_refused(context: PullContext, message: str) -> None:
    with pytest.raises(InputError, match=message):
        configuration(SMALL, [context])


def test_two_contexts_of_a_number_are_refused() -> None:
    with pytest.raises(InputError, match="two contexts have the same number"):
        configuration(SMALL, [CONTEXT, CONTEXT])
