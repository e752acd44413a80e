"""Flows to groups of interchangeable spines, divided among the spines of each group, where tasks share links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from p4gen.plan.route.flows import Group
from p4gen.plan.route.plan import Plan
from p4gen.plan.route.program import Program

_ENOUGH: Final = 1e-6
Shares = Mapping[tuple[int, int], int]
"""Flows by task and leaf, all to one group."""


def divided_by_rates(
    flows_of: Sequence[Mapping[tuple[int, Group], int]], rates: Sequence[float], limit: float = 5.0
) -> tuple[Plan, ...]:
    """Divide the flows of tasks to each group among the group's spines, so that no link carries more than its
    bandwidth, or than the fullest group needs. If none is found for a group within ``limit`` seconds, the best one
    found may exceed this."""
    found: list[Counter[tuple[int, int]]] = [Counter() for _ in flows_of]
    groups: dict[Group, dict[tuple[int, int], int]] = {}
    for task, flows in enumerate(flows_of):
        for (leaf, group), count in flows.items():
            if len(group) > 1 and count:
                groups.setdefault(group, {})[task, leaf] = count
            else:
                found[task][leaf, group[0]] += count
    least = max([1.0, *(_fullest(shares, rates) / len(group) for group, shares in groups.items())])
    for group, shares in sorted(groups.items()):
        parts = _dealt(group, shares, rates)
        if max(_fullest(part, rates) for part in parts.values()) > least + _ENOUGH:
            halves = _halved(group, shares, rates, limit / len(group))
            parts = min(parts, halves, key=lambda some: max(_fullest(part, rates) for part in some.values()))
        for spine, part in parts.items():
            for (task, leaf), count in part.items():
                found[task][leaf, spine] += count
    return tuple(Plan("aro", {link: count for link, count in up.items() if count}) for up in found)


def _fullest(shares: Shares, rates: Sequence[float]) -> float:
    """The load of the fullest link if all these flows take one spine: from a leaf, or to a server's leaf."""
    loads: Counter[tuple[str, int]] = Counter()
    for (task, leaf), count in shares.items():
        loads["leaf", leaf] += count * rates[task]  # type: ignore[assignment]
        loads["task", task] += count * rates[task]  # type: ignore[assignment]
    return max(loads.values(), default=0.0)


def _dealt(group: Group, shares: Shares, rates: Sequence[float]) -> dict[int, Counter[tuple[int, int]]]:
    """Each flow goes to the spine whose links it loads the least; flows of high rates choose first."""
    from_leaf: Counter[tuple[int, int]] = Counter()
    to_server: Counter[tuple[int, int]] = Counter()
    found: dict[int, Counter[tuple[int, int]]] = {spine: Counter() for spine in group}
    for (task, leaf), count in sorted(shares.items(), key=lambda item: (-rates[item[0][0]], item[0])):
        for _ in range(count):
            spine = min(group, key=lambda s: max(from_leaf[leaf, s], to_server[task, s]))
            from_leaf[leaf, spine] += rates[task]  # type: ignore[assignment]
            to_server[task, spine] += rates[task]  # type: ignore[assignment]
            found[spine][task, leaf] += 1
    return found


def _halved(group: Group, shares: Shares, rates: Sequence[float], limit: float) -> dict[int, Counter[tuple[int, int]]]:
    """Divide the flows between two halves of the spines, and so on in each half, by an integer program that keeps the
    fuller half's links as empty as possible.

    If rates are equal, the flows of each leaf and each task can always be divided equally, as the program is a network
    flow then.
    """
    if len(group) == 1:
        return {group[0]: Counter(shares)}
    first, second = group[: len(group) // 2], group[len(group) // 2 :]
    part = len(first) / len(group)
    program = Program()
    fullest = program.column(1, 1e6, 1.0)
    columns: dict[tuple[int, int], int] = {}
    ends: dict[tuple[str, int], list[tuple[int, int, float]]] = {}
    for (task, leaf), count in shares.items():
        low = int(count * part + _ENOUGH)
        column = program.column(low, low + (low < count * part - _ENOUGH), whole=True)
        columns[task, leaf] = column
        ends.setdefault(("leaf", leaf), []).append((column, count, rates[task]))
        ends.setdefault(("task", task), []).append((column, count, rates[task]))
    for terms in ends.values():
        program.at_most([*((column, rate) for column, _, rate in terms), (fullest, -float(len(first)))])
        of_all = sum(count * rate for _, count, rate in terms)
        program.at_most([*((column, -rate) for column, _, rate in terms), (fullest, -float(len(second)))], -of_all)
    solution = program.minimise(limit)
    if solution is None:
        return _dealt(group, shares, rates)
    chosen = Counter({place: int(solution.values[column]) for place, column in columns.items()})
    rest = Counter({place: count - chosen[place] for place, count in shares.items()})
    return _halved(first, +chosen, rates, limit) | _halved(second, +rest, rates, limit)
