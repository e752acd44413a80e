"""The columns and rows of one task's flows, which all integer programs of routing share (ARO §III, constraints (4) to
(9))."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from p4gen.plan.route.instance import Instance
from p4gen.plan.route.program import Program

Group = tuple[int, ...]
"""Spines that are interchangeable."""


@dataclass(frozen=True)
class Allowed:
    """The part of a fabric that a task may use."""

    spines: tuple[int, ...]
    pipelines: Mapping[int, frozenset[int]] | None = None
    """The pipelines of aggregating spines; all by default."""

    @classmethod
    def everything(cls, instance: Instance) -> Allowed:
        """The whole fabric, without a restriction."""
        return cls(tuple(range(instance.fabric.spines)))

    def permits(self, instance: Instance, leaf: int, spine: int) -> bool:
        """Whether flows may go from a leaf to this one of ``spines``."""
        if self.pipelines is None or spine not in instance.aggregating_spines:
            return True
        return instance.fabric.spine_pipeline(leaf) in self.pipelines.get(spine, frozenset())


def alike(instance: Instance, spines: Iterable[int]) -> list[Group]:
    """Spines in groups of interchangeable ones: those that do not aggregate and enter the same pipeline of the server's
    leaf; each that aggregates is a group of its own."""
    groups: dict[tuple[bool, int], list[int]] = {}
    for spine in sorted(spines):
        aggregates = spine in instance.aggregating_spines
        groups.setdefault((aggregates, spine if aggregates else instance.entry(spine)), []).append(spine)
    return [tuple(group) for group in groups.values()]


@dataclass(frozen=True)
class Flows:
    """Columns of a task's flows."""

    up: Mapping[tuple[int, Group], int]
    """From a leaf to a group of spines."""
    down: Mapping[Group, tuple[int, ...]]
    """From a group to the server's leaf: for an aggregator whether each pipeline is in use; else as ``up``."""
    last: tuple[int, ...]
    """To the server: for each pipeline of its leaf that its own workers do not enter, whether spines do; or as
    ``down``, if that leaf does not aggregate."""
    own: int
    """Flows to the server of its own leaf's workers."""


def add_flows(
    program: Program,
    instance: Instance,
    allowed: Allowed,
    *,
    groups: Sequence[Group] | None = None,
    most: int | None = None,
    only_if: int | None = None,
    whole: bool = True,
) -> Flows:
    """Add columns and rows of a task's flows over what is ``allowed``, with at most ``most`` on a link. If the column
    ``only_if``, which is 0 or 1, is 0, there are no flows. Interchangeable spines are one, unless ``groups`` says
    otherwise. Flows that do not aggregate need not be ``whole`` in a relaxation."""
    groups = alike(instance, allowed.spines) if groups is None else groups
    up: dict[tuple[int, Group], int] = {}
    for leaf, flows in instance.sends.items():
        spread = [group for group in groups if allowed.permits(instance, leaf, group[0])]
        for group in spread:
            high = flows if most is None else min(flows, most * len(group))
            up[leaf, group] = program.column(0, high, whole=whole)
            if only_if is not None:
                program.at_most([(up[leaf, group], 1.0), (only_if, -float(high))])
        sent = [(up[leaf, group], 1.0) for group in spread]
        if only_if is None:
            program.row(flows, flows, sent)
        else:
            program.row(0, 0, [*sent, (only_if, -float(flows))])
    down: dict[Group, tuple[int, ...]] = {}
    entered: dict[int, list[tuple[int, float]]] = {}
    for group in groups:
        into = [(leaf, up[leaf, group]) for leaf in instance.sends if (leaf, group) in up]
        leaving = tuple(column for _, column in into)
        if group[0] in instance.aggregating_spines:
            pipelines: dict[int, list[tuple[int, float]]] = {}
            for leaf, column in into:
                pipeline = pipelines.setdefault(instance.fabric.spine_pipeline(leaf), [])
                pipeline.append((column, program.high[column]))
            leaving = tuple(program.used(each, only_if) for _, each in sorted(pipelines.items()))
        if leaving:
            down[group] = leaving
            enter = entered.setdefault(instance.entry(group[0]), [])
            enter.extend((column, program.high[column]) for column in leaving)
    if instance.server[0] not in instance.aggregating_leaves:
        under = len(instance.by_leaf.get(instance.server[0], ()))
        return Flows(up, down, tuple(column for leaving in down.values() for column in leaving), under)
    others = [into for entry, into in sorted(entered.items()) if entry not in instance.own]
    return Flows(up, down, tuple(program.used(into, only_if) for into in others), len(instance.own))
