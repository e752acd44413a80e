"""The loads of Themis's benchmarks; no times are tested."""

from __future__ import annotations

import random
from itertools import islice
from typing import Any

import pytest
from rich.console import Console

from p4gen.bench import bm
from p4gen.bench.measure import BATCHED, BMV2, INTERP, THREADED, measure
from p4gen.bench.report import rows, table
from p4gen.bench.workload import Workload, workloads
from p4gen.errors import InputError
from p4gen.model import Model
from p4gen.p4.compile import compile_text
from p4gen.papers.themis.bench import typical
from p4gen.papers.themis.conformance import small
from p4gen.papers.themis.spec import Evidence, ThemisSpec

VERDICTS = "blocked_nack.verdicts"
UNDECIDED, LATE, UNKNOWN = 0, 4, 5


def of(part: str, packets: int = 64, **fields: Any) -> Workload:
    (found,) = (work for work in workloads(small(**fields), packets, 1) if part in work.load)
    return found


def run(work: Workload) -> tuple[Model, list[list[tuple[int, bytes]]]]:
    """What comes of each packet of the load."""
    model = work.configure(Model(compile_text(work.text, "bench.p4").program, engine="jit"))
    return model, [model.process(port, packet) for port, packet in work.packets]


@pytest.mark.parametrize("load", ["requests sprayed", "requests recorded"])
def test_requests_leave_but_those_that_are_counted(load: str) -> None:
    work = of(load, 256)
    model, outputs = run(work)
    assert [len(out) for out in outputs] == ([1] * 31 + [0]) * 8
    assert model.counter(*work.counter).packets == 8
    ports = {port for out in outputs for port, _ in out}
    assert ports == ({0} if "recorded" in load else set(range(1, 5)))
    recorded = any(model.register("tails", index) for index in range(4))
    assert recorded == ("recorded" in load)


@pytest.mark.parametrize(
    ("load", "passes", "verdict"), [("shortest", 1, LATE), ("longest", 5, UNKNOWN)]
)  # fmt: skip
def test_walks_take_as_many_passes_as_the_load_says(load: str, passes: int, verdict: int) -> None:
    """A queue of 16 in 4 banks has 4 rows; one more is needed if the newest PSN is in the middle of one."""
    work = of(load)
    model, outputs = run(work)
    assert outputs == [[]] * 64
    assert work.passes == passes
    assert work.load.endswith(f"{passes}.0 passes")
    counts = [count.packets for count in model.counters(VERDICTS)]
    assert [counts[16 * index + verdict] for index in range(4)] == [16] * 4
    assert [counts[16 * index + UNDECIDED] for index in range(4)] == [16 * (passes - 1)] * 4
    assert model.counter(*work.counter).packets == 16


def test_typical_walks_are_those_of_nacks_without_a_loss() -> None:
    work = of("typical", 256)
    model, _ = run(work)
    counts = [count.packets for count in model.counters(VERDICTS)]
    given = {verdict: sum(counts[verdict::16]) for verdict in range(16) if sum(counts[verdict::16])}
    assert set(given) <= {UNDECIDED, LATE, UNKNOWN}
    assert given[LATE] + given.get(UNKNOWN, 0) == 256
    assert work.passes == 1 + given[UNDECIDED] / 256
    assert 1 < work.passes < 5
    assert model.counter(*work.counter).packets == 64


def test_a_typical_queue_ends_a_round_trip_after_the_packet_that_caused_the_nack() -> None:
    spec = ThemisSpec()
    for situation in islice(typical(spec, 4, random.Random(3)), 20):
        held = situation.arrived[-spec.queue :]
        assert len(held) == spec.queue
        larger = [at for at, psn in enumerate(held) if psn > situation.expected]
        # Larger PSNs have arrived since the one that caused the NACK, for about a round trip.
        assert larger
        assert max(held) - min(held) <= spec.queue + 2 * 40
        assert spec.queue // 2 - 40 <= spec.queue - larger[0] <= spec.queue // 2 + 41


def test_each_program_has_the_loads_that_it_can_serve() -> None:
    kinds = {
        "themis": ["sprayed", "recorded", "shortest", "typical", "longest"],
        "themis-s": ["sprayed"],
        "themis-d": ["recorded", "shortest", "typical", "longest"],
    }
    for mode, expected in kinds.items():
        found = workloads(small(mode=mode), 32, 1)
        assert [next(kind for kind in expected if kind in work.load) for work in found] == expected
    classes = workloads(small(mode="themis-d", evidence=Evidence.CLASSES), 32, 1)
    assert [(work.load, work.passes) for work in classes] == [("requests recorded", 1), ("NACKs, 1.0 passes", 1)]
    assert len(run(classes[1])[1]) == 32
    (spread,) = workloads(small(mode="themis-s", spread="random"), 32, 1)
    assert spread.load == "requests spread"
    assert sum(map(len, run(spread)[1])) == 31


@pytest.mark.parametrize(
    "fields", [{"tiers": 3}, {"blocked": "ack"}, {"variant": "late-compensation"}, {"psn_bits": 8}]
)
@pytest.mark.long
def test_other_programs_have_loads_too(fields: dict[str, Any]) -> None:
    for work in workloads(small(**fields), 32, 1):
        model, _ = run(work)
        assert model.counter(*work.counter).packets > 0


@pytest.mark.long
def test_a_load_can_be_drawn_again() -> None:
    assert workloads(small(), 32, 1) == workloads(small(), 32, 1)
    assert workloads(small(), 32, 2) != workloads(small(), 32, 1)


def test_a_program_without_room_is_refused() -> None:
    with pytest.raises(InputError, match="3 ports: a host's, and two spines'"):
        workloads(small(ports=2), 32, 1)


@pytest.mark.long
def test_a_run_reports_each_load_with_its_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("p4gen.bench.bm.why_not", lambda: "not in this test")
    monkeypatch.setattr("p4gen.bench.measure.ROUNDS", 1)
    found = measure(workloads(small(mode="themis-d"), 32, 1))
    assert [results.load for results in found][::3] == ["requests recorded", "NACKs, longest walk, 5.0 passes"]
    for results in found:
        measured = {rate.engine for rate in results.rates if rate.packets}
        assert measured >= {INTERP, BATCHED, THREADED}
        assert results.rate(BMV2).note == "not in this test"
    assert [row["passes"] for row in rows(found[-1])] == [5.0] * len(found[-1].rates)
    console = Console(width=200, record=True)
    console.print(table(found[-1]))
    console.print(table(found[0]))
    assert console.export_text().count("ns/pass") == 1


def test_bmv2_is_given_the_walks(tmp_path: Any) -> None:
    if (reason := bm.why_not()) is not None:
        pytest.skip(reason)
    works = workloads(small(), 3000, 1)
    program = bm.program(works[0].text, tmp_path / "bmv2")
    for number, work in enumerate(works):
        packets, seconds = bm.rate(work, len(work.packets), program, tmp_path / str(number))
        assert 0 < packets <= len(work.packets)
        assert seconds > 0
