"""``p4gen bench``: how fast a program runs here, on everything that can run it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console

from p4gen.bench.measure import BATCHED, BMV2, C, Results, measure
from p4gen.bench.net import measure_net
from p4gen.bench.report import plot, sentences, table, write_csv
from p4gen.bench.workload import workload
from p4gen.cli.options import json_option, out_option, spec_from, spec_options

NET_SPEC: dict[str, str | None] = {"window": "8", "message": "16"}
"""For --net: 128 packets under way, as many as Soft-RoCE keeps unacknowledged, in messages of 16."""


@click.command()
@spec_options
@out_option
@json_option
@click.option("--packets", type=click.IntRange(min=8), default=12_000, show_default=True, help="Packets of the load.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the packets' contents.")
@click.option("--net", is_flag=True, help="Measure the virtual network in place of the switch: packet-hops a second.")
def command(
    spec_file: Path | None, out: Path, as_json: bool, packets: int, seed: int, net: bool, **flags: str | None
) -> None:
    """Measure a program: packets a second of the interpreter, of native code (one by one, in batches, on two threads),
    of BMv2 where it is installed, and of a loop in C that does the same by hand, all in one run.

    Also the time from P4 text to the first packet, and the speed of snapshots. Writes bench.csv and bench.svg into the
    program's folder.
    """
    console = Console(highlight=False, soft_wrap=True, quiet=as_json)
    if net:
        rate = measure_net(spec_from(spec_file, flags if spec_file else NET_SPEC | _given(flags)), seed)
        if as_json:
            click.echo(json.dumps(asdict(rate) | {"per_second": rate.per_second}))
        console.print(
            f"AllReduce of {rate.size:,} bytes, {rate.topology}, {rate.program}: {rate.packet_hops:,} packet-hops, "
            f"{rate.per_second:,.0f} a second of processor time ({rate.cpu:.2f} s; {rate.wall:.2f} s by the clock)"
        )
        return
    work = workload(spec_from(spec_file, flags), packets, seed)
    with console.status("") as status:
        results = measure(work, lambda what: status.update(f"measuring: {what}"))
    folder = out / work.spec.program
    folder.mkdir(parents=True, exist_ok=True)
    files = folder / "bench.csv", folder / "bench.svg"
    write_csv(results, files[0])
    plot(results, files[1])
    if as_json:
        click.echo(json.dumps(_summary(results) | {"files": [str(f) for f in files]}))
        return
    console.print(table(results))
    console.print()
    for line in (*sentences(results), *map(str, files)):
        console.print(line)


def _given(flags: dict[str, str | None]) -> dict[str, str | None]:
    return {name: value for name, value in flags.items() if value is not None}


def _summary(results: Results) -> dict[str, object]:
    ratios = {"jit_to_bmv2": results.ratio(BATCHED, BMV2), "jit_to_c": results.ratio(BATCHED, C)}
    rates = [asdict(r) | {"packets_per_second": r.per_second} for r in results.rates]
    return asdict(results) | ratios | {"rates": rates}
