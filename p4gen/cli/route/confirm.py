"""``p4gen route confirm``: plans of random fabrics on packets."""

from __future__ import annotations

from typing import Any

import click

from p4gen.cli.common import engine_option
from p4gen.cli.options import json_option
from p4gen.cli.seeds import seed_option
from p4gen.cli.verb import verb


@verb(
    examples=[
        ("--seed 0 --count 20", "twenty fabrics in Mode II: some minutes"),
        ("--seed 0 --count 5 --mode III --size 1M", "less data, Mode III"),
        ("--seed 0 --count 20 --trees 3", "also several trees together, where they are faster"),
    ]
)
@click.option("--count", type=click.IntRange(1, 1000), default=20, show_default=True, help="Fabrics.")
@click.option("--mode", type=click.Choice(["II", "III"]), default="II", show_default=True, help="Of EPIC.")
@click.option("--size", default="4M", show_default=True, metavar="BYTES", help="Each rank's data.")
@click.option("--lanes", type=click.Choice(["8", "16", "32", "64", "128", "256", "512", "1024"]), default=None,
              help="Elements in a packet.  [256, in Mode III 64]")  # fmt: skip
@click.option("--message", type=click.IntRange(1, 256), default=None,
              help="Packets in a message.  [8, in Mode III 4]")  # fmt: skip
@click.option("--trees", type=click.IntRange(1, 8), default=1, show_default=True,
              help="Also run up to so many trees together, where they promise at least a tenth more.")  # fmt: skip
@engine_option
@seed_option("the first fabric; the others follow.")
@json_option
def command(**options: Any) -> None:
    """Run the fastest trees of random fabrics with packets.

    Each fabric has 4 leaves and 4 spines, links of 10 Gb/s, 8 to 32 ranks, 20 to 70 % of switches that aggregate, with
    1, 2 or 4 pipelines. Predicted goodput is the plan's rate times the payload's share of the wire. Where the plan
    promises at least a tenth more than shortest paths to one root, these are run too. Exit status 1 if a result is
    wrong, a packet is dropped, or a goodput is not 0.95 to 1.02 of that predicted.
    """
    from p4gen.cli.route.do_confirm import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
