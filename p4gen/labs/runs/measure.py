"""AllReduce's throughput in a lab, compared with the figures of a paper from its authors' testbed."""

from __future__ import annotations

from typing import Any, Final

from rich.console import Console

from p4gen.families import family_of
from p4gen.labs.runs.calls import run
from p4gen.labs.runs.report import rate, size_text, table
from p4gen.labs.session import Lab
from p4gen.net.collectives.config import Call
from p4gen.net.figures.study import Studies

_WARM_UP: Final = 2
_AHEAD: Final = 32 << 20
"""Bytes of data that are drawn before the measured calls."""


def work(lab: Lab, console: Console) -> tuple[int, dict[str, Any]]:
    """Measure and compare. Every result is checked; the exit status is 1 when one is wrong."""
    wanted = lab.job.wanted
    name, figures = family_of(lab.job.spec).facet(Studies).lab(lab.job.spec)
    group = lab.groups.of(wanted.ranks or lab.topology.rank_hosts)
    found = table("size", "mean", "best", name, "mean/paper", "resent")
    rows: list[dict[str, float]] = []
    problems: list[str] = []
    for size, paper in figures.items():
        run(lab, group, [Call(size=size)] * _WARM_UP, seed=wanted.seed, deadline=wanted.deadline)
        calls = [Call(size=size)] * wanted.repeat
        outcome = run(lab, group, calls, seed=wanted.seed + 1, deadline=wanted.deadline, ahead=_AHEAD)
        problems += outcome.problems
        if not outcome.calls:
            continue
        rates = [call.throughput for call in outcome.calls]
        mean, best = sum(rates) / len(rates), max(rates)
        resent = sum(rank["resent"] for rank in outcome.ranks)
        ratio = mean / 1e6 / paper
        found.add_row(size_text(size), rate(mean), rate(best), f"{paper:.1f} Mb/s", f"{ratio:.2f}", f"{resent:,}")
        rows.append(
            {"size": size, "mean": mean / 1e6, "best": best / 1e6, "paper": paper, "ratio": ratio, "resent": resent}
        )
    console.print(
        f"AllReduce of {len(group.spec.ranks)} ranks on {lab.topology.name}, {lab.job.spec.program}, {lab.job.target}; "
        f"{wanted.repeat} calls each, seed {wanted.seed}"
    )
    console.print(found)
    for problem in problems:
        console.print(f"[red]wrong[/red]  {problem}")
    return 1 if problems else 0, {"passed": not problems, "seed": wanted.seed, "rows": rows, "problems": problems}
