"""Queue and classes compared: a few runs, and whether the study notices what is wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from p4gen.experiments.experiment import Order
from p4gen.papers.themis.experiments import figure_evidence
from p4gen.papers.themis.experiments.figure_evidence import LAST, OFTEN, EvidenceResult, Run, perform, simulate
from p4gen.papers.themis.spec import Evidence
from p4gen.papers.themis.verdicts import Verdict

ORDER = Order("quick", 1)
SIZE = 512 << 10


@pytest.mark.long
def test_every_statement_holds_and_every_run_has_a_row() -> None:
    found = perform(ORDER, (2,))
    assert [check.text for check in found.checks if not check.ok] == []
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    assert len(rows) == 4 * len(Evidence)
    for row in rows:
        assert row["NACKs"] > 100  # type: ignore[operator]
        assert row["passed, %"] + row["blocked, %"] == pytest.approx(100)  # type: ignore[operator]
        assert (row["passes"] == 1) is row["spines, loss, evidence"].endswith("classes")  # type: ignore[union-attr]
    assert any("classes 86,400 B for 4 paths" in text for text in found.assumptions)


@pytest.mark.long
def test_losses_on_the_last_hop_cost_classes_more_timeouts() -> None:
    """Data is right with both; in these runs packets overtake each other most of the time."""
    timeouts = {}
    for evidence in Evidence:
        results = [simulate(Run(2, LAST, evidence), 2 << 20, seed, "jit") for seed in range(3)]
        assert not any(result.errors for result in results)
        timeouts[evidence] = sum(result.timeouts for result in results)
    assert timeouts[Evidence.QUEUE] < timeouts[Evidence.CLASSES]


def test_what_does_not_hold_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = simulate(Run(2, OFTEN, Evidence.CLASSES), SIZE, 1, "jit")

    def disturbed(run: Run, _size: int, _seed: int, _engine: str) -> EvidenceResult:
        verdicts = Counter({Verdict.UNDECIDED: 1, Verdict.LOST: 1 + (run.evidence is Evidence.CLASSES)})
        return replace(wrong, timeouts=wrong.lost, errors=("data differs",), counts=verdicts)

    monkeypatch.setattr(figure_evidence, "simulate", disturbed)
    assert not [check.text for check in perform(ORDER, (2,)).checks if check.ok]
