"""``p4gen verify table``: the searches that a paper reports, each compared with ours."""

from __future__ import annotations

from typing import Any

import click

from p4gen.cli.options import json_option
from p4gen.cli.verb import verb


@verb(
    examples=[
        ("7,8", "EPIC's tables of model checking, all six rows"),
        ("7,8 --reduction none --memory 40G", "without the partial-order reduction: takes an hour, and that memory"),
    ]
)
@click.argument("numbers", metavar="N,...")
@json_option
@click.option("--row", "rows", multiple=True, metavar="NAME", help="These rows alone, such as 'III allreduce'.")
@click.option(
    "--reduction", type=click.Choice(["por", "none"]), default="por", show_default=True, help="As for p4gen verify."
)
@click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Threads.")
@click.option("--memory", default="4G", show_default=True, metavar="BYTES", help="For the set of states.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Repeat tables of a paper that checked a model of its design, with the generated programs.

    Exit status 1 when something is violated, 3 when a search did not finish.
    """
    from p4gen.cli.verify.do_table import do  # noqa: PLC0415 - wrong options are refused without it

    do(ctx, **options)
