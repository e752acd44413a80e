"""``p4gen flow confirm``: policies on packets, in labs, beside what the simulator of flows says."""

from __future__ import annotations

from typing import Any

import click

from p4gen.cli.defaults import MEMBERS
from p4gen.cli.options import json_option, out_option, target_option
from p4gen.cli.seeds import seed_option
from p4gen.cli.verb import verb


@verb(
    examples=[
        ("--seed 1", "three groups of two hosts and three of four, each under five policies: some minutes"),
        ("--members two --target bmv2 --size 64K --bandwidth 2M --seed 1", "the same on BMv2, with less data"),
    ]
)
@target_option
@click.option("--members", multiple=True, type=click.Choice([*MEMBERS]),
              help="Ranks of a group: two on the two sides of the tree, or all four hosts.  [both]")  # fmt: skip
@click.option("--size", default="1M", show_default=True, metavar="BYTES", help="Each rank's data.")
@click.option("--repeat", type=click.IntRange(2, 999), default=10, show_default=True, help="Calls of each group.")
@click.option("--bandwidth", default="20M", show_default=True, metavar="RATE",
              help="Of each link: so little that links are the limit, not the processor.")  # fmt: skip
@click.option("--timeout", default="500ms", show_default=True, metavar="TIME", help="Retransmission timer.")
@click.option("--lanes", default="256", show_default=True, metavar="N", help="Elements in a packet.")
@seed_option("data and faults.")
@out_option
@json_option
def command(**options: Any) -> None:
    """Compare policies of sharing switches in labs with what flows say.

    Three groups on tree-3-2 make the same AllReduces at the same time, and switches have room for one group. Links have
    a bandwidth of their own (p4gen lab --bandwidth). The time until all have ended is shown relative to that of rings,
    in the lab and in the simulator (volume exact). Exit status 1 if a result is not NumPy's, or if the lab's ratio is
    not within 20 % of the simulator's. Needs what labs need.
    """
    from p4gen.cli.flow.do_confirm import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
