"""A scenario: collectives with faults, and links that fail and come back, reported as a table or JSON."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rich.console import Console

from p4gen.errors import InputError
from p4gen.labs.job import Wanted
from p4gen.labs.network.outages import fail_links
from p4gen.labs.runs import together
from p4gen.labs.runs.calls import GroupRun, RunOutcome
from p4gen.labs.runs.membercalls import ROOT, MemberCall, members_of
from p4gen.labs.runs.memberruns import run_calls
from p4gen.labs.runs.peercalls import PeerCall
from p4gen.labs.runs.peerruns import Tell, run
from p4gen.labs.runs.report import progress, show, size_text, to_json, tree_text
from p4gen.labs.session import Lab
from p4gen.net.collectives.config import Call
from p4gen.records import to_plain
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.message import Collective


def work(lab: Lab, console: Console) -> tuple[int, dict[str, Any]]:
    """Run the scenario of the command line. Returns exit status and result."""
    status, result = _work(lab, console)
    full = lab.network.overflows()
    for link, frames in full.items():
        if frames:
            console.print(f"{link}: its queues had no room for {frames:,} frames (--bandwidth)", markup=False)
    return status, result | ({"overflows": full} if full else {})


def _work(lab: Lab, console: Console) -> tuple[int, dict[str, Any]]:
    wanted = lab.job.wanted
    for kind, value, place in wanted.impairments:
        lab.impairments.suffer(place or "all", kind, value)
    if wanted.others:
        return together.work(lab, console)
    ready = _over_connections if not lab.job.grouped else _with_members if lab.job.uses_memory else _in_a_group
    title, lines, begin = ready(lab, wanted, wanted.ranks or lab.topology.rank_hosts)
    console.print(title, *lines, sep="\n", markup=False)
    with progress(console, wanted.collective) as tell:
        result = begin(tell)
        threading.Thread(target=fail_links, args=(lab, wanted.outages, console), daemon=True).start()
        outcome = result()
    show(outcome, console)
    told: dict[str, Any] = {"passed": outcome.ok, "seed": wanted.seed}
    if not lab.job.grouped:
        told["connections"] = [to_plain(status) for status in lab.manager.status().connections]
    return 0 if outcome.ok else 1, told | to_json(outcome)


Begin = Callable[[Tell], Callable[[], RunOutcome]]
"""Begins calls; the function that it returns waits for their end."""
Ready = tuple[str, Sequence[str], Begin]
"""What is about to be run: a title, more lines, and how it begins."""


def _in_a_group(lab: Lab, wanted: Wanted, hosts: Sequence[str]) -> Ready:
    group = lab.groups.of(hosts)
    call = Call(Collective(wanted.collective), wanted.size, wanted.root)
    trees = [f"{len(group.trees)} trees: {tree_text(group)}"] if group.trees else []

    def begin(tell: Tell) -> Callable[[], RunOutcome]:
        calls = [call] * wanted.repeat
        return GroupRun(lab, group, calls, seed=wanted.seed, deadline=wanted.deadline, progress=tell).result

    return f"{_what(wanted)}, {len(hosts)} ranks, {wanted.repeat} times, seed {wanted.seed}", trees, begin


def _with_members(lab: Lab, wanted: Wanted, hosts: Sequence[str]) -> Ready:
    call = member_call(lab.job.spec, wanted, len(hosts))
    plan = call.plan(lab.job.spec, len(hosts))
    group = lab.groups.of(hosts, plan.packets)

    def begin(tell: Tell) -> Callable[[], RunOutcome]:
        return partial(run_calls, lab, group, [call] * wanted.repeat, wanted.seed, tell)

    return f"{plan.title}, {wanted.repeat} times, seed {wanted.seed}", (), begin


def _over_connections(lab: Lab, wanted: Wanted, hosts: Sequence[str]) -> Ready:
    call = PeerCall(wanted.collective, wanted.size, wanted.root)
    group = lab.connections.group(hosts, ring=not call.is_alltoall)
    spread = "sprayed" if wanted.spray else "on the paths that ECMP gives them"
    title = f"{_what(wanted)}, {len(hosts)} ranks, {wanted.repeat} times, seed {wanted.seed}"

    def begin(tell: Tell) -> Callable[[], RunOutcome]:
        calls = [call] * wanted.repeat
        return partial(run, lab, group, calls, seed=wanted.seed, deadline=wanted.deadline, progress=tell)

    return f"{title}; {len(group.numbers)} connections, {spread}", group.not_registered, begin


def _what(wanted: Wanted) -> str:
    return f"{wanted.collective} of {size_text(wanted.size)}" if wanted.size else wanted.collective


def member_call(spec: ProgramSpec, wanted: Wanted, ranks: int) -> MemberCall:
    """The scenario's call of a family whose ranks offer their memory. Raises ``InputError`` if there is none."""
    family, name = members_of(spec), wanted.collective
    if name not in family.collectives:
        raise InputError(f"{spec.program} has no {name}; there are {', '.join(family.collectives)}")
    root = {ROOT: str(wanted.root)} if wanted.root or ROOT in family.collectives[name] else {}
    size = wanted.size if name in family.sized else None
    return MemberCall.of(spec, ranks, name, size, dict(wanted.given) | root)
