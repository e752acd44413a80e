"""``p4gen bench route``: how the time of ``p4gen route`` grows."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.console import Console
from rich.table import Table

from p4gen.bench.route import measure_route
from p4gen.cli.bench.options import seed_option
from p4gen.cli.options import json_option
from p4gen.cli.verb import FiniteRange, verb
from p4gen.plan.route.study import ALGORITHMS

_SCALES = (1, 2, 3, 5, 7, 10)


@verb(examples=[("--algorithm aro --algorithm aro-raw --algorithm aro-acc", "beside the paper's program")])
@click.option("--algorithm", "algorithms", multiple=True, type=click.Choice(list(ALGORITHMS)), default=("aro",),
              show_default=True, help="The algorithm; may be given several times.")  # fmt: skip
@click.option("--largest", type=click.IntRange(1, 40), default=10, show_default=True,
              help="The largest scale; 1 is 24 leaves.")  # fmt: skip
@click.option("--time-limit", type=FiniteRange(min=0.01, max=86_400), default=60.0, show_default=True,
              help="Seconds for each plan.")  # fmt: skip
@json_option
@seed_option
def command(algorithms: tuple[str, ...], largest: int, time_limit: float, as_json: bool, seed: int) -> None:
    """Measure routing: seconds of processor time for one task, on leaf-spine fabrics of 48 switches and more.

    Leaves, spines, hosts of each leaf and workers grow alike. Growth is beside the row before.
    """
    console = Console(highlight=False, soft_wrap=True, quiet=as_json)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("algorithm", "switches", "hosts", "workers", "fullest", "gap", "s", "growth"):
        table.add_column(head, justify="left" if head == "algorithm" else "right")
    reports = []
    measure_route(algorithms[0], 1, seed, time_limit)  # what only the first solution of a process takes
    for algorithm in algorithms:
        before = None
        for scale in [scale for scale in _SCALES if scale < largest] + [largest]:
            cost = measure_route(algorithm, scale, seed, time_limit)
            growth = f"{cost.cpu / before:.2f}" if before else ""
            gap = "" if cost.gap is None else f"{cost.gap:.1%}"
            table.add_row(
                algorithm, f"{cost.switches}", f"{cost.hosts:,}", f"{cost.workers:,}", f"{cost.fullest}", gap,
                f"{cost.cpu:.2f}", growth,
            )  # fmt: skip
            before = cost.cpu
            reports.append(asdict(cost))
    console.print(table)
    if as_json:
        click.echo(json.dumps({"seed": seed, "plans": reports}))
