"""``p4gen sim run``: a collective through the generated program over a virtual network, checked against NumPy."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from p4gen.cli.files import write_text, writing
from p4gen.cli.options import report_console
from p4gen.cli.sim.config import configuration
from p4gen.cli.sim.options import simulation_options
from p4gen.cli.sim.schedule import play_schedule
from p4gen.cli.verb import verb
from p4gen.host.collectives.arrays import agreement
from p4gen.host.collectives.control import Collective
from p4gen.host.transport.clock import SECOND, duration_text
from p4gen.net.capture import Capture
from p4gen.net.ladder import Ladder
from p4gen.net.link import Passage, Watcher
from p4gen.net.notes import observe
from p4gen.net.simulation import SimConfig, SimResult, Simulation

_BUSIEST = 8


@verb(
    examples=[
        ("star-8 --mode III --size 4M", "AllReduce of 4 MiB by eight ranks"),
        ("tree-3-2 --mode II --loss 1% --seed 7", "with losses, repeatable"),
        ("star-4 --script 'drop the 3rd UP_DATA of rank 2' --ladder run.svg", "one loss, drawn as a diagram"),
        ("--schedule build/counterexample/schedule.yaml", "the events that `p4gen verify --out` has written"),
    ]
)
@simulation_options(always=False)
@click.option(
    "--schedule",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Play the events that `p4gen verify --out` has written; the file says what runs.",
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
    capture: Path | None,
    ladder: Path | None,
    **options: Any,
) -> None:
    """Run a collective over a virtual network.

    TOPOLOGY is a YAML file, or one of star-4, star-8, tree-3-2, tree-3-4, tree-5-2, leaf-spine, fat-tree-k4,
    or clos:LxSxH (leaves, spines, hosts on each leaf). Every
    switch runs the generated program; ranks are NICs with reliable-connection queue pairs. Exit status 1 when a
    result is wrong, the run does not end, or a script drops nothing; the reason is printed. With --schedule, in place
    of TOPOLOGY and all that describes a run, events happen in the order of a file, and also what else was wrong with
    one, such as a packet that is sent for nothing, makes the exit status 1.
    """
    console = report_console(quiet=options["as_json"])
    if schedule is not None:
        passed, report = play_schedule(ctx, schedule, capture, ladder, console)
        if options["as_json"]:
            click.echo(json.dumps({"passed": passed} | report))
        ctx.exit(0 if passed else 1)
    if topology is None:
        raise click.UsageError("Missing argument 'TOPOLOGY'.", ctx)
    config = configuration(topology, spec_file, options, studied=False)
    console.print(f"seed {config.seed}")
    result = _run(config, capture, ladder, console)
    _show(result, console)
    passed = result.ok and not result.silent
    if options["as_json"]:
        click.echo(json.dumps({"seed": config.seed, "passed": passed} | _json(result)))
    ctx.exit(0 if passed else 1)


def _run(config: SimConfig, capture: Path | None, ladder: Path | None, console: Console) -> SimResult:
    simulation = Simulation(config)
    network = simulation.network
    watchers: list[Watcher] = []
    drawing = None
    with ExitStack() as stack:
        if capture is not None:
            with writing(capture):
                file = stack.enter_context(capture.open("wb"))
            watchers.append(Capture(file, network.directions))
        if ladder is not None:
            drawing = Ladder([*config.topology.hosts, *config.topology.switches], network.kinds)
            watchers.append(drawing)
            specs = dict.fromkeys(config.topology.switches, config.program)
            observe(network, specs, drawing.note, lambda: not drawing.full)
        if watchers:

            def watch(passage: Passage) -> None:
                for watcher in watchers:
                    watcher(passage)

            network.watch(watch)
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
            task = bar.add_task(str(config.collective), total=None)
            result = simulation.run(lambda done, total: bar.update(task, completed=done, total=total))
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
    console.print(
        f"{result.sent} packets sent by ranks, {result.resent} of them retransmissions; {result.timeouts} timeouts, "
        f"{result.naks} NAKs, {result.cnps} CNPs; {result.packet_hops} packet-hops in all"
    )
    if result.drops:
        table = Table("dropped", "packets", box=None, pad_edge=False, header_style="bold")
        for reason, count in result.drops.most_common():
            table.add_row(reason, f"{count:,}")
        console.print(table)
    table = Table("busiest links", "packets", "utilisation", "marked", box=None, pad_edge=False, header_style="bold")
    for link in sorted(result.links, key=lambda use: -use.utilisation)[:_BUSIEST]:
        table.add_row(
            link.name, f"{link.packets:,}", f"{link.utilisation:.1%}", f"{link.marked:,}" if link.marked else ""
        )
    console.print(table)
    if result.diagnosis is not None:
        console.print("[red]did not end[/red]")
        for line in result.diagnosis.lines():
            console.print(f"  {line}", markup=False)
    for error in result.errors:
        console.print(f"[red]wrong[/red]  {error}")
    for script in result.silent:
        console.print("[red]script[/red]  ", end="")
        console.print(script, markup=False)
    if result.ok:
        agrees = f"every rank's result {agreement(config.program.dtype)}"
        console.print(f"[green]{agrees if config.size else 'synchronised'}[/green]")


def _json(result: SimResult) -> dict[str, Any]:
    diagnosis = result.diagnosis
    return {
        "topology": result.config.topology.name,
        "program": result.config.program.program,
        "collective": str(result.config.collective),
        "size": result.config.size,
        "ended": result.ended,
        "correct": result.correct,
        "errors": list(result.errors),
        "gbps": round(result.throughput / 1e9, 3),
        "seconds": result.duration / SECOND,
        "seconds_to_last_result": None if result.last_result is None else result.last_result / SECOND,
        "sent": result.sent,
        "resent": result.resent,
        "timeouts": result.timeouts,
        "naks": result.naks,
        "cnps": result.cnps,
        "packet_hops": result.packet_hops,
        "drops": dict(result.drops.most_common()),
        "links": {link.name: {"packets": link.packets, "utilisation": link.utilisation} for link in result.links},
        "silent_scripts": list(result.silent),
        "diagnosis": diagnosis.lines() if diagnosis is not None else None,
    }
