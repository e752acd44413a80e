"""The work of ``p4gen sim figure``: a figure of a paper, ours beside the paper's."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from p4gen.cli.files import write_text
from p4gen.cli.options import report_console
from p4gen.errors import InputError
from p4gen.inputs import drawn, quote
from p4gen.library.run_options import RunOptions
from p4gen.net.figures.figure import Order, Report, Value, figure_named, report_csv


def do(
    ctx: click.Context,
    /,
    figure: str,
    scale: str | None,
    seed: int | None,
    engine: str,
    jobs: int,
    cells: tuple[str, ...],
    out: Path,
    as_json: bool,
) -> None:
    """Run the command with these options."""
    paper, found = figure_named(figure)
    chosen = scale if scale is not None else next(iter(found.scales))
    if chosen not in found.scales:
        known = "; ".join(f"{name}: {what}" for name, what in found.scales.items())
        raise InputError(f"{figure} has no scale {quote(chosen)}; {known}")
    _check_cells(figure, found.cells(chosen), cells)
    seed = drawn(seed)
    console = report_console(quiet=as_json)
    console.print(f"seed {seed}")
    with console.status(figure) as status:
        order = Order(chosen, seed, RunOptions.checked({"engine": engine}).engine, jobs, cells, out / f"{figure}-cells")
        report = found.draw(order, lambda what: status.update(f"{figure} {what}"))
    files = {out / f"{figure}.csv": report_csv(report)}
    files |= {out / f"{figure}{ending}": text for ending, text in report.files.items()}
    for path, text in files.items():
        write_text(path, text)
    number = figure.rpartition("-")[2]
    _show(f"{paper}, {f'Figure {number}' if number.isdigit() else number}: {found.caption}", report, console)
    console.print(f"wrote {', '.join(map(str, files))}")
    if as_json:
        click.echo(json.dumps({"seed": seed, "passed": report.ok} | _json(figure, chosen, report, list(files))))
    ctx.exit(0 if report.ok else 1)


def _check_cells(figure: str, known: tuple[str, ...], patterns: tuple[str, ...]) -> None:
    """Raises ``InputError`` for a pattern that no cell of the figure matches."""
    for pattern in patterns:
        if not known:
            raise InputError(f"--cells {quote(pattern)}: {figure} does not consist of cells")
        if not any(fnmatchcase(name, pattern) for name in known):
            raise InputError(f"--cells {quote(pattern)}: {figure} has no such cell; it has {known[0]} to {known[-1]}")


def _show(title: str, report: Report, console: Console) -> None:
    console.print(f"[bold]{title}[/bold]")
    for line in report.assumptions:
        console.print(f"  {line}", markup=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in report.columns:
        table.add_column(column, justify="left" if column == report.columns[0] else "right")
    for row in report.rows:
        table.add_row(*map(_text, row))
    console.print(table)
    for check in report.checks:
        console.print("[green]holds[/green]  " if check.ok else "[red]fails[/red]  ", end="")
        console.print(check.text, markup=False)


def _text(value: Value) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:,.2f}"


def _json(figure: str, scale: str, report: Report, files: list[Path]) -> dict[str, Any]:
    return {
        "figure": figure,
        "scale": scale,
        "rows": [dict(zip(report.columns, row, strict=True)) for row in report.rows],
        "checks": [{"text": check.text, "holds": check.ok} for check in report.checks],
        "assumptions": list(report.assumptions),
        "files": [str(path) for path in files],
    }
