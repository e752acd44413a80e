"""The numbers that ``p4gen top`` shows: a manager's status, and rates computed from it and the previous status."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from p4gen.manager.api import ConnectionStatus, GroupStatus, RankReport, Status, SwitchStatus
from p4gen.records import to_plain

_COUNTS = ("invocations", "data_bytes", "sent", "resent", "timeouts", "naks", "cnps")
"""Counters of a ``RankReport``."""
Statistics = dict[str, Any]
"""A JSON object: time (s), groups, switches, ranks, connections, handshakes, leases. Rates are null without a previous
one."""
ROW = ("connection", "hosts", "QPs", "state", "paths", "gen", "index", "epoch")
"""Titles of the columns of a connection before those of its counters."""


def statistics(now: Status, before: Status | None = None) -> Statistics:
    """The numbers of ``now``; rates are per second between ``before`` and ``now``."""
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
        "connections": [connection_statistics(status) for status in now.connections],
        "handshakes": dict(now.handshakes),
        "leases": dict(now.leases),
    }


def _group(
    group: GroupStatus, reports: list[RankReport], earlier: dict[tuple[str, int], RankReport], seconds: float | None
) -> Statistics:
    """The numbers of a group: the sums of its ranks' counters, except calls and their data, which every rank counts."""
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
        "trees": [{"tree": dict(each.tree), "rate": each.rate} for each in group.trees],
        "slots": dict(group.slots),
        "contexts": dict(group.contexts),
        "ring": group.ring,
        "mbps": rate,
        **totals,
    }


def _data_before(report: RankReport, earlier: dict[tuple[str, int], RankReport]) -> int:
    """Bytes at the previous status; 0 if the rank is new or its counters started again."""
    found = earlier.get((report.group, report.rank))
    return found.data_bytes if found is not None and found.data_bytes <= report.data_bytes else 0


def _switch(switch: SwitchStatus, before: SwitchStatus | None, seconds: float | None) -> Statistics:
    rates: dict[str, float] | None = None
    if seconds is not None and before is not None:
        rates = {name: max(count - before.drops.get(name, 0), 0) / seconds for name, count in switch.drops.items()}
    return {**to_plain(switch), "drops_per_second": rates}


def connection_statistics(status: ConnectionStatus) -> Statistics:
    """The numbers of a connection."""
    spec = status.spec
    return {
        "number": status.number,
        "source": spec.source,
        "destination": spec.destination,
        "source_qp": spec.source_qp,
        "destination_qp": spec.destination_qp,
        "source_switch": status.source_switch,
        "destination_switch": status.destination_switch,
        "state": str(status.state),
        "reason": status.reason,
        "generation": status.generation,
        "paths": list(status.paths),
        "path_set": status.path_set,
        "index": status.index,
        "epoch": status.epoch,
        "counts": {count.name: count.packets for count in status.counts},
    }


def connection_rows(found: Sequence[Statistics]) -> tuple[list[str], list[list[str]]]:
    """A table of connections: titles, and rows. Counters whose names begin alike, as in ``passed: lost``, share a
    column, which has those that are not 0."""
    columns = list(dict.fromkeys(name.partition(": ")[0] for each in found for name in each["counts"]))
    rows = []
    for each in found:
        cells: dict[str, list[str]] = {}
        for name, packets in each["counts"].items():
            column, _, kind = name.partition(": ")
            if not kind:
                cells[column] = [str(packets)]
            elif packets:
                cells.setdefault(column, []).append(f"{kind} {packets}")
        hosts, pairs = f"{each['source']}→{each['destination']}", f"{each['source_qp']:#x}→{each['destination_qp']:#x}"
        known = each["state"], f"{each['path_set']}: {' '.join(each['paths'])}", each["generation"]
        rows.append(
            [str(each["number"]), hosts, pairs, *map(str, known), str(each["index"]), str(each["epoch"])]
            + [", ".join(cells.get(column, ["-"])) for column in columns]
        )
    return [*ROW, *columns], rows


def connection_lines(found: Sequence[Statistics]) -> list[str]:
    """The table of connections as lines of text, the titles first. They may be longer than a terminal's."""
    titles, rows = connection_rows(found)
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (titles, *rows)
    ]
