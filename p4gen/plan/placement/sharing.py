"""Policies that share the fabric among groups: edge-disjoint trees, the widest path, and shares of time (EPIC §6.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from p4gen.errors import InputError
from p4gen.plan.placement.duty import blocks_per_node, loads, within
from p4gen.plan.placement.policy import Candidate, FabricView
from p4gen.plan.placement.request import GroupSpec
from p4gen.plan.placement.tree import IncTree, build_tree, tree_links
from p4gen.vocabulary import ServingSpec

_SECOND: Final = 1e12
"""Picoseconds."""


def trees_by_tier(view: FabricView, spec: GroupSpec, without: Mapping[str, str]) -> Iterator[tuple[int, IncTree]]:
    """The trees of a group with each switch as their root, lowest tiers first, that go no higher than the root's tier.

    The trees use no link in ``without``, and none that is down. Each tree comes once.
    """
    topology = view.topology
    per_pipeline = {name: room.spec.ports // room.spec.pipelines for name, room in view.switches.items()}
    per_pipeline = {switch: per_pipeline.get(switch, 1 << 30) for switch in topology.switches}
    gone = {**view.down, **without}
    found: set[IncTree] = set()
    for tier in sorted(set(topology.tiers.values())):
        higher = {
            link.name: f"above tier {tier}"
            for link in topology.links
            if any(topology.tiers.get(end, 0) > tier for end in link.ends)
        }
        for root in topology.switches:
            if topology.tiers.get(root) != tier or root not in view.switches:
                continue
            try:
                tree = build_tree(topology, spec.ranks, root, ports_per_pipeline=per_pipeline, down={**higher, **gone})
            except InputError:  # it does not reach all ranks
                continue
            if tree not in found:
                found.add(tree)
                yield tier, tree


class EdgeDisjoint:
    """Trees that share no link with another group's (EPIC §6.2): links in use are left out, and tiers are scanned
    upwards. The roots of the lowest tier that reaches all ranks come first. Where there is no such tree, the manager
    refuses the group, and names the links and groups that are in the way."""

    def candidates(self, view: FabricView, spec: GroupSpec) -> Iterator[Candidate]:
        """Disjoint trees, lowest tier first; then the others, which the manager refuses with the reason."""
        used = {name: f"group {group.name}" for group in view.groups if group.name != spec.name for name in group.links}
        for without in (used, {}):
            for _, tree in trees_by_tier(view, spec, without):
                yield Candidate(tree.root.key.switch, tree, disjoint=True)


@dataclass(frozen=True)
class Width:
    """The properties of a tree for a group."""

    tree: IncTree
    depth: int
    """Links between the root and the farthest rank."""
    bandwidth: float
    """The rate, in bit/s, that the narrowest part leaves: of links, the share among all their groups that communicate
    at the same time; of switches, the rate at which their free slots last for a round trip to the root."""
    slots: int
    """The slots for this on each switch: a power of two."""


class WidestPath:
    """The Pareto frontier of trees by depth and width (EPIC §6.2), the widest first; trees that others surpass in both
    come last. A request without a number of slots gets as many as its links can use, but at most half of those that are
    free."""

    prefers_depth = False

    def candidates(self, view: FabricView, spec: GroupSpec) -> Iterator[Candidate]:
        """The frontier, then the rest."""
        widths = [found for _, tree in trees_by_tier(view, spec, {}) if (found := self._width(view, spec, tree))]
        widths.sort(key=lambda width: (width.depth, -width.bandwidth))
        frontier: list[Width] = []
        for width in widths:
            if not frontier or width.bandwidth > max(each.bandwidth for each in frontier):
                frontier.append(width)
        if not self.prefers_depth:
            frontier.reverse()
        rest = [width for width in widths if width not in frontier]
        yield from (Candidate(width.tree.root.key.switch, width.tree, slots=width.slots) for width in frontier + rest)

    def _width(self, view: FabricView, spec: GroupSpec, tree: IncTree) -> Width | None:
        """The properties of a tree; None for a switch on the way whose program does not take part."""
        topology = view.topology
        nodes = [(view.switches.get(node.key.switch), node.key.pipeline) for node in tree.nodes]
        rooms = [(room, pipeline) for room, pipeline in nodes if room is not None]
        if len(rooms) < len(nodes):
            return None
        schedule = spec.own_schedule
        others = [group for group in view.groups if group.name != spec.name]
        if schedule is not None:
            others = [group for group in others if schedule.meets(group.schedule)]
        groups = Counter(name for group in others for name in group.links)
        names = tree_links(tree, topology)
        links = [link for link in topology.links if link.name in names]
        share = min(topology.setting(link, "bandwidth") / (1 + groups[link.name]) for link in links)
        away = topology.distances(tree.root.key.switch)
        depth = max(away[host] for host in tree.ranks)
        delay = max(topology.setting(link, "delay") for link in links)
        program = rooms[0][0].spec
        payload = 8 * program.payload_bytes
        trip = depth * (delay + topology.switch_latency + payload / share * _SECOND) * 2 / _SECOND
        free = min(room.slots_free[pipeline] // _banks(room.spec) for room, pipeline in rooms)
        windows = program.buffered_windows  # of which a rank has one in flight
        slots = spec.slots or _slots(program, free, windows * share * trip / payload)
        return Width(tree, depth, min(share, slots / windows * payload / trip), slots)


class WidestPathNear(WidestPath):
    """The frontier of ``WidestPath``, the least depth first: for groups whose collectives are short."""

    prefers_depth = True


class TimeShared:
    """Temporal sharing (EPIC §6.2): groups have their trees' switches by leases, for one call at a time, so any number
    of groups may have the same switches. Trees whose switches have time for the group come first, by their blocks
    weighted by duty: those of the lowest tier, and there the least loaded. The others follow, the least overbooked
    first: a group that finds its switches taken does the call on its ring, so none is refused for lack of time."""

    leases: Final = True

    def candidates(self, view: FabricView, spec: GroupSpec) -> Iterator[Candidate]:
        """All trees, to be leased: those with time first, then the least overbooked."""
        found = []
        for tier, tree in trees_by_tier(view, spec, {}):
            mine = blocks_per_node(spec, view.switches[tree.root.key.switch].spec)
            found.append((tier, sorted(loads(tree, spec, mine, view.switches).values(), reverse=True), tree))
        for _, load, tree in sorted(found, key=lambda each: (each[0], each[1])):
            if within(load[0]):
                yield Candidate(tree.root.key.switch, tree, leased=True, within_time=True)
        for _, _, tree in sorted(found, key=lambda each: (each[1], each[0])):
            yield Candidate(tree.root.key.switch, tree, leased=True)


def _banks(program: ServingSpec) -> int:
    """How many times a group's slots are taken of a pipeline's memory: for data up, and for data down."""
    return 2 if program.pipes > 1 else 1


def _slots(program: ServingSpec, free: int, useful: float) -> int:
    """The least power of two of at least ``useful`` slots, or the greatest that leaves half of the free slots to
    others; never less than a program needs for a group."""
    slots = max(2, 1 << (program.needed_slots - 1).bit_length())
    while slots < useful and 4 * slots <= free:
        slots *= 2
    return slots
