"""``p4gen route tree``: the fastest IncTree of a group on a topology."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from p4gen.cli.options import json_option
from p4gen.cli.seeds import seed_option
from p4gen.cli.values import TOPOLOGY
from p4gen.cli.verb import FiniteRange, verb


@verb(
    examples=[
        ("leaf-spine --inc leaf0,leaf1,spine1 --out plan.json", "some switches aggregate; p4gen sim --plan runs it"),
        ("clos:4x4x8 --ranks 24 --ina 40% --seed 1", "ranks and switches are drawn"),
        ("fat-tree-k4 --pipelines 2", "all switches aggregate"),
        ("clos:4x4x2 --inc leaf0,spine1,spine2 --trees 3", "several trees, if they are faster together"),
        ("clos:4x4x2 --ina 40% --seed 2 --plot tree.svg", "a picture of the tree"),
    ]
)
@click.argument("topology", type=TOPOLOGY)
@click.option("--ranks", default=None, metavar="NAMES|N",
              help="Hosts in order of rank, such as h0,h5,h2; or how many are drawn.  [the topology's]")  # fmt: skip
@click.option("--inc", default=None, metavar="NAMES", help="Switches that aggregate, such as leaf0,spine1.  [all]")
@click.option("--ina", default=None, metavar="SHARE", help="Share of the switches that aggregate, drawn.")
@click.option("--pipelines", type=click.Choice(["1", "2", "4"]), default="1", show_default=True,
              help="Of the switches' programs; internal edges join them.")  # fmt: skip
@click.option("--ports", type=click.IntRange(1, 512), default=None, help="Of the switches' programs.  [32, or more]")
@click.option("--fan-in", type=click.IntRange(2, 32), default=32, show_default=True, help="Most edges of a node.")
@click.option("--trees", type=click.IntRange(1, 8), default=1, show_default=True,
              help="Most trees that divide each call's data among them.")  # fmt: skip
@click.option("--time-limit", type=FiniteRange(min=0.01, max=86_400), default=60.0, show_default=True,
              help="Seconds for the integer program.")  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the best tree, or trees, as a plan."
)
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw the best tree, or trees.")
@seed_option("what is drawn.")
@json_option
def command(**options: Any) -> None:
    """Find the fastest IncTree of a group on a topology.

    TOPOLOGY is a YAML file or a name, as for `p4gen sim`. Switches that aggregate are the tree's nodes where its flows
    meet them; the others forward. The rate is that of the slowest rank, when every link divides itself equally among
    its flows. Algorithms: lcs (what the manager places by default), one-root (shortest paths to one root), quick (a
    search without a solver) and aro (the optimum, by HiGHS). With --trees, several trees that share links, each for a
    part of each call's data, with the highest rate in all.
    """
    from p4gen.cli.route.do_tree import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
