"""``p4gen topo``: check a topology, describe it, draw it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from p4gen.cli.options import json_option
from p4gen.cli.values import TOPOLOGY
from p4gen.cli.verb import verb


@verb(
    examples=[
        ("", "the built-in topologies"),
        ("tree-3-2 --svg tree.svg", "describe one, and draw it"),
        ("mine.yaml", "check your own"),
    ]
)
@click.argument("topology", type=TOPOLOGY, required=False)
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Draw it into this file.")
@json_option
def command(**options: Any) -> None:
    """Check a topology, describe it, and draw it. Without one, list those that are built in.

    TOPOLOGY is a YAML file, the name of a built-in one, clos:LxSxH (leaves, spines, hosts on each leaf), or
    clos3:PxLxAxCxH (pods, leaves and aggregation switches of a pod, cores for each of these, hosts on each leaf).
    """
    from p4gen.cli.do_topo import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
