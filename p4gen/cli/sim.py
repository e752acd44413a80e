"""``p4gen sim``: a collective through the generated program over a virtual network, checked against NumPy."""

from __future__ import annotations

import json
import random
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from p4gen.cli.options import collective_from, json_option, report_console, spec_fields, spec_options
from p4gen.cli.tables import compare, numbers, studies_of, swept, tabled
from p4gen.cli.values import TOPOLOGY, parsed
from p4gen.cli.verb import SEED, FiniteRange, verb
from p4gen.errors import Diagnostic, InputError
from p4gen.host.collectives.control import Collective
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.clock import SECOND, US, duration_text
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.verbs import Recovery
from p4gen.inputs import shown
from p4gen.model import ENGINES, EngineName
from p4gen.net.capture import Capture
from p4gen.net.faults import MAX_BURST, Faults, Impairment, Script, parse_outage, parse_place
from p4gen.net.ladder import Ladder
from p4gen.net.link import Passage, Watcher
from p4gen.net.simulation import SimConfig, SimResult, Simulation
from p4gen.net.study import Axis
from p4gen.spec import units
from p4gen.spec.topology import load_topology

_DEFAULT_TIMEOUT = "50us"
_SHORTEST_TIMER = US
_BUSIEST = 8
_MOST_VALUES = 100


@verb(
    examples=[
        ("star-8 --mode III --size 4M", "AllReduce of 4 MiB by eight ranks"),
        ("tree-3-2 --mode II --loss 1% --seed 7", "with losses, repeatable"),
        ("star-4 --script 'drop the 3rd UP_DATA of rank 2' --ladder run.svg", "one loss, drawn as a diagram"),
        ("star-4 --mode II --sweep loss --seeds 3", "compared with EPIC's figures"),
    ]
)
@click.argument("topology", type=TOPOLOGY)
@spec_options
@click.option("--collective", type=click.Choice([str(c) for c in Collective]), default="allreduce", show_default=True)
@click.option("--size", default=None, metavar="BYTES", help="Each rank's data, such as 256K or 4M.  [1M; sweeps: 4M]")
@click.option(
    "--root", type=click.IntRange(0, 1023), default=0, show_default=True, help="Root rank of reduce and broadcast."
)
@click.option(
    "--sync",
    type=click.Choice([str(s) for s in PsnSync]),
    default="subgroups",
    show_default=True,
    help="How PSNs stay synchronised over asymmetric collectives: QPs for each pattern, or QPs whose PSNs hosts set.",
)
@click.option(
    "--concurrent", type=click.IntRange(1, 256), default=1, show_default=True, help="Groups of all ranks at once."
)
@click.option(
    "--repeat", type=click.IntRange(1, 100_000), default=1, show_default=True, help="Collectives, one after another."
)
@click.option("--engine", type=click.Choice(ENGINES), default="jit", show_default=True, help="What runs the switches.")
@click.option(
    "--seed", type=SEED, default=None, help="Seed of all randomness; same seed, same run.  [drawn, and printed]"
)
@click.option("--loss", multiple=True, metavar="SHARE[@WHERE]", help="Lose packets: 5%, 5%@h0, 1%@h0-s0, 1%@h0>s0.")
@click.option("--burst", type=FiniteRange(1, MAX_BURST), help="With --loss: mean number of packets lost in a row.  [1]")
@click.option("--reorder", multiple=True, metavar="SHARE[@WHERE]", help="Delay packets, so that others overtake them.")
@click.option("--duplicate", multiple=True, metavar="SHARE[@WHERE]", help="Deliver packets twice.")
@click.option("--corrupt", multiple=True, metavar="SHARE[@WHERE]", help="Flip one to three bits.")
@click.option("--down", multiple=True, metavar="LINK@FROM-TO", help="Take a link down: h0-s0@10us-60us.")
@click.option("--script", "scripts", multiple=True, metavar="TEXT", help="As in 'drop the 3rd UP_DATA of rank 2'.")
@click.option(
    "--recovery",
    type=click.Choice([str(r) for r in Recovery]),
    default=None,
    help="NICs' loss recovery.  [as the program's]",
)
@click.option("--timeout", default=None, metavar="TIME", help="Retransmission timer, 1us at least; 0: none.  [50us]")
@click.option("--retries", type=click.IntRange(0, 1000), default=None, help="Timeouts before a NIC gives up.  [never]")
@click.option("--dcqcn", is_flag=True, help="NICs slow down when they receive congestion notifications.")
@click.option("--capture", type=click.Path(path_type=Path, dir_okay=False), help="Write a pcapng file of all links.")
@click.option("--ladder", type=click.Path(path_type=Path, dir_okay=False), help="Draw the first packets as SVG.")
@click.option(
    "--sweep",
    "axis",
    type=click.Choice(["size", "loss", "links"]),
    help="Many runs, compared with the paper's row for the mode.",
)
@click.option(
    "--table",
    "tables",
    default=None,
    metavar="N,...|all",
    help="EPIC's Tables 25 to 32 and 35, each row compared with ours.",
)
@click.option("--values", default=None, metavar="A,B,...", help="Values to sweep, instead of the paper's.")
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Runs of each lossy point; the median counts.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/sim"),
    help="Folder for CSV and plot of a sweep or a table.  [build/sim]",
)
@json_option
@click.pass_context
def command(ctx: click.Context, /, topology: str, spec_file: Path | None, **options: Any) -> None:
    """Run a collective over a virtual network.

    TOPOLOGY is a YAML file, or one of star-4, star-8, tree-3-2, tree-3-4, tree-5-2, leaf-spine, fat-tree-k4. Every
    switch runs the generated program; ranks are NICs with reliable-connection queue pairs. Exit status 1 when a
    result is wrong, the run does not end, or a script drops nothing; the reason is printed.
    """
    arguments = _Arguments(topology, spec_file, options)
    console = report_console(quiet=options["as_json"])
    config = arguments.config()
    console.print(f"seed {config.seed}")
    if arguments.sweeping:
        if options["capture"] or options["ladder"]:
            raise click.UsageError("--sweep and --table make many runs: they go with neither --capture nor --ladder")
        passed, report = _compare(config, arguments, console)
    else:
        if options["values"]:
            raise click.UsageError("--values goes with --sweep and --table")
        result = _run(config, options["capture"], options["ladder"], console)
        _show(result, console)
        passed, report = result.ok and not result.silent, _json(result)
    if options["as_json"]:
        click.echo(json.dumps({"seed": config.seed, "passed": passed} | report))
    ctx.exit(0 if passed else 1)


@dataclass(frozen=True)
class _Arguments:
    """The command line, and what it means."""

    topology: str
    spec_file: Path | None
    options: dict[str, Any]

    def config(self) -> SimConfig:
        """The run that it describes. Raises ``InputError``."""
        o = self.options
        sweeping = self.sweeping
        flags = {name: o[name] for name in spec_fields()}
        collective = Collective(o["collective"])
        barrier = collective is Collective.BARRIER
        if barrier and o["size"]:
            raise click.UsageError("a barrier has no data: omit --size")
        seed = random.SystemRandom().randrange(1 << 32) if o["seed"] is None else o["seed"]
        spec = collective_from(self.spec_file, flags)
        studies = studies_of(spec) if sweeping else None
        if studies and not self.spec_file:
            suggested = {name: str(value) for name, value in studies.program(spec).items()}
            spec = collective_from(None, suggested | {name: text for name, text in flags.items() if text is not None})
        timeout = o["timeout"] or (f"{studies.timeout(spec)}ps" if studies else _DEFAULT_TIMEOUT)
        topology = load_topology(self.topology)
        config = SimConfig(
            topology,
            spec,
            collective,
            0 if barrier else parsed("--size", units.size, o["size"] or ("4M" if sweeping else "1M")),
            o["repeat"],
            self._faults(len(topology.rank_hosts)),
            seed,
            Recovery(o["recovery"]) if o["recovery"] else studies.recovery if studies else None,
            parsed("--timeout", _timer, timeout),
            o["retries"],
            dcqcn=DcqcnConfig() if o["dcqcn"] else None,
            engine=_engine(o["engine"]),
            root=o["root"],
            sync=PsnSync(o["sync"]),
        )
        return config if o["concurrent"] == 1 else replace(config, work=config.jobs * o["concurrent"])

    @property
    def sweeping(self) -> bool:
        """Whether it describes many runs."""
        if self.options["axis"] and self.options["tables"]:
            raise click.UsageError("--sweep or --table, not both")
        return bool(self.options["axis"] or self.options["tables"])

    def values(self, axis: Axis) -> list[float] | None:
        """Values to sweep, None for the paper's."""
        given = self.options["values"]
        if given is None or axis is Axis.NOTHING:
            return None
        if given.count(",") >= _MOST_VALUES:
            raise InputError(Diagnostic("--values", f"more than {_MOST_VALUES} values"))
        if axis is Axis.SIZE:
            return [parsed("--values", units.size, text) for text in given.split(",")]
        return [parsed("--values", _percent if axis is Axis.LOSS else _count, text) for text in given.split(",")]

    def _faults(self, ranks: int) -> Faults:
        o = self.options
        if o["burst"] is not None and not o["loss"]:
            raise click.UsageError("--burst is the length of bursts of loss: it goes with --loss")
        impairments = []
        for name in ("loss", "reorder", "duplicate", "corrupt"):
            for text in o[name]:
                value, where = parse_place(text)
                chance: dict[str, Any] = {name: parsed(f"--{name}", units.share, value)}
                if name == "loss":
                    chance["burst"] = o["burst"] or 1.0
                impairments.append(Impairment(where, **chance))
        scripts = tuple(Script.parse(text) for text in o["scripts"])
        for script in scripts:
            if script.rank is not None and script.rank >= ranks:
                raise InputError(f"script '{script.text}': there is no rank {script.rank}; there are 0 to {ranks - 1}")
        return Faults(tuple(impairments), tuple(parse_outage(text) for text in o["down"]), scripts)


def _timer(text: str) -> int:
    """A retransmission timer. One much shorter than a round trip retransmits everything before it can be answered, and
    simulated time would hardly advance; InfiniBand's shortest is 8 us."""
    value = units.duration(text)
    if 0 < value < _SHORTEST_TIMER:
        raise ValueError(f"a retransmission timer must be at least 1us, or 0 for none, not {shown(text)}")
    return value


def _percent(text: str) -> float:
    """A share in per cent, with or without the sign."""
    return 100 * units.share(f"{text.strip().removesuffix('%')}%")


def _count(text: str) -> int:
    """A number of links."""
    if not (text.strip().isdecimal() and len(text.strip()) <= 4):
        raise ValueError(f"{shown(text)} is not a number of links")
    return int(text)


def _engine(name: str) -> EngineName:
    return next(engine for engine in ENGINES if engine == name)


def _run(config: SimConfig, capture: Path | None, ladder: Path | None, console: Console) -> SimResult:
    simulation = Simulation(config)
    network = simulation.network
    watchers: list[Watcher] = []
    drawing = None
    with ExitStack() as stack:
        if capture is not None:
            try:
                file = stack.enter_context(capture.open("wb"))
            except OSError as error:
                raise InputError(f"cannot write {capture}: {error.strerror}") from error
            watchers.append(Capture(file, network.directions))
        if ladder is not None:
            drawing = Ladder([*config.topology.hosts, *config.topology.switches], network.kinds)
            watchers.append(drawing)
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
        _write(ladder, drawing.svg())
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
        console.print(
            "[green]every rank's result equals NumPy's[/green]" if config.size else "[green]synchronised[/green]"
        )


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


def _compare(base: SimConfig, arguments: _Arguments, console: Console) -> tuple[bool, dict[str, Any]]:
    options = arguments.options
    seeds, folder = options["seeds"], options["out"]
    if options["axis"]:
        axis = Axis(options["axis"])
        passed, report = compare(swept(axis, base, arguments.values(axis)), seeds, folder, console)
        return passed, {"sweep": str(axis)} | report
    reports = []
    passed = True
    studies = studies_of(base.program)
    for number in numbers(options["tables"], studies):
        comparison = tabled(number, base, arguments.values(studies.tables[number].axis))
        good, report = compare(comparison, seeds, folder, console)
        passed = passed and good
        reports.append({"table": number} | report)
    return passed, {"tables": reports}


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
