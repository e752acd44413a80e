"""``p4gen ptf mutate``: faults seeded into programs, from a list or made by operators; each must be caught."""

from __future__ import annotations

from typing import Any

import click

from p4gen.cli.options import engine_option, json_option, spec_options
from p4gen.cli.seeds import seed_option
from p4gen.cli.verb import FiniteRange, verb


@verb(
    examples=[
        ("--mode II --faults 10", "ten faults of the family's list"),
        ("--mode II --fault ttl-kept", "one of them"),
        ("--mode III --operators --faults 100", "a hundred, derived by rule"),
        ("--mode III --operators --reliability sr --json", "all of the programs with Selective Repeat"),
    ]
)
@spec_options
@json_option
@engine_option
@seed_option("all random choices.")
@click.option("--operators", is_flag=True, help="Faults made by operators, instead of those of a list.")
@click.option("--fault", multiple=True, metavar="NAME", help="Only this one of the list; may be repeated.")
@click.option("--faults", type=click.IntRange(min=1), default=None, help="This many, drawn by seed.  [all]")
@click.option(
    "--at-least", type=FiniteRange(0, 100), default=98.0, metavar="PERCENT",
    help="With --operators: the score below which the exit status is 1.  [98]",
)  # fmt: skip
@click.option("--out", hidden=True, expose_value=False, help="Not used: for scripts that say ptf --out ... --mutate.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Seed faults into small programs of the mode, one at a time; the conformance suite must catch each.

    Exit status 1 when it does not catch a fault of the list, or too few of those made by operators.
    """
    from p4gen.cli.ptf.do_mutate import do  # noqa: PLC0415 - wrong options are refused without it

    do(ctx, **options)
