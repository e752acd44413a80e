"""``p4gen sim run``: a collective through the generated program over a virtual network, checked against NumPy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from p4gen.cli.files import write_text, writing
from p4gen.cli.options import report_console, spec_fields, spec_from
from p4gen.cli.sim.config import configuration
from p4gen.cli.sim.options import simulation_options
from p4gen.cli.sim.own import collective_names, own_options, own_run, refuse_own
from p4gen.cli.sim.plan import compared, planned
from p4gen.cli.sim.report import show_own, show_problems, show_traffic
from p4gen.cli.sim.schedule import play_schedule
from p4gen.cli.verb import verb
from p4gen.families import family_of
from p4gen.host.collectives.arrays import agreement
from p4gen.host.transport.clock import SECOND, duration_text
from p4gen.net.collectives.simulation import SimResult, Simulation
from p4gen.net.own import OwnRun, OwnRuns
from p4gen.net.views.capture import Capture
from p4gen.net.views.ladder import Ladder
from p4gen.net.views.notes import observe
from p4gen.net.world.link import Passage, Watcher
from p4gen.net.world.network import Network
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.message import Collective

R = TypeVar("R")


@verb(
    examples=[
        ("star-8 --mode III --size 4M", "AllReduce of 4 MiB by eight ranks"),
        ("tree-3-2 --mode II --loss 1% --seed 7", "with losses, repeatable"),
        ("star-4 --script 'drop the 3rd UP_DATA of rank 2' --ladder run.svg", "one loss, drawn as a diagram"),
        ("leaf-spine --mode multiwrite --collective dispatch --loss 1%", "tokens to their experts, by MultiWrite"),
        ("star-8 --mode scin --collective allgather --loss 1%", "started by the switch, which reads operands: SCIN"),
        ("leaf-spine --plan plan.json --size 4M", "over a tree of `p4gen route tree`"),
        ("--schedule build/counterexample/schedule.yaml", "the events that `p4gen verify --out` has written"),
    ]
)
@simulation_options(always=False, more=collective_names())
@own_options
@click.option(
    "--schedule",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Play the events that `p4gen verify --out` has written; the file says what runs.",
)
@click.option(
    "--plan",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Ranks and IncTree of a plan that `p4gen route tree --out` has written.",
)
@click.option("--capture", type=click.Path(path_type=Path, dir_okay=False), help="Write a pcapng file of all links.")
@click.option("--ladder", type=click.Path(path_type=Path, dir_okay=False), help="Draw the first packets as SVG.")
@click.pass_context
def command(
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
    """Run a collective over a virtual network.

    TOPOLOGY is a YAML file, a built-in topology's name (`p4gen topo` lists them), or clos:LxSxH (leaves, spines, hosts
    on each leaf). Every switch runs the generated program; ranks are NICs with reliable-connection queue pairs. Exit
    status 1 when a result is wrong, the run does not end, or a script drops nothing; the reason is printed. With
    --schedule, in place of TOPOLOGY and all that describes a run, events happen in the order of a file, and also
    what else was wrong with one, such as a packet that is sent for nothing, makes the exit status 1.
    """
    console = report_console(quiet=options["as_json"])
    if schedule is not None:
        passed, report = play_schedule(ctx, schedule, capture, ladder, console)
        if options["as_json"]:
            click.echo(json.dumps({"passed": passed} | report))
        ctx.exit(0 if passed else 1)
    if topology is None:
        raise click.UsageError("Missing argument 'TOPOLOGY'.", ctx)
    spec = spec_from(spec_file, {name: options[name] for name in spec_fields()})
    if plan is not None and family_of(spec).answers(OwnRuns):
        raise click.UsageError(f"--plan is for collectives of IncTrees, not for {spec.program}", ctx)
    own = own_run(topology, spec, options)
    if own is not None:
        ctx.exit(0 if _own(*own, capture, ladder, options, console) else 1)
    refuse_own(options)
    tree_plan = None
    if plan is None:
        config = configuration(topology, spec_file, options, studied=False)
    else:
        config, tree_plan = planned(topology, spec_file, options, plan)
    console.print(f"seed {config.seed}")
    simulation = Simulation(config)
    specs = dict.fromkeys(config.topology.switches, config.program)
    result = _run(simulation.run, simulation.network, specs, str(config.collective), capture, ladder, console)
    _show(result, console)
    if tree_plan is not None:
        console.print(compared(tree_plan, result))
    passed = result.ok and not result.silent
    if options["as_json"]:
        click.echo(json.dumps({"seed": config.seed, "passed": passed} | result.to_dict()))
    ctx.exit(0 if passed else 1)


def _own(
    run: OwnRun, seed: int, capture: Path | None, ladder: Path | None, options: Mapping[str, Any], console: Console
) -> bool:
    """A run that a family brings itself. Returns whether it ended as it should."""
    console.print(f"seed {seed}")
    result = _run(run.run, run.network, run.programs, run.title, capture, ladder, console)
    show_own(run.title, result, options["repeat"], console)
    passed = result.ok and not result.silent
    if options["as_json"]:
        said = {"seed": seed, "passed": passed, "topology": run.network.topology.name}
        click.echo(json.dumps(said | result.to_dict()))
    return passed


def _run(
    go: Callable[[Callable[[int, int], None]], R],
    network: Network,
    specs: Mapping[str, ProgramSpec],
    title: str,
    capture: Path | None,
    ladder: Path | None,
    console: Console,
) -> R:
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
            observe(network, specs, drawing.note, lambda: not drawing.full)
        if watchers:

            def watch(passage: Passage) -> None:
                for watcher in watchers:
                    watcher(passage)

            network.watch(watch)
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
            task = bar.add_task(title, total=None)
            result = go(lambda done, total: bar.update(task, completed=done, total=total))
    if ladder is not None and drawing is not None:
        write_text(ladder, drawing.svg())
    for file_written in (capture, ladder):
        if file_written is not None:
            console.print(f"wrote {file_written}")
    return result


def _show(result: SimResult, console: Console) -> None:
    config = result.config
    what = f"{config.collective} of {config.size:,} bytes" if config.size else str(config.collective)
    ranks = len(config.topology.rank_hosts)
    groups = f"{len(config.jobs)} groups of " if len(config.jobs) > 1 else ""
    console.print(
        f"{what}, {groups}{ranks} ranks on {config.topology.name}, {config.program.program}, {config.nic_recovery}"
    )
    if result.ended:
        rate = f"algorithm throughput {result.throughput / 1e9:.2f} Gb/s, " if config.size else ""
        each = result.duration // config.repeat
        per_second = f" ({SECOND / each:,.0f} a second)" if config.collective is Collective.BARRIER else ""
        console.print(f"{rate}completion time {duration_text(each)}{per_second}")
    show_traffic(result, console)
    show_problems(result.diagnosis.lines() if result.diagnosis is not None else (), result, console)
    if result.ok:
        agrees = f"every rank's result {agreement(config.program.dtype)}"
        console.print(f"[green]{agrees if config.size else 'synchronised'}[/green]")
