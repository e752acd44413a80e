"""How commands show the report of an experiment or of a sweep, and write its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from p4gen.cli.files import write_text
from p4gen.experiments.experiment import Report
from p4gen.experiments.page import text


def tell_report(title: str, report: Report, files: Mapping[str, str], stem: Path, console: Console) -> dict[str, Any]:
    """Show a report, and write files with its texts, by the endings that ``stem`` gets. Returns it for ``--json``.

    Raises ``InputError`` for a file that cannot be written.
    """
    written = {stem.with_name(stem.name + ending): content for ending, content in files.items()}
    for path, content in written.items():
        write_text(path, content)
    console.print(f"[bold]{title}[/bold]")
    for line in report.assumptions:
        console.print(f"  {line}", markup=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in report.columns:
        table.add_column(column, justify="left" if column == report.columns[0] else "right", overflow="fold")
    for row in report.rows:
        table.add_row(*map(text, row))
    console.print(table)
    for check in report.checks:
        console.print("[green]holds[/green]  " if check.ok else "[red]fails[/red]  ", end="")
        console.print(check.text, markup=False)
    console.print(f"wrote {', '.join(map(str, written))}")
    return {
        "passed": report.ok,
        "rows": [dict(zip(report.columns, row, strict=True)) for row in report.rows],
        "checks": [{"text": check.text, "holds": check.ok} for check in report.checks],
        "assumptions": list(report.assumptions),
        "files": [str(path) for path in written],
    }
