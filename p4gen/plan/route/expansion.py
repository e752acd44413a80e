"""ARO's program with the product of flows and rates as it stands (constraint (10)), in binary digits of the flows.

The product of a digit and a rate is linear: a column that is at least the rate where the digit is 1. So the program has
whole and continuous columns only, and is exact, but much larger than those of ``several``. It checks them, and shows
what rates in steps cost (QSR, §III-C).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from p4gen.plan.route.baselines import aggregation_tree
from p4gen.plan.route.dividing import divided_by_rates
from p4gen.plan.route.flows import Group, alike
from p4gen.plan.route.instance import Instance
from p4gen.plan.route.program import ANY, Program
from p4gen.plan.route.several import relaxation
from p4gen.plan.route.solve import optimum
from p4gen.plan.route.tasks import Joint, Tasks, optimise_rates

_ENOUGH: Final = 1e-4
Terms = list[tuple[int, float]]
"""A sum of columns times coefficients."""


def solve_expanded(tasks: Tasks, limit: float = 60.0, *, steps: int | None = None, seed: int = 0) -> Joint:
    """The best plans that HiGHS finds within about ``limit`` seconds, and its bound. With ``steps``, rates are whole
    multiples of a link's bandwidth divided by it.

    Interchangeable spines are one, unless their flows cannot be divided among them. If the plans found in that time are
    worse than the plans that tasks have alone, or than aggregation trees, the result is the latter.
    """
    began = time.monotonic()

    def left() -> float:
        return began + limit - time.monotonic()

    alone = tuple(optimum(instance, limit) for instance in tasks.instances)
    fastest = [1 / plan.least for plan in alone]
    found: list[Joint] = []
    for groups_of_one in (False, True):
        joint = _solved(tasks, fastest, left(), steps, groups_of_one=groups_of_one) if left() > 0 else None
        found += [] if joint is None else [joint]
        if joint is not None and tasks.value(joint.rates) >= (joint.bound or 0) - _ENOUGH:
            break
    bound = min(joint.bound or 0 for joint in found) if found else relaxation(tasks, fastest, max(10.0, limit))
    trees = tuple(aggregation_tree(instance, seed + task) for task, instance in enumerate(tasks.instances))
    found += [optimise_rates(tasks, Joint(_name(steps), plans, ()), steps=steps) for plans in (alone, trees)]
    best = max(found, key=lambda joint: tasks.value(joint.rates))
    return replace(best, bound=bound, seconds=time.monotonic() - began)


def _name(steps: int | None) -> str:
    return "aro-raw" if steps is None else "aro-qsr"


def _solved(
    tasks: Tasks, fastest: Sequence[float], limit: float, steps: int | None, *, groups_of_one: bool
) -> Joint | None:
    program = Program()
    rates = [program.column(0, rate) for rate in fastest]
    if steps is not None:
        for rate, most in zip(rates, fastest, strict=True):
            program.row(0, 0, [(program.column(0, int(steps * most + 1e-9), whole=True), 1.0), (rate, -float(steps))])
    tasks.objective(program, rates)
    links: dict[tuple[int, Group], Terms] = {}
    ups = []
    for instance, rate, most in zip(tasks.instances, rates, fastest, strict=True):
        spines = range(instance.fabric.spines)
        groups: list[Group] = [(spine,) for spine in spines] if groups_of_one else alike(instance, spines)
        ups.append(_Task(program, instance, rate, most).flows(groups, links))
    for (_, group), load in links.items():
        program.at_most(load, len(group))
    found = program.minimise(limit)
    if found is None:
        return None
    shares = [found.values[rate] for rate in rates]
    flows_of = [{place: int(found.values[column]) for place, column in up.items()} for up in ups]
    joint = optimise_rates(tasks, Joint(_name(steps), divided_by_rates(flows_of, shares), ()), steps=steps)
    return replace(joint, bound=-found.bound)


class _Task:
    """The columns and rows of one task."""

    def __init__(self, program: Program, instance: Instance, rate: int, most: float) -> None:
        self._program, self._instance, self._rate, self._most = program, instance, rate, most

    def flows(self, groups: Sequence[Group], links: dict[tuple[int, Group], Terms]) -> Mapping[tuple[int, Group], int]:
        """The columns of flows from leaves to groups of spines; their loads are added to those of ``links``."""
        program, instance = self._program, self._instance
        up: dict[tuple[int, Group], int] = {}
        loads: dict[tuple[int, Group], Terms] = {}
        for leaf, flows in instance.sends.items():
            for group in groups:
                up[leaf, group] = program.column(0, flows, whole=True)
                loads[leaf, group] = self._load(up[leaf, group], flows)
                links.setdefault((leaf, group), []).extend(loads[leaf, group])
            program.row(flows, flows, [(up[leaf, group], 1.0) for group in groups])
            together = [term for group in groups for term in loads[leaf, group]]
            program.row(0, ANY, [*together, (self._rate, -float(flows))])
        entered: dict[int, list[tuple[int, float, Terms]]] = {}
        for group in groups:
            leaving = [(up[leaf, group], float(flows), loads[leaf, group]) for leaf, flows in instance.sends.items()]
            if group[0] in instance.aggregating_spines:
                leaving = [self._through(into) for into in self._by_pipeline(leaving)]
            program.at_most([term for _, _, load in leaving for term in load], len(group))
            entered.setdefault(instance.entry(group[0]), []).extend(leaving)
        last = [self._through(into)[2] for entry, into in sorted(entered.items()) if entry not in instance.own]
        own = (self._rate, float(len(instance.own)))
        program.at_most([*(term for load in last for term in load), own], 1.0)
        return up

    def _by_pipeline(self, leaving: list[tuple[int, float, Terms]]) -> list[list[tuple[int, float, Terms]]]:
        found: dict[int, list[tuple[int, float, Terms]]] = {}
        for leaf, each in zip(self._instance.sends, leaving, strict=True):
            found.setdefault(self._instance.fabric.spine_pipeline(leaf), []).append(each)
        return [into for _, into in sorted(found.items())]

    def _load(self, column: int, high: int) -> Terms:
        """The load of a whole column of at most ``high`` flows: the column times the rate."""
        program, digits = self._program, []
        for place in range(high.bit_length()):
            digit = column if high == 1 else program.column(0, 1, whole=True)
            digits.append((digit, float(1 << place)))
        if high > 1:
            program.row(0, 0, [*digits, (column, -1.0)])
        return [(self._times(digit), value) for digit, value in digits]

    def _times(self, digit: int) -> int:
        """A column that is at least the rate where the digit is 1 (McCormick)."""
        product = self._program.column(0, self._most)
        self._program.at_most([(self._rate, 1.0), (digit, self._most), (product, -1.0)], self._most)
        return product

    def _through(self, into: list[tuple[int, float, Terms]]) -> tuple[int, float, Terms]:
        """Add a flow that exists if any of these columns is not 0. Returns its column and its load. The load is at
        least the load of each input divided by the greatest number of flows in the input."""
        used = self._program.used([(column, bound) for column, bound, _ in into])
        product = self._times(used)
        for _, bound, load in into:
            self._program.at_most([*load, (product, -bound)])
        return used, 1.0, [(product, 1.0)]
