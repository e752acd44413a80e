"""The work of ``p4gen flow run``: a workload under one or several policies."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from p4gen.cli.files import write_text, writing
from p4gen.cli.options import report_console
from p4gen.experiments.plot import write_cdf
from p4gen.inputs import drawn
from p4gen.plan.flow.fabric import FABRICS
from p4gen.plan.flow.jobs import Job
from p4gen.plan.flow.report import jobs_csv
from p4gen.plan.flow.simulate import Result, Setting, Simulation
from p4gen.plan.flow.workload import load_workload


def do(
    workload: str,
    policies: tuple[str, ...],
    fabric: str | None,
    slots: int | None,
    volume: str | None,
    csv_file: Path | None,
    plot: Path | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Run the command with these options."""
    found = load_workload(workload)
    seed = drawn(seed)
    console = report_console(quiet=as_json)
    console.print(f"seed {seed}")
    results: dict[str, Result] = {}
    took: dict[str, float] = {}
    for policy in policies or found.policies:
        began = time.monotonic()
        setting = found.setting(policy, seed, slots=slots, volume=volume, fabric=FABRICS[fabric] if fabric else None)
        results[policy] = _run(policy, setting, found.jobs(seed), console)
        took[policy] = time.monotonic() - began
    _show(results, took, console)
    if csv_file is not None:
        write_text(csv_file, jobs_csv(results))
        console.print(f"wrote {csv_file}")
    if plot is not None:
        series = {policy: [o.jct for o in result.outcomes] for policy, result in results.items()}
        with writing(plot):
            write_cdf(plot, found.name, "job completion time, s", "share of jobs", series)
        console.print(f"wrote {plot}")
    if as_json:
        click.echo(json.dumps({"workload": found.name, "seed": seed, "policies": _json(results)}))


def _run(policy: str, setting: Setting, jobs: list[Job], console: Console) -> Result:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(f"jobs, {policy}", total=len(jobs))
        return Simulation(setting, jobs, lambda done, _now: bar.update(task, completed=done)).run()


def _show(results: dict[str, Result], took: dict[str, float], console: Console) -> None:
    heads = ("jobs", "mean JCT, s", "median", "p99", "by switches", "all ended, s", "events", "run time, s")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("policy")
    for head in heads:
        table.add_column(head, justify="right")
    for policy, result in results.items():
        table.add_row(
            policy,
            str(len(result.outcomes)),
            f"{result.mean_jct:,.2f}",
            f"{result.percentile(0.5):,.2f}",
            f"{result.percentile(0.99):,.2f}",
            f"{result.share_granted:.0%}",
            f"{result.ended:,.1f}",
            f"{result.events:,}",
            f"{took[policy]:.1f}",
        )
    console.print(table)


def _json(results: dict[str, Result]) -> dict[str, Any]:
    return {
        policy: {
            "mean_jct": result.mean_jct,
            "p50": result.percentile(0.5),
            "p99": result.percentile(0.99),
            "share_by_switches": result.share_granted,
            "ended": result.ended,
            "events": result.events,
            "moved": result.moved,
            "jobs": [
                {"name": o.name, "gpus": o.gpus, "submitted": o.submitted, "began": o.began, "ended": o.ended}
                for o in result.outcomes
            ],
        }
        for policy, result in results.items()
    }
