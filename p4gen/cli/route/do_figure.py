"""The work of ``p4gen route figure``: ARO's Figures 7 to 13, with what must hold of them."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from p4gen.cli.files import write_text
from p4gen.cli.options import report_console
from p4gen.errors import InputError
from p4gen.inputs import drawn, quote
from p4gen.net.figures.figure import Report, report_csv
from p4gen.plan.route.figures import FIGURES, Drawn, draw_figure


def do(ctx: click.Context, /, figures: str, repeat: int | None, out: Path, seed: int | None, as_json: bool) -> None:
    """Run the command with these options."""
    chosen = list(FIGURES) if figures == "all" else [name.strip() for name in figures.split(",")]
    for name in chosen:
        if name not in FIGURES:
            raise InputError(f"there is no figure {quote(name)}; there are {', '.join(FIGURES)}")
    seed = drawn(seed)
    console = report_console(quiet=as_json)
    console.print(f"seed {seed}")
    found = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    for name in chosen:
        with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
            task = bar.add_task(f"figure {name}")

            def told(point: str, done: int, of: int, name: str = name, bar: Progress = bar, task: int = task) -> None:
                bar.update(task, description=f"figure {name}, {point}", completed=done, total=of)  # type: ignore[arg-type]

            found.append(draw_figure(name, seed, repeat, told))
        _show(found[-1], console)
        path = out / f"figure-{name}.csv"
        write_text(path, _csv(found[-1]))
        console.print(f"wrote {path}")
    passed = all(drawn_.ok for drawn_ in found)
    if as_json:
        click.echo(json.dumps({"seed": seed, "passed": passed, "figures": [_json(each) for each in found]}))
    ctx.exit(0 if passed else 1)


def _show(found: Drawn, console: Console) -> None:
    figure = found.figure
    several = any(setting.jobs * setting.tasks > 1 for setting in figure.points.values())
    console.print(
        f"\nFigure {found.name}: {figure.caption}; mean rates in Gb/s{', slowest and all' if several else ''}"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(figure.axis)
    for name in figure.algorithms:
        table.add_column(name, justify="right")
    table.add_column("gap", justify="right")
    for point, means in found.table.items():
        cells = [f"{m.least:.2f}, {m.total:.2f}" if several else f"{m.least:.2f}" for m in means.values()]
        gap = means["aro"].gap
        table.add_row(point, *cells, "" if gap is None else f"{gap:.1%}")
    console.print(table)
    for check in found.checks:
        console.print(f"{'holds' if check.ok else 'MISSED'}  {check.text}")


def _csv(found: Drawn) -> str:
    columns = (found.figure.axis, "algorithm", "slowest_gbps", "total_gbps", "gap", "slowest_s")
    rows = tuple(
        (point, name, mean.least, mean.total, mean.gap, mean.seconds)
        for point, means in found.table.items()
        for name, mean in means.items()
    )
    return report_csv(Report(columns, rows, found.checks, (), {}))


def _json(found: Drawn) -> dict[str, object]:
    return {
        "figure": found.name,
        "passed": found.ok,
        "points": {
            point: {
                name: {"slowest_gbps": m.least, "total_gbps": m.total, "gap": m.gap, "slowest_s": m.seconds}
                for name, m in means.items()
            }
            for point, means in found.table.items()
        },
        "statements": [{"text": check.text, "holds": check.ok} for check in found.checks],
    }
