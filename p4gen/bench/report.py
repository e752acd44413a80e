"""Results of a benchmark as a table, as CSV and as a plot."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from p4gen.bench.measure import BATCHED, BMV2, C, Rate, Results

COLUMNS = ("program", "load", "engine", "packets", "passes", "seconds", "packets_per_second", "note")


def rows(results: Results) -> list[dict[str, Any]]:
    """The columns of the CSV file, by name: one row for each engine."""
    return [
        dict(zip(COLUMNS, (results.program, results.load, r.engine, r.packets, results.passes, r.seconds, r.per_second,
                           r.note), strict=True))
        for r in results.rates
    ]  # fmt: skip


def write_csv(measured: Sequence[Results], path: Path) -> None:
    """Write the ``rows`` of all workloads with a header."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for results in measured:
            writer.writerows(rows(results))


def table(results: Results) -> Table:
    """A table of packets per second of every engine, compared with BMv2 and the C loop."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    result.add_column(f"{results.program}, {results.load}")
    several = results.passes > 1
    for title in ("packets/s", "ns/packet", *(["ns/pass"] if several else []), "x BMv2", "of the C loop"):
        result.add_column(title, justify="right")
    for rate in results.rates:
        if not rate.packets:
            result.add_row(rate.engine, "-", style="dim")
            continue
        ratios = (_ratio(results.ratio(rate.engine, BMV2), "{:,.1f}"), _ratio(results.ratio(rate.engine, C), "{:.0%}"))
        times = [1e9 / rate.per_second, *([1e9 / rate.per_second / results.passes] if several else [])]
        result.add_row(_row(rate), f"{rate.per_second:,.0f}", *(f"{time:,.0f}" for time in times), *ratios)
    return result


def _row(rate: Rate) -> str:
    """An engine's name in the table. BMv2's includes how it was built, because that decides its speed."""
    return rate.note or rate.engine


def ratios_to(first: Results, other: Results) -> dict[str, float]:
    """By engine: the rate in ``other`` divided by the rate in ``first``, for engines in both."""
    pairs = {r.engine: (r.per_second, first.rate(r.engine).per_second) for r in other.rates}
    return {engine: ours / theirs for engine, (ours, theirs) in pairs.items() if ours and theirs}


def beside(first: Results, others: Sequence[Results]) -> Table:
    """A table of packets per second of several programs, with the ratio to the first program."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    result.add_column("packets/s")
    result.add_column(first.program, justify="right")
    for other in others:
        result.add_column(other.program, justify="right")
        result.add_column("ratio", justify="right")
    for rate in first.rates:
        row = [rate.engine, f"{rate.per_second:,.0f}" if rate.packets else "-"]
        for other in others:
            row += [f"{other.rate(rate.engine).per_second:,.0f}" if other.rate(rate.engine).packets else "-"]
            row += [_ratio(ratios_to(first, other).get(rate.engine), "{:.2f}")]
        result.add_row(*row)
    return result


def _ratio(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def sentences(results: Results) -> list[str]:
    """Results that are not in the table, as text, one line each."""
    size = results.state_bytes
    return [
        *(f"{rate.engine}: not measured, {rate.note}" for rate in results.rates if rate.note and not rate.packets),
        f"from P4 text to the first packet: {results.compile_cold:.3f} s, from the cache {results.compile_cached:.3f} s"
        f" (front end: {results.front_end:.3f} s)",
        f"state: {size:,} bytes; snapshot {_speed(size, results.snapshot)}, restore {_speed(size, results.restore)},"
        f" a plain copy {_speed(size, results.memcpy)}",
    ]


def _speed(size: int, seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us ({size / seconds / 1e9:.1f} GB/s)"


_COLORS = {BATCHED: "tab:orange", C: "tab:gray"}


def plot(measured: Sequence[Results], path: Path) -> None:
    """Write a bar chart of all workloads with a logarithmic scale, as SVG or PNG by the suffix of ``path``."""
    import matplotlib as mpl  # noqa: PLC0415 - takes a second to load, and only plots need it
    from matplotlib.figure import Figure  # noqa: PLC0415

    bars = [(results, rate) for results in measured for rate in results.rates if rate.packets]
    with mpl.rc_context({"svg.hashsalt": "p4gen"}):
        figure = Figure(figsize=(8, 0.6 * len(bars) + 1.4), layout="constrained")
        axes = figure.add_subplot()
        drawn = axes.barh(
            [f"{results.load}: {rate.engine}" for results, rate in bars],
            [rate.per_second for _, rate in bars],
            color=[_COLORS.get(rate.engine, "tab:blue") for _, rate in bars],
        )
        axes.bar_label(drawn, [f" {rate.per_second:,.0f}" for _, rate in bars])
        axes.set_xscale("log")
        axes.margins(x=0.25)
        axes.invert_yaxis()
        axes.set_xlabel("packets a second")
        axes.set_title(f"{measured[0].program}, one run")
        figure.savefig(path)
