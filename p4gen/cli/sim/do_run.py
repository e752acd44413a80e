"""The work of ``p4gen sim run``: a collective over a virtual network, checked against NumPy."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from p4gen.cli.files import write_text, writing
from p4gen.cli.nccltests import asked_range
from p4gen.cli.options import report_console, spec_fields, spec_from
from p4gen.cli.sim.asked import asked_job
from p4gen.cli.sim.nccl import tabulate
from p4gen.cli.sim.plan import compared, planned
from p4gen.cli.sim.report import show
from p4gen.cli.sim.schedule import play_schedule
from p4gen.experiments.nccltests import BandwidthTable
from p4gen.families import family_of
from p4gen.inputs import drawn
from p4gen.net.collectives.simulation import SimResult, Simulation
from p4gen.net.job import Job
from p4gen.net.result import RunResult
from p4gen.net.runs import Runs
from p4gen.net.views.capture import Capture
from p4gen.net.views.ladder import Ladder
from p4gen.net.views.notes import observe
from p4gen.net.world.watching import Passage, Watcher
from p4gen.vocabulary.topology import load_topology

R = TypeVar("R", bound=RunResult)


def do(
    ctx: click.Context,
    /,
    topology: str | None,
    spec_file: Path | None,
    schedule: Path | None,
    plan: Path | None,
    capture: Path | None,
    ladder: Path | None,
    **options: Any,
) -> None:
    """Run the command with these options."""
    console = report_console(quiet=options["as_json"])
    wanted = asked_range(options, options["collective"] or "")
    if wanted is not None and (other := [each for each in (schedule, plan, capture, ladder) if each is not None]):
        raise click.UsageError(f"--nccl-tests is many runs, without {other[0]}", ctx)
    if schedule is not None:
        passed, report = play_schedule(ctx, schedule, capture, ladder, console)
        if options["as_json"]:
            click.echo(json.dumps({"passed": passed} | report))
        ctx.exit(0 if passed else 1)
    if topology is None:
        raise click.UsageError("Missing argument 'TOPOLOGY'.", ctx)
    spec = spec_from(spec_file, {name: options[name] for name in spec_fields()})
    if wanted is not None:
        if options["concurrent"] != 1:
            raise click.UsageError("--concurrent does not go with --nccl-tests, which is about one group", ctx)
        seed, collective = drawn(options["seed"]), options["collective"] or family_of(spec).facet(Runs).collectives[0]
        table = BandwidthTable(spec, collective, len(load_topology(topology).rank_hosts), options["root"])

        def sized(size: int) -> Job[Any, RunResult]:
            return asked_job(topology, spec, {**options, "seed": seed, "size": str(size) if size else None})[0]

        console.print(f"seed {seed}")
        passed, report = tabulate(table, table.sizes(*wanted), options["repeat"], sized, console)
        if options["as_json"]:
            click.echo(json.dumps({"seed": seed} | report))
        ctx.exit(0 if passed else 1)
    tree_plan = None
    job: Job[Any, RunResult]
    if plan is None:
        job, seed = asked_job(topology, spec, options)
    elif options["jobs"]:
        raise click.UsageError("--plan is for one group, not for --jobs", ctx)
    elif "plan" not in family_of(spec).facet(Runs).also:
        raise click.UsageError(f"--plan is for collectives of IncTrees, not for {spec.program}", ctx)
    else:
        config, tree_plan = planned(topology, spec_file, options, plan)
        job, seed = Simulation(config), config.seed
    console.print(f"seed {seed}")
    result = _run(job, capture, ladder, console)
    show(job.title, result, console)
    if tree_plan is not None and isinstance(result, SimResult):
        console.print(compared(tree_plan, result))
    passed = result.ok and not result.silent
    if options["as_json"]:
        said = {"seed": seed, "passed": passed, "topology": job.network.topology.name}
        click.echo(json.dumps(said | result.to_dict()))
    ctx.exit(0 if passed else 1)


def _run(job: Job[Any, R], capture: Path | None, ladder: Path | None, console: Console) -> R:
    network = job.network
    watchers: list[Watcher] = []
    drawing = None
    with ExitStack() as stack:
        if capture is not None:
            with writing(capture):
                file = stack.enter_context(capture.open("wb"))
            watchers.append(Capture(file, network.directions))
        if ladder is not None:
            drawing = Ladder([*network.topology.hosts, *network.topology.switches], network.kinds)
            watchers.append(drawing)
            observe(network, job.specs, drawing.note, lambda: not drawing.full)
        if watchers:

            def watch(passage: Passage) -> None:
                for watcher in watchers:
                    watcher(passage)

            network.watch(watch)
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
            task = bar.add_task(network.waits_for or job.title, total=None)
            result = job.run(lambda done, total: bar.update(task, completed=done, total=total, description=job.title))
    if ladder is not None and drawing is not None:
        write_text(ladder, drawing.svg())
    for file_written in (capture, ladder):
        if file_written is not None:
            console.print(f"wrote {file_written}")
    return result
