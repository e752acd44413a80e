"""``p4gen bench flow``: how the time of ``p4gen flow`` grows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from p4gen.cli.bench.options import seed_option
from p4gen.cli.options import json_option
from p4gen.cli.values import LateChoice
from p4gen.cli.verb import verb

_MOST_JOBS = 1000


def _choices() -> Iterable[str]:
    from p4gen.plan.flow.policies import POLICIES  # noqa: PLC0415 - wrong options are refused without it

    return POLICIES


@verb(examples=[("--policy temporal --policy ring", "two policies")])
@click.option("--policy", "policies", multiple=True, type=LateChoice(_choices), default=("temporal",),
              show_default=True, help="The policy; may be given several times.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(8, 100_000), default=_MOST_JOBS, show_default=True,
              help="Jobs of the largest simulation.")  # fmt: skip
@json_option
@seed_option
def command(**options: Any) -> None:
    """Measure the simulator of flows: seconds of processor time for Trace1's mix.

    First with an eighth of the jobs up to all of them on 2,048 hosts, then with an eighth of the jobs on 256 to 2,048
    hosts. Growth is beside the row before.
    """
    from p4gen.cli.bench.do_flow import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
