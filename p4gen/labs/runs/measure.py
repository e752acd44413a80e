"""AllReduce's throughput in a lab, compared with the figures of a paper from its authors' testbed."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from p4gen.labs.calls import CallOrder, size_text
from p4gen.labs.runs.figures import figures_of
from p4gen.labs.runs.report import rate, table
from p4gen.labs.runs.timed import timed
from p4gen.labs.runs.usage import total
from p4gen.labs.session import Lab
from p4gen.vocabulary.message import Collective


def work(lab: Lab, console: Console) -> tuple[int, dict[str, Any]]:
    """Measure and compare. Every result is checked; the exit status is 1 when one is wrong."""
    wanted = lab.job.wanted
    name, figures = figures_of(lab.job.spec, wanted.size)
    hosts = wanted.ranks or lab.topology.rank_hosts
    found = table("size", "mean", "best", name, "mean/paper", "resent", "CPU/packet: hosts", "switches")
    rows: list[dict[str, float]] = []
    problems: list[str] = []
    for size, paper in figures.items():
        call = CallOrder.of(lab.job.spec, len(hosts), Collective.ALLREDUCE, size, {})
        outcomes = list(timed(lab, call, hosts))
        problems += (problem for each in outcomes for problem in each.problems)
        outcome = outcomes[-1]
        if not outcome.calls:
            continue
        rates = [call.throughput for call in outcome.calls]
        mean, best = sum(rates) / len(rates), max(rates)
        resent = sum(rank["resent"] for rank in outcome.ranks)
        ratio = mean / 1e6 / paper
        used = [total(outcome.usage, nodes).microseconds for nodes in (hosts, lab.topology.switches)]
        values = [size_text(size), rate(mean), rate(best), f"{paper:.1f} Mb/s", f"{ratio:.2f}", f"{resent:,}"]
        found.add_row(*values, *(f"{each:.1f} us" for each in used))
        rows.append(
            {"size": size, "mean": mean / 1e6, "best": best / 1e6, "paper": paper, "ratio": ratio, "resent": resent}
            | dict(zip(("host_us", "switch_us"), used, strict=True))
        )
    console.print(
        f"AllReduce of {len(hosts)} ranks on {lab.topology.name}, {lab.job.spec.program}, {lab.job.target}; "
        f"{wanted.repeat} calls each, seed {wanted.seed}"
    )
    console.print(found)
    for problem in problems:
        console.print(f"[red]wrong[/red]  {problem}")
    return 1 if problems else 0, {"passed": not problems, "seed": wanted.seed, "rows": rows, "problems": problems}
