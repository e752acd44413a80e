"""``p4gen hardware``: what programs take of a real switch, beside the paper's table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from p4gen.cli.options import json_option, spec_options
from p4gen.cli.verb import verb


@verb(
    examples=[
        ("--arch t2na --lanes 32", "EPIC's Table 17, and programs for Tofino 2 of the same sizes by p4gen's model"),
        ("--arch tna --p4c-output out", "beside p4c's reports in out/512, out/2048, ..., where they are"),
    ]
)
@spec_options
@click.option(
    "--p4c-output",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder with p4c's output folders for these programs, each named by the number of slots.",
)
@json_option
def command(**options: Any) -> None:
    """Show a paper's table of a switch's resources, and the shares that programs of the same sizes take.

    The sizes are those of the paper; whatever else the program has is as given. A program that cannot fit has an
    exclamation mark.
    """
    from p4gen.cli.do_hardware import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
