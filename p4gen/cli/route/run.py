"""``p4gen route run``: aggregator-aware routing on random leaf-spine fabrics, beside the paper's baselines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from p4gen.cli.options import json_option
from p4gen.cli.seeds import seed_option
from p4gen.cli.verb import FiniteRange, verb
from p4gen.plan.route.instance import MAPPINGS
from p4gen.plan.route.study import (
    ALGORITHMS,
    JOINT_ALGORITHMS,
    USUAL,
)


@verb(
    examples=[
        ("--seed 0 --repeat 30", "the paper's Figure 7a"),
        ("--seed 0 --repeat 3 --tasks 4", "one job of four tasks: Figure 9"),
        ("--seed 3 --plot route.svg --out plan.json", "one instance: its picture, its paths"),
        ("--fabric 8x4x8 --workers 20 --pipelines 2 --algorithm aro --seed 1", "a smaller fabric, the best plan only"),
    ]
)
@click.option("--fabric", default="24x24x24", show_default=True, metavar="LxSxH",
              help="Leaves, spines, hosts of each leaf.")  # fmt: skip
@click.option("--workers", type=click.IntRange(1, 100_000), default=None,
              help="Hosts that send to the parameter server, of each job.  [200, of several tasks 100]")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1, 24), default=1, show_default=True,
              help="Jobs, each with workers of its own.")  # fmt: skip
@click.option("--tasks", type=click.IntRange(1, 24), default=1, show_default=True,
              help="Tasks of each job, each with a parameter server of its own.")  # fmt: skip
@click.option("--ina", default="20%", show_default=True, metavar="SHARE", help="Switches that aggregate.")
@click.option("--pipelines", type=click.IntRange(1, 64), default=4, show_default=True, help="Of an aggregator.")
@click.option("--mapping", type=click.Choice(MAPPINGS), default="mod", show_default=True,
              help="How ports belong to pipelines.")  # fmt: skip
@click.option("--algorithm", "algorithms", multiple=True, type=click.Choice(list({**ALGORITHMS, **JOINT_ALGORITHMS})),
              help=f"Only this one; may be repeated.  [{', '.join(USUAL)}]")  # fmt: skip
@click.option("--alpha", default="60%", show_default=True, metavar="SHARE",
              help="aro-app, aro-acc: the aggregating spines that a task keeps.")  # fmt: skip
@click.option("--steps", type=click.IntRange(1, 10_000), default=100, show_default=True,
              help="aro-qsr: rates are whole multiples of a link's over so many.")  # fmt: skip
@click.option("--repeat", type=click.IntRange(1, 10_000), default=1, show_default=True,
              help="Instances, with seeds from the given one on.")  # fmt: skip
@click.option("--time-limit", type=FiniteRange(min=0.01, max=86_400), default=60.0, show_default=True,
              help="Seconds for each integer program.")  # fmt: skip
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw the first instance's best plan.")
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the first instance's plans as JSON."
)
@seed_option("the instances.")
@json_option
def command(**options: Any) -> None:
    """Route workers to parameter servers so that the slowest worker is as fast as can be (ARO).

    With --tasks a job's data is divided among several servers, and its rate is the sum of its tasks' (SJMT); with
    --jobs the slowest job is to be as fast as can be (MJMT). A leaf-spine fabric with links of 100 Gb/s, some of whose
    switches aggregate, is drawn at random, with its workers. Algorithms: random, grid and aggtree (the paper's
    baselines), aro (the optimum; of several tasks the best plans that are found, and their gap), aro-raw (the paper's
    integer program, by HiGHS; of several tasks one program of flows times rates), aro-qsr (the same of several tasks,
    with rates in steps), aro-sro, aro-app and aro-acc (two stages, fewer spines, both).
    """
    from p4gen.cli.route.do_run import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
