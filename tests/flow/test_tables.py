"""EPIC's tables of policies: the cells of single jobs to the last digit, the mixes of jobs by their checks."""

from __future__ import annotations

import pytest

from p4gen.experiments.experiment import Order, Report, Value
from p4gen.papers.epic.experiments.sharing import SHARING, UNITS

SINGLE = [name for name in SHARING if name not in ("table-44", "table-45", "figure-24")]
MISPRINT = "misprint in the paper"


def table(name: str, scale: str = "paper", seed: int = 1) -> Report:
    return SHARING[name].perform(Order(scale, seed))


def ours(report: Report) -> dict[tuple[Value, Value], float]:
    return {(row[0], row[1]): row[2] for row in report.rows if isinstance(row[2], float)}


@pytest.mark.parametrize("name", SINGLE)
def test_cells_are_the_papers_to_the_last_digit(name: str) -> None:
    report = table(name)
    misprinted = [row for row in report.rows if row[4] == MISPRINT]
    inside = 4 if name == "table-6" else 0  # rows of a scale-up network that aggregates
    assert len(report.rows) == 16 + inside
    assert len(misprinted) == (4 if name == "table-42" else 0)
    check = report.checks[0]
    assert len(report.checks) == (2 if inside else 1)
    assert check.text == f"{16 - len(misprinted)} cells are the paper's to the last digit"
    assert report.ok


def test_a_cell_that_is_not_the_papers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("p4gen.papers.epic.experiments.sharing.single_job", lambda *_args, **_more: 253.1)
    (check,) = table("table-36").checks
    assert not check.ok
    assert check.text.endswith("; temporal, 32 units: 253.1, the paper's 137")
    assert check.text.count(";") == 12  # all but the ring's


def test_the_misprints_have_the_values_of_the_columns_beside_them() -> None:
    report = table("table-42")
    found = ours(report)
    paper = {(row[0], row[1]): row[3] for row in report.rows}
    for policy in ("spatial", "temporal"):
        rounded = [round(found[policy, f"{units} units"], 1) for units in UNITS]
        printed = [paper[policy, f"{units} units"] for units in UNITS]
        assert printed == [110.0, *rounded[:1], *rounded[2:]]


def test_exact_volumes_are_less_and_claim_nothing() -> None:
    paper, exact = table("table-39"), table("table-39", "exact")
    assert exact.checks == ()
    assert all(ours(exact)[place] < seconds for place, seconds in ours(paper).items())


def test_a_mix_of_jobs_has_all_its_cells_and_distributions() -> None:
    report = table("table-45", "few")
    assert {row[1] for row in report.rows} == {
        "without scale-up, s", "with scale-up, s", "/ edge-disjoint", "most / least with scale-up"
    }  # fmt: skip
    assert report.checks == ()
    assert set(report.files) == {"-8-GPUs-without-scale-up.svg", "-8-GPUs-with-scale-up.svg"}


def test_a_scale_up_network_that_aggregates_makes_no_job_longer() -> None:
    report = table("figure-24", "few")
    assert report.ok
    for policy, without, aggregating, _ in report.rows:
        assert isinstance(without, float)
        assert isinstance(aggregating, float)
        assert aggregating == without if policy == "ring" else 0.9 * without < aggregating < without
    assert set(report.files) == {".svg"}


def test_mixes_of_jobs_are_within_the_tolerances(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--full"):
        pytest.skip("minutes: --full")
    for name in ("table-44", "table-45"):
        assert [check.text for check in table(name).checks if not check.ok] == []
