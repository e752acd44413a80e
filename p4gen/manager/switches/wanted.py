"""The configuration that a switch should have for its admitted placements, and whether it has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from p4gen.groups.config import configure
from p4gen.groups.connections import ConnectionHere, connection_entries
from p4gen.groups.family import group_entries
from p4gen.groups.group import GroupContext, SwitchConfig
from p4gen.manager.api import SwitchInfo
from p4gen.plan.placement.connections import PlacedConnection, same_place
from p4gen.plan.placement.placed import PlacedTrees
from p4gen.plan.placement.placer import gateways, routes, tree_routes
from p4gen.plan.placement.planner import View
from p4gen.plan.placement.tiers import hash_shift
from p4gen.vocabulary import ProgramSpec

Key = tuple[str, int]
"""A placement: its group's name and its generation."""
HeldConnections = Mapping[int, "HeldConnection"]
"""The connections that a switch is to hold, by number."""
Item = tuple[object, ...]
"""The identity of an entry, multicast group or clone session."""


@dataclass(frozen=True)
class HeldConnection:
    """A connection that a switch is to hold; ``filtered`` where it ends: whether NACKs may be blocked there."""

    placed: PlacedConnection
    filtered: bool = True


def wanted_config(
    info: SwitchInfo, view: View, admitted: Mapping[Key, PlacedTrees], connections: HeldConnections | None = None
) -> SwitchConfig:
    """The configuration of a switch. Raises ``InputError`` when its program does not support it."""
    if info.name not in view.topology.switches:
        return configure(info.spec, [])
    # Placements over links that no longer exist are about to be removed.
    there = {frozenset(link.ends) for link in view.topology.links}
    parts = (part for placed in admitted.values() if placed.links <= there for part in placed.parts)
    passed = tree_routes(view.topology, parts)
    shift = hash_shift(view.topology, info.spec, info.name)
    arch = info.spec.architecture
    found = routes(
        view.topology, view.names, info.name, passed[info.name], arch, down=view.down, fixed=True, shift=shift
    )
    config = configure(
        info.spec, contexts_of(info.name, admitted), *found, gateways(info.spec, view.names.mac[info.name])
    )
    facet = connection_entries(info.spec)
    if facet is None:
        return config
    entries = facet.host_entries(info.spec, _hosts(info, view))
    if connections:
        entries += facet.entries(info.spec, _here(info.name, view, connections))
    return replace(config, entries=config.entries + entries)


def _hosts(info: SwitchInfo, view: View) -> dict[int, int]:
    """The addresses of a switch's hosts, by port."""
    links, arch = view.topology.ports[info.name], info.spec.architecture
    others = ((arch.front_port(number), link.other(info.name)) for number, link in enumerate(links))
    return {port: view.names.ip[other] for port, other in others if other in view.names.ip}


def _here(switch: str, view: View, connections: HeldConnections) -> list[ConnectionHere]:
    """The connections that a switch treats specially. A connection that starts here is not sprayed over next hops that
    routes do not have (any more): it has ECMP's path until its new paths are settled."""
    return [
        held.placed.here(switch, filtered=held.filtered)
        for _, held in sorted(connections.items())
        if held.placed.destination_switch == switch or same_place(held.placed, view)
    ]


def contexts_of(switch: str, admitted: Mapping[Key, PlacedTrees]) -> list[GroupContext]:
    """The contexts of placements on a switch, in order."""
    found = [context for placed in admitted.values() for context in placed.contexts_on(switch)]
    return sorted(found, key=lambda context: context.context)


def items_of(config: SwitchConfig) -> frozenset[Item]:
    """The identities of all objects of a configuration."""
    entries = ((entry.table, *entry.match.values()) for entry in config.entries)
    groups = (("", group.group_id) for group in config.multicast_groups)
    return frozenset((*entries, *groups, *((None, session.session_id) for session in config.clone_sessions)))


def holds(spec: ProgramSpec, held: SwitchConfig, placed: PlacedTrees, switch: str) -> bool:
    """Whether the switch holds all contexts of a placement with their epochs, and therefore their state."""
    family = group_entries(spec)
    return all(family.holds(spec, held.entries, context) for context in placed.contexts_on(switch))
