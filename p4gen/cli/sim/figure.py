"""``p4gen sim figure``: a figure of a paper, ours beside the paper's."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem
from rich.console import Console
from rich.table import Table

from p4gen.cli.files import write_text
from p4gen.cli.options import json_option, report_console
from p4gen.cli.seeds import seed_option
from p4gen.cli.verb import verb
from p4gen.errors import InputError
from p4gen.inputs import drawn, quote
from p4gen.library.simulation import RunOptions
from p4gen.model import ENGINES
from p4gen.net.figures.figure import Order, Report, Value, all_figures, figure_named, report_csv


class _Name(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A figure's name; the verb looks it up."""

    name = "figure"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The figures of all families."""
        return [
            CompletionItem(name, help=figure.caption)
            for name, (_, figure) in all_figures().items()
            if name.startswith(incomplete)
        ]


@verb(
    examples=[
        ("themis-1 --seed 1", "random spraying over commodity RNICs, and Themis"),
        ("themis-1 --scale paper", "with the paper's 100 MB a node: minutes"),
        ("themis-loss --seed 1", "losses on a spine link, and how they are repaired"),
        ("themis-5 --seed 1 --jobs 2", "collectives over DCQCN's settings, two simulations at a time"),
        ("themis-5 --seed 1 --cells 'allreduce/*/4/*'", "AllReduce with T_D = 4 us only"),
    ]
)
@click.argument("figure", type=_Name(), metavar="FIGURE")
@click.option("--scale", default=None, metavar="NAME", help="How much is simulated; an unknown name lists them.")
@seed_option("all randomness; same seed, same run.")
@click.option("--engine", type=click.Choice(ENGINES), default="jit", show_default=True, help="What runs the switches.")
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Simulations at the same time, each in a process, where a figure consists of many.",
)
@click.option(
    "--cells",
    multiple=True,
    metavar="PATTERN",
    help="Only some of a figure's simulations, such as 'allreduce/900/*'.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/sim"),
    help="Folder for CSV and pictures.  [build/sim]",
)
@json_option
@click.pass_context
def command(
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
    """Repeat a figure of a paper, ours beside the paper's, with assumptions and with what must hold of it.

    FIGURE is a family and a number: themis-1. Written as CSV and as pictures, too. Exit status 1 when something does
    not hold.

    If a figure consists of many simulations (cells), each is written to a file in the folder FIGURE-cells when it has
    ended; the same command goes on where it was interrupted.
    """
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
