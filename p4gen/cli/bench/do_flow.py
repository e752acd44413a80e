"""The work of ``p4gen bench flow``: how the time of ``p4gen flow`` grows."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.console import Console
from rich.table import Table

from p4gen.bench.flow import measure_flow

_STEPS = (1, 2, 4, 8)


def do(policies: tuple[str, ...], jobs: int, as_json: bool, seed: int) -> None:
    """Run the command with these options."""
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
