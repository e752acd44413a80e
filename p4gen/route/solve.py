"""SJST: one task's best routing as an integer program (ARO §III), solved by HiGHS.

With one task the rate is the bandwidth over K, the most flows on a link: so K is minimised, and nothing is quadratic.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping

from p4gen.errors import FailedError
from p4gen.route.instance import Instance
from p4gen.route.plan import Plan
from p4gen.route.program import Program

Group = tuple[int, ...]
"""Spines that are interchangeable."""


def route(
    instance: Instance,
    *,
    spines: Iterable[int] | None = None,
    pipelines: Mapping[int, frozenset[int]] | None = None,
    at_most: int | None = None,
    limit: float = 60.0,
    algorithm: str = "aro",
) -> Plan | None:
    """The best plan over ``spines`` (all), with the pipelines of aggregating spines that may be used (all), and at
    most ``at_most`` flows on a link; None if there is none, or none was found within ``limit`` seconds. Its bound is
    that of the restricted problem.

    Spines that do not aggregate and enter the same pipeline of the server's leaf are interchangeable. The program has
    one for all of them, with as many links: what it carries can always be divided equally.
    """
    began = time.monotonic()
    groups = alike(instance, range(instance.fabric.spines) if spines is None else spines)
    program = Program()
    most = at_most or max(sum(instance.sends.values()), instance.fabric.pipelines)
    fullest = program.column(1, most, 1.0, whole=True)
    up: dict[tuple[int, Group], int] = {}
    for leaf, flows in instance.sends.items():
        kind = instance.fabric.spine_pipeline(leaf)
        for group in groups:
            aggregates = group[0] in instance.aggregating_spines
            if aggregates and pipelines is not None and kind not in pipelines.get(group[0], frozenset()):
                continue
            up[leaf, group] = program.column(0, min(flows, len(group) * (at_most or flows)), whole=True)
            program.at_most([(up[leaf, group], 1.0), (fullest, -float(len(group)))])
        program.row(flows, flows, [(column, 1.0) for (at, _), column in up.items() if at == leaf])
    entered: dict[int, list[tuple[int, float]]] = {}
    for group in groups:
        into = [(leaf, column) for (leaf, at), column in up.items() if at == group]
        if group[0] in instance.aggregating_spines:
            leaving = [
                program.used([(column, instance.sends[leaf]) for leaf, column in into if _kind(instance, leaf) == kind])
                for kind in sorted({_kind(instance, leaf) for leaf, _ in into})
            ]
        else:
            leaving = [column for _, column in into]
        if leaving:
            program.at_most([*((column, 1.0) for column in leaving), (fullest, -float(len(group)))])
            bound = sum(program.high[column] for column in leaving)
            entered.setdefault(instance.entry(group[0]), []).extend((column, bound) for column in leaving)
    last = [program.used(into) for entry, into in sorted(entered.items()) if entry not in instance.own]
    program.at_most([*((column, 1.0) for column in last), (fullest, -1.0)], -len(instance.own))
    found = program.minimise(limit)
    if found is None:
        return None
    flows_up = divided({place: int(found.values[column]) for place, column in up.items()})
    return Plan(algorithm, flows_up, found.bound, time.monotonic() - began)


def alike(instance: Instance, spines: Iterable[int]) -> list[Group]:
    """Spines in groups of interchangeable ones; each that aggregates is a group of its own."""
    groups: dict[tuple[bool, int], list[int]] = {}
    for spine in sorted(spines):
        aggregates = spine in instance.aggregating_spines
        groups.setdefault((aggregates, spine if aggregates else instance.entry(spine)), []).append(spine)
    return [tuple(group) for group in groups.values()]


def divided(flows: Mapping[tuple[int, Group], int]) -> dict[tuple[int, int], int]:
    """Flows from leaves to groups of spines, dealt to the spines of each group in turn: no spine gets more than the
    groups' equal part, and none more from a leaf than that leaf's."""
    found: Counter[tuple[int, int]] = Counter()
    turn: Counter[Group] = Counter()
    for (leaf, group), count in sorted(flows.items()):
        for _ in range(count):
            found[leaf, group[turn[group] % len(group)]] += 1
            turn[group] += 1
    return dict(found)


def _kind(instance: Instance, leaf: int) -> int:
    return instance.fabric.spine_pipeline(leaf)


def optimum(instance: Instance, limit: float = 60.0) -> Plan:
    """ARO: the best plan of all. Raises ``FailedError`` if none was found within ``limit`` seconds."""
    return _found(route(instance, limit=limit), limit)


def accelerated(instance: Instance, limit: float = 60.0, alpha: float = 0.6) -> Plan:
    """ARO-ACC: APP keeps ⌊alpha n⌋ of the n interchangeable aggregating spines, at least one; SRO solves without spines
    that do not aggregate first, and leaves pipelines that were not used there out of the second stage, where its K is
    an upper bound. The plan's bound is that of the restricted problem, not of all plans.
    """
    began = time.monotonic()
    kept = _kept(instance, alpha)
    plain = [spine for spine in range(instance.fabric.spines) if spine not in instance.aggregating_spines]
    first = route(instance, spines=kept, limit=limit) if kept else None
    if first is None:
        second = route(instance, spines=[*kept, *plain], limit=limit)
    else:
        used: dict[int, set[int]] = {}
        for leaf, spine in first.up:
            used.setdefault(spine, set()).add(_kind(instance, leaf))
        pipelines = {spine: frozenset(kinds) for spine, kinds in used.items()}
        fullest = first.fullest(instance)
        second = route(instance, spines=[*kept, *plain], pipelines=pipelines, at_most=fullest, limit=limit) or first
    plan = _found(second, limit)
    return Plan("aro-acc", plan.up, None, time.monotonic() - began)


def _kept(instance: Instance, alpha: float) -> list[int]:
    """APP's choice: the aggregating spines whose pipelines' scores (most flows that can reach them) vary least, those
    of equal variance in turn by the pipeline of the server's leaf that they enter."""
    spines = sorted(instance.aggregating_spines)
    count = max(1, int(alpha * len(spines) + 1e-9)) if spines else 0
    seen: dict[int, int] = {}
    turn = {}
    for spine in spines:
        turn[spine] = seen.setdefault(instance.entry(spine), 0)
        seen[instance.entry(spine)] += 1
    return sorted(sorted(spines, key=lambda spine: (turn[spine], spine))[:count])


def _found(plan: Plan | None, limit: float) -> Plan:
    if plan is None:
        raise FailedError(f"no plan was found within {limit:g} s")
    return plan
