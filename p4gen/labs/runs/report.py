"""Reports of runs in a lab, for a terminal and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from p4gen.host.transport.clock import SECOND, duration_text
from p4gen.labs.calls import size_text
from p4gen.labs.hosts.ranks import COUNTERS
from p4gen.labs.runs.run import CallOutcome, RunOutcome

KERNEL = ("not_udp_over_ipv4", "not_udp_over_ipv6", "not_rocev2", "truncated")
"""Reason of frames that the NIC ignores because the kernel handles them; they are not lost."""


def table(*columns: str) -> Table:
    """A table in p4gen's style."""
    return Table(*columns, box=None, pad_edge=False, header_style="bold")


def rate(bits: float) -> str:
    """A rate in bits a second as text, such as ``89.0 Mb/s``."""
    return f"{bits / 1e6:.1f} Mb/s"


def counts_text(counts: Mapping[str, int]) -> str:
    """Counts by reason as text, such as ``loss 12, corrupt 3``: the greatest first, without zeros."""
    return ", ".join(f"{reason} {count:,}" for reason, count in Counter(counts).most_common() if count)


def without_kernel(refused: Mapping[str, int]) -> dict[str, int]:
    """Frames that the NIC refused, without those that the kernel handles (pings)."""
    return {reason: count for reason, count in refused.items() if reason not in KERNEL}


def show(outcome: RunOutcome, console: Console) -> None:
    """Print calls, ranks, drops, and whether all results are right."""
    _show_calls(outcome.calls, console)
    by_tree = ["sent by tree"] if any(rank["trees"] for rank in outcome.ranks) else []
    ranks = table("rank", "host", *COUNTERS, *by_tree, "faults", "refused by the NIC")
    for number, rank in enumerate(outcome.ranks):
        refused = without_kernel(rank["refused"])
        if rank["kernel_drops"]:
            refused["too late for the socket"] = rank["kernel_drops"]
        if rank["undelivered"]:
            refused["not sent"] = rank["undelivered"]
        values = [f"{rank[name]:,}" for name in COUNTERS]
        values += [" + ".join(f"{sent:,}" for sent in rank["trees"].values()) for _ in by_tree]
        ranks.add_row(str(number), rank["host"], *values, counts_text(rank["faults"]), counts_text(refused))
    console.print(ranks)
    dropped = table("switch", "dropped by the program")
    for switch, drops in outcome.drops.items():
        if drops:
            dropped.add_row(switch, counts_text(drops))
    if dropped.row_count:
        console.print(dropped)
    for switch in outcome.traced:
        console.print(f"{switch} is traced: the figures are those of a switch without batches", markup=False)
    for problem in outcome.problems:
        console.print("[red]wrong[/red]  ", end="")
        console.print(problem, markup=False)
    if outcome.ok:
        console.print("[green]every rank's result equals NumPy's[/green]")


def _show_calls(calls: tuple[CallOutcome, ...], console: Console) -> None:
    rings = [each.ring for each in calls]
    where = ["carried by"] if any(rings) else []
    found = table("call", "collective", "size", "time", "throughput", *where, "begun", "result")
    shown = calls if len(calls) <= 12 else calls[:10]
    for number, each in enumerate(shown):
        found.add_row(
            str(number),
            str(each.call.collective),
            size_text(each.call.size),
            duration_text(each.duration),
            rate(each.throughput) if each.call.size else "",
            *("ring" if each.ring else "switches" for _ in where),
            str(each.begun),
            "[red]wrong[/red]" if each.problems else "right",
        )
    if calls:
        console.print(found)
    if len(shown) < len(calls):
        console.print(f"… and {len(calls) - len(shown)} more")
    sized = [each.throughput for each in calls if each.call.size]
    if len(sized) > 1:
        console.print(f"throughput: mean {rate(sum(sized) / len(sized))}, best {rate(max(sized))}")


@contextmanager
def progress(console: Console, what: str, total: int) -> Iterator[Callable[[float], None]]:
    """A progress bar of ``total`` calls on a terminal. The function takes the number of calls done."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:

        def title(done: float) -> str:
            return f"{what} {int(done)} of {total}" if total > 1 else what

        task = bar.add_task(title(0), total=total)
        yield lambda done: bar.update(task, description=title(done), completed=done)


def to_json(outcome: RunOutcome) -> dict[str, Any]:
    """The outcome of a run as JSON."""
    return {
        "group": outcome.group,
        "ok": outcome.ok,
        "problems": list(outcome.problems),
        "calls": [
            {
                "collective": str(each.call.collective),
                "size": each.call.size,
                "root": each.call.root,
                "seconds": each.duration / SECOND,
                "mbps": round(each.throughput / 1e6, 3),
                "begun": each.begun,
                "ring": each.ring,
                "right": not each.problems,
            }
            for each in outcome.calls
        ],
        "ranks": list(outcome.ranks),
        "traced": list(outcome.traced),
        "drops": outcome.drops,
        "usage": {
            name: {"seconds": round(used.seconds, 6), "packets": used.packets, "us_per_packet": used.microseconds}
            for name, used in outcome.usage.items()
        },
    }
