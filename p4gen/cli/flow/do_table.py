"""The work of ``p4gen flow table``: EPIC's tables of policies, ours beside the paper's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from p4gen.cli.files import write_text, writing
from p4gen.cli.options import report_console
from p4gen.errors import InputError
from p4gen.inputs import drawn, quote
from p4gen.plan.flow.policies import Volume
from p4gen.plan.flow.report import plot_cdf, table_csv
from p4gen.plan.flow.tables import MIXED_TABLES, SINGLE_TABLES, TABLES, Report, table


def do(
    ctx: click.Context, /, tables: str, volume: str, jobs: int | None, out: Path, seed: int | None, as_json: bool
) -> None:
    """Run the command with these options."""
    chosen = _numbers(tables)
    seed = drawn(seed)
    console = report_console(quiet=as_json)
    if set(chosen) & set(MIXED_TABLES):
        console.print(f"seed {seed}")
    reports = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    for number in chosen:
        with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
            task = bar.add_task(f"table {number}")
            found = table(
                number,
                seed=seed,
                jobs=jobs,
                volume=Volume(volume == "paper"),
                progress=lambda what, done, of: bar.update(task, description=what, completed=done, total=of),  # noqa: B023
            )
        reports.append(found)
        _show(found, console)
        _write(found, out, console)
    passed = all(report.ok for report in reports)
    if as_json:
        click.echo(json.dumps({"seed": seed, "passed": passed, "tables": [_json(report) for report in reports]}))
    ctx.exit(0 if passed else 1)


def _numbers(text: str) -> list[int]:
    if text == "all":
        return list(TABLES)
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        ends = [first, last] if dash else [first, first]
        if not all(end.strip().isdecimal() and len(end) < 4 for end in ends):
            raise InputError(f"{quote(part)} is not a table; there are {_known()}")
        low, high = map(int, ends)
        known = [number for number in TABLES if low <= number <= high]
        if not known or (not dash and low not in TABLES):
            raise InputError(f"{quote(part)}: there is no such table; there are {_known()}")
        found += known
    return list(dict.fromkeys(found))


def _known() -> str:
    return f"{SINGLE_TABLES[0]}, {SINGLE_TABLES[1]} to {TABLES[-1]}, and all"


def _show(report: Report, console: Console) -> None:
    console.print(f"[bold]Table {report.number}: {report.caption}[/bold]")
    table_shown = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("policy", "column"):
        table_shown.add_column(column)
    for column in ("ours", "paper"):
        table_shown.add_column(column, justify="right")
    table_shown.add_column("")
    for cell in report.cells:
        decimals = max(len(cell.paper.partition(".")[2]), 0 if cell.ours >= 100 else 2)
        note = cell.note if cell.ok else f"[red]differs[/red] {cell.note}"
        table_shown.add_row(cell.row, cell.column, f"{cell.ours:,.{decimals}f}", cell.paper, note)
    console.print(table_shown)


def _write(report: Report, out: Path, console: Console) -> None:
    files = [out / f"table-{report.number}.csv"]
    write_text(files[0], table_csv(report))
    groups: dict[str, dict[str, tuple[float, ...]]] = {}
    for name, times in report.jct.items():
        mix, _, policy = name.rpartition(" ")
        groups.setdefault(mix, {})[policy] = times
    for mix, series in groups.items():
        files.append(out / f"table-{report.number}-{mix.replace(' ', '-')}.svg")
        with writing(files[-1]):
            plot_cdf(series, mix, files[-1])
    console.print(f"wrote {', '.join(map(str, files))}")


def _json(report: Report) -> dict[str, Any]:
    cells = [
        {"row": c.row, "column": c.column, "ours": c.ours, "paper": c.paper, "holds": c.ok, "note": c.note}
        for c in report.cells
    ]
    return {"table": report.number, "caption": report.caption, "holds": report.ok, "cells": cells}
