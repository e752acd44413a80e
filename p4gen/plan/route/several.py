"""SJMT and MJMT: the routing of several tasks at once (ARO §III), by linear and integer programs in turn.

For each task a link carries flows times their rate: a product of two unknowns. Classes of rates bound the possible
plans, and give most of the best ones (``classes``). With given rates, the best flows are an integer program, too, and
with given flows, the best rates a linear one. So rates are also proposed, from the best that tasks could have alone
downward; then flows are sought that fit, and the rates raised as far as links have room.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from math import ceil
from typing import Final

from p4gen.errors import FailedError
from p4gen.plan.route.baselines import aggregation_tree
from p4gen.plan.route.classes import class_bound, class_plans
from p4gen.plan.route.dividing import divided_by_rates
from p4gen.plan.route.flows import Allowed, Group, add_flows, alike
from p4gen.plan.route.plan import Plan
from p4gen.plan.route.program import ANY, Program
from p4gen.plan.route.solve import optimum, route
from p4gen.plan.route.tasks import Joint, Tasks, optimise_rates

_ENOUGH: Final = 1e-6
_NEAR: Final = 5e-4
"""A gap below which a search ends."""
_DEEPER: Final = 3
"""How often more classes are tried."""
_SLOWEST: Final = 64
"""The last class."""
_SHARE: Final = 4
"""One proposal gets the remaining time divided by this."""


def relaxation(tasks: Tasks, fastest: Sequence[float], limit: float, allowed: Sequence[Allowed] | None = None) -> float:
    """A value that no plans exceed over what each task is ``allowed`` (everything). ``fastest`` is the rate that each
    task could have alone.

    Volumes take the place of flows times rates, and may be divided in any way, so that interchangeable spines are one.
    A pipeline that aggregates lets through the largest share of a leaf's volume that enters it.
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
                pipelines: dict[int, list[tuple[int, float]]] = {}
                for leaf, column in into:
                    pipeline = pipelines.setdefault(instance.fabric.spine_pipeline(leaf), [])
                    pipeline.append((column, float(instance.sends[leaf])))
                leaving = [(_through(program, rate, each), 1.0) for _, each in sorted(pipelines.items())]
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
    """A column for the volume that leaves a pipeline: at least each volume that enters, divided by the greatest number
    of flows that the volume may consist of."""
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
    """The plans over what is allowed that load the fullest link the least at these rates (loads that it can carry count
    as equal), and whether the link can carry its load. None if no plans were found.

    Interchangeable spines are one, as in ``route``, unless there are to be ``groups_of_one``. Dividing their flows may
    load a link a little more, as tasks' rates differ.
    """
    program = Program()
    fullest = program.column(1, 1e6, 1.0)
    links: dict[tuple[int, Group], list[tuple[int, float]]] = {}
    ups = []
    for instance, rate, own in zip(tasks.instances, rates, allowed, strict=True):
        groups: list[Group] | None = [(spine,) for spine in own.spines] if groups_of_one else None
        flows = add_flows(program, instance, own, groups=groups)
        for place, column in flows.up.items():
            links.setdefault(place, []).append((column, rate))
        for group, leaving in flows.down.items():
            program.at_most([*((column, rate) for column in leaving), (fullest, -float(len(group)))])
        program.at_most([*((column, rate) for column in flows.last), (fullest, -1.0)], -rate * flows.own)
        ups.append(flows.up)
    for (_, group), load in links.items():
        program.at_most([*load, (fullest, -float(len(group)))])
    found = program.minimise(limit)
    if found is None:
        return None
    flows_of = [{place: int(found.values[column]) for place, column in up.items()} for up in ups]
    return divided_by_rates(flows_of, rates), found.values[fullest] < 1 + _ENOUGH


class _Search:
    """The best plans and the least bound so far."""

    def __init__(self, tasks: Tasks, allowed: Sequence[Allowed], limit: float, near: float) -> None:
        self._tasks, self._allowed, self._near = tasks, allowed, near
        self._end = time.monotonic() + limit
        self.bound = ANY
        self._best: Joint | None = None

    @property
    def left(self) -> float:
        """Remaining seconds; a little above 0 even if there are none."""
        return max(0.1, self._end - time.monotonic())

    @property
    def best(self) -> Joint:
        """The best plans found so far, with their bound."""
        assert self._best is not None
        return self._best

    @property
    def known(self) -> float:
        """The value of the best plans."""
        return self._tasks.value(self.best.rates)

    @property
    def done(self) -> bool:
        """Whether no plans can be much better, or there is no time left."""
        return self.known >= self.bound * (1 - self._near) or time.monotonic() > self._end

    def take(self, joint: Joint | None) -> None:
        """Keep these plans if they are better."""
        value = self._tasks.value
        if joint is not None and (self._best is None or value(joint.rates) > value(self._best.rates)):
            self._best = joint

    def by_classes(self, fewest: Sequence[int]) -> None:
        """Search for plans of the classes that tasks could have alone; then for bounds and plans of more and more
        classes, as long as slower ones may be better."""
        gap = self._near / 5
        if not self.done:
            best = [[k] for k in fewest]
            self.take(class_plans(self._tasks, best, self.left / 10, self._allowed, gap))
        first = max(fewest) + (max(fewest) == min(fewest))
        for deepest in range(first, first + _DEEPER):
            choices = [range(k, deepest + 1) for k in fewest]
            bound = None if self.done else class_bound(self._tasks, choices, self.left / 2, self._allowed, gap)
            if bound is None:
                return
            self.bound = min(self.bound, bound.value)
            if not self.done:
                fixed = [[k or deepest + 1] for k in bound.classes]
                self.take(class_plans(self._tasks, fixed, self.left / 4, self._allowed, gap))
            if not self.done:
                present = [max(k, _class(rate)) for k, rate in zip(fewest, self.best.rates, strict=True)]
                wider = [sorted({*range(k, deepest + 1), own}) for k, own in zip(fewest, present, strict=True)]
                self.take(class_plans(self._tasks, wider, self.left / 2, self._allowed, gap))
            if None not in bound.classes:
                return

    def by_rates(self, fewest: Sequence[int]) -> None:
        """Search for plans at proposed rates, from the best ones downward."""
        value = self._tasks.value
        for rates in _proposals(self._tasks, fewest):
            if self.done or self.known >= value(rates) - _ENOUGH:
                return
            for groups_of_one in (False, True):
                found = fitting(self._tasks, rates, self.left / _SHARE, self._allowed, groups_of_one=groups_of_one)
                if found is not None:
                    self.take(optimise_rates(self._tasks, Joint("aro", found[0], ())))
                if found is None or not found[1] or self.known >= value(rates) - _ENOUGH:
                    break


def _class(rate: float) -> int:
    """A class whose plans include this rate."""
    return min(_SLOWEST, ceil(1 / max(rate, 1 / _SLOWEST) - _ENOUGH))


def jointly(
    tasks: Tasks,
    seed: int,
    limit: float = 60.0,
    allowed: Sequence[Allowed] | None = None,
    near: float = _NEAR,
) -> Joint:
    """The best plans that are found within about ``limit`` seconds over what each task is ``allowed`` (everything), and
    a bound of all such plans. A gap of ``near`` ends the search.

    Raises ``FailedError`` if the relaxation cannot be solved in that time, or a task has no plan that is allowed.
    """
    began = time.monotonic()
    own = allowed or everything(tasks)
    search = _Search(tasks, own, limit, near)
    alone = [
        optimum(instance, search.left) if allowed is None else route(instance, allowed=each, limit=search.left / 2)
        for instance, each in zip(tasks.instances, own, strict=True)
    ]
    if None in alone:
        raise FailedError(f"no plan of task {alone.index(None)} was found within {limit:g} s")
    plans = [plan for plan in alone if plan is not None]
    fewest = [plan.least for plan in plans]
    search.bound = relaxation(tasks, [1 / flows for flows in fewest], search.left, own)
    search.take(optimise_rates(tasks, Joint("aro", tuple(plans), ())))
    if allowed is None:
        trees = (aggregation_tree(instance, seed + task) for task, instance in enumerate(tasks.instances))
        search.take(optimise_rates(tasks, Joint("aro", tuple(trees), ())))
    search.by_classes(fewest)
    search.by_rates(fewest)
    return replace(search.best, bound=max(search.bound, search.known), seconds=time.monotonic() - began)


def _proposals(tasks: Tasks, fewest: Sequence[int]) -> Iterator[list[float]]:
    """Rates of tasks, in the order of their values: each task's rate is that of a whole number of flows on its fullest
    link, from the fewest on, and less if its job's workers cannot send so fast."""

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
