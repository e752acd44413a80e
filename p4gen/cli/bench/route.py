"""``p4gen bench route``: how the time of ``p4gen route`` grows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from p4gen.cli.bench.options import seed_option
from p4gen.cli.options import json_option
from p4gen.cli.values import LateChoice
from p4gen.cli.verb import FiniteRange, verb


def _choices() -> Iterable[str]:
    from p4gen.plan.route.study import ALGORITHMS  # noqa: PLC0415 - wrong options are refused without it

    return ALGORITHMS


@verb(examples=[("--algorithm aro --algorithm aro-raw --algorithm aro-acc", "beside the paper's program")])
@click.option("--algorithm", "algorithms", multiple=True, type=LateChoice(_choices), default=("aro",),
              show_default=True, help="The algorithm; may be given several times.")  # fmt: skip
@click.option("--largest", type=click.IntRange(1, 40), default=10, show_default=True,
              help="The largest scale; 1 is 24 leaves.")  # fmt: skip
@click.option("--time-limit", type=FiniteRange(min=0.01, max=86_400), default=60.0, show_default=True,
              help="Seconds for each plan.")  # fmt: skip
@json_option
@seed_option
def command(**options: Any) -> None:
    """Measure routing: seconds of processor time for one task, on leaf-spine fabrics of 48 switches and more.

    Leaves, spines, hosts of each leaf and workers grow alike. Growth is beside the row before.
    """
    from p4gen.cli.bench.do_route import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
