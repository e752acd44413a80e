"""``p4gen flow run``: a workload under one or several policies."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from p4gen.cli.options import json_option
from p4gen.cli.seeds import seed_option
from p4gen.cli.values import LateChoice
from p4gen.cli.verb import verb


def _policies() -> Iterable[str]:
    from p4gen.plan.flow.policies import ALL_POLICIES  # noqa: PLC0415 - wrong options are refused without it

    return ALL_POLICIES


def _fabrics() -> Iterable[str]:
    from p4gen.plan.flow.fabric import FABRICS  # noqa: PLC0415 - wrong options are refused without it

    return FABRICS


@verb(
    examples=[
        ("trace1 --seed 1", "EPIC's first mix of jobs on 2,048 GPUs, under all policies: about a minute"),
        ("trace2 --fabric epic-2048-half-core --seed 1", "the third mix: the second one with half as many cores"),
        ("mine.yaml --policy temporal --policy ring --csv jobs.csv --plot jct.svg", "your own"),
    ]
)
@click.argument("workload", metavar="FILE|NAME")
@click.option("--policy", "policies", multiple=True, type=LateChoice(_policies), help="Only this one; may be repeated.")
@click.option("--fabric", type=LateChoice(_fabrics), help="One of the paper's fabrics instead of the file's.")
@click.option("--slots", type=click.IntRange(0, 1 << 20), help="Groups that a switch serves at the same time.")
@click.option("--volume", type=click.Choice(["paper", "exact"]), help="How much collectives move over a link.")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path, dir_okay=False), help="Write all jobs here.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw the distribution of JCTs here.")
@seed_option("the jobs that are drawn, and of their places.")
@json_option
def command(**options: Any) -> None:
    """Simulate jobs on a fat tree as flows with max-min fair rates, and report job completion times (JCT).

    FILE is a workload in YAML (docs/policies.md); trace1 and trace2 are built in, and lingjun:FOLDER reads a copy of
    Alibaba's Lingjun data set. Policies: ring (no aggregation in switches), edge-disjoint, spatial, temporal,
    and scheduled, where groups of a job that call in different phases share a slot.
    """
    from p4gen.cli.flow.do_run import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
