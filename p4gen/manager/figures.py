"""The figures that ``p4gen top`` shows: a manager's status, and rates computed from it and the previous status."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from p4gen.manager.api import GroupStatus, RankReport, Status, SwitchStatus
from p4gen.records import to_plain

_COUNTS = ("invocations", "data_bytes", "sent", "resent", "timeouts", "naks", "cnps")
"""Counters of a ``RankReport``."""
Figures = dict[str, Any]
"""A JSON object: time (s), groups, switches, ranks. Rates are null without a previous status."""


def figures(now: Status, before: Status | None = None) -> Figures:
    """The figures of ``now``; rates are per second between ``before`` and ``now``."""
    seconds = None if before is None or now.time <= before.time else now.time - before.time
    reports: defaultdict[str, list[RankReport]] = defaultdict(list)
    for report in now.ranks:
        reports[report.group].append(report)
    earlier = {(r.group, r.rank): r for r in before.ranks} if before is not None else {}
    switches = {s.name: s for s in before.switches} if before is not None else {}
    return {
        "time": now.time,
        "groups": [_group(group, reports[group.spec.name], earlier, seconds) for group in now.groups],
        "switches": [_switch(switch, switches.get(switch.name), seconds) for switch in now.switches],
        "ranks": [to_plain(report) for reported in reports.values() for report in reported],
    }


def _group(
    group: GroupStatus, reports: list[RankReport], earlier: dict[tuple[str, int], RankReport], seconds: float | None
) -> Figures:
    """The figures of a group: the sums of its ranks' counters, except calls and their data, which every rank counts."""
    spec = group.spec
    totals = {name: sum(getattr(r, name) for r in reports) for name in _COUNTS}
    totals["invocations"] = max((r.invocations for r in reports), default=0)
    totals["data_bytes"] = max((r.data_bytes for r in reports), default=0)
    rate = None
    if seconds is not None:
        # The mean of the ranks, because their reports arrive at different times.
        moved = [r.data_bytes - _data_before(r, earlier) for r in reports]
        rate = max(sum(moved), 0) * 8e-6 / seconds / max(len(moved), 1)
    return {
        "name": spec.name,
        "state": str(group.state),
        "generation": group.generation,
        "reason": group.reason,
        "root": next((name for name, parent in group.tree.items() if parent is None), None),
        "ranks": len(spec.ranks),
        "hosts": list(spec.ranks),
        "tree": dict(group.tree),
        "slots": dict(group.slots),
        "contexts": dict(group.contexts),
        "mbps": rate,
        **totals,
    }


def _data_before(report: RankReport, earlier: dict[tuple[str, int], RankReport]) -> int:
    """Bytes at the previous status; 0 if the rank is new or its counters started again."""
    found = earlier.get((report.group, report.rank))
    return found.data_bytes if found is not None and found.data_bytes <= report.data_bytes else 0


def _switch(switch: SwitchStatus, before: SwitchStatus | None, seconds: float | None) -> Figures:
    rates: dict[str, float] | None = None
    if seconds is not None and before is not None:
        rates = {name: max(count - before.drops.get(name, 0), 0) / seconds for name, count in switch.drops.items()}
    return {**to_plain(switch), "drops_per_second": rates}
