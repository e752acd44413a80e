"""The work of ``p4gen route confirm``: plans of random fabrics on packets."""

from __future__ import annotations

import json
import sys

import click
from rich.console import Console
from rich.table import Table

from p4gen.cli.options import report_console
from p4gen.inputs import drawn, parsed
from p4gen.model import ENGINES
from p4gen.plan.route.confirm import HIGH, LOW, Confirmed, confirm
from p4gen.vocabulary import units


def do(
    count: int,
    mode: str,
    size: str,
    lanes: str | None,
    message: int | None,
    trees: int,
    engine: str,
    seed: int | None,
    as_json: bool,
) -> None:
    """Run the command with these options."""
    bytes_each = parsed("size", units.size, size)
    chosen = next(name for name in ENGINES if name == engine)
    seed = drawn(seed)
    console = report_console(quiet=as_json)
    console.print(f"seed {seed}; AllReduce of {bytes_each:,} bytes, Mode {mode}; rates and goodput in Gb/s")
    found = []
    for number in range(seed, seed + count):
        said = int(lanes) if lanes else None
        each = confirm(number, mode, bytes_each, lanes=said, message=message, trees=trees, engine=chosen)
        found.append(each)
        if console.is_terminal:
            console.print(f"  seed {number}: {each.best.ratio:.3f} of {each.best.predicted / 1e9:.2f} Gb/s")
    _show(found, console)
    if as_json:
        click.echo(json.dumps({"seed": seed, "fabrics": [_json(each) for each in found]}))
    sys.exit(0 if all(each.ok for each in found) else 1)


def _show(found: list[Confirmed], console: Console) -> None:
    _print_single(found, console)
    if any(each.together for each in found):
        _print_several(found, console)
    runs = [(each.best, each.one_root, each.together) for each in found]
    ratios = [measured.ratio for some in runs for measured in some if measured is not None]
    console.print(
        f"{len(ratios)} runs on {len(found)} fabrics: measured over predicted {min(ratios):.3f} to {max(ratios):.3f}; "
        f"asked are {LOW} to {HIGH}"
    )


def _print_single(found: list[Confirmed], console: Console) -> None:
    table = _table("seed", "ranks", "INC", "P", "rate", "gap", "predicted", "measured", "ratio", "busiest", "drops",
                   "one root", "measured", "")  # fmt: skip
    for each in found:
        best, other = each.best, each.one_root
        table.add_row(
            str(each.seed),
            str(len(best.plan.ranks)),
            str(len(best.plan.inc)),
            str(each.pipelines),
            f"{best.plan.rate / 1e9:.2f}",
            f"{best.plan.gap:.0%}",
            f"{best.predicted / 1e9:.2f}",
            f"{best.result.throughput / 1e9:.2f}",
            f"{best.ratio:.3f}",
            f"{best.hottest:.1%}",
            str(best.result.drops.total()),
            "" if other is None else f"{other.plan.rate / 1e9:.2f}",
            "" if other is None else f"{other.result.throughput / 1e9:.2f}",
            "" if each.ok else "MISSED",
        )
    console.print(table)


def _print_several(found: list[Confirmed], console: Console) -> None:
    console.print("several trees together, where they promise more:")
    table = _table("seed", "trees", "rates", "in all", "gap", "predicted", "measured", "ratio", "of one tree")
    for each in found:
        if each.together is not None:
            plan, measured = each.together.plan, each.together.result.throughput
            table.add_row(
                str(each.seed),
                str(len(plan.plans)),
                " ".join(f"{rate / 1e9:.2f}" for rate in plan.rates),
                f"{plan.rate / 1e9:.2f}",
                f"{plan.gap:.0%}",
                f"{each.together.predicted / 1e9:.2f}",
                f"{measured / 1e9:.2f}",
                f"{each.together.ratio:.3f}",
                f"{measured / each.best.result.throughput:.2f}",
            )
    console.print(table)


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, justify="right")
    return table


def _json(each: Confirmed) -> dict[str, object]:
    best, other = each.best, each.one_root
    return {
        "seed": each.seed,
        "ranks": len(best.plan.ranks),
        "aggregating": sorted(best.plan.inc),
        "pipelines": each.pipelines,
        "rate_gbps": best.plan.rate / 1e9,
        "gap": best.plan.gap,
        "predicted_gbps": best.predicted / 1e9,
        "gbps": best.result.throughput / 1e9,
        "ratio": best.ratio,
        "hottest": best.hottest,
        "drops": best.result.drops.total(),
        "trees": 1 if each.together is None else len(each.together.plan.plans),
        "together_gbps": None if each.together is None else each.together.result.throughput / 1e9,
        "one_root_gbps": None if other is None else other.result.throughput / 1e9,
        "ok": each.ok,
    }
