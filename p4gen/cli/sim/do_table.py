"""The work of ``p4gen sim table``: tables of the paper, each row compared with ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from p4gen.cli.options import report_console
from p4gen.cli.sim.comparison import compare, numbers, studies_of, tabled
from p4gen.cli.sim.config import configuration, values_of


def do(
    ctx: click.Context, /, tables: str, topology: str, spec_file: Path | None, seeds: int, out: Path, **options: Any
) -> None:
    """Run the command with these options."""
    config = configuration(topology, spec_file, options, studied=True)
    console = report_console(quiet=options["as_json"])
    console.print(f"seed {config.seed}")
    reports = []
    passed = True
    studies = studies_of(config.program)
    for number in numbers(tables, studies):
        values = values_of(options["values"], studies.tables[number].axis)
        good, report = compare(tabled(number, config, values), seeds, out, console)
        passed = passed and good
        reports.append({"table": number} | report)
    if options["as_json"]:
        click.echo(json.dumps({"seed": config.seed, "passed": passed, "tables": reports}))
    ctx.exit(0 if passed else 1)
