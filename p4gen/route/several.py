"""SJMT and MJMT: the routing of several tasks at once (ARO §III), by linear and integer programs in turn.

A link carries, of each task, flows times their rate: a product of two unknowns. With the rates given, the best flows
are an integer program, and with the flows given, the best rates a linear one. So rates are proposed, from the best that
tasks could have alone downward, and flows sought that fit; then the rates are raised as far as links have room. A
relaxation bounds the value of all plans, so that a gap is known, and often is 0.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import Final

from p4gen.errors import FailedError
from p4gen.route.baselines import aggregation_tree
from p4gen.route.instance import Instance
from p4gen.route.plan import Plan
from p4gen.route.program import Program
from p4gen.route.solve import Allowed, Group, alike, route
from p4gen.route.tasks import Joint, Tasks, rated

_ENOUGH: Final = 1e-6
_SHARE: Final = 4
"""The part of the time that is left that one proposal gets."""


def _kind(instance: Instance, leaf: int) -> int:
    return instance.fabric.spine_pipeline(leaf)


def relaxation(tasks: Tasks, fastest: Sequence[float], limit: float, allowed: Sequence[Allowed] | None = None) -> float:
    """A value that no plans exceed over what each task is ``allowed`` (everything). ``fastest`` is what each task could
    have alone.

    Volumes take the place of flows times rates, and may be divided in any way, so that interchangeable spines are one;
    a pipeline that aggregates lets through as much as the largest share of a leaf's volume that enters it.
    """
    program = Program()
    rates = [program.column(0, rate) for rate in fastest]
    links: dict[tuple[int, Group], list[int]] = {}
    for instance, rate, own in zip(tasks.instances, rates, allowed or everything(tasks), strict=True):
        groups = alike(instance, own.spines)
        up: dict[tuple[int, Group], int] = {}
        for leaf, flows in instance.sends.items():
            spread = [group for group in groups if own.permits(instance, leaf, group[0])]
            for group in spread:
                up[leaf, group] = program.column(0, len(group))
                links.setdefault((leaf, group), []).append(up[leaf, group])
            program.row(0, 0, [*((up[leaf, group], 1.0) for group in spread), (rate, -float(flows))])
        entering: dict[int, list[tuple[int, float]]] = {}
        for group in groups:
            into = [(leaf, up[leaf, group]) for leaf in instance.sends if (leaf, group) in up]
            leaving = [(column, float(instance.sends[leaf])) for leaf, column in into]
            if group[0] in instance.aggregating_spines:
                kinds = {_kind(instance, leaf) for leaf, _ in into}
                leaving = [
                    (
                        _through(
                            program,
                            rate,
                            [(c, float(instance.sends[leaf])) for leaf, c in into if _kind(instance, leaf) == kind],
                        ),
                        1.0,
                    )
                    for kind in sorted(kinds)
                ]
            program.at_most([(column, 1.0) for column, _ in leaving], len(group))
            entering.setdefault(instance.entry(group[0]), []).extend(leaving)
        last = [_through(program, rate, into) for entry, into in sorted(entering.items()) if entry not in instance.own]
        program.at_most([*((column, 1.0) for column in last), (rate, float(len(instance.own)))], 1.0)
    for (_, group), columns in links.items():
        program.at_most([(column, 1.0) for column in columns], len(group))
    tasks.objective(program, rates)
    found = program.minimise(limit)
    if found is None:
        raise FailedError(f"the relaxation was not solved within {limit:g} s")
    return -found.bound


def _through(program: Program, rate: int, into: list[tuple[int, float]]) -> int:
    """A column for what leaves a pipeline: at least each volume that enters over the most flows that it may be of."""
    through = program.column(0, 1)
    program.at_most([(through, 1.0), (rate, -1.0)])
    for column, most in into:
        program.at_most([(column, 1.0), (through, -most)])
    return through


def everything(tasks: Tasks) -> list[Allowed]:
    """No restriction of any task."""
    return [Allowed.everything(instance) for instance in tasks.instances]


def fitting(
    tasks: Tasks, rates: Sequence[float], limit: float, allowed: Sequence[Allowed], *, groups_of_one: bool = False
) -> tuple[tuple[Plan, ...], bool] | None:
    """Plans over what is allowed whose fullest link carries as little as can be at these rates, but not less than it
    can, and whether it can carry that; None if none were found.

    Interchangeable spines are one, as in ``route``, unless there are to be ``groups_of_one``. Dividing what they carry
    may load a link a little more, as tasks' rates differ.
    """
    program = Program()
    fullest = program.column(1, 1e6, 1.0)
    links: dict[tuple[int, Group], list[tuple[int, float]]] = {}
    ups: list[dict[tuple[int, Group], int]] = []
    for instance, rate, own in zip(tasks.instances, rates, allowed, strict=True):
        groups: list[Group] = alike(instance, own.spines)
        if groups_of_one:
            groups = [(spine,) for spine in own.spines]
        up: dict[tuple[int, Group], int] = {}
        for leaf, flows in instance.sends.items():
            spread = [group for group in groups if own.permits(instance, leaf, group[0])]
            for group in spread:
                up[leaf, group] = program.column(0, flows, whole=True)
                links.setdefault((leaf, group), []).append((up[leaf, group], rate))
            program.row(flows, flows, [(up[leaf, group], 1.0) for group in spread])
        entered: dict[int, list[tuple[int, float]]] = {}
        for group in groups:
            into = [(leaf, up[leaf, group]) for leaf in instance.sends if (leaf, group) in up]
            if group[0] in instance.aggregating_spines:
                leaving = [
                    program.used([(c, instance.sends[leaf]) for leaf, c in into if _kind(instance, leaf) == kind])
                    for kind in sorted({_kind(instance, leaf) for leaf, _ in into})
                ]
            else:
                leaving = [column for _, column in into]
            program.at_most([*((column, rate) for column in leaving), (fullest, -float(len(group)))])
            bound = sum(program.high[column] for column in leaving)
            entered.setdefault(instance.entry(group[0]), []).extend((column, bound) for column in leaving)
        last = [program.used(into) for entry, into in sorted(entered.items()) if entry not in instance.own]
        program.at_most([*((column, rate) for column in last), (fullest, -1.0)], -rate * len(instance.own))
        ups.append(up)
    for (_, group), load in links.items():
        program.at_most([*load, (fullest, -float(len(group)))])
    found = program.minimise(limit)
    if found is None:
        return None
    flows_of = [{place: int(found.values[column]) for place, column in up.items()} for up in ups]
    return divided_by_rates(flows_of, rates), found.values[fullest] < 1 + _ENOUGH


def divided_by_rates(flows_of: Sequence[Mapping[tuple[int, Group], int]], rates: Sequence[float]) -> tuple[Plan, ...]:
    """Plans in which each flow to a group of spines takes that one of them whose links, from the leaf and to the
    server's leaf, it loads the least; those of high rates choose first."""
    from_leaf: Counter[tuple[int, int]] = Counter()
    to_server: Counter[tuple[int, int]] = Counter()
    found: list[Counter[tuple[int, int]]] = [Counter() for _ in flows_of]
    for task in sorted(range(len(rates)), key=lambda task: -rates[task]):
        for (leaf, group), count in sorted(flows_of[task].items()):
            for _ in range(count):
                spine = min(group, key=lambda s: max(from_leaf[leaf, s], to_server[task, s]))
                from_leaf[leaf, spine] += rates[task]  # type: ignore[assignment]
                to_server[task, spine] += rates[task]  # type: ignore[assignment]
                found[task][leaf, spine] += 1
    return tuple(Plan("aro", dict(up)) for up in found)


def jointly(
    tasks: Tasks,
    seed: int,
    limit: float = 60.0,
    allowed: Sequence[Allowed] | None = None,
    start: Joint | None = None,
) -> Joint:
    """The best plans that are found within about ``limit`` seconds over what each task is ``allowed`` (everything), and
    the bound of all such; never worse than ``start``.

    Raises ``FailedError`` if the relaxation cannot be solved in that time, or a task has no plan that is allowed.
    """
    began = time.monotonic()
    own = allowed or everything(tasks)

    def left() -> float:
        return max(0.1, began + limit - time.monotonic())

    alone = [
        route(instance, allowed=each, limit=left() / 2 / len(own))
        for instance, each in zip(tasks.instances, own, strict=True)
    ]
    if allowed is None:
        trees = [aggregation_tree(instance, seed + task) for task, instance in enumerate(tasks.instances)]
        starts = [tuple(plan or tree for plan, tree in zip(alone, trees, strict=True)), tuple(trees)]
    else:
        starts = [tuple(plan for plan in alone if plan is not None)]
        if None in alone:
            raise FailedError(f"no plan of task {alone.index(None)} was found within {limit:g} s")
    fewest = [1 if plan is None else plan.least for plan in alone]
    bound = relaxation(tasks, [1 / flows for flows in fewest], left(), own)
    if start is not None:
        starts.append(start.plans)
    best = max((rated(tasks, Joint("aro", plans, ())) for plans in starts), key=lambda j: tasks.value(j.rates))
    for rates in _proposals(tasks, fewest):
        known = tasks.value(best.rates)
        if known >= min(bound, tasks.value(rates)) - _ENOUGH or time.monotonic() - began > limit:
            break
        for groups_of_one in (False, True):
            found = fitting(tasks, rates, left() / _SHARE, own, groups_of_one=groups_of_one)
            if found is not None:
                best = max(best, rated(tasks, Joint("aro", found[0], ())), key=lambda j: tasks.value(j.rates))
            if found is None or not found[1] or tasks.value(best.rates) >= tasks.value(rates) - _ENOUGH:
                break
    return replace(best, bound=bound, seconds=time.monotonic() - began)


def _proposals(tasks: Tasks, fewest: Sequence[int]) -> Iterator[list[float]]:
    """Rates of tasks, in the order of their values: each task's is that of a whole number of flows on its fullest link,
    from the fewest on, and less if its job's workers have not so much."""

    def rates(flows: tuple[int, ...]) -> list[float]:
        found = [1 / each for each in flows]
        totals = tasks.of_jobs(found)
        for job, numbers in enumerate(tasks.jobs):
            for task in numbers:
                found[task] /= max(1.0, totals[job])
        return found

    def entry(flows: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        return -tasks.value(rates(flows)), flows

    heap, seen = [entry(tuple(fewest))], {tuple(fewest)}
    while heap:
        _, flows = heappop(heap)
        yield rates(flows)
        for task in range(len(flows)):
            more = (*flows[:task], flows[task] + 1, *flows[task + 1 :])
            if more not in seen:
                seen.add(more)
                heappush(heap, entry(more))
