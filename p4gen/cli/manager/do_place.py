"""What ``p4gen manager place`` does, and ``jobs`` and ``release`` with what it has placed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from p4gen.cli.defaults import MANAGER_VARIABLE
from p4gen.cli.options import report_console
from p4gen.cli.windows import schedules
from p4gen.errors import InputError
from p4gen.families import load_spec
from p4gen.inputs import quote
from p4gen.library.stations import stated
from p4gen.manager.api import (
    Code,
    GroupSpec,
    GroupStatus,
    JobGroup,
    JobSpec,
    JobStatus,
    Manager,
    ManagerError,
)
from p4gen.manager.onpaper import on_paper
from p4gen.manager.process import DEFAULT_POLICY
from p4gen.manager.remote.client import ManagerClient
from p4gen.plan.flow.jobs import grid
from p4gen.plan.placement.hosts import PLACEMENTS
from p4gen.vocabulary.topology import load_topology

_NAMED: Final = 8
"""Hosts of a group that a table names."""


def do(**o: Any) -> None:
    """Run the command with these options. What is wrong with the job for every placement is wrong input."""
    job = job_of(o)
    with _asked(o) as manager:
        try:
            status = manager.init_job(job)
        except ManagerError as error:
            if error.code is not Code.INVALID:
                raise
            raise InputError(*error.reason.splitlines()) from None
    if o["as_json"]:
        click.echo(json.dumps(_json(status)))
    else:
        show(status, report_console())


def do_jobs(manager: str | None, tls: str | None, as_json: bool) -> None:
    """Show all jobs."""
    with client_of(manager, tls) as client:
        jobs = client.jobs()
    if as_json:
        click.echo(json.dumps([_json(job) for job in jobs]))
        return
    table = _table("job", "hosts", "groups", "on switches")
    for job in jobs:
        carried = sum(not group.ring for group in job.groups)
        table.add_row(Text(job.spec.name), Text(_listed(job.hosts)), str(len(job.groups)), str(carried))
    report_console().print(table if jobs else Text("no jobs"))


def client_of(manager: str | None, tls: str | None) -> ManagerClient:
    """The manager that options or the environment name."""
    return ManagerClient(stated(manager, "manager", MANAGER_VARIABLE), tls=tls)


def job_of(o: dict[str, Any]) -> JobSpec:
    """The job that options describe. Raises ``InputError``."""
    parallel = o["tp"] * o["dp"] * o["pp"]
    size = o["ranks"] or parallel
    if parallel not in (1, size):
        raise InputError(f"--ranks {size}: TP x DP x PP is {parallel}")
    members = {each.name: each.ranks for some in grid(o["tp"], o["dp"], o["pp"]) for each in some}
    for text in o["groups"]:
        name, _, ranks = text.partition("=")
        if name in members:
            raise InputError(f"--group {quote(text)}: there is a group {quote(name)} already")
        try:
            members[name] = tuple(map(int, ranks.split(",")))
        except ValueError:
            raise InputError(f"--group {quote(text)}: it is not NAME=RANK,RANK") from None
    members = members or {"world": tuple(range(size))}
    windows = schedules("window", o["windows"], members)
    groups = (
        JobGroup(GroupSpec(name, (), fallback=o["fallback"], schedule=windows.get(name)), ranks)
        for name, ranks in members.items()
    )
    return JobSpec(o["name"], size, tuple(groups), o["placement"] or PLACEMENTS[0])


@contextlib.contextmanager
def _asked(o: dict[str, Any]) -> Iterator[Manager]:
    """The manager, or one on paper."""
    if o["topology"] is None:
        if given := [name for name in ("policy", "spec") if o[name] is not None]:
            raise click.UsageError(f"--{given[0]} is for plans, with --topology")
        with client_of(o["manager"], o["tls"]) as client:
            yield client
        return
    if o["manager"] is not None:
        raise click.UsageError("--topology is for a plan, which no manager makes")
    spec = load_spec(o["spec"], {"mode": None if o["spec"] else "III"})
    with on_paper(load_topology(o["topology"]), spec, o["policy"] or DEFAULT_POLICY) as manager:
        yield manager


def show(status: JobStatus, console: Console) -> None:
    """The hosts of a job, its groups with their trees, and how many switches these take."""
    console.print(f"{status.spec.name}, {status.spec.placement}: {' '.join(status.hosts)}", markup=False)
    table = _table("group", "hosts", "root", "switches", "links")
    for group in status.groups:
        own = group.spec.name.removeprefix(f"{status.spec.name}:")
        root = "ring" if group.ring and not group.tree else _root(group)
        table.add_row(
            Text(own), Text(_listed(group.spec.ranks)), Text(root), str(len(group.switches)), str(group.links)
        )
    console.print(table)
    trees = [group for group in status.groups if group.tree]
    switches, links = sum(len(group.switches) for group in trees), sum(group.links for group in trees)
    console.print(f"{len(trees)} tree{'' if len(trees) == 1 else 's'}: {switches} switches, {links} links")
    if reasons := [f"{group.spec.name}: {group.reason}" for group in status.groups if group.reason]:
        console.print("\n".join(reasons), markup=False)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title in titles:
        table.add_column(title, no_wrap=True)
    return table


def _listed(hosts: Sequence[str]) -> str:
    """Names of hosts, the last one after those that a table has room for."""
    return " ".join(hosts if len(hosts) <= _NAMED else (*hosts[: _NAMED - 1], "...", hosts[-1], f"({len(hosts)})"))


def _root(group: GroupStatus) -> str:
    return " ".join(name for name, above in group.tree.items() if above is None)


def _json(status: JobStatus) -> dict[str, Any]:
    groups: Sequence[GroupStatus] = status.groups
    return {
        "job": status.spec.name,
        "placement": status.spec.placement,
        "hosts": status.hosts,
        "groups": [
            {
                "name": each.spec.name,
                "ranks": each.spec.ranks,
                "tree": each.tree,
                "ring": each.ring,
                "links": each.links,
            }
            for each in groups
        ],
    }
