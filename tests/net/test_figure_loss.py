"""Losses on a spine link and their repair: a few cells, and whether the study notices what is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p4gen.experiments.experiment import Order
from p4gen.host.transport.clock import US
from p4gen.net.traffic import traffic_simulation
from p4gen.net.traffic.repairs import Cause, Repairs
from p4gen.net.traffic.traffic import TrafficConfig
from p4gen.net.traffic.traffic_simulation import TrafficResult, TrafficSimulation
from p4gen.net.world.faults import Faults, Impairment, Outage
from p4gen.p4.compile import Compiled, compile_text
from p4gen.papers.themis.experiments.figure_loss import (
    QUEUE,
    SCALES,
    SCHEMES,
    LossCell,
    Scale,
    Scheme,
    config,
    perform,
    simulate,
)
from p4gen.program import compose, render
from p4gen.vocabulary import ProgramSpec

TINY = Scale(256 << 10, (2, 3), (0, 0.01), tuple(s for s in SCHEMES if s.name in ("Themis", "Themis, ACK", "late")))
SIZE = 512 << 10


def watched(run: TrafficConfig) -> tuple[TrafficResult, Repairs]:
    simulation = TrafficSimulation(run)
    repairs = Repairs(simulation)
    return simulation.run(), repairs


@pytest.mark.long
def test_a_few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALES, "tiny", TINY)
    found = perform(Order("tiny", 2))
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    assert len(rows) == 3 * 4
    assert [check for check in found.checks if not check.ok] == []
    for row in rows:
        assert (row["repaired, %"] is None) is (row["loss, %"] == 0)
        if row["design"] in ("Themis", "Themis, ACK") and not row["loss, %"]:
            assert (row["sent"], row["timeouts"], row["spurious, %"]) == (4 * 256 * row["paths"], 0, 0)  # type: ignore[operator]
    late = [row for row in rows if row["design"] == "late" and not row["loss, %"]]
    assert late[0]["spurious, %"] > 1  # type: ignore[operator]


@pytest.mark.parametrize("paths", [2, 3])
@pytest.mark.parametrize("loss", [0.01, 0.1])
def test_every_loss_and_every_timeout_is_counted(paths: int, loss: float) -> None:
    result, repairs = watched(config(SCHEMES[0], paths, loss, SIZE, 5))
    assert result.ok, result.errors
    assert repairs.lost + repairs.copies == result.total("lost") > 5
    assert repairs.timeouts.total() == result.total("timeouts")
    assert repairs.timeouts[Cause.SILENCE] == 0


def outage(direction: str, start: int, end: int) -> Repairs:
    """A run over two paths, one of which is cut from ``start`` to ``end`` us."""
    run = replace(config(SCHEMES[0], 2, 0, SIZE, 1), faults=Faults((), (Outage(direction, start * US, end * US),)))
    result, repairs = watched(run)
    assert result.ok
    return repairs


def test_the_last_packets_are_tails() -> None:
    repairs = outage("leaf0>spine0", 75, 1000)
    assert repairs.timeouts[Cause.TAIL] > 0
    assert repairs.timeouts.keys() <= {Cause.TAIL, Cause.ACK}
    assert repairs.lost > repairs.timeouts[Cause.TAIL]  # the first one of each flow's, and those behind it


def test_packets_in_the_middle_are_not() -> None:
    repairs = outage("leaf0>spine0", 30, 31)
    assert repairs.lost > 0
    assert repairs.timeouts.total() == 0


def test_lost_naks_are_told_from_lost_retransmissions() -> None:
    run = config(SCHEMES[0], 2, 0, SIZE, 1)
    there = Impairment("leaf0>spine0", loss=0.02)
    back = (Impairment("leaf1>spine0", loss=0.3), Impairment("leaf1>spine1", loss=0.3))
    assert watched(replace(run, faults=Faults((there, *back))))[1].timeouts[Cause.NAK] > 0
    repairs = watched(replace(run, faults=Faults((replace(there, loss=0.2),))))[1]
    assert repairs.timeouts[Cause.AGAIN] > 0
    assert repairs.timeouts[Cause.NAK] == 0


@pytest.mark.parametrize("scheme", SCHEMES, ids=[scheme.name for scheme in SCHEMES])
def test_results_are_right_in_all_designs(scheme: Scheme, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALES, "tiny", Scale(64 << 10, schemes=(scheme,)))
    assert simulate(LossCell(0, 3, 0.02), "tiny", 1, "jit").errors == ()


def test_a_switch_that_blocks_every_nack_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def blocks(spec: ProgramSpec) -> Compiled:
        text = render(compose(spec)).text
        return compile_text(text.replace("verdict = verdict_t.LOST;", "verdict = verdict_t.LATE;"), "p.p4")

    cell = LossCell(0, 2, 0.01)
    monkeypatch.setitem(SCALES, "tiny", Scale(SIZE))
    assert not simulate(cell, "tiny", 1, "jit").because(Cause.SILENCE)
    monkeypatch.setattr(traffic_simulation, "compile_spec", blocks)
    assert simulate(cell, "tiny", 1, "jit").because(Cause.SILENCE) > 0


def test_the_queue_covers_the_window() -> None:
    assert config(SCHEMES[0], 4, 0, SIZE, 1).window <= QUEUE
