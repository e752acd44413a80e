"""Figure 5 of Themis's paper: a few cells of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p4gen.experiments.experiment import Order, Report
from p4gen.host.transport.clock import US
from p4gen.net.traffic.traffic import Pattern
from p4gen.net.traffic.traffic_simulation import TrafficSimulation
from p4gen.papers.themis.experiments.figure_5 import SCALES, FlowCell, Scale, cells, config, perform
from p4gen.papers.themis.spec import Spread

TINY = Scale(4, 100, 1 << 19, 10, ti=(900, 10), td=(4,))


def report(scale: Scale, seed: int, monkeypatch: pytest.MonkeyPatch, *patterns: str) -> Report:
    monkeypatch.setitem(SCALES, "tiny", scale)
    return perform(Order("tiny", seed, patterns=patterns))


@pytest.mark.long
def test_a_few_cells_beside_the_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    found = report(TINY, 1, monkeypatch)
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    assert [(row["collective"], row["T_I, us"], row["T_D, us"], row["paper's, %"]) for row in rows] == [
        ("AllReduce", 900, 4, "15.6-75.3"),
        ("AllReduce", 10, 4, "15.6-75.3"),
        ("AlltoAll", 900, 4, "11.5-40.7"),
        ("AlltoAll", 10, 4, "11.5-40.7"),
    ]
    for row in rows:
        adaptive, themis, less = row["adaptive, ms"], row["Themis, ms"], row["less than adaptive, %"]
        assert isinstance(adaptive, float)
        assert isinstance(themis, float)
        assert less == pytest.approx(100 * (1 - themis / adaptive))
        assert row["Themis: spurious, %"] == 0
    # The recommended setting is the one at which adaptive routing suffers most.
    assert rows[0]["adaptive, ms"] > 1.2 * rows[0]["Themis, ms"]  # type: ignore[operator]
    held = {check.text: check.ok for check in found.checks}
    assert len(held) == 9
    for pattern in ("AllReduce", "AlltoAll"):
        mine = [ok for text, ok in held.items() if text.startswith(f"{pattern}: Themis takes less time than")]
        behind = [row for row in rows if row["collective"] == pattern and row["less than adaptive, %"] <= 0]  # type: ignore[operator]
        assert mine == [not behind, True]
    assert found.csv.count("\n") == 5
    assert set(found.files) == {"-allreduce.svg", "-alltoall.svg"}
    assert any("fitted" in text for text in found.assumptions)


SMALLEST = replace(TINY, ti=(10,), size=1 << 16)


def test_some_cells_give_the_rows_that_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    found = report(SMALLEST, 3, monkeypatch, "allreduce/10/*/themis", "*/ecmp")
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    assert [(row["collective"], row["adaptive, ms"]) for row in rows] == [("AllReduce", None), ("AlltoAll", None)]
    assert [row["Themis, ms"] is None for row in rows] == [False, True]
    assert all(row["less than adaptive, %"] is None for row in rows)
    assert [check.text for check in found.checks] == [
        "everything has arrived as it was sent",
        found.checks[1].text,
    ]
    assert found.checks[1].text.startswith("AllReduce: Themis takes less time than ECMP in all 1 cells")
    assert any("in 3 of 6 cells" in text for text in found.assumptions)


def test_scales() -> None:
    assert [len(cells(scale)) for scale in SCALES.values()] == [90, 90, 90, 90]
    cell = FlowCell(Pattern.ALLTOALL, 300, 50, Spread.ADAPTIVE)
    paper = config(cell, SCALES["paper"], 1)
    paper.check()
    assert (len(paper.topology.hosts), paper.topology.defaults.bandwidth, len(paper.traffic)) == (256, 400 * 10**9, 16)
    assert paper.traffic[0].size == pytest.approx(300_000_000, rel=1e-5)
    quick = config(cell, SCALES["quick"], 1)
    assert quick.dcqcn is not None
    assert (quick.dcqcn.increase_timer, quick.dcqcn.decrease_interval) == (30 * US, 50 * US)  # type: ignore[union-attr]
    assert config(cell, SCALES["quick"], 2).traffic != quick.traffic


@pytest.mark.parametrize("size", [1 << 16, 1 << 20])
@pytest.mark.long
def test_a_ring_without_arrays_takes_as_long_as_one_with_arrays(size: int) -> None:
    """To the picosecond, where a part is one message; nearly, where it is several."""
    cell = FlowCell(Pattern.ALLREDUCE, 900, 4, Spread.THEMIS)
    run = config(cell, replace(TINY, size=size), 1)
    times = [TrafficSimulation(replace(run, arrays=arrays)).run().groups for arrays in (True, False)]
    if size // TINY.leaves <= run.message:
        assert times[0] == times[1]
    else:
        assert times[0] == pytest.approx(times[1], rel=0.05)


def test_a_rank_of_a_ring_waits_for_its_neighbour() -> None:
    cell = FlowCell(Pattern.ALLREDUCE, 900, 4, Spread.ECMP)
    run = config(cell, replace(TINY, size=1 << 18), 1)
    flow = replace(run, traffic=run.traffic[:1])
    ring = TrafficSimulation(flow).run()
    # A ring's steps follow each other, each with a round trip; without them the bytes take far less time.
    assert ring.ok
    steps = 2 * (TINY.leaves - 1)
    step = (1 << 18) // TINY.leaves * 8 * US // 100_000
    assert ring.duration > steps * (step + 4 * US)
