"""``p4gen bench flow``: how the time of ``p4gen flow`` grows."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.console import Console
from rich.table import Table

from p4gen.bench.flow import measure_flow
from p4gen.cli.bench.options import seed_option
from p4gen.cli.options import json_option
from p4gen.cli.verb import verb
from p4gen.plan.flow.policies import POLICIES

_MOST_JOBS = 1000
_STEPS = (1, 2, 4, 8)


@verb(examples=[("--policy temporal --policy ring", "two policies")])
@click.option("--policy", "policies", multiple=True, type=click.Choice(list(POLICIES)), default=("temporal",),
              show_default=True, help="The policy; may be given several times.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(8, 100_000), default=_MOST_JOBS, show_default=True,
              help="Jobs of the largest simulation.")  # fmt: skip
@json_option
@seed_option
def command(policies: tuple[str, ...], jobs: int, as_json: bool, seed: int) -> None:
    """Measure the simulator of flows: seconds of processor time for Trace1's mix.

    First with an eighth of the jobs up to all of them on 2,048 hosts, then with an eighth of the jobs on 256 to 2,048
    hosts. Growth is beside the row before.
    """
    console = Console(highlight=False, soft_wrap=True, quiet=as_json)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("policy", "hosts", "jobs", "events", "s", "growth"):
        table.add_column(head, justify="left" if head == "policy" else "right")
    reports = []
    measure_flow(8, 1, policies[0], seed)  # what only the first simulation of a process takes
    for policy in policies:
        few = max(1, jobs // _STEPS[-1])
        for sizes in ([(few * step, 8) for step in _STEPS], [(few, step) for step in _STEPS]):
            before = None
            for number, pods in sizes:
                cost = measure_flow(number, pods, policy, seed)
                growth = f"{cost.cpu / before:.2f}" if before else ""
                table.add_row(
                    policy, f"{cost.hosts:,}", f"{cost.jobs:,}", f"{cost.events:,}", f"{cost.cpu:.1f}", growth
                )
                before = cost.cpu
                reports.append(asdict(cost))
    console.print(table)
    if as_json:
        click.echo(json.dumps({"seed": seed, "simulations": reports}))
