"""The work of ``p4gen sim sweep``: many runs, over sizes or losses, compared with the paper's row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from p4gen.cli.options import report_console
from p4gen.cli.sim.comparison import compare, swept
from p4gen.cli.sim.config import configuration, values_of
from p4gen.net.figures.study import Axis


def do(
    ctx: click.Context, /, axis: str, topology: str, spec_file: Path | None, seeds: int, out: Path, **options: Any
) -> None:
    """Run the command with these options."""
    config = configuration(topology, spec_file, options, studied=True)
    console = report_console(quiet=options["as_json"])
    console.print(f"seed {config.seed}")
    comparison = swept(Axis(axis), config, values_of(options["values"], Axis(axis)))
    passed, report = compare(comparison, seeds, out, console)
    if options["as_json"]:
        click.echo(json.dumps({"seed": config.seed, "passed": passed, "sweep": axis} | report))
    ctx.exit(0 if passed else 1)
