"""What ``p4gen host`` does."""

from __future__ import annotations

import json
import time
from typing import Any, Final

import click
import numpy as np

from p4gen.cli.nccltests import size_range
from p4gen.errors import FailedError, InputError
from p4gen.experiments.nccltests import BandwidthTable
from p4gen.host.transport.clock import SECOND
from p4gen.labs.calls import ROOT, CallOrder
from p4gen.library.ranks import Communicator, join
from p4gen.net.collectives.check import difference

_WARM_UP: Final = 2
"""Calls of each size that are made before those whose time counts."""


def do(**o: Any) -> None:
    """Join the group, make the calls of each size, print the table. Raises ``InputError``, and ``FailedError`` for a
    wrong result."""
    sizes = size_range(o, o["collective"])
    ranks = o["ranks"].split(",") if o["ranks"] else None
    places = {name: o[name] for name in ("manager", "interface", "timer", "verbs", "tls", "timeout")}
    with join(o["group"], ranks=ranks, host=o["name"], **places) as group:
        if o["root"] >= group.size:
            raise InputError(f"--root {o['root']}: group {group.name} has {group.size} ranks")
        table = BandwidthTable(group.spec, o["collective"], group.size, o["root"])
        shown = group.rank == 0 and not o["as_json"]
        what = f"{o['collective']}, rank {group.rank} of {' '.join(group.ranks)}, {group.spec.program}"
        _print(shown, f"# {what}; real time at rank 0, mean of {o['repeat']} calls; seed {o['seed']}", *table.heading)
        problem = ""
        for size in table.sizes(*sizes):
            call = CallOrder(o["collective"], size, ((ROOT, str(o["root"])),))
            times, wrong, found = _times(group, call, **{name: o[name] for name in ("repeat", "seed", "timeout")})
            problem = problem or found
            line = table.add(size, sum(times) / len(times) * SECOND, wrong)
            _print(shown, line)
        _print(shown, *table.ending)
        if o["as_json"]:
            click.echo(json.dumps({"host": o["name"], "rank": group.rank, "seed": o["seed"]} | table.to_dict()))
        elif not shown:
            click.echo(f"rank {group.rank} ({o['name']}): {sum(row.wrong for row in table.rows)} wrong results")
    if problem:
        raise FailedError(f"rank {group.rank} ({o['name']}): {problem}")


def _times(
    group: Communicator, call: CallOrder, *, repeat: int, seed: int, timeout: float
) -> tuple[list[float], int, str]:
    """The seconds that calls took here, the number of wrong results, and what is wrong with the last of these. All
    ranks draw the same data, new ones for each call, and begin it together."""
    plan = call.plan(group.spec, group.size)
    times, wrong, problem = [], 0, ""
    for number in range(_WARM_UP + repeat):
        drawn = plan.draw(np.random.default_rng([seed, call.size, number]))
        group.barrier(timeout=timeout)
        began = time.perf_counter()
        got = group.begin(call.collective, drawn.values[group.rank], call.root, timeout=timeout).result()
        times.append(time.perf_counter() - began)
        if found := difference(got, drawn.results[group.rank]):
            wrong, problem = wrong + 1, f"{call.collective} of {call.size} bytes, call {number}: {found}"
    return times[_WARM_UP:], wrong, problem


def _print(shown: bool, *lines: str) -> None:
    if shown:
        click.echo("\n".join(lines))
