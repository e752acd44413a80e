"""SJST: one task's best routing as an integer program (ARO §III), solved by HiGHS.

With one task the rate is the bandwidth over K, the most flows on a link: so K is minimised, and nothing is quadratic.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from p4gen.route.instance import Instance
from p4gen.route.plan import Plan
from p4gen.route.program import Program

Group = tuple[int, ...]
"""Spines that are interchangeable."""


@dataclass(frozen=True)
class Allowed:
    """What of a fabric a task may use, where that is less than everything."""

    spines: tuple[int, ...]
    pipelines: Mapping[int, frozenset[int]] | None = None
    """Of aggregating spines; all by default."""

    @classmethod
    def everything(cls, instance: Instance) -> Allowed:
        """No restriction."""
        return cls(tuple(range(instance.fabric.spines)))

    def permits(self, instance: Instance, leaf: int, spine: int) -> bool:
        """Whether flows may go from a leaf to this one of ``spines``."""
        if self.pipelines is None or spine not in instance.aggregating_spines:
            return True
        return instance.fabric.spine_pipeline(leaf) in self.pipelines.get(spine, frozenset())


def route(
    instance: Instance,
    *,
    allowed: Allowed | None = None,
    at_most: int | None = None,
    limit: float = 60.0,
    algorithm: str = "aro",
) -> Plan | None:
    """The best plan over what is ``allowed`` (everything), with at most ``at_most`` flows on a link; None if there is
    none, or none was found within ``limit`` seconds. Its bound is that of the restricted problem.

    Spines that do not aggregate and enter the same pipeline of the server's leaf are interchangeable. The program has
    one for all of them, with as many links: what it carries can always be divided equally.
    """
    began = time.monotonic()
    allowed = allowed or Allowed.everything(instance)
    groups = alike(instance, allowed.spines)
    program = Program()
    own = len(instance.by_leaf.get(instance.server[0], ()))
    most = at_most or max(sum(instance.sends.values()) + own, instance.fabric.pipelines)
    fullest = program.column(1, most, 1.0, whole=True)
    up: dict[tuple[int, Group], int] = {}
    for leaf, flows in instance.sends.items():
        for group in groups:
            if not allowed.permits(instance, leaf, group[0]):
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
    if instance.server[0] in instance.aggregating_leaves:
        last = [program.used(into) for entry, into in sorted(entered.items()) if entry not in instance.own]
        own = len(instance.own)
    else:
        last = [column for into in entered.values() for column, _ in into]
    program.at_most([*((column, 1.0) for column in last), (fullest, -1.0)], -own)
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
