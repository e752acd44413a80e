"""Several tasks by classes of rates: integer programs without rates, whose bounds hold for all plans.

A task whose rate is more than 1/(k+1) of a link's bandwidth, and at most 1/k, is of class k. A link carries at most k
of its flows, whatever its rate is, and at most k of the flows of all tasks of class k or less together. So the possible
flows depend on the classes, and the product of flows and rates (constraint (10) of ARO's §III) is no part of the
problem. The best rate of a class is 1/k: plans are sought at these rates, which are then raised as far as links have
room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p4gen.plan.route.dividing import divided_by_rates
from p4gen.plan.route.flows import Allowed, Flows, Group, add_flows
from p4gen.plan.route.program import Program
from p4gen.plan.route.tasks import Joint, Tasks, optimise_rates

Choices = Sequence[Sequence[int]]
"""The classes that each task may be of, in order."""


@dataclass(frozen=True)
class Bound:
    """A value that no plans exceed."""

    value: float
    classes: tuple[int | None, ...]
    """Those of the best flows that were found, which need not fit; None for a class that was not among the choices."""


class _Classed:
    """The program: each task is of one class, and has its flows."""

    def __init__(self, tasks: Tasks, choices: Choices, allowed: Sequence[Allowed], *, bound: bool) -> None:
        self.program = Program()
        self.of_classes: list[dict[int, int]] = []
        self.flows: list[dict[int, Flows]] = []
        links: dict[tuple[int, Group], list[tuple[int, int]]] = {}
        rates = []
        for instance, classes, own in zip(tasks.instances, choices, allowed, strict=True):
            chosen = {k: self.program.column(0, 1, whole=True) for k in classes}
            one, rate = [(z, 1.0) for z in chosen.values()], [(z, 1 / k) for k, z in chosen.items()]
            flows: dict[int, Flows] = {}
            for k, z in chosen.items():
                flows[k] = add_flows(self.program, instance, own, most=k, only_if=z, whole=not bound)
                for group, leaving in flows[k].down.items():
                    self.program.at_most([*((c, 1.0) for c in leaving), (z, -float(k * len(group)))])
                self.program.at_most([*((c, 1.0) for c in flows[k].last), (z, float(flows[k].own - k))])
                for place, column in flows[k].up.items():
                    links.setdefault(place, []).append((k, column))
            if bound:
                slower = self.program.column(0, 1, whole=True)
                one.append((slower, 1.0))
                rate.append((slower, 1 / (classes[-1] + 1)))
            self.program.row(1, 1, one)
            rates.append(self.program.column(0, 1 / classes[0]))
            self.program.at_most([(rates[-1], 1.0), *((z, -share) for z, share in rate)])
            self.of_classes.append(chosen)
            self.flows.append(flows)
        for (_, group), flows_of in links.items():
            known = sorted({k for k, _ in flows_of})
            for most in known:
                self.program.at_most([(c, 1.0) for k, c in flows_of if k <= most], most * len(group))
            if len(known) > 1:
                self.program.at_most([(c, 1 / (k + bound)) for k, c in flows_of], len(group))
        tasks.objective(self.program, rates)


def class_bound(
    tasks: Tasks, choices: Choices, limit: float, allowed: Sequence[Allowed], gap: float = 1e-4
) -> Bound | None:
    """A bound of all plans over what is ``allowed``; None if none was found within ``limit`` seconds.

    In this relaxation each task is in one of its ``choices``, of which the first is the least possible one, or is
    slower than all of them and has no flows. Flows need not be whole where they are not aggregated; pipelines in use
    are. As rates within a class differ, a link has room for all flows over one more than their classes.
    """
    classed = _Classed(tasks, choices, allowed, bound=True)
    found = classed.program.minimise(limit, gap)
    if found is None:
        return None
    chosen = tuple(next((k for k, z in each.items() if found.values[z]), None) for each in classed.of_classes)
    return Bound(-found.bound, chosen)


def class_plans(
    tasks: Tasks, choices: Choices, limit: float, allowed: Sequence[Allowed], gap: float = 1e-4
) -> Joint | None:
    """The best plans over what is ``allowed`` in which each task has the best rate of one of its classes. The rates are
    then raised or lowered to what links have room for. None if none were found within ``limit`` seconds."""
    classed = _Classed(tasks, choices, allowed, bound=False)
    found = classed.program.minimise(limit, gap)
    if found is None:
        return None
    flows_of, rates = [], []
    for each, flows in zip(classed.of_classes, classed.flows, strict=True):
        chosen = next(k for k, z in each.items() if found.values[z])
        flows_of.append({place: int(found.values[column]) for place, column in flows[chosen].up.items()})
        rates.append(1 / chosen)
    return optimise_rates(tasks, Joint("aro", divided_by_rates(flows_of, rates), ()))
