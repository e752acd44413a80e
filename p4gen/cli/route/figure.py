"""``p4gen route figure``: ARO's Figures 7 to 13, with what must hold of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from p4gen.cli.options import json_option
from p4gen.cli.seeds import seed_option
from p4gen.cli.verb import verb


@verb(
    examples=[
        ("7a,7b,7c --seed 0", "one task: by aggregators, by workers; two minutes"),
        ("10 --seed 0", "jobs of two tasks: ten minutes"),
    ]
)
@click.argument("figures", metavar="N,...|all")
@click.option("--repeat", type=click.IntRange(1, 10_000),
              help="Instances at each point, of seeds from the given one on.  [what statements need]")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("build/route"),
              help="Folder for CSV.  [build/route]")  # fmt: skip
@seed_option("the instances.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Repeat ARO's figures: mean rates by algorithm, where one thing is varied.

    The paper's curves are pictures, so that what must hold is mostly what it says of them. Exit status 1 when something
    does not hold; with few instances means may miss it.
    """
    from p4gen.cli.route.do_figure import do  # noqa: PLC0415 - wrong options are refused without it

    do(ctx, **options)
