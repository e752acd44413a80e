"""A scenario: collectives with faults, and links that fail and come back, reported as a table or JSON."""

from __future__ import annotations

import threading
from typing import Any

from rich.console import Console

from p4gen.errors import InputError
from p4gen.labs.job import Wanted
from p4gen.labs.network.outages import fail_links
from p4gen.labs.prompt.membercommands import run_calls
from p4gen.labs.runs import together
from p4gen.labs.runs.calls import GroupRun
from p4gen.labs.runs.membercalls import ROOT, MemberCall, members_of
from p4gen.labs.runs.peercalls import PeerCall
from p4gen.labs.runs.peerruns import run
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
    if lab.job.uses_memory:
        return _by_members(lab, console)
    if not lab.job.takes_part:
        return _over_connections(lab, console)
    if wanted.others:
        return together.work(lab, console)
    group = lab.groups.of(wanted.ranks or lab.topology.rank_hosts)
    call = Call(Collective(wanted.collective), wanted.size, wanted.root)
    what = f"{call.collective} of {size_text(call.size)}" if call.size else str(call.collective)
    console.print(f"{what}, {len(group.spec.ranks)} ranks, {wanted.repeat} times, seed {wanted.seed}")
    if group.trees:
        console.print(f"{len(group.trees)} trees: {tree_text(group)}", markup=False)
    with progress(console, str(call.collective)) as tell:
        running = GroupRun(
            lab, group, [call] * wanted.repeat, seed=wanted.seed, deadline=wanted.deadline, progress=tell
        )
        outages = threading.Thread(target=fail_links, args=(lab, wanted.outages, console), daemon=True)
        outages.start()
        outcome = running.result()
    show(outcome, console)
    return 0 if outcome.ok else 1, {"passed": outcome.ok, "seed": wanted.seed} | to_json(outcome)


def _by_members(lab: Lab, console: Console) -> tuple[int, dict[str, Any]]:
    wanted = lab.job.wanted
    hosts = wanted.ranks or lab.topology.rank_hosts
    call = member_call(lab.job.spec, wanted, len(hosts))
    plan = call.plan(lab.job.spec, len(hosts))
    group = lab.groups.of(hosts, plan.packets)
    console.print(f"{plan.title}, {wanted.repeat} times, seed {wanted.seed}", markup=False)
    with progress(console, call.collective) as tell:
        outages = threading.Thread(target=fail_links, args=(lab, wanted.outages, console), daemon=True)
        outages.start()
        outcome = run_calls(lab, group, [call] * wanted.repeat, wanted.seed, tell)
    show(outcome, console)
    return 0 if outcome.ok else 1, {"passed": outcome.ok, "seed": wanted.seed} | to_json(outcome)


def member_call(spec: ProgramSpec, wanted: Wanted, ranks: int) -> MemberCall:
    """The scenario's call of a family whose ranks offer their memory. Raises ``InputError`` if there is none."""
    family, name = members_of(spec), wanted.collective
    if name not in family.collectives:
        raise InputError(f"{spec.program} has no {name}; there are {', '.join(family.collectives)}")
    root = {ROOT: str(wanted.root)} if wanted.root or ROOT in family.collectives[name] else {}
    size = wanted.size if name in family.sized else None
    return MemberCall.of(spec, ranks, name, size, dict(wanted.given) | root)


def _over_connections(lab: Lab, console: Console) -> tuple[int, dict[str, Any]]:
    wanted = lab.job.wanted
    call = PeerCall(wanted.collective, wanted.size, wanted.root)
    group = lab.connections.group(wanted.ranks or lab.topology.rank_hosts, ring=not call.is_alltoall)
    what = f"{call.collective} of {size_text(call.size)}" if call.size else call.collective
    spread = "sprayed" if wanted.spray else "on the paths that ECMP gives them"
    console.print(
        f"{what}, {len(group.ranks)} ranks, {wanted.repeat} times, seed {wanted.seed}; {len(group.numbers)} "
        f"connections, {spread}"
    )
    for line in group.not_registered:
        console.print(line, markup=False)
    with progress(console, call.collective) as tell:
        outages = threading.Thread(target=fail_links, args=(lab, wanted.outages, console), daemon=True)
        outages.start()
        calls = [call] * wanted.repeat
        outcome = run(lab, group, calls, seed=wanted.seed, deadline=wanted.deadline, progress=tell)
    show(outcome, console)
    found = lab.manager.status().connections
    result = {"passed": outcome.ok, "seed": wanted.seed, "connections": [to_plain(status) for status in found]}
    return 0 if outcome.ok else 1, result | to_json(outcome)
