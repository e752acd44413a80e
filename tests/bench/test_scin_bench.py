"""The loads of SCIN's benchmarks; no times are tested."""

from __future__ import annotations

from typing import Any

import pytest

from p4gen.bench.workload import workloads
from p4gen.model import Model, Trace
from p4gen.p4.compile import compile_text
from p4gen.papers.scin.conformance import small
from p4gen.program import compose
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import parse

PROGRAMS: tuple[dict[str, Any], ...] = (
    {},
    {"completion": "ordered"},
    {"variant": "early-release"},
    {"dtype": "int8_float16", "lanes": 32, "block": 32},
)


@pytest.mark.parametrize("fields", PROGRAMS, ids=str)
def test_calls_end_and_nothing_is_lost(fields: dict[str, Any]) -> None:
    spec = small(contexts=1, wave=2, **fields)
    two, every = workloads(spec, 180 if spec.scaled else 150, 1)
    assert [work.load for work in (two, every)] == [f"AllReduces of {ranks} ranks, 16 packets each" for ranks in (2, 4)]
    model = two.configure(Model(compile_text(two.text, "bench.p4").program, engine="interp"))
    sent = [parse(frame) for port, packet in two.packets for _, frame in model.process(port, packet)]
    calls = sum(parse(frame).immdt is not None for _, frame in two.packets) // 2
    assert calls >= 3
    results = [packet for packet in sent if packet.bth.opcode in (Opcode.WRITE_ONLY, Opcode.WRITE_ONLY_IMM)]
    last = [packet for packet in results if packet.immdt is not None]
    assert len(results) - (0 if spec.ordered else len(last)) >= 2 * 16 * (calls - 1)
    assert 2 * (calls - 1) <= len(last) <= 2 * calls
    for drop in (each for each in compose(spec).drops if each.drop.loss):
        assert model.counter(f"Inc{drop.module.gress.capitalize()}.drops", drop.index).packets == 0, drop
    assert model.counter(*two.counter).packets > 0


@pytest.mark.parametrize("fields", PROGRAMS, ids=str)
def test_passes_are_those_of_a_call(fields: dict[str, Any]) -> None:
    spec = small(contexts=1, wave=2, **fields)
    waves = 16 if spec.scaled else 8  # those of scales, too
    whole = workloads(spec, 2 * (1 + 16 + waves + (not spec.ordered)), 1)[0]
    model = whole.configure(Model(compile_text(whole.text, "bench.p4").program, engine="interp"))
    passes = 0
    for port, packet in whole.packets:
        trace = Trace()
        model.process(port, packet, trace)
        passes += sum(event.data["table"].endswith("addresses") for event in trace.of("table"))
    assert passes / len(whole.packets) == pytest.approx(whole.passes)


def test_a_load_can_be_drawn_again() -> None:
    assert workloads(small(), 64, 1) == workloads(small(), 64, 1)
    assert workloads(small(), 64, 1) != workloads(small(), 64, 2)
