"""``p4gen manager place``: hosts for a job, and its groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from p4gen.cli.options import json_option
from p4gen.cli.places import manager_options
from p4gen.cli.values import POLICY, TOPOLOGY, LateChoice
from p4gen.cli.verb import verb


def _placements() -> tuple[str, ...]:
    from p4gen.plan.placement.hosts import PLACEMENTS  # noqa: PLC0415 - wrong options are refused without it

    return PLACEMENTS


_COUNT = click.IntRange(1, 1 << 16)


@verb(
    examples=[
        ("llama --tp 4 --dp 2", "eight hosts, with two groups of TP and four of DP"),
        ("mine --ranks 6 --group left=0,1,2 --group right=3,4,5 --placement spread", "two groups of one's own"),
        ("llama --tp 4 --dp 2 --window tp=0%-60% --window dp=60%-100%", "groups that share switches (time-shared)"),
        ("llama --tp 4 --dp 2 --topology fat-tree-k4", "where it would be on an empty fabric; no manager is asked"),
    ]
)
@click.argument("name")
@click.option("--ranks", metavar="N", type=_COUNT, help="Hosts.  [TP x DP x PP]")
@click.option("--tp", metavar="N", type=_COUNT, default=1, help="Tensor parallelism: groups of neighbours.  [1]")
@click.option("--dp", metavar="N", type=_COUNT, default=1, help="Data parallelism: groups of every TP-th rank.  [1]")
@click.option("--pp", metavar="N", type=_COUNT, default=1, help="Stages of the pipeline, each with its groups.  [1]")
@click.option(
    "--group", "groups", metavar="NAME=RANK,…", multiple=True,
    help="One more group; may be repeated. Without any group, all ranks are group 'world'.",
)  # fmt: skip
@click.option("--placement", type=LateChoice(_placements), help="Few racks, many, or any.  [packed]")
@click.option(
    "--window", "windows", metavar="NAME=FROM-TO", multiple=True,
    help="When groups whose names begin so communicate, in shares of an iteration: tp=0%-60%; may be repeated.",
)  # fmt: skip
@click.option("--fallback", is_flag=True, help="Groups without a place on switches are on rings of their hosts.")
@manager_options
@click.option("--topology", type=TOPOLOGY, help="Only plan, on this fabric without groups; a YAML file or a name.")
@click.option("--policy", type=POLICY, help="Where groups are put in the plan.  [lowest-common-switch]")
@click.option(
    "--spec", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="The program of all switches in the plan.  [Mode III]",
)  # fmt: skip
@json_option
def command(**options: Any) -> None:
    """Choose hosts for a job, and create its groups on them, all or nothing.

    The manager chooses among hosts that can be reached and that have no job and no group. If the groups find no room
    on switches, it tries other hosts. The exit status is 1 if there are none, and nothing is left then.
    """
    from p4gen.cli.manager.do_place import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
