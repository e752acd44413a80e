"""The loads of MultiWrite's benchmarks; no times are tested."""

from __future__ import annotations

from typing import Any

import pytest

from p4gen.bench.workload import Workload, workloads
from p4gen.errors import InputError
from p4gen.model import Model
from p4gen.p4.compile import compile_text
from p4gen.papers.multiwrite.conformance import small
from p4gen.program import compose
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import parse


def run(work: Workload) -> tuple[Model, list[list[tuple[int, bytes]]]]:
    """What comes of each packet of the load."""
    model = work.configure(Model(compile_text(work.text, "bench.p4").program, engine="interp"))
    return model, [model.process(port, packet) for port, packet in work.packets]


@pytest.mark.parametrize("fields", [{}, {"repair": "hop"}, {"receivers": 64, "replicate": "prune"}], ids=str)
@pytest.mark.parametrize("all_edges", [False, True])
@pytest.mark.sample(2)
def test_each_write_is_copied_and_nothing_is_lost(fields: dict[str, Any], all_edges: bool) -> None:
    spec = small(edges=8, **fields)
    work = workloads(spec, 400, 1)[all_edges]
    few = 7 if all_edges else 4
    assert work.load == f"writes to {few} of 7 edges, and their ACKs"
    model, outputs = run(work)
    writes = [number for number, (_, frame) in enumerate(work.packets) if parse(frame).reth is not None]
    for number in writes:
        copies = [frame for _, frame in outputs[number] if parse(frame).bth.opcode != Opcode.ACKNOWLEDGE]
        assert len(copies) == few
    lost = [drop for drop in compose(spec).drops if drop.drop.loss and drop.drop.reason != "not_named"]
    for drop in lost:
        assert model.counter(f"Inc{drop.module.gress.capitalize()}.drops", drop.index).packets == 0, drop
    assert model.counter(*work.counter).packets > 0


def test_all_acknowledgements_reach_the_sources() -> None:
    """The state after the load: all sources have been told that all their writes are everywhere."""
    spec = small()
    work = workloads(spec, 400, 1)[0]
    bursts = len(work.packets) // (4 * 4 * 5)  # contexts, writes, a write and its ACKs
    assert bursts > 4
    model, _ = run(work)
    starts = {model.register("psn_start", index) & 0xFFFFFF for index in range(4)}
    assert starts <= {4 * bursts, 4 * bursts + 4}


def test_a_load_can_be_drawn_again() -> None:
    assert workloads(small(), 64, 1) == workloads(small(), 64, 1)
    assert workloads(small(), 64, 1) != workloads(small(), 64, 2)


def test_a_program_without_room_is_refused() -> None:
    with pytest.raises(InputError, match="3 edges: a source's, and two destinations'"):
        workloads(small(edges=2), 32, 1)
