"""``p4gen flow table``: EPIC's tables of policies, ours beside the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from p4gen.cli.options import json_option
from p4gen.cli.seeds import seed_option
from p4gen.cli.verb import verb


@verb(
    examples=[
        ("6,36-43", "a single job on 128 GPUs: seconds"),
        ("44 --seed 1 --out build/flow", "mixes of jobs on 2,048 GPUs: minutes"),
    ]
)
@click.argument("tables", metavar="N,...|N-N|all")
@click.option("--volume", type=click.Choice(["paper", "exact"]), default="paper", show_default=True,
              help="How much collectives move over a link, in tables of a single job.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1, 100_000), help="Only the first jobs of a mix; its tolerances may fail.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("build/flow"),
              help="Folder for CSV and plots.  [build/flow]")  # fmt: skip
@seed_option("the mixes of jobs.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Repeat EPIC's Tables 6 and 36 to 45, each cell beside the paper's.

    Written as CSV, and for mixes of jobs as plots of the distributions of job completion times, too. Exit status 1
    when a cell is not as the paper has it, or a ratio is not within its tolerance (docs/policies.md).
    """
    from p4gen.cli.flow.do_table import do  # noqa: PLC0415 - wrong options are refused without it

    do(ctx, **options)
