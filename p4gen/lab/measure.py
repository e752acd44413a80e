"""AllReduce's throughput beside EPIC's Table 19, which was measured on its authors' machines (§J.4)."""

from __future__ import annotations

from typing import Any, Final

from rich.console import Console

from p4gen.families.epic.spec import Mode
from p4gen.lab.calls import run
from p4gen.lab.report import rate, size_text, table
from p4gen.lab.session import Lab
from p4gen.net.config import Call

SIZES: Final = (4 << 10, 64 << 10, 1 << 20)
PAPER: Final = {Mode.II: (14.74, 67.32, 88.96), Mode.III: (15.69, 88.69, 72.54)}
"""EPIC's Table 19, Mb/s."""
_WARM_UP: Final = 2
_AHEAD: Final = 32 << 20
"""Bytes of data that are drawn before the calls that are measured."""


def work(lab: Lab, console: Console) -> tuple[int, dict[str, Any]]:
    """Measure, and compare. Every result is checked, so the status is 1 when one is wrong."""
    wanted, mode = lab.job.wanted, Mode.III if lab.job.spec.terminates else Mode.II
    group = lab.group_of(wanted.ranks or lab.topology.rank_hosts)
    found = table("size", "mean", "best", f"EPIC-{mode}", "mean/EPIC", "resent")
    rows: list[dict[str, float]] = []
    problems: list[str] = []
    for size, paper in zip(SIZES, PAPER[mode], strict=True):
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
