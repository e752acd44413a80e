"""Placement policies: choose a group's IncTree (EPIC §6.2, §G).

A policy only proposes. The manager builds the trees in the order proposed, and takes the first for which every switch
has what it needs, so a policy need not be exact about room.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import entry_points
from typing import Final, Protocol, runtime_checkable

from p4gen.errors import InputError
from p4gen.inputs import quote
from p4gen.plan.placement.request import GroupSpec
from p4gen.plan.placement.tree import IncTree, by_distance, tree_links
from p4gen.plan.placement.windows import Schedule, Taken
from p4gen.vocabulary import ServingSpec
from p4gen.vocabulary.topology import TopologySpec

ENTRY_POINTS: Final = "p4gen.placement_policies"


@dataclass(frozen=True)
class SwitchRoom:
    """A usable switch, and its free resources."""

    spec: ServingSpec
    contexts_free: int
    slots_free: tuple[int, ...]
    """Free slots in the memory of each pipeline."""
    blocks: int = 0
    """Number of groups of the program's own size that fit at the same time beside groups that keep their resources.
    Leases share these blocks (``p4gen.plan.placement.duty``)."""
    duty: float = 0.0
    """The sum of the duties of all groups with leases here, each multiplied by the group's blocks, without the group to
    be placed."""
    scheduled: tuple[Taken, ...] = ()
    """Those of these groups that have a schedule."""


@dataclass(frozen=True)
class GroupView:
    """A group that has a place, with one of its trees; a group with several trees is listed once for each."""

    name: str
    tree: IncTree
    topology: TopologySpec = field(repr=False)
    leased: bool = False
    """Whether it has its tree's switches only during calls, by leases."""
    duty: float = 1.0
    """The share of the time in which it communicates."""
    blocks: int = 1
    """The blocks that it takes at each node of its tree."""
    schedule: Schedule | None = None
    """When it communicates, if it keeps step with other groups."""

    @cached_property
    def links(self) -> frozenset[str]:
        """Names of the links that its tree runs over."""
        return tree_links(self.tree, self.topology)


@dataclass(frozen=True)
class FabricView:
    """The fabric as a policy sees it."""

    topology: TopologySpec
    down: Mapping[str, str]
    """Names of links that cannot be used, each with the reason; all links of a switch that cannot."""
    switches: Mapping[str, SwitchRoom]
    """The switches that have registered and answer."""
    groups: tuple[GroupView, ...] = ()
    """All groups that have a tree; also the one to be placed, if it is moved beside its present tree."""


@dataclass(frozen=True)
class Stripe:
    """A tree of a group at a rate of its own; several carry its calls together."""

    tree: IncTree
    rate: float
    """Bit/s of each rank over it, with headers, beside the other trees and groups: ranks send no faster, and a call's
    data is divided among the group's trees as their rates are."""


@dataclass(frozen=True)
class Candidate:
    """A proposal: the switch at the root, with shortest paths to it; or one or several trees of the policy's own."""

    root: str
    tree: IncTree | None = None
    """By default that of ``p4gen.plan.placement.tree.build_tree`` for this root. One of another shape keeps to its
    rules: children by lowest rank, then the parent; a node for each pipeline that has edges."""
    stripes: tuple[Stripe, ...] = ()
    """One or several trees with rates instead of ``tree``: the manager takes all of them or none."""
    disjoint: bool = False
    """Whether the proposal holds only if no other group's tree runs over a link of this one's."""
    slots: int | None = None
    """Slots of each pipe, if the request does not say how many; the program's by default."""
    leased: bool = False
    """Whether the group shares its switches' resources with others and has them for one call at a time. There must be
    room for it only beside groups that keep their resources. Its slots are those of the request or the program."""
    within_time: bool = False
    """For a leased candidate: whether the proposal holds only if no switch of its tree is promised for more time than
    there is."""


@runtime_checkable
class PlacementPolicy(Protocol):
    """Proposes trees for groups.

    To write one: a class with this method whose objects can be made without arguments. ``p4gen manager --policy`` finds
    it as ``module:Class``, or by a name in the entry points group ``p4gen.placement_policies``:

        [project.entry-points."p4gen.placement_policies"]
        widest-path = "my_policies:WidestPath"

    ``candidates`` is called without the manager's lock, on a view that does not change; the manager asks again if the
    fabric has changed before it has taken a candidate. After some such attempts it holds the lock, so a policy must
    never call the manager. It is called again for every placement, also when a group moves away from something that
    failed; nothing but the view says what is down, so a policy needs no memory. It is not called for a request that
    names its root; a policy with the attribute ``leases`` has such a root leased, too.
    """

    def candidates(self, view: FabricView, spec: GroupSpec) -> Iterable[Candidate]:
        """Proposals for a group, best first; they may be computed one by one. ``spec.ranks`` are hosts of the topology.
        No proposal means that there is no place."""
        ...


class LowestCommonSwitch:
    """The switch with the fewest links to all ranks together: in a Clos network the lowest that is above all of them.
    Among several, it is the one nearest to its farthest rank, then the one with the most free contexts, so that trees
    spread."""

    def candidates(self, view: FabricView, spec: GroupSpec) -> Iterator[Candidate]:
        """All switches that reach every rank, nearest first."""
        found = [reach for reach in by_distance(view.topology, spec.ranks, view.down) if reach.switch in view.switches]
        found.sort(key=lambda r: (r.links, r.farthest, -view.switches[r.switch].contexts_free))
        yield from (Candidate(reach.switch) for reach in found)


class Ring:
    """No switches for any group (EPIC §L.2, form 0), for comparison with other policies. Groups need ``fallback``."""

    def candidates(self, view: FabricView, spec: GroupSpec) -> Iterator[Candidate]:
        """No candidates: every group runs on its ring."""
        return iter(())


BUILT_IN: Final[Mapping[str, str]] = {
    "lowest-common-switch": "p4gen.plan.placement.policy:LowestCommonSwitch",
    "edge-disjoint": "p4gen.plan.placement.sharing:EdgeDisjoint",
    "widest-path": "p4gen.plan.placement.sharing:WidestPath",
    "widest-path-near": "p4gen.plan.placement.sharing:WidestPathNear",
    "time-shared": "p4gen.plan.placement.sharing:TimeShared",
    "ring": "p4gen.plan.placement.policy:Ring",
    "aro": "p4gen.plan.route.policy:Aro",
}


def known_policies() -> list[str]:
    """Names that ``find_policy`` knows."""
    return [*BUILT_IN, *(point.name for point in entry_points(group=ENTRY_POINTS))]


def find_policy(name: str) -> PlacementPolicy:
    """A policy by its name, built in or of an entry point, or by ``module:Class``. Raises ``InputError``."""
    found: object
    where = BUILT_IN.get(name, name)
    others = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    try:
        if name in others:
            found = others[name].load()
        elif ":" in where:
            module, _, attribute = where.partition(":")
            found = getattr(importlib.import_module(module), attribute)
        else:
            known = ", ".join(known_policies())
            raise InputError(f"there is no placement policy {quote(name)}; there are {known}, and module:Class")
        policy = found() if callable(found) else found
    except InputError:
        raise
    except Exception as error:  # its module or class may do anything
        kind = "" if isinstance(error, (ImportError, AttributeError)) else f"{type(error).__name__}: "
        raise InputError(f"placement policy '{name}': {kind}{error}") from error
    if not isinstance(policy, PlacementPolicy):
        raise InputError(f"placement policy '{name}' has no method 'candidates'")
    return policy
