"""The work of ``p4gen sim sweep``: many runs, over sizes or losses, compared with the paper's row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from p4gen.cli.options import report_console
from p4gen.cli.reports import tell_report
from p4gen.cli.sim.config import configuration, studies_of, values_of
from p4gen.experiments.cells import Runner
from p4gen.experiments.experiment import Order
from p4gen.net.study import Axis, report


def do(
    ctx: click.Context,
    /,
    axis: str,
    topology: str,
    spec_file: Path | None,
    seeds: int,
    out: Path,
    jobs: int,
    scheduler: str | None,
    **options: Any,
) -> None:
    """Run the command with these options."""
    config = configuration(topology, spec_file, options, studied=True)
    console = report_console(quiet=options["as_json"])
    console.print(f"seed {config.seed}")
    studies = studies_of(config.program)
    points = studies.points(Axis(axis), config, values_of(options["values"], Axis(axis)))
    title = f"{config.collective} on {config.topology.name}, {config.program.program}"
    with console.status(axis) as status:
        runner = Runner(jobs, scheduler, out / axis / "cells", lambda what: status.update(f"{axis}, {what}"))
        order = Order("", config.seed, config.engine, runner=runner)
        found = report(studies, points, title, "Gb/s", seeds, order)
    told = tell_report(title, found, {".csv": found.csv, **found.files}, out / axis, console)
    if options["as_json"]:
        click.echo(json.dumps({"sweep": axis, "seed": config.seed} | told))
    ctx.exit(0 if found.ok else 1)
