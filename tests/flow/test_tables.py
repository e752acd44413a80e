"""EPIC's tables of policies: the cells of single jobs to the last digit, the mixes of jobs by their checks."""

from __future__ import annotations

import pytest

from p4gen.plan.flow.policies import Volume
from p4gen.plan.flow.tables import SINGLE_TABLES, UNITS, table


@pytest.mark.parametrize("number", SINGLE_TABLES)
def test_cells_are_the_papers_to_the_last_digit(number: int) -> None:
    report = table(number)
    wrong = [
        (cell.row, cell.column, cell.ours, cell.paper)
        for cell in report.cells
        if abs(cell.ours - float(cell.paper)) > 0.5000001 * 10 ** -len(cell.paper.partition(".")[2])
    ]
    misprinted = [cell for cell in report.cells if cell.note == "misprint in the paper"]
    assert len(report.cells) == 16
    assert (len(misprinted), len(wrong)) == ((4, 4) if number == 42 else (0, 0))
    assert report.ok


def test_the_misprints_have_the_values_of_the_columns_beside_them() -> None:
    found = {(cell.row, cell.column): cell for cell in table(42).cells}
    for policy in ("spatial", "temporal"):
        ours = [round(found[policy, f"{units} units"].ours, 1) for units in UNITS]
        printed = [float(found[policy, f"{units} units"].paper) for units in UNITS]
        assert printed == [110.0, *ours[:1], *ours[2:]]


def test_exact_volumes_are_less_and_claim_nothing() -> None:
    paper, exact = table(39), table(39, volume=Volume(paper=False))
    assert exact.ok
    assert {cell.note for cell in exact.cells} == {"not comparable"}
    assert all(e.ours < p.ours for e, p in zip(exact.cells, paper.cells, strict=True))


def test_a_mix_of_jobs_has_all_its_cells_and_distributions() -> None:
    report = table(45, seed=1, jobs=12)
    assert {cell.column for cell in report.cells} == {
        "without scale-up, s", "with scale-up, s", "/ edge-disjoint", "most / least with scale-up"
    }  # fmt: skip
    assert len(report.jct) == 8
    assert all(len(times) > 1 for times in report.jct.values())


def test_mixes_of_jobs_are_within_the_tolerances(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--full"):
        pytest.skip("minutes: --full")
    for number in (44, 45):
        report = table(number, seed=1)
        assert [cell for cell in report.cells if not cell.ok] == []
