"""Groups that make the same calls at the same time, under one placement policy."""

from __future__ import annotations

import threading
import time
from typing import Any, Final

from rich.console import Console

from p4gen.labs.calls import CallOrder, size_text
from p4gen.labs.groups import party, tree_text
from p4gen.labs.network.outages import fail_links
from p4gen.labs.parties import Party
from p4gen.labs.runs.report import show, to_json
from p4gen.labs.runs.run import Run, RunOutcome
from p4gen.labs.session import Lab
from p4gen.manager.api import Code, ManagerError

_DRAWN: Final = 256 << 20
"""Bytes of data that hosts draw before the first call, of each group."""


def work(lab: Lab, console: Console) -> tuple[int, dict[str, Any]]:
    """Run the scenario of the command line in each of its groups. Those that the manager refuses are told of. Returns
    exit status and result."""
    wanted = lab.job.wanted
    groups, refused = _create(lab, console)
    size = f" of {size_text(wanted.size)}" if wanted.size else ""
    number = f"{len(groups)} groups at the same time"
    console.print(f"{wanted.collective}{size}, {number}, {wanted.repeat} times, seed {wanted.seed}")
    began = time.monotonic()
    # Without Barriers in between, which would be calls that need leases, too.
    running = [
        Run(
            lab,
            group,
            [CallOrder.wanted(lab.job.spec, wanted, len(group.ranks))] * wanted.repeat,
            seed=wanted.seed + n,
            deadline=wanted.deadline,
            aligned=False,
            # Ranks that write to each other's memory would do so before the call before is checked.
            ahead=wanted.ahead(_DRAWN) if lab.job.spec.takes_part else 0,
            schedule=group.group.spec.schedule if group.group is not None else None,
        )
        for n, group in enumerate(groups)
    ]
    threading.Thread(target=fail_links, args=(lab, wanted.outages, console), daemon=True).start()
    outcomes = [each.result() for each in running]
    seconds = time.monotonic() - began
    for outcome, group in zip(outcomes, groups, strict=True):
        console.print(f"\ngroup {outcome.group}: {' '.join(group.ranks)}", markup=False)
        show(outcome, console)
        console.print(_carried(outcome))
    leases = dict(lab.manager.status().leases)
    if any(leases.values()):
        console.print("\nleases: {granted} granted, {refused} refused, {outside} outside windows".format_map(leases))
    passed = all(outcome.ok for outcome in outcomes) and not refused
    told = [to_json(each) | {"hosts": list(group.ranks)} for each, group in zip(outcomes, groups, strict=True)]
    result = {"passed": passed, "seed": wanted.seed, "seconds": seconds, "groups": told, "refused": refused}
    return 0 if passed else 1, result | {"leases": leases}


def _create(lab: Lab, console: Console) -> tuple[list[Party], dict[str, str]]:
    """The groups, and the reasons why others are refused."""
    wanted = lab.job.wanted
    groups, refused = [], {}
    for number, ranks in enumerate((wanted.ranks or lab.topology.rank_hosts, *wanted.others)):
        name = f"g{number}"
        try:
            packets = CallOrder.wanted(lab.job.spec, wanted, len(ranks)).plan(lab.job.spec, len(ranks)).packets
            status = lab.groups.init(name, ranks, packets=packets, number=number)
        except ManagerError as error:
            if error.code not in (Code.NO_ROOM, Code.UNREACHABLE):
                raise
            refused[name] = error.reason
            reason = "; ".join(error.reason.splitlines())
            console.print(f"group {name} ({' '.join(ranks)}) is refused: {reason}", markup=False)
        else:
            groups.append(party(status))
            console.print(f"group {name} ({' '.join(ranks)}): {tree_text(status)}", markup=False)
    return groups, refused


def _carried(outcome: RunOutcome) -> str:
    ring = sum(call.ring for call in outcome.calls)
    return f"calls carried by switches: {len(outcome.calls) - ring}, by the ring: {ring}"
