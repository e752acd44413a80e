"""The work of ``p4gen route jobs``: trees of several jobs planned together."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from p4gen.cli.files import write_text
from p4gen.cli.options import report_console
from p4gen.cli.route.do_tree import program_ports
from p4gen.inputs import drawn, parsed
from p4gen.model import ENGINES
from p4gen.plan.route.jobsfile import load_jobs
from p4gen.plan.route.jobsplan import JobsPlan
from p4gen.plan.route.jobsrun import JobRun, run_jobs
from p4gen.plan.route.together import plan_together, value
from p4gen.vocabulary import units
from p4gen.vocabulary.topology import load_topology


def do(
    topology: str,
    file: Path,
    pipelines: str,
    ports: int | None,
    fan_in: int,
    time_limit: float,
    out: Path | None,
    run: str | None,
    mode: str,
    engine: str,
    seed: int | None,
    as_json: bool,
) -> None:
    """Run the command with these options."""
    spec = load_topology(topology)
    size = None if run is None else parsed("run", units.size, run)
    console = report_console(quiet=as_json)
    jobs = load_jobs(file, spec, fan_in)
    plan = JobsPlan.of(plan_together(jobs, time_limit), int(pipelines), program_ports(spec, ports, int(pipelines)))
    runs: tuple[JobRun, ...] = ()
    if size is not None:
        seed = drawn(seed)
        console.print(f"seed {seed}")
        runs = run_jobs(plan, mode, size, seed, next(name for name in ENGINES if name == engine))
    _show(plan, runs, console)
    content = plan.to_json()
    if out is not None:
        write_text(out, json.dumps(content, indent=1) + "\n")
        console.print(f"wrote {out}")
    if as_json:
        goodput = {each.name: {"predicted_bps": each.predicted, "bps": each.measured} for each in runs}
        click.echo(json.dumps({"seed": seed, "goodput": goodput, **content}))
    sys.exit(0 if all(each.ok for each in runs) else 1)


def _show(plan: JobsPlan, runs: tuple[JobRun, ...], console: Console) -> None:
    first = plan.plans[0].first
    inc, switches = len(first.inc), len(first.topology.switches)
    console.print(
        f"{len(plan.jobs)} jobs on {first.topology.name}; {inc} of {switches} switches aggregate; rates in Gb/s, with "
        "headers"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("job")
    for head in ("ranks", "weight", "trees", "rate", "alone", *(("goodput", "predicted", "ratio") if runs else ())):
        table.add_column(head, justify="right")
    for number, (job, each) in enumerate(zip(plan.jobs, plan.plans, strict=True)):
        found = [f"{rate / 1e9:.2f}" for rate in (runs[number].measured, runs[number].predicted)] if runs else []
        table.add_row(
            job.name,
            str(len(job.fabric.ranks)),
            f"{job.weight:g}",
            str(len(each.plans)),
            f"{each.rate / 1e9:.2f}",
            f"{max(tree.shape.rate(job.fabric) for tree in each.plans) / 1e9:.2f}",
            *found,
            *([f"{runs[number].ratio:.3f}"] if runs else []),
        )
    console.print(table)
    full = [name for name, load in plan.loads.items() if load >= 0.999 * plan.jobs[0].fabric.bandwidths[name]]
    console.print(f"full links: {', '.join(sorted(full)) or 'none'}")
    console.print(
        f"the least rate for its weight, and a thousandth of all: {value(plan.jobs, plan.rates) / 1e9:.2f} Gb/s; "
        f"no plan has more than {plan.bound / 1e9:.2f}: gap {plan.gap:.1%}"
    )
