"""The work of ``p4gen bench net``: packet-hops a second of the virtual network."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console

from p4gen.bench.net import measure_net
from p4gen.cli.options import collectives_from

SPEC: dict[str, tuple[str, ...]] = {"window": ("8",), "message": ("16",)}
"""128 packets in flight, as many as Soft-RoCE keeps unacknowledged, in messages of 16."""


def do(spec_files: tuple[Path, ...], as_json: bool, seed: int, **flags: tuple[str, ...]) -> None:
    """Run the command with these options."""
    console = Console(highlight=False, soft_wrap=True, quiet=as_json)
    given = {name: values for name, values in flags.items() if values}
    specs = collectives_from(spec_files, flags if spec_files else SPEC | given)
    rates = [measure_net(spec, seed) for spec in specs]
    for rate in rates:
        console.print(
            f"AllReduce of {rate.size:,} bytes, {rate.topology}, {rate.program}: {rate.packet_hops:,} packet-hops, "
            f"{rate.per_second:,.0f} a second of processor time ({rate.cpu:.2f} s; {rate.wall:.2f} s by the clock)"
        )
    if as_json:
        reports = [asdict(rate) | {"per_second": rate.per_second} for rate in rates]
        click.echo(json.dumps({"programs": reports} if len(reports) > 1 else reports[0]))
