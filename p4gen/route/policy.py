"""The placement policy ``aro``: a group's tree as fast as its links allow, within milliseconds and without a solver."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from p4gen.inputs import read_text
from p4gen.placement.placer import parted
from p4gen.placement.policy import Candidate, FabricView, LowestCommonSwitch
from p4gen.placement.request import GroupSpec
from p4gen.placement.tree import IncTree, tree_problems
from p4gen.route.fabric import MOST_HOSTS, Fabric
from p4gen.route.greedy import quick
from p4gen.route.planfile import TreePlan, digest, read_plan, tree_of
from p4gen.route.present import as_shape, present

PLAN: Final = "P4GEN_PLAN"
"""The environment variable that names a plan's file."""
MOST_WORK: Final = 4000
"""Ways that a search looks at, times nodes: more would take longer than a placement should."""


class Aro:
    """A plan's tree for the group that it was made for; else the tree of a quick search, where it promises more than
    that of the lowest common switch; then the latter's.

    ``plan`` is a file of `p4gen route tree --out`, by default the one that ``P4GEN_PLAN`` names.
    """

    def __init__(self, plan: Path | None = None) -> None:
        named = os.environ.get(PLAN)
        self._file = plan or (Path(named) if named else None)
        self._plan: tuple[str, TreePlan] | None = None
        if self._file is not None:
            read_text(self._file)  # a file that is not there is reported at the start

    def candidates(self, view: FabricView, spec: GroupSpec) -> Iterator[Candidate]:
        """The fastest tree first. Raises ``InputError`` for a plan that is not for this topology."""
        planned = self._planned(view, spec)
        if planned is not None:
            yield Candidate(planned.root.key.switch, planned)
        found = searched(view, spec)
        if found is not None and found != planned:
            yield Candidate(found.root.key.switch, found)
        yield from LowestCommonSwitch().candidates(view, spec)

    def _planned(self, view: FabricView, spec: GroupSpec) -> IncTree | None:
        """The plan's tree, if the group has its ranks, in any order, and nothing of it is down."""
        if self._file is None:
            return None
        mark = digest(view.topology)
        if self._plan is None or self._plan[0] != mark:
            self._plan = mark, read_plan(self._file, view.topology)
        plan = self._plan[1]
        shape = plan.shape
        names = set(shape.loads(plan.fabric))
        nodes = set(shape.below)
        if set(spec.ranks) != set(plan.ranks) or names & set(view.down) or not nodes <= set(view.switches):
            return None
        return tree_of(view.topology, spec.ranks, shape, _ports(view))


def searched(view: FabricView, spec: GroupSpec) -> IncTree | None:
    """The tree of a quick search, if it is faster than that of the lowest common switch, beside other groups; None too
    where the fabric is so large that the search would take long."""
    topology = view.topology
    if list(tree_problems(topology, spec.ranks, None)) or len(topology.hosts) > MOST_HOSTS:
        return None
    inc = frozenset(name for name, room in view.switches.items() if room.contexts_free > 0)
    fan_in = min((room.spec.fan_in for room in view.switches.values()), default=0)
    fabric = Fabric(topology, spec.ranks, inc, view.down, _flows(view, spec.name), fan_in)
    ports = _ports(view)
    usual = present(fabric, ports)
    rate = 0.0 if usual is None else as_shape(usual).rate(fabric)
    if not inc or rate >= fabric.limit * (1 - 1e-9):
        return None
    if sum(map(len, fabric.ways.values())) * len(inc) > MOST_WORK:
        return None
    shape = quick(fabric)
    if shape is None or shape.rate(fabric) <= rate * (1 + 1e-9):
        return None
    tree = tree_of(topology, spec.ranks, shape, ports)
    parted(tree)
    return tree


def _ports(view: FabricView) -> dict[str, int]:
    """Ports of a pipeline, by switch; of switches without a program for groups all are in one."""
    known = {name: room.spec.ports // room.spec.pipelines for name, room in view.switches.items()}
    return {switch: known.get(switch, max(1, len(view.topology.ports[switch]))) for switch in view.topology.switches}


def _flows(view: FabricView, name: str) -> Counter[str]:
    """Flows of other groups over each link."""
    everything = Fabric(view.topology, (), frozenset())
    others = (as_shape(group.tree) for group in view.groups if group.name != name)
    return sum((shape.loads(everything) for shape in others), Counter[str]())
