"""``p4gen sim sweep``: many runs, over sizes or losses, compared with the paper's row."""

from __future__ import annotations

from typing import Any

import click

from p4gen.cli.sim.options import STUDIED_SIZE, comparison_options, simulation_options
from p4gen.cli.verb import verb


@verb(
    examples=[
        ("loss star-4 --mode II --seeds 3", "compared with EPIC's figures"),
        ("size leaf-spine --mode III --values 64K,1M,16M", "other sizes than the paper's"),
        ("loss star-4 --mode II --seeds 8 --jobs 2", "two runs at a time"),
    ]
)
@click.argument("axis", metavar="size|loss|links", type=click.Choice(["size", "loss", "links"]))
@simulation_options(size=STUDIED_SIZE, timeout="as in the paper", without=("jobs",))
@comparison_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Run a collective for several sizes, shares of loss on one link, or numbers of links that lose 5 %.

    TOPOLOGY is a YAML file, or a name (p4gen sim run --help). The results are compared with the paper's row
    for the program's mode, and written as CSV and as a plot. Exit status 1 when a result is wrong or a run does not
    end. The outcome of each run is kept in OUT/cells when it has ended, so that the same command with the same seed
    goes on where it was interrupted.
    """
    from p4gen.cli.sim.do_sweep import do  # noqa: PLC0415 - wrong options are refused without it

    do(ctx, **options)
