"""``p4gen sim sweep``: many runs, over sizes or losses, compared with the paper's row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from p4gen.cli.options import report_console
from p4gen.cli.sim.comparison import compare, swept
from p4gen.cli.sim.config import configuration, values_of
from p4gen.cli.sim.options import STUDIED_SIZE, comparison_options, simulation_options
from p4gen.cli.verb import verb
from p4gen.net.figures.study import Axis


@verb(
    examples=[
        ("loss star-4 --mode II --seeds 3", "compared with EPIC's figures"),
        ("size leaf-spine --mode III --values 64K,1M,16M", "other sizes than the paper's"),
    ]
)
@click.argument("axis", metavar="size|loss|links", type=click.Choice(["size", "loss", "links"]))
@simulation_options(size=STUDIED_SIZE, timeout="as in the paper")
@comparison_options
@click.pass_context
def command(
    ctx: click.Context, /, axis: str, topology: str, spec_file: Path | None, seeds: int, out: Path, **options: Any
) -> None:
    """Run a collective for several sizes, shares of loss on one link, or numbers of links that lose 5 %.

    TOPOLOGY is a YAML file, or a name (p4gen sim run --help). The results are compared with the paper's row
    for the program's mode, and written as CSV and as a plot. Exit status 1 when a result is wrong or a run does not
    end.
    """
    config = configuration(topology, spec_file, options, studied=True)
    console = report_console(quiet=options["as_json"])
    console.print(f"seed {config.seed}")
    comparison = swept(Axis(axis), config, values_of(options["values"], Axis(axis)))
    passed, report = compare(comparison, seeds, out, console)
    if options["as_json"]:
        click.echo(json.dumps({"seed": config.seed, "passed": passed, "sweep": axis} | report))
    ctx.exit(0 if passed else 1)
