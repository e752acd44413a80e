"""``p4gen sim table``: tables of the paper, each row compared with ours."""

from __future__ import annotations

from typing import Any

import click

from p4gen.cli.sim.options import SAID_BY_TABLES, STUDIED_SIZE, comparison_options, simulation_options
from p4gen.cli.verb import verb


@verb(
    examples=[
        ("31 star-8 --values 0,1,5,10 --seed 1", "AllReduce with loss on one link"),
        ("all star-8 --seeds 3", "every table: takes long"),
    ]
)
@click.argument("tables", metavar="N,...|all")
@simulation_options(size=STUDIED_SIZE, without=SAID_BY_TABLES)
@comparison_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Repeat tables of the paper's simulations (EPIC: 25 to 32, and 35), each row compared with ours.

    TOPOLOGY is a YAML file, or a name (p4gen sim run --help). A table says which collective, program, loss recovery and
    retransmission timer each of its rows has. Results are also written as CSV and as a plot. Exit status 1 when a
    result is wrong or a run does not end.
    """
    from p4gen.cli.sim.do_table import do  # noqa: PLC0415 - wrong options are refused without it

    do(ctx, **options)
