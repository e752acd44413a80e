"""The benchmark's load, its roofline and its report; no times are tested."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from p4gen.bench import roofline
from p4gen.bench.measure import BATCHED, BMV2, INTERP, Rate, Results, measure
from p4gen.bench.measure import C as LOOP
from p4gen.bench.report import plot, sentences, table, write_csv
from p4gen.bench.workload import Workload, workload
from p4gen.errors import InputError
from p4gen.model import Model
from p4gen.p4.compile import compile_text
from p4gen.spec import ProgramSpec

SMALL = {"lanes": 8, "window": 2, "message": 2, "groups": 1, "fan_in": 4, "ports": 4}


def small(**fields: object) -> Workload:
    return workload(ProgramSpec.model_validate(SMALL | fields), 64, 1)


def test_every_slot_is_completed_and_its_result_goes_to_every_rank() -> None:
    work = small()
    model = work.configure(Model(compile_text(work.text, "bench.p4").program))
    sent = [model.process(port, packet) for port, packet in work.packets]
    assert [len(out) for out in sent] == [0, 0, 0, 4] * (len(work.packets) // 4)


def test_a_load_can_be_drawn_again() -> None:
    assert small().packets == small().packets


def test_a_program_without_room_for_two_ranks_is_refused() -> None:
    with pytest.raises(InputError, match="at least two edges"):
        small(fan_in=1)


@pytest.mark.skipif(roofline.compiler() is None, reason="there is no C compiler")
@pytest.mark.parametrize("lanes", [8, 64])
def test_the_c_loop_sends_what_the_program_sends(lanes: int, tmp_path: Path) -> None:
    work = small(lanes=lanes)
    model = work.configure(Model(compile_text(work.text, "bench.p4").program, engine="jit", cache=""))
    loop = roofline.Roofline(work, tmp_path)
    assert loop.packets(loop.run()) == model.process_batch(work.batch).packets()


def test_the_c_loop_is_for_one_kind_of_program() -> None:
    assert "saturating sums of int32" in str(roofline.why_not(small(op="max")))


def results() -> Results:
    rates = (
        Rate(INTERP, 10, 1.0),
        Rate(BMV2, 0, 0.0, "target bmv2: simple_switch_grpc is not on PATH"),
        Rate(BATCHED, 4_000_000, 1.0),
        Rate(LOOP, 8_000_000, 1.0),
    )
    return Results("modeii", 64, rates, 0.5, 0.2, 0.1, 1000, 1e-6, 1e-6, 1e-6)


def test_a_report_says_what_was_not_measured_and_why(tmp_path: Path) -> None:
    found = results()
    assert found.ratio(BATCHED, LOOP) == 0.5
    assert found.ratio(BATCHED, BMV2) is None
    assert sentences(found)[0] == "BMv2: not measured, target bmv2: simple_switch_grpc is not on PATH"
    assert table(found).row_count == 4
    write_csv(found, tmp_path / "bench.csv")
    with (tmp_path / "bench.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["engine"] for row in rows] == [INTERP, BMV2, BATCHED, LOOP]
    assert float(rows[2]["packets_per_second"]) == 4_000_000
    plot(found, tmp_path / "bench.svg")
    assert "<svg" in (tmp_path / "bench.svg").read_text(encoding="utf-8")


def test_a_whole_run_measures_every_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("p4gen.bench.bm.why_not", lambda: "not in this test")
    monkeypatch.setattr("p4gen.bench.measure.ROUNDS", 1)
    found = measure(small())
    assert all(rate.packets or rate.note for rate in found.rates)
    assert found.state_bytes > 0
