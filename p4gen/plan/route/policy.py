"""The placement policy ``aro``: a group's tree as fast as its links allow, within milliseconds and without a solver."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from p4gen.inputs import read_text
from p4gen.plan.placement.placer import separate_ports
from p4gen.plan.placement.policy import Candidate, FabricView, LowestCommonSwitch, Stripe
from p4gen.plan.placement.request import GroupSpec
from p4gen.plan.placement.tree import IncTree, tree_problems
from p4gen.plan.route.fabric import MOST_HOSTS, Fabric
from p4gen.plan.route.greedy import quick
from p4gen.plan.route.jobsplan import read_plans
from p4gen.plan.route.planfile import TreePlan, digest, tree_of
from p4gen.plan.route.present import as_shape, present
from p4gen.plan.route.stripeplan import StripedPlan

PLAN: Final = "P4GEN_PLAN"
"""The environment variable that names a plan's file."""
MOST_WORK: Final = 4000
"""Ways that a search looks at, times nodes: more would take longer than a placement should."""


class Aro:
    """For a group of the plan: the plan's trees for it, together or one of them, in a plan of several jobs at the rates
    that it has for them. For other groups, the tree of a quick search, where it promises more than the tree of the
    lowest common switch; then that tree.

    ``plan`` is a file of `p4gen route tree --out` or `p4gen route jobs --out`, by default the one that ``P4GEN_PLAN``
    names.
    """

    def __init__(self, plan: Path | None = None) -> None:
        named = os.environ.get(PLAN)
        self._file = plan or (Path(named) if named else None)
        self._plan: tuple[str, tuple[tuple[str, StripedPlan], ...]] | None = None
        if self._file is not None:
            read_text(self._file)  # a file that is not there is reported at the start

    def candidates(self, view: FabricView, spec: GroupSpec) -> Iterator[Candidate]:
        """The fastest first. Raises ``InputError`` for a plan that is not for this topology."""
        yield from self._planned(view, spec)
        found = searched(view, spec)
        if found is not None:
            yield Candidate(found.root.key.switch, found)
        yield from LowestCommonSwitch().candidates(view, spec)

    def _planned(self, view: FabricView, spec: GroupSpec) -> Iterator[Candidate]:
        """The plan's trees without parts that are down, if a group of it has these ranks, in any order, of several the
        one of this name: all together, then each alone, the fastest first."""
        if self._file is None:
            return
        mark = digest(view.topology)
        if self._plan is None or self._plan[0] != mark:
            self._plan = mark, read_plans(self._file, view.topology)
        same = [each for each in self._plan[1] if set(each[1].first.ranks) == set(spec.ranks)]
        if not same:
            return
        name, whole = min(same, key=lambda each: each[0] != spec.name)
        usable = [number for number, plan in enumerate(whole.plans) if _usable(plan, view)]
        if not usable:
            return
        joint, ports = bool(name), _ports(view)
        plan = whole.restricted_to(usable, raised=not joint)  # the jobs of a plan leave each other their rates
        trees = [tree_of(view.topology, spec.ranks, each.shape, ports) for each in plan.plans]
        stripes = tuple(map(Stripe, trees, plan.rates))
        if len(trees) > 1:
            yield Candidate(trees[0].root.key.switch, stripes=stripes)
        for number in sorted(range(len(trees)), key=lambda n: -plan.plans[n].rate):
            root = trees[number].root.key.switch
            if joint:
                yield Candidate(root, stripes=(stripes[number],))
            yield Candidate(root, trees[number])  # where programs take no rates


def _usable(plan: TreePlan, view: FabricView) -> bool:
    """Whether all links and switches of a tree can be used."""
    return not set(plan.shape.loads(plan.fabric)) & set(view.down) and set(plan.shape.below) <= set(view.switches)


def searched(view: FabricView, spec: GroupSpec) -> IncTree | None:
    """The tree of a quick search, if it is faster than that of the lowest common switch, beside other groups. None,
    too, where the fabric is so large that the search would take long."""
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
    separate_ports(tree)
    return tree


def _ports(view: FabricView) -> dict[str, int]:
    """The ports of a pipeline, by switch; a switch without a program for groups has all in one."""
    known = {name: room.spec.ports // room.spec.pipelines for name, room in view.switches.items()}
    return {switch: known.get(switch, max(1, len(view.topology.ports[switch]))) for switch in view.topology.switches}


def _flows(view: FabricView, name: str) -> Counter[str]:
    """The number of flows of other groups over each link."""
    everything = Fabric(view.topology, (), frozenset())
    others = (as_shape(group.tree) for group in view.groups if group.name != name)
    return sum((shape.loads(everything) for shape in others), Counter[str]())
