"""What ``p4gen sim sweep`` and ``table`` report: a paper's simulation figures compared with ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from p4gen.cli.files import write_text
from p4gen.errors import InputError
from p4gen.families import family_of
from p4gen.net.collectives.config import SimConfig
from p4gen.net.figures.drawing import Series, chart_svg
from p4gen.net.figures.study import Axis, Point, Studies, StudyPoint, to_csv
from p4gen.vocabulary import CollectiveSpec

_NAMES = {
    Axis.SIZE: "message size",
    Axis.LOSS: "loss on one link",
    Axis.LINKS: "links that lose 5 %",
    Axis.NOTHING: "",
}


@dataclass(frozen=True)
class Comparison:
    """Points that are reported together, as one table and one plot."""

    name: str
    """Stem of the output file names."""
    title: str
    unit: str
    axis: Axis
    points: Sequence[Point]
    studies: Studies[Any]


def studies_of(spec: CollectiveSpec) -> Studies[Any]:
    """The figures of a spec's family. Raises ``InputError`` if it has none."""
    return family_of(spec).facet(Studies)


def swept(axis: Axis, base: SimConfig, values: Sequence[float] | None) -> Comparison:
    """A sweep: one solution over an axis."""
    title = f"{base.collective} on {base.topology.name}, {base.program.program}"
    studies = studies_of(base.program)
    return Comparison(str(axis), title, "Gb/s", axis, studies.points(axis, base, values), studies)


def tabled(number: int, base: SimConfig, values: Sequence[float] | None) -> Comparison:
    """All rows of one of the paper's tables."""
    studies = studies_of(base.program)
    points = studies.table_points(number, base, values)
    table = studies.tables[number]
    title = f"{studies.paper}, Table {number}: {table.caption}; {base.topology.name}"
    return Comparison(f"table-{number}", title, table.unit, table.axis, points, studies)


def numbers(text: str, studies: Studies[Any]) -> list[int]:
    """The tables that are asked for: ``25``, ``25,31``, ``all``. Raises ``InputError``."""
    if text == "all":
        return list(studies.tables)
    try:
        chosen = [int(each) for each in text.split(",")]
    except ValueError:
        chosen = []
    if not chosen or not studies.tables.keys() >= set(chosen):
        raise InputError(
            f"table {text}: must be one of {', '.join(map(str, studies.tables))}, several with commas, or 'all'"
        )
    return chosen


def compare(comparison: Comparison, seeds: int, folder: Path, console: Console) -> tuple[bool, dict[str, Any]]:
    """Run it, report it, write CSV and plot. Returns whether every run was right, and the report for ``--json``."""
    points = comparison.points
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(comparison.name, total=len(points))

        def started(point: Point) -> None:
            bar.update(task, description=f"{comparison.name} {point.solution} {point.label}", advance=1)

        cells = comparison.studies.perform(points, seeds, started)
    console.print(f"[bold]{comparison.title}[/bold]")
    for line in comparison.studies.assumptions(points):
        console.print(f"  {line}", markup=False)
    console.print(_table(comparison, cells))
    csv, plot = folder / f"{comparison.name}.csv", folder / f"{comparison.name}.svg"
    write_text(csv, to_csv(comparison.axis, cells))
    write_text(plot, _chart(comparison, cells))
    console.print(f"wrote {csv} and {plot}")
    for cell in cells:
        for problem in _problems(cell):
            console.print(f"[red]wrong[/red]  {cell.point.solution} {cell.point.label}: {problem}")
    return all(cell.ok for cell in cells), {
        "name": comparison.name,
        "title": comparison.title,
        "unit": comparison.unit,
        "cells": [
            {
                "solution": str(cell.point.solution),
                "value": cell.point.value,
                "ours": cell.ours,
                "paper": cell.point.paper,
                "ratio": cell.ratio,
            }
            for cell in cells
        ],
        "assumptions": comparison.studies.assumptions(points),
        "files": [str(csv), str(plot)],
    }


def _table(comparison: Comparison, cells: Sequence[StudyPoint]) -> Table:
    heading = _NAMES[comparison.axis]
    table = Table(heading, box=None, pad_edge=False, header_style="bold")
    rows = _rows(cells)
    in_paper = {solution for solution, row in rows.items() if any(cell.point.paper is not None for cell in row)}
    for solution in rows:
        for name in (f"{solution}", "paper", "ratio") if solution in in_paper else (f"{solution}",):
            table.add_column(name, justify="right")
    for at in range(max(map(len, rows.values()))):
        found = []
        for solution, row in rows.items():
            cell = row[at]
            if solution not in in_paper:
                found.append(_number(cell.ours))
                continue
            paper, ratio = ("", "") if cell.point.paper is None else (_number(cell.point.paper), f"{cell.ratio:.2f}")
            found += [_number(cell.ours), paper, ratio]
        table.add_row(next(iter(rows.values()))[at].point.label or comparison.unit, *found)
    return table


def _rows(cells: Sequence[StudyPoint]) -> dict[str, list[StudyPoint]]:
    rows: dict[str, list[StudyPoint]] = {}
    for cell in cells:
        rows.setdefault(cell.point.solution, []).append(cell)
    return rows


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"


def _chart(comparison: Comparison, cells: Sequence[StudyPoint]) -> str:
    rows = _rows(cells)
    if comparison.axis is Axis.NOTHING:
        labels = [str(solution) for solution in rows]
        return chart_svg(
            comparison.title,
            "",
            labels,
            comparison.unit,
            [
                Series("p4gen", [row[0].ours for row in rows.values()]),
                Series("paper", [row[0].point.paper for row in rows.values()]),
            ],
        )
    series = []
    for solution, row in rows.items():
        series.append(Series(f"{solution}", [cell.ours for cell in row]))
        if any(cell.point.paper for cell in row):
            series.append(Series(f"{solution} (paper)", [cell.point.paper for cell in row], dashed=True))
    labels = [cell.point.label for cell in next(iter(rows.values()))]
    return chart_svg(comparison.title, _NAMES[comparison.axis], labels, f"throughput, {comparison.unit}", series)


def _problems(cell: StudyPoint) -> list[str]:
    found: list[str] = []
    for result in cell.results:
        found += result.errors
        if result.diagnosis is not None:
            found += result.diagnosis.lines()
    return found
