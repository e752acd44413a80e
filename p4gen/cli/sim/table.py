"""``p4gen sim table``: tables of the paper, each row compared with ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from p4gen.cli.options import report_console
from p4gen.cli.sim.comparison import compare, numbers, studies_of, tabled
from p4gen.cli.sim.config import TABLES_SAY, configuration, values_of
from p4gen.cli.sim.options import STUDIED_SIZE, comparison_options, simulation_options
from p4gen.cli.verb import verb


@verb(
    examples=[
        ("31 star-8 --values 0,1,5,10 --seed 1", "AllReduce with loss on one link"),
        ("all star-8 --seeds 3", "every table: takes long"),
    ]
)
@click.argument("tables", metavar="N,...|all")
@simulation_options(size=STUDIED_SIZE, without=TABLES_SAY)
@comparison_options
@click.pass_context
def command(
    ctx: click.Context, /, tables: str, topology: str, spec_file: Path | None, seeds: int, out: Path, **options: Any
) -> None:
    """Repeat tables of the paper's simulations (EPIC: 25 to 32, and 35), each row compared with ours.

    TOPOLOGY is a YAML file, or a name (p4gen sim run --help). A table says which collective, program, loss recovery and
    retransmission timer each of its rows has. Results are also written as CSV and as a plot. Exit status 1 when a
    result is wrong or a run does not end.
    """
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
