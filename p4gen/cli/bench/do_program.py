"""The work of ``p4gen bench program``: the speed of a program on every engine that can run it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console

from p4gen.bench.measure import BATCHED, BMV2, C, Results, measure
from p4gen.bench.report import beside, plot, ratios_to, sentences, table, write_csv
from p4gen.bench.workload import workloads
from p4gen.cli.options import specs_from
from p4gen.switch import bmv2_build


def do(
    spec_files: tuple[Path, ...],
    out: Path,
    as_json: bool,
    packets: int,
    seed: int,
    **flags: tuple[str, ...],
) -> None:
    """Run the command with these options."""
    console = Console(highlight=False, soft_wrap=True, quiet=as_json)
    measured: list[tuple[Results, ...]] = []
    reports: list[dict[str, object]] = []
    for works in [workloads(spec, packets, seed) for spec in specs_from(spec_files, flags)]:
        with console.status("") as status:
            found = measure(works, lambda what: status.update(f"measuring: {what}"))
        folder = out / found[0].program
        folder.mkdir(parents=True, exist_ok=True)
        files = folder / "bench.csv", folder / "bench.svg"
        write_csv(found, files[0])
        plot(found, files[1])
        measured.append(found)
        reports += [_summary(results) | {"files": [str(f) for f in files]} for results in found]
        for results in found:
            console.print(table(results))
            console.print()
        for line in (*sentences(found[-1]), *map(str, files), ""):
            console.print(line)
    # Programs of which each has several loads are compared load by load.
    sets = list(zip(*measured, strict=False)) if len(measured) > 1 else []
    for first, *others in sets:
        console.print(beside(first, others))
    if as_json:
        ratios = [
            {"program": other.program, "to": first.program} | ratios_to(first, other)
            for first, *others in sets
            for other in others
        ]
        click.echo(json.dumps({"programs": reports, "ratios": ratios} if len(reports) > 1 else reports[0]))


def _summary(results: Results) -> dict[str, object]:
    ratios = {"jit_to_bmv2": results.ratio(BATCHED, BMV2), "jit_to_c": results.ratio(BATCHED, C)}
    rates = [asdict(r) | {"packets_per_second": r.per_second} for r in results.rates]
    build = bmv2_build.build()
    return asdict(results) | ratios | {"rates": rates, "bmv2": asdict(build) if build else None}
