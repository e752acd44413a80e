"""The work of ``p4gen paper``: tables and figures of the papers, ours beside the paper's."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from p4gen.cli.files import write_text
from p4gen.cli.options import report_console
from p4gen.cli.reports import tell_report
from p4gen.errors import Diagnostic, InputError, Option
from p4gen.experiments.cells import Runner
from p4gen.experiments.experiment import Experiment, Order
from p4gen.experiments.page import command_for, index, page, titled
from p4gen.experiments.papers import Extent, Item, Paper, paper_named, papers
from p4gen.inputs import drawn, quote
from p4gen.library.run_options import RunOptions

OUT = Path("build/papers")


def do(
    ctx: click.Context,
    /,
    paper: str | None,
    item: str | None,
    scale: str | None,
    check: bool,
    seed: int | None,
    engine: str,
    jobs: int,
    scheduler: str | None,
    cells: tuple[str, ...],
    out: Path | None,
    as_json: bool,
) -> None:
    """Run the command with these options."""
    found = papers() if paper is None else {paper: paper_named(paper)}
    console = report_console(quiet=as_json)
    if item is None and not check:
        if scale is not None or cells:
            raise InputError(Diagnostic(Option("scale" if scale else "cells"), "is for an ITEM"))
        if out is not None:
            write_text(out / "README.md", index(found))
        _list(found, console)
        if as_json:
            click.echo(json.dumps([_listed(name, one, each) for name, one in found.items() for each in one.item]))
        return
    if check and (item is not None or scale is not None or cells):
        raise InputError(Diagnostic(Option("check"), "repeats all of a paper, at scales of its own"))
    if item is not None:
        assert paper is not None
        chosen = [_Chosen.of(paper, found[paper], item, scale)]
        if cells and not chosen[0].experiment.partly:
            raise InputError(Diagnostic(Option("cells"), f"{item} can be judged with all of its cells only"))
    else:
        chosen = [
            _Chosen(name, one, each, experiment, experiment.check)
            for name, one in found.items()
            for each in one.item
            if (experiment := one.experiments.get(each.name)) is not None and experiment.check is not None
        ]
    seed = drawn(seed)
    console.print(f"seed {seed}")
    order = Order("", seed, RunOptions.checked({"engine": engine}).engine, cells, Runner(jobs, scheduler))
    reports = [_repeat(each, order, out or OUT, console) for each in chosen]
    passed = all(report["passed"] for report in reports)
    if check:
        failed = [report["item"] for report in reports if not report["passed"]]
        wrong = f"of which fail: {', '.join(failed)}" if failed else "all hold"
        console.print(f"{len(reports)} repeated, {wrong}")
    if as_json:
        click.echo(json.dumps({"seed": seed, "passed": passed, "experiments": reports} if check else reports[0]))
    ctx.exit(0 if passed else 1)


@dataclass(frozen=True)
class _Chosen:
    """An item that is to be repeated."""

    name: str
    """The paper's."""
    paper: Paper
    item: Item
    experiment: Experiment
    scale: str

    @classmethod
    def of(cls, name: str, paper: Paper, item: str, scale: str | None) -> _Chosen:
        """The item of this name, at a scale or its default. Raises ``InputError`` if there is none."""
        found, experiment = paper.experiment(item)
        chosen = scale if scale is not None else next(iter(experiment.scales))
        if chosen not in experiment.scales:
            known = "; ".join(f"{each}: {what}" for each, what in experiment.scales.items())
            raise InputError(Diagnostic(Option("scale"), f"{item} has no scale {quote(chosen)}; {known}"))
        return cls(name, paper, found, experiment, chosen)


def _repeat(chosen: _Chosen, order: Order, out: Path, console: Console) -> dict[str, Any]:
    """Perform an experiment, show its report, and write its files. Returns the report for ``--json``."""
    paper, item, experiment = chosen.paper, chosen.item, chosen.experiment
    folder = out / chosen.name
    with console.status(item.name) as status:
        runner = replace(order.runner, kept=folder / "cells", tell=lambda what: status.update(f"{item.name}, {what}"))
        report = experiment.perform(replace(order, scale=chosen.scale, runner=runner))
    command = ["p4gen", "paper", chosen.name, item.name, "--scale", chosen.scale, "--seed", str(order.seed)]
    command += [word for pattern in order.patterns for word in ("--cells", pattern)]
    texts = {".md": page(paper, item, report, shlex.join(command)), ".csv": report.csv, **report.files}
    told = tell_report(titled(paper, item), report, texts, folder / item.name, console)
    return {"paper": chosen.name, "item": item.name, "scale": chosen.scale, "seed": order.seed} | told


def _list(found: Mapping[str, Paper], console: Console) -> None:
    for name, paper in found.items():
        counts = Counter(item.extent for item in paper.item)
        said = ", ".join(f"{counts[extent]} {extent}" for extent in Extent if counts[extent])
        console.print(f"\n[bold]{name}[/bold]  {paper.title}\n{said}", highlight=False)
        table = Table(box=None, pad_edge=False, show_header=False)
        for item in paper.item:
            repeated = f"{item.extent}: {item.why}" if item.why else str(item.extent)
            table.add_row(item.name, item.caption, repeated)
        console.print(table)


def _listed(name: str, paper: Paper, item: Item) -> dict[str, str]:
    return {
        "paper": name, "item": item.name, "section": item.section, "caption": item.caption, "extent": item.extent,
        "why": item.why, "command": command_for(name, paper, item),
    }  # fmt: skip
