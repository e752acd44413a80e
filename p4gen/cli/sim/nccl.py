"""``--nccl-tests`` of simulations: a run for each size, in a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console

from p4gen.cli.sim.report import show_end
from p4gen.experiments.nccltests import BandwidthTable
from p4gen.net.job import Job
from p4gen.net.result import RunResult


def tabulate(
    table: BandwidthTable, sizes: list[int], calls: int, job_of: Callable[[int], Job[Any, RunResult]], console: Console
) -> tuple[bool, dict[str, Any]]:
    """Run the job of each size, which makes ``calls`` calls in a row, and print the table as it grows. Returns whether
    all is right, and the table as plain data. It ends with a run that does not end."""
    passed, network = True, ""
    for size in sizes:
        job = job_of(size)
        if not network:
            network = job.network.topology.name
            programs = ", ".join(sorted({spec.program for spec in job.specs.values()}))
            number = f"mean of {calls} calls in a row" if calls > 1 else "of one call"
            title = f"# {table.collective}, {table.ranks} ranks on {network}, {programs}; virtual time, {number}"
            _print(console, title, *table.heading)
        result = job.run()
        passed = passed and result.ok and not result.silent
        if not result.ended:
            show_end(result, console)
            break
        row = table.add(size, result.duration / calls, len(result.errors))
        _print(console, row, *(f"# {line}" for line in (*result.errors, *result.silent)))
    _print(console, *table.ending)
    return passed, {"passed": passed, "topology": network, **table.to_dict()}


def _print(console: Console, *lines: str) -> None:
    console.print(*lines, sep="\n", markup=False, highlight=False, soft_wrap=True)
