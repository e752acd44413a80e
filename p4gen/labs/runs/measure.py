"""Throughputs of collectives in a lab, compared with the figures of a paper from its authors' testbed."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from rich.console import Console

from p4gen.host.transport.clock import SECOND
from p4gen.labs.calls import size_text
from p4gen.labs.runs.figures import Figure, figures_of
from p4gen.labs.runs.report import table
from p4gen.labs.runs.run import CallOutcome
from p4gen.labs.runs.timed import timed
from p4gen.labs.runs.usage import total
from p4gen.labs.session import Lab


def work(lab: Lab, console: Console) -> tuple[int, dict[str, Any]]:
    """Measure and compare. Every result is checked; the exit status is 1 when one is wrong."""
    wanted = lab.job.wanted
    hosts = wanted.ranks or lab.topology.rank_hosts
    name, figures = figures_of(lab.job.spec, wanted, len(hosts))
    found = table("collective", "size", "mean", "best", name, "mean/paper", "resent", "CPU/packet: hosts", "switches")
    rows: list[dict[str, Any]] = []
    problems: list[str] = []
    for figure in figures:
        collective, size, paper, parts = figure.collective, figure.size, figure.testbed, figure.parts
        outcomes = list(timed(lab, figure.call, hosts, figure.calls * parts))
        problems += (problem for each in outcomes for problem in each.problems)
        outcome = outcomes[-1]
        if not outcome.calls:
            continue
        rates = [_rate(outcome.calls[first : first + parts]) for first in range(0, len(outcome.calls), parts)]
        mean, best = fmean(rates), max(rates)
        resent = sum(rank["resent"] for rank in outcome.ranks)
        ratio = mean / paper
        used = [total(outcome.usage, nodes).microseconds for nodes in (hosts, lab.topology.switches)]
        values = [_text(size, each) for each in (mean, best, paper)]
        found.add_row(
            collective, size_text(size), *values, f"{ratio:.2f}", f"{resent:,}", *(f"{each:.1f} us" for each in used)
        )
        rows.append(
            {"collective": collective, "size": size, "mean": mean, "best": best, "paper": paper, "ratio": ratio}
            | {"calls": len(rates), "resent": resent}
            | dict(zip(("host_us", "switch_us"), used, strict=True))
        )
    console.print(
        f"{len(hosts)} ranks on {lab.topology.name}, {lab.job.spec.program}, {lab.job.target}; "
        f"{_told(figures, wanted.repeat)}, seed {wanted.seed}"
    )
    console.print(found)
    for problem in problems:
        console.print(f"[red]wrong[/red]  {problem}")
    return 1 if problems else 0, {"passed": not problems, "seed": wanted.seed, "rows": rows, "problems": problems}


def _told(figures: Sequence[Figure], repeat: int) -> str:
    fewer = {each.size: each.calls for each in figures if each.calls < repeat}
    return "; ".join([f"{repeat} calls each", *(f"{calls} of {size_text(size)}" for size, calls in fewer.items())])


def _rate(parts: Sequence[CallOutcome]) -> float:
    """Of what was called in these parts, in the unit of the paper's figures: Mb/s; of a Barrier calls a second."""
    size, duration = sum(each.call.size for each in parts), sum(each.duration for each in parts)
    return (size * 8 / 1e6 if size else 1) * SECOND / duration


def _text(size: int, figure: float) -> str:
    return f"{figure:,.2f} {'Mb/s' if size else '/s'}"
