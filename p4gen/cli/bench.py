"""``p4gen bench``: the speed of a program on every engine that can run it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console

from p4gen.bench.measure import BATCHED, BMV2, C, Results, measure
from p4gen.bench.net import measure_net
from p4gen.bench.report import beside, plot, ratios_to, sentences, table, write_csv
from p4gen.bench.wire import measure_wire
from p4gen.bench.workload import Workload, workload
from p4gen.cli.options import collectives_from, json_option, out_option, spec_flags
from p4gen.cli.verb import verb
from p4gen.spec import CollectiveSpec
from p4gen.switch import bmv2_build

NET_SPEC: dict[str, tuple[str, ...]] = {"window": ("8",), "message": ("16",)}
"""For --net: 128 packets in flight, as many as Soft-RoCE keeps unacknowledged, in messages of 16."""


@verb(
    examples=[
        ("--mode II --mode III", "both modes, on every engine that can run them"),
        ("--lanes 256 --packets 20000", "packets of 1 KiB"),
    ]
)
@click.argument("spec_files", metavar="[SPEC.yaml ...]", nargs=-1, type=click.Path(path_type=Path))
@lambda function: spec_flags(function, multiple=True)
@out_option
@json_option
@click.option("--packets", type=click.IntRange(min=8), default=12_000, show_default=True, help="Packets of the load.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the packets' contents.")
@click.option("--net", is_flag=True, help="Measure the virtual network instead of the switch: packet-hops a second.")
@click.option("--wire", is_flag=True, help="Measure p4gen switch on veth pairs against a plain echo; needs root.")
def command(
    spec_files: tuple[Path, ...],
    out: Path,
    as_json: bool,
    packets: int,
    seed: int,
    net: bool,
    wire: bool,
    **flags: tuple[str, ...],
) -> None:
    """Measure a program: packets a second of the interpreter, of native code (one by one, in batches, on two threads),
    of BMv2 if it is installed, and of a hand-written C loop that does the same, all in one run.

    A flag given several times is for several programs: p4gen bench --mode II --mode III. Also measures the time from P4
    text to the first packet, and the speed of snapshots. Writes bench.csv and bench.svg into each program's folder.
    """
    console = Console(highlight=False, soft_wrap=True, quiet=as_json)
    if net:
        _net(
            collectives_from(spec_files, flags if spec_files else NET_SPEC | _given(flags)),
            seed,
            console,
            as_json=as_json,
        )
        return
    if wire:
        _wire([workload(spec, packets, seed) for spec in collectives_from(spec_files, flags)], console, as_json=as_json)
        return
    measured: list[Results] = []
    reports: list[dict[str, object]] = []
    for work in [workload(spec, packets, seed) for spec in collectives_from(spec_files, flags)]:
        with console.status("") as status:
            results = measure(work, lambda what: status.update(f"measuring: {what}"))
        folder = out / work.spec.program
        folder.mkdir(parents=True, exist_ok=True)
        files = folder / "bench.csv", folder / "bench.svg"
        write_csv(results, files[0])
        plot(results, files[1])
        measured.append(results)
        reports.append(_summary(results) | {"files": [str(f) for f in files]})
        console.print(table(results))
        console.print()
        for line in (*sentences(results), *map(str, files), ""):
            console.print(line)
    first, *others = measured
    if others:
        console.print(beside(first, others))
    if as_json:
        ratios = [{"program": r.program, "to": first.program} | ratios_to(first, r) for r in others]
        click.echo(json.dumps({"programs": reports, "ratios": ratios} if others else reports[0]))


def _net(specs: tuple[CollectiveSpec, ...], seed: int, console: Console, *, as_json: bool) -> None:
    rates = [measure_net(spec, seed) for spec in specs]
    for rate in rates:
        console.print(
            f"AllReduce of {rate.size:,} bytes, {rate.topology}, {rate.program}: {rate.packet_hops:,} packet-hops, "
            f"{rate.per_second:,.0f} a second of processor time ({rate.cpu:.2f} s; {rate.wall:.2f} s by the clock)"
        )
    if as_json:
        reports = [asdict(rate) | {"per_second": rate.per_second} for rate in rates]
        click.echo(json.dumps({"programs": reports} if len(reports) > 1 else reports[0]))


def _wire(works: list[Workload], console: Console, *, as_json: bool) -> None:
    reports: list[dict[str, object]] = []
    for work in works:
        rates = measure_wire(work)
        switch, echo = rates
        console.print(f"{work.spec.program}, {len(work.packets[0][1])} bytes a packet, on veth pairs:")
        for rate in rates:
            console.print(
                f"  {rate.what:16} {rate.packets_in / rate.wall:10,.0f} packets in and "
                f"{rate.packets_out / rate.wall:10,.0f} out a second, "
                f"{1e6 * rate.cpu / rate.packets_in:.2f} us of processor time for each packet in"
            )
        console.print(f"  ratio {switch.per_second / echo.per_second:.2f}")
        reports.append(
            {"program": work.spec.program, "ratio": switch.per_second / echo.per_second}
            | {"rates": [asdict(rate) | {"per_second": rate.per_second} for rate in rates]}
        )
    if as_json:
        click.echo(json.dumps({"programs": reports} if len(reports) > 1 else reports[0]))


def _given(flags: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {name: values for name, values in flags.items() if values}


def _summary(results: Results) -> dict[str, object]:
    ratios = {"jit_to_bmv2": results.ratio(BATCHED, BMV2), "jit_to_c": results.ratio(BATCHED, C)}
    rates = [asdict(r) | {"packets_per_second": r.per_second} for r in results.rates]
    build = bmv2_build.build()
    return asdict(results) | ratios | {"rates": rates, "bmv2": asdict(build) if build else None}
