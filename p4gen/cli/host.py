"""``p4gen host``: a rank that makes calls and checks them, on this machine's own interface or device."""

from __future__ import annotations

from typing import Any

import click

from p4gen.cli.nccltests import range_options
from p4gen.cli.options import json_option
from p4gen.cli.places import place_options
from p4gen.cli.verb import FiniteRange, verb
from p4gen.vocabulary.message import Collective


@verb(
    examples=[
        ("h0 --manager 10.1.0.1:9560 --ranks h0,h1", "AllReduces by two hosts, of which this one is h0"),
        ("h1 --manager 10.1.0.1:9560 --ranks h0,h1 --verbs mlx5_0", "the other one, with an RNIC"),
        ("h0 --collective broadcast --root 1 -b 1M -e 64M", "a rank of a group that is there already"),
    ]
)
@click.argument("name", envvar="P4GEN_HOST")
@click.option("--ranks", metavar="HOST,…", help="All hosts, in order; the first creates the group.  [$P4GEN_RANKS]")
@click.option("--group", default="world", help="The group's name.  [world]")
@place_options
@click.option("--timer", metavar="TIME", help="Queue pairs' retransmission timer, such as 50ms.  [$P4GEN_TIMER]")
@click.option("--collective", type=click.Choice(list(map(str, Collective))), default="allreduce", show_default=True)
@click.option("--root", metavar="RANK", type=click.IntRange(0), default=0, help="Of reduce and broadcast.  [0]")
@range_options
@click.option("--repeat", metavar="N", type=click.IntRange(1), default=20, help="Timed calls of each size.  [20]")
@click.option("--seed", type=click.IntRange(0), default=1, help="Of the data, the same at all ranks.  [1]")
@click.option(
    "--timeout", metavar="S", type=FiniteRange(0.1, 86_400), default=60.0,
    help="For the group to become active, and for each call.  [60]",
)  # fmt: skip
@json_option
def command(**options: Any) -> None:
    """Be a rank: make calls with the other ranks, and compare each result with NumPy's.

    Run it on all hosts of the group. Rank 0 prints time and bandwidth by size, as nccl-tests do; the exit status is 1
    at each rank that has got a wrong result, or none. Needs root, for packet sockets; with --verbs, pyverbs instead.
    """
    from p4gen.cli.do_host import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
