"""EPIC's testbed in virtual time, its modes compared, the law of loss: what is fitted, what first principles say."""

from __future__ import annotations

import pytest

from p4gen.experiments.experiment import Order
from p4gen.host.transport.clock import SECOND
from p4gen.papers.epic.experiments import modes, testbed
from p4gen.papers.epic.experiments.testbed import CALIBRATED, COSTS, SOLUTIONS, TABLES, measured
from p4gen.papers.epic.studies.tables import Solution
from p4gen.papers.epic.studies.testbed import SIZES, TESTBED, Row
from p4gen.vocabulary.message import Collective

LINK = 100e9


@pytest.mark.parametrize("row", CALIBRATED)
def test_calls_of_4_kib_take_the_papers_time(row: Row) -> None:
    paper = SIZES[0] * 8 * SECOND / (TESTBED[Collective.ALLREDUCE][row][SIZES[0]] * 1e9)
    ours = measured(row, Collective.ALLREDUCE, SIZES[0], 1, "jit") + COSTS[SOLUTIONS[row].library]
    assert ours == pytest.approx(paper, rel=0.02)


@pytest.mark.parametrize(
    ("row", "collective", "arrays", "overhead"),
    [
        (Row.EPIC, Collective.ALLREDUCE, 1.0, 82 / 256),
        (Row.EPIC, Collective.BROADCAST, 1.0, 82 / 1024),
        (Row.RING_1K, Collective.ALLREDUCE, 2 * 7 / 8, 82 / 1024),
        (Row.RING_256, Collective.REDUCE_SCATTER, 7 / 8, 82 / 256),
        (Row.TREE_1K, Collective.ALLREDUCE, 2.0, 82 / 1024),
    ],
)
def test_long_calls_take_what_their_bytes_take_on_a_link(
    row: Row, collective: Collective, arrays: float, overhead: float
) -> None:
    """``arrays``: of a rank's bytes, how many times its link carries them, in the direction that carries most."""
    size = 4 << 20
    least = size * 8 * arrays * (1 + overhead) / LINK * SECOND
    assert least <= measured(row, collective, size, 1, "jit") < 1.25 * least


def test_larger_calls_are_extrapolated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testbed, "LARGEST", 64 << 10)
    report = TABLES["table-10"].perform(Order("paper", 1))
    sizes = len(SIZES)
    assert [row[-1] for row in report.rows[:sizes]] == ["run"] * 3 + ["extrapolated"] * (sizes - 3)
    assert all(isinstance(row[2], float) and row[2] <= 75.8 for row in report.rows[:sizes])  # what 256 bytes carry
    assert report.files[".svg"].startswith("<?xml")


def test_some_cells_can_be_run() -> None:
    report = TABLES["table-9"].perform(Order("quick", 1, patterns=("EPIC-II/4 KiB", "SwitchML/64 KiB")))
    assert [row[:2] for row in report.rows] == [("EPIC-II", "4 KiB"), ("SwitchML", "64 KiB")]


def test_the_law_of_loss_multiplies_hops_and_in_mode_ii_children() -> None:
    assert modes.law(Solution.MODE_III, "star-8", 0.01) == pytest.approx(0.99**2)
    assert modes.law(Solution.MODE_II, "star-8", 0.01) == pytest.approx(0.99**16)
    assert modes.law(Solution.MODE_II, "tree-3-4", 0.01) == pytest.approx(0.99**16)


def test_mode_iii_keeps_more_than_mode_ii() -> None:
    left = {mode: modes.kept(mode, 1, "jit") for mode in (Solution.MODE_II, Solution.MODE_III)}
    assert left[Solution.MODE_II] < left[Solution.MODE_III] < 1
