"""``p4gen route jobs``: trees of several jobs planned together, on any topology."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from p4gen.cli.common import engine_option
from p4gen.cli.options import json_option
from p4gen.cli.seeds import seed_option
from p4gen.cli.values import TOPOLOGY
from p4gen.cli.verb import FiniteRange, verb


@verb(
    examples=[
        ("fat-tree-k4 jobs.yaml --out plan.json", "for P4GEN_PLAN and p4gen manager serve --policy aro"),
        ("fat-tree-k4 jobs.yaml --run 4M --seed 1", "also the plan's rates on packets"),
    ]
)
@click.argument("topology", type=TOPOLOGY)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--pipelines", type=click.Choice(["1", "2", "4"]), default="1", show_default=True,
              help="Of the switches' programs; internal edges join them.")  # fmt: skip
@click.option("--ports", type=click.IntRange(1, 512), default=None, help="Of the switches' programs.  [32, or more]")
@click.option("--fan-in", type=click.IntRange(2, 32), default=32, show_default=True, help="Most edges of a node.")
@click.option("--time-limit", type=FiniteRange(min=0.01, max=86_400), default=60.0, show_default=True,
              help="Seconds for the integer programs.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the plan.")
@click.option("--run", default=None, metavar="BYTES",
              help="Run the plan on packets: an AllReduce of each job at the same time.")  # fmt: skip
@click.option("--mode", type=click.Choice(["II", "III"]), default="II", show_default=True, help="Of EPIC, for --run.")
@engine_option
@seed_option("the data of --run.")
@json_option
def command(**options: Any) -> None:
    """Plan the trees of several jobs together.

    TOPOLOGY is a YAML file or a name, as for `p4gen sim`. FILE has the jobs, in YAML: each with its ranks, a weight,
    and how many trees it may have; the switches that aggregate; and the bandwidth that links have to spare. The least
    of the jobs' rates, in parts of their weights, is as high as can be (ARO's formula 3). With --run, exit status 1 if
    a job's goodput is not 0.95 to 1.02 of that predicted.
    """
    from p4gen.cli.route.do_jobs import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
