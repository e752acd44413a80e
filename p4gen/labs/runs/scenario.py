"""A scenario: collectives with faults, and links that fail and come back, reported as a table or JSON."""

from __future__ import annotations

import threading
from typing import Any

from rich.console import Console

from p4gen.labs.network.outages import fail_links
from p4gen.labs.runs import together
from p4gen.labs.runs.ready import ready
from p4gen.labs.runs.report import progress, show, to_json
from p4gen.labs.session import Lab
from p4gen.records import to_plain


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
    what = ready(lab, wanted, wanted.ranks or lab.topology.rank_hosts)
    spread = "sprayed" if wanted.spray else "on the paths that ECMP gives them"
    how = "" if lab.job.grouped else f", {spread}"
    title = f"{what.title}, {wanted.repeat} times, seed {wanted.seed}{what.party.place}{how}"
    console.print(title, *what.party.not_registered, sep="\n", markup=False)
    with progress(console, wanted.collective, wanted.repeat) as tell:
        run = what.begin(tell)
        threading.Thread(target=fail_links, args=(lab, wanted.outages, console), daemon=True).start()
        outcome = run.result()
    show(outcome, console)
    told: dict[str, Any] = {"passed": outcome.ok, "seed": wanted.seed}
    if not lab.job.grouped:
        told["connections"] = [to_plain(status) for status in lab.manager.status().connections]
    return 0 if outcome.ok else 1, told | to_json(outcome)
