"""The work of ``p4gen route run``: aggregator-aware routing on random fabrics, beside the paper's baselines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from p4gen.cli.files import write_text, writing
from p4gen.cli.options import report_console
from p4gen.errors import InputError
from p4gen.inputs import drawn, parsed, quote
from p4gen.plan.route.content import content, joint_content
from p4gen.plan.route.drawing import plot_plans
from p4gen.plan.route.instance import Instance, LeafSpine
from p4gen.plan.route.plan import Plan
from p4gen.plan.route.study import (
    ALGORITHMS,
    JOINT_ALGORITHMS,
    PAPER,
    USUAL,
    Effort,
    JointSolved,
    Setting,
    Solved,
    Summary,
    joint_summary,
    solve,
    solve_jointly,
    summary,
)
from p4gen.vocabulary import units

_FORM = re.compile(r"([0-9]{1,3})x([0-9]{1,3})x([0-9]{1,3})")


def do(
    fabric: str,
    workers: int | None,
    jobs: int,
    tasks: int,
    ina: str,
    pipelines: int,
    mapping: str,
    algorithms: tuple[str, ...],
    alpha: str,
    steps: int,
    repeat: int,
    time_limit: float,
    plot: Path | None,
    out: Path | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Run the command with these options."""
    match = _FORM.fullmatch(fabric)
    if match is None or "0" in match.groups():
        raise InputError(f"--fabric {quote(fabric)}: it is leaves x spines x hosts, such as 24x24x24")
    leaves, spines, hosts = map(int, match.groups())
    shape = LeafSpine(leaves, spines, hosts, pipelines=pipelines, mapping=mapping)
    share = parsed("ina", units.share, ina)
    aggregators = Setting(shape, ina=share, jobs=jobs, tasks=tasks).aggregators
    several = jobs * tasks > 1
    known = JOINT_ALGORITHMS if several else ALGORITHMS
    for name in algorithms:
        if name not in known:
            raise InputError(f"--algorithm {name}: is for several tasks; for one there are {', '.join(known)}")
    chosen = [name for name in known if name in (algorithms or USUAL)]
    effort = Effort(time_limit, parsed("alpha", units.share, alpha), steps)
    workers = workers or (100 if several else 200)
    seed = drawn(seed)
    console = report_console(quiet=as_json)
    console.print(f"seed {seed}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        numbers = bar.track(range(seed, seed + repeat), description="instances")
        if several:
            joint = [
                solve_jointly(shape, jobs, tasks, workers, aggregators, number, chosen, effort) for number in numbers
            ]
        else:
            solved = [solve(shape, workers, aggregators, number, chosen, effort) for number in numbers]
    if several:
        _show_joint(joint, chosen, console, seed if as_json else None)
        first = joint[0].found[chosen[-1]]
        _write(
            lambda: joint_content(joint[0]),
            list(zip(joint[0].tasks.instances, first.plans, strict=True)),
            out,
            plot,
            console,
        )
        return
    found = {name: summary(solved, name) for name in chosen}
    usual = (fabric, workers, ina, pipelines) == ("24x24x24", 200, "20%", 4)
    _show(solved, found, usual, console)
    _write(lambda: content(solved[0]), [(solved[0].instance, solved[0].plans[chosen[-1]])], out, plot, console)
    if as_json:
        click.echo(json.dumps({"seed": seed, "instances": repeat, "algorithms": _json(found)}))


def _write(
    plans: Callable[[], Mapping[str, Any]],
    drawn: Sequence[tuple[Instance, Plan]],
    out: Path | None,
    plot: Path | None,
    console: Console,
) -> None:
    """The files that were asked for: the first instance's plans, and a picture of one of them."""
    if out is not None:
        write_text(out, json.dumps(plans(), indent=1) + "\n")
        console.print(f"wrote {out}")
    if plot is not None:
        with writing(plot):
            plot_plans(drawn, plot)
        console.print(f"wrote {plot}")


def _show(solved: list[Solved], found: dict[str, Summary], usual: bool, console: Console) -> None:
    instance = solved[0].instance
    fabric, switches = instance.fabric, len(instance.aggregating_leaves) + len(instance.aggregating_spines)
    console.print(
        f"{len(solved)} instances: {len(instance.workers)} workers, {switches} switches aggregate with "
        f"{fabric.pipelines} pipelines ({fabric.mapping}); rates in Gb/s, ARO's in hundredths of a link's"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("algorithm")
    for head in ("mean", "std. error", *(("paper",) if usual else ()), "gap", "slowest, s"):
        table.add_column(head, justify="right")
    for name, each in found.items():
        gap = "" if each.worst_gap is None else f"{each.worst_gap:.1%}"
        paper = [f"{PAPER[name]:.2f}" if name in PAPER else ""] if usual else []
        table.add_row(name, f"{each.mean:.2f}", f"{each.error:.2f}", *paper, gap, f"{each.slowest:.2f}")
    console.print(table)
    if "aro" in found:
        console.print(_why(solved[0]))


def _show_joint(solved: list[JointSolved], chosen: list[str], console: Console, seed: int | None) -> None:
    """Print several tasks' results; with a seed also as JSON."""
    tasks = solved[0].tasks
    found = {name: joint_summary(solved, name) for name in chosen}
    names = ("slowest task", "all tasks") if len(tasks.jobs) == 1 else ("slowest job", "all jobs")
    console.print(
        f"{len(solved)} instances: {len(tasks.jobs)} jobs of {len(tasks.jobs[0])} tasks, "
        f"{len(tasks.instances[0].workers)} workers a job; rates in Gb/s"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("algorithm")
    for head in (*names, "gap", "slowest, s"):
        table.add_column(head, justify="right")
    for name, each in found.items():
        gap = "" if each.worst_gap is None else f"{each.worst_gap:.1%}"
        table.add_row(name, f"{each.least:.2f}", f"{each.total:.2f}", gap, f"{each.slowest:.2f}")
    console.print(table)
    if seed is not None:
        rows = {name: {"least_gbps": s.least, "total_gbps": s.total, "worst_gap": s.worst_gap, "slowest_s": s.slowest}
                for name, s in found.items()}  # fmt: skip
        click.echo(json.dumps({"seed": seed, "instances": len(solved), "algorithms": rows}))


def _why(solved: Solved) -> str:
    """What keeps the first instance's best plan from being faster."""
    instance, plan = solved.instance, solved.plans["aro"]
    fullest = plan.fullest(instance)
    if fullest == instance.least:
        return f"seed {solved.seed}: {fullest} pipelines of the server's leaf carry its own workers: no plan is faster"
    proven = "no plan has fewer" if plan.gap(instance) == 0 else f"no plan has fewer than {plan.bound:.2f}"
    return f"seed {solved.seed}: {fullest} flows on the fullest link; {proven}"


def _json(found: dict[str, Summary]) -> dict[str, Any]:
    return {
        name: {"mean_gbps": s.mean, "standard_error": s.error, "worst_gap": s.worst_gap, "slowest_s": s.slowest}
        for name, s in found.items()
    }
