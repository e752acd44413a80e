"""Time and bandwidth of a lab's collective by size, in nccl-tests' table: the scenario ``--nccl-tests``."""

from __future__ import annotations

import threading
from typing import Any

from rich.console import Console

from p4gen.labs.calls import calls_by_size
from p4gen.labs.network.outages import fail_links
from p4gen.labs.runs.timed import timed
from p4gen.labs.session import Lab


def work(lab: Lab, console: Console) -> tuple[int, dict[str, Any]]:
    """Make the calls of each size and print the table as it grows; it ends with calls that fail, or are wrong. Returns
    exit status, 1 if any do, and result."""
    wanted, spec = lab.job.wanted, lab.job.spec
    hosts = wanted.ranks or lab.topology.rank_hosts
    table, calls = calls_by_size(spec, wanted, len(hosts))
    for kind, value, place in wanted.impairments:
        lab.impairments.suffer(place or "all", kind, value)
    what = f"{wanted.collective}, {len(hosts)} ranks on {lab.topology.name}, {spec.program}, {lab.job.target}"
    time = f"real time, mean of {wanted.repeat} calls, each from its first rank's start to the last one's end"
    _print(console, f"# {what}; {time}; seed {wanted.seed}", *table.heading)
    threading.Thread(target=fail_links, args=(lab, wanted.outages, console), daemon=True).start()
    problems: list[str] = []
    for call in calls:
        outcomes = list(timed(lab, call, hosts, wanted.repeat))
        problems += (problem for outcome in outcomes for problem in outcome.problems)
        measured = outcomes[-1].calls
        if measured:
            mean = sum(each.duration for each in measured) / len(measured)
            _print(console, table.add(call.size, mean, sum(len(each.problems) for each in measured)))
        if problems:
            break
    _print(console, *table.ending, *(f"# {problem}" for problem in problems))
    return 1 if problems else 0, {
        "passed": not problems, "seed": wanted.seed, "problems": problems, **table.to_dict(),
    }  # fmt: skip


def _print(console: Console, *lines: str) -> None:
    console.print(*lines, sep="\n", markup=False, highlight=False, soft_wrap=True)
