"""The work of ``p4gen bench route``: how the time of ``p4gen route`` grows."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.console import Console
from rich.table import Table

from p4gen.bench.route import measure_route

_SCALES = (1, 2, 3, 5, 7, 10)


def do(algorithms: tuple[str, ...], largest: int, time_limit: float, as_json: bool, seed: int) -> None:
    """Run the command with these options."""
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
