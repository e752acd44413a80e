"""The benchmark's load, its roofline and its report; no times are tested."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from p4gen.bench import bm
from p4gen.bench.measure import BATCHED, BMV2, INTERP, Rate, Results, measure
from p4gen.bench.measure import C as LOOP
from p4gen.bench.report import beside, plot, ratios_to, sentences, table, write_csv
from p4gen.bench.roofline import compiler
from p4gen.bench.workload import Bursts, Workload, benchmark_of, bursts, workloads
from p4gen.errors import InputError
from p4gen.families import load_spec
from p4gen.model import Model
from p4gen.p4.compile import compile_text
from p4gen.papers.epic.bench import roofline
from p4gen.papers.epic.spec import EpicSpec
from p4gen.switch import bmv2_build

SMALL = {"lanes": 8, "window": 2, "message": 2, "groups": 1, "fan_in": 4, "ports": 4}


def small(**fields: object) -> Bursts:
    return bursts(EpicSpec.model_validate(SMALL | fields), 64, 1)


def run(work: Workload) -> list[list[tuple[int, bytes]]]:
    """What comes of each packet of the load."""
    model = work.configure(Model(compile_text(work.text, "bench.p4").program))
    return [model.process(port, packet) for port, packet in work.packets]


def test_every_slot_is_completed_and_its_result_goes_to_every_rank() -> None:
    assert [len(out) for out in run(small())] == [0, 0, 0, 4] * 16


def test_in_mode_iii_acknowledgements_keep_the_range_moving() -> None:
    """More PSNs than the pipe has slots; each message ends with contributions that ask for an ACK, and with ACKs."""
    work = small(mode="III")
    assert work.spec.slots_per_group == 8
    plain, last = [0, 0, 0, 4], [1, 1, 1, 5]
    assert [len(out) for out in run(work)] == [*plain, *last, 0, 0, 0, 0] * 8


def test_in_mode_i_acknowledgements_free_buffers() -> None:
    """Each packet is a message of its own; the last contribution to it becomes the cursor that sends the result."""
    work = small(mode="I")
    assert work.spec.slots_per_group == 4
    plain, last = [0, 0, 0, 4], [1, 1, 1, 5]
    assert [len(out) for out in run(work)] == [*plain, *last, 0, 0, 0, 0] * 8


@pytest.mark.parametrize("mode", ["I", "II", "III"])
@pytest.mark.parametrize("pipelines", [2, 4])
def test_ranks_on_several_pipelines_all_get_the_result(mode: str, pipelines: int) -> None:
    work = small(mode=mode, pipelines=pipelines, groups=4)
    assert [edge.port for edge in work.edges] == [0, 1, 2, 3]
    results: Counter[int] = Counter()
    for out in run(work):
        results.update(port for port, frame in out if frame[42] == 4)
    assert results == dict.fromkeys(range(4), 16)


def test_a_load_can_be_drawn_again() -> None:
    assert small().packets == small().packets


def test_a_program_without_room_is_refused() -> None:
    with pytest.raises(InputError, match="at least two edges"):
        small(fan_in=1)
    with pytest.raises(InputError, match="2 contexts are needed"):
        small(pipelines=2)
    with pytest.raises(InputError, match="at most"):
        bursts(EpicSpec.model_validate(SMALL), 1 << 40, 1)


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
@pytest.mark.parametrize(
    "fields",
    [
        *({"mode": mode, "lanes": lanes, "window": 2, "groups": 1} for mode in ("I", "II", "III") for lanes in (8, 64)),
        {"family": "themis"},
        {"family": "multiwrite", "edges": 5},
        {"family": "scin", "edges": 4, "lanes": 8},
    ],
    ids=lambda fields: "-".join(map(str, fields.values())),
)
def test_c_loops_send_what_programs_send(fields: dict[str, Any], tmp_path: Path) -> None:
    spec = load_spec(None, fields)
    compared = 0
    for work in workloads(spec, 3000, 1):
        loop = benchmark_of(spec).by_hand(work, tmp_path)
        if isinstance(loop, str):
            continue
        model = work.configure(Model(compile_text(work.text, "bench.p4").program, engine="jit", cache=""))
        assert loop.packets(loop.run()) == model.process_batch(work.batch).packets()
        compared += 1
    assert compared


def test_c_loops_say_what_they_are_not_written_for(tmp_path: Path) -> None:
    assert "saturating sums of int32" in str(roofline.why_not(small(op="max")))
    assert "one pipeline" in str(roofline.why_not(small(pipelines=2, groups=2)))
    for fields, why in (
        ({"family": "themis", "mode": "themis-s"}, "mode themis with a queue"),
        ({"family": "themis"}, "written for requests"),
        ({"family": "multiwrite", "receivers": 64}, "bitmaps of 32 bits"),
        ({"family": "scin", "dtype": "float32"}, "saturating sums of int32"),
        ({"family": "scin", "completion": "ordered"}, "strict completion"),
    ):
        spec = load_spec(None, fields)
        assert why in str(benchmark_of(spec).by_hand(workloads(spec, 64, 1)[-1], tmp_path))


def results(program: str = "modeii", times: int = 1) -> Results:
    rates = (
        Rate(INTERP, 10, 1.0),
        Rate(BMV2, 0, 0.0, "target bmv2: simple_switch_grpc is not on PATH"),
        Rate(BATCHED, 4_000_000 * times, 1.0),
        Rate(LOOP, 8_000_000, 1.0),
    )
    return Results(program, "64 lanes", 1, rates, 0.5, 0.2, 0.1, 1000, 1e-6, 1e-6, 1e-6)


def test_a_report_says_what_was_not_measured_and_why(tmp_path: Path) -> None:
    found = results()
    assert found.ratio(BATCHED, LOOP) == 0.5
    assert found.ratio(BATCHED, BMV2) is None
    assert sentences(found)[0] == "BMv2: not measured, target bmv2: simple_switch_grpc is not on PATH"
    assert table(found).row_count == 4
    write_csv([found], tmp_path / "bench.csv")
    with (tmp_path / "bench.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["engine"] for row in rows] == [INTERP, BMV2, BATCHED, LOOP]
    assert float(rows[2]["packets_per_second"]) == 4_000_000
    plot([found], tmp_path / "bench.svg")
    assert "<svg" in (tmp_path / "bench.svg").read_text(encoding="utf-8")


def test_programs_beside_each_other_are_compared_engine_by_engine() -> None:
    first, other = results(), results("modeiii", 2)
    assert ratios_to(first, other) == {INTERP: 1.0, BATCHED: 2.0, LOOP: 1.0}
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(beside(first, [other]))
    lines = [line.split() for line in console.export_text().splitlines()]
    assert ["4,000,000", "8,000,000", "2.00"] in [line[-3:] for line in lines]
    assert ["BMv2", "-", "-", "-"] in lines


@pytest.mark.parametrize("mode", ["II", "III"])
def test_bmv2_is_given_the_whole_load(mode: str, tmp_path: Path) -> None:
    if (reason := bm.why_not()) is not None:
        pytest.skip(reason)
    work = bursts(EpicSpec.model_validate(SMALL | {"mode": mode}), 3000, 1)
    program = bm.program(work.text, tmp_path / "bmv2")
    packets, seconds = bm.rate(work, len(work.packets), program, tmp_path / "run")
    assert 0 < packets <= len(work.packets)
    assert seconds > 0


@pytest.mark.parametrize("mode", ["II", "III"])
@pytest.mark.long
def test_a_whole_run_measures_every_engine(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("p4gen.bench.bm.why_not", lambda: "not in this test")
    monkeypatch.setattr("p4gen.bench.measure.ROUNDS", 1)
    (found,) = measure([small(mode=mode)])
    assert all(rate.packets or rate.note for rate in found.rates)
    assert found.state_bytes > 0


def bmv2_of(folder: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A simple_switch_grpc on PATH that is a script, with ``content`` behind its end."""
    program = folder / "simple_switch_grpc"
    program.write_bytes(b"#!/bin/sh\necho 1.15.5-test\nexit\n" + content)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return program


@pytest.mark.parametrize(
    ("content", "logging", "optimisation"),
    [
        (b"", "unknown", "unknown"),
        (b"\0Invalid reference to object of type '\0", "off", "unknown"),
        (b"\0Invalid reference to object of type '\0[{}] [cxt {}] Bytes parsed: {}\0", "on", "unknown"),
        (b"\0GNU C++17 12.2.0 -mtune=generic -march=x86-64 -g -O0 -O3 -fPIC\0", "unknown", "-O3"),
        (b"\0GNU C++17 12.2.0 -g -O2\0\0GNU C++17 12.2.0 -O0\0", "unknown", "-O0 and -O2"),
    ],
)
def test_how_bmv2_was_built_is_told_as_far_as_its_files_say(
    content: bytes, logging: str, optimisation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bmv2_of(tmp_path, content, monkeypatch)
    assert bmv2_build.build() == bmv2_build.Build("1.15.5-test", logging, optimisation)


def test_without_bmv2_there_is_no_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bmv2_build.build() is None


def test_the_table_says_which_bmv2_it_was() -> None:
    build = bmv2_build.Build("1.15.5", "off", "-O3")
    rates = [Rate(BMV2, 10, 1.0, str(build)) if rate.engine == BMV2 else rate for rate in results().rates]
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table(replace(results(), rates=tuple(rates))))
    assert "BMv2 1.15.5, logging macros off, optimisation -O3" in console.export_text()
    assert not any(
        "not measured" in line and "BMv2" in line for line in sentences(replace(results(), rates=tuple(rates)))
    )
