"""The work of ``p4gen sim traffic``: flows, AlltoAll and rings between hosts of a virtual network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from p4gen.cli.defaults import TRAFFIC
from p4gen.cli.files import write_text
from p4gen.cli.nccltests import asked_range
from p4gen.cli.options import report_console, spec_fields, spec_from
from p4gen.cli.sim.nccl import tabulate
from p4gen.cli.sim.report import show_end
from p4gen.errors import Diagnostic, InputError, Option
from p4gen.experiments.nccltests import BandwidthTable
from p4gen.families import load_spec
from p4gen.groups.connections import connection_limits
from p4gen.host.collectives.algorithms import Algorithm
from p4gen.host.transport.clock import SECOND, duration_text
from p4gen.host.transport.dcqcn_timed import TimedDcqcnConfig
from p4gen.host.transport.verbs import Recovery
from p4gen.inputs import drawn, parsed, quote
from p4gen.library.run_options import RunOptions
from p4gen.library.simulation import network_faults, paused, timer
from p4gen.net.traffic.series import series_csv, series_svg
from p4gen.net.traffic.traffic import Pattern, Traffic, TrafficConfig, by_position
from p4gen.net.traffic.traffic_simulation import TrafficResult, TrafficSimulation
from p4gen.net.views.ladder import Ladder
from p4gen.net.views.notes import observe
from p4gen.vocabulary import CollectiveSpec, units
from p4gen.vocabulary.topology import TopologySpec, load_topology

_SHOWN: Final = 16
"""Flows that are printed."""


def do(
    ctx: click.Context,
    /,
    topology: str,
    spec_file: Path | None,
    series: Path | None,
    ladder: Path | None,
    **options: Any,
) -> None:
    """Run the command with these options."""
    config = _configuration(load_topology(topology), spec_file, options, sampled=series is not None)
    console = report_console(quiet=options["as_json"])
    console.print(f"seed {config.seed}")
    wanted = asked_range(options, options["pattern"])
    if wanted is not None:
        if series is not None or ladder is not None:
            raise click.UsageError("--nccl-tests is many runs, without --series and --ladder", ctx)
        passed, report = _tabulated(config, wanted, console)
        if options["as_json"]:
            click.echo(json.dumps({"seed": config.seed} | report))
        ctx.exit(0 if passed else 1)
    simulation = TrafficSimulation(config)
    drawing = None if ladder is None else _drawing(simulation)
    result = _run(simulation, console)
    _show(simulation.title, result, console)
    if ladder is not None and drawing is not None:
        write_text(ladder, drawing.svg())
        console.print(f"wrote {ladder}")
    if series is not None:
        plot = series.with_suffix(".svg")
        write_text(series, series_csv(result.samples))
        write_text(plot, series_svg(f"{config.topology.name}, {config.program.program}", result.samples))
        console.print(f"wrote {series} and {plot}")
    if options["as_json"]:
        click.echo(json.dumps({"seed": config.seed, "passed": result.ok} | _json(result)))
    ctx.exit(0 if result.ok else 1)


def _tabulated(config: TrafficConfig, wanted: tuple[int, int, int], console: Console) -> tuple[bool, dict[str, Any]]:
    """The pattern for each size, in a table; hosts compute with int32."""
    ranks = {len(each.hosts) for each in config.traffic}
    if len(ranks) > 1:
        raise click.UsageError("--nccl-tests needs groups of one size: give --hosts")
    table = BandwidthTable(CollectiveSpec(), str(config.traffic[0].pattern), ranks.pop(), 0)

    def sized(size: int) -> TrafficSimulation:
        return TrafficSimulation(replace(config, traffic=tuple(replace(each, size=size) for each in config.traffic)))

    return tabulate(table, table.sizes(*wanted), 1, sized, console)


def _configuration(
    topology: TopologySpec, spec_file: Path | None, o: Mapping[str, Any], *, sampled: bool
) -> TrafficConfig:
    if o["interval"] is not None and not sampled:
        raise click.UsageError("--interval goes with --series")
    run = RunOptions.among(o)
    size = parsed("size", units.size, o["size"] or TRAFFIC["size"])
    groups = [tuple(text.split(",")) for text in o["hosts"]] or by_position(topology)
    return TrafficConfig(
        paused(topology, run),
        spec_from(spec_file, {name: o[name] for name in spec_fields()}),
        tuple(Traffic(Pattern(o["pattern"]), hosts, size) for hosts in groups),
        core=None if o["core"] is None else load_spec(o["core"]),
        faults=network_faults(run, topology),
        seed=drawn(o["seed"]),
        recovery=Recovery(o["nic"]),
        spray_gbn=o["spray_gbn"],
        dcqcn=_dcqcn(topology, o),
        timeout=parsed("timeout", timer, o["timeout"] or TRAFFIC["timeout"]),
        retry_count=o["retries"],
        mtu=parsed("mtu", _payload, o["mtu"]),
        window=o["outstanding"],
        algorithm=Algorithm(o["algorithm"]),
        ahead=o["ahead"],
        interval=parsed("interval", _span, o["interval"] or TRAFFIC["interval"]) if sampled else 0,
        engine=run.engine,
    )


def _dcqcn(topology: TopologySpec, o: Mapping[str, Any]) -> TimedDcqcnConfig | None:
    if not o["dcqcn"]:
        if o["ti"] or o["td"] or o["no_nak_cuts"]:
            raise click.UsageError("--ti, --td and --no-nak-cuts go with --dcqcn")
        return None
    rates = {topology.setting(topology.ports[host][0], "bandwidth") for host in topology.hosts}
    if len(rates) > 1:
        raise InputError(Diagnostic(Option("dcqcn"), f"hosts of {topology.name} have links of different bandwidths"))
    return TimedDcqcnConfig.at(
        rates.pop(),
        increase_timer=parsed("ti", _span, o["ti"] or TRAFFIC["ti"]),
        decrease_interval=parsed("td", _span, o["td"] or TRAFFIC["td"]),
        nack_cuts=not o["no_nak_cuts"],
    )


def _span(text: str) -> int:
    value = units.duration(text)
    if value < 1:
        raise ValueError(f"a time must be more than 0, not {quote(text)}")
    return value


def _payload(text: str) -> int:
    value = units.size(text)
    if value % 4 or not 64 <= value <= 8192:
        raise ValueError(f"a payload is 64 to 8192 bytes and a multiple of 4, not {quote(text)}")
    return value


def _drawing(simulation: TrafficSimulation) -> Ladder:
    """A drawing of the first packets; only hosts that send or receive are in it."""
    config, network = simulation.config, simulation.network
    hosts = dict.fromkeys(host for traffic in config.traffic for host in traffic.hosts)
    drawing = Ladder([*hosts, *config.topology.switches], network.kinds)
    network.watch(drawing)
    observe(network, simulation.specs, drawing.note, lambda: not drawing.full)
    return drawing


def _run(simulation: TrafficSimulation, console: Console) -> TrafficResult:
    config = simulation.config
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(str(config.traffic[0].pattern), total=None)
        return simulation.run(lambda done, total: bar.update(task, completed=done, total=total))


def _show(title: str, result: TrafficResult, console: Console) -> None:
    config = result.config
    console.print(title)
    if not config.registers and connection_limits(config.program).starts:
        console.print("connections take ECMP's paths: NICs that go back N discard packets out of order (--spray-gbn)")
    console.print(
        f"completion time {duration_text(result.duration)}; mean sending rate {result.rate / 1e9:.2f} Gb/s"
        + (f", mean throughput {result.throughput / 1e9:.2f} Gb/s" if config.traffic[0].pattern.flows else "")
    )
    console.print(
        f"{result.total('sent'):,} packets sent, {result.total('resent'):,} of them retransmissions, of which "
        f"{result.spurious:.2%} of all packets were spurious; {result.total('lost'):,} lost on links, "
        f"{result.total('naks'):,} NAKs, {result.total('timeouts'):,} timeouts, {result.total('cnps'):,} CNPs; "
        f"{result.packet_hops:,} packet-hops in all"
    )
    pauses = sum(link.pauses for link in result.links)
    if pauses:
        most = max(result.links, key=lambda link: link.paused)
        console.print(
            f"{pauses:,} pauses of ports; {most.name} was paused for {most.paused:.1%} of the time", markup=False
        )
    table = Table("flow", "sent", "spurious", "lost", "NAKs", "Gb/s sent", box=None, pad_edge=False)
    for flow in sorted(result.flows, key=lambda flow: flow.rate)[:_SHOWN]:
        counts = f"{flow.sent:,}", f"{flow.spurious:.2%}", f"{flow.lost:,}", f"{flow.naks:,}", f"{flow.rate / 1e9:.2f}"
        table.add_row(flow.name, *counts)
    console.print(table)
    if len(result.flows) > _SHOWN:
        console.print(f"... and {len(result.flows) - _SHOWN} faster ones")
    for reason, count in result.drops.most_common():
        console.print(f"dropped  {reason}: {count:,}", markup=False)
    show_end(result, console)


def _json(result: TrafficResult) -> dict[str, Any]:
    config = result.config
    return result.to_dict() | {
        "topology": config.topology.name,
        "program": config.program.program,
        "pattern": str(config.traffic[0].pattern),
        "groups": [duration / SECOND for duration in result.groups],
        "spurious": result.spurious,
        "flows": [
            {
                "name": flow.name,
                "group": flow.group,
                "sent": flow.sent,
                "resent": flow.resent,
                "lost": flow.lost,
                "naks": flow.naks,
                "timeouts": flow.timeouts,
                "cnps": flow.cnps,
                "gbps_sent": flow.rate / 1e9,
                "gbps": flow.throughput / 1e9,
            }
            for flow in result.flows
        ],
    }
