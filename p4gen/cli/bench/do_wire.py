"""The work of ``p4gen bench wire``: packets a second of ``p4gen switch`` on network interfaces."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console

from p4gen.bench.wire import measure_wire
from p4gen.bench.workload import bursts
from p4gen.cli.options import collectives_from


def do(spec_files: tuple[Path, ...], as_json: bool, packets: int, seed: int, **flags: tuple[str, ...]) -> None:
    """Run the command with these options."""
    console = Console(highlight=False, soft_wrap=True, quiet=as_json)
    reports: list[dict[str, object]] = []
    for work in [bursts(spec, packets, seed) for spec in collectives_from(spec_files, flags)]:
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
