"""The facet of families whose programs serve groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic

from p4gen.families import Facet, OwnSpec, family_of
from p4gen.groups.group import Edge, GroupContext, SwitchConfig
from p4gen.host.collectives.plan import ChannelKey
from p4gen.host.transport.nicinfo import NicNeeds
from p4gen.model.entries import Entry, Exact
from p4gen.vocabulary import ProgramSpec


@dataclass(frozen=True)
class GroupEntries(Facet, Generic[OwnSpec]):
    """The configuration of a family's programs for groups."""

    module: ClassVar[str] = "control"

    configuration: Callable[[OwnSpec, Sequence[GroupContext], Mapping[int, int]], SwitchConfig]
    """What a switch must hold to serve groups, which it can serve, and to answer ARP or NDP for their addresses and for
    gateways (IP address to MAC address). Routes come on top of it."""
    last_edge_id: Callable[[OwnSpec], int]
    """The largest id that an edge can have; ids begin at 1."""
    holds: Callable[[OwnSpec, Sequence[Entry], GroupContext], bool] = lambda _spec, _entries, _group: True
    """Whether a switch's entries contain the context in its epoch; only then its state counts."""
    refusals: Callable[[OwnSpec, Sequence[Sequence[ChannelKey]]], Iterable[str]] = lambda _spec, _channels: ()
    """Why a program cannot serve groups with such channels, whatever their place, a sentence each."""
    needs: Callable[[OwnSpec], NicNeeds] = lambda _spec: NicNeeds()
    """What the program asks of its ranks' NICs."""
    ticked: Callable[[OwnSpec, GroupContext, Edge], bool] = lambda _spec, _group, _edge: True
    """Whether an edge of a context has a timer that ticks drive, in programs that want ticks."""
    given_up: str = ""
    """The counter of edges that a switch has given up, one cell for each place of an edge's state
    (``PlacedEdge.index``); empty for programs that give up none."""
    problems: Callable[[OwnSpec, GroupContext], Iterable[str]] = lambda _spec, _group: ()
    """Why a program cannot serve a group, a sentence each, beside what ``p4gen.groups.checks`` finds for any family."""


def context_holds(_: ProgramSpec, entries: Sequence[Entry], group: GroupContext) -> bool:
    """``GroupEntries.holds`` of programs whose table ``contexts`` has one entry for each context, which says its
    epoch."""
    return any(
        entry.table.rpartition(".")[2] == "contexts"
        and entry.match["context"] in (group.context, Exact(group.context))
        and entry.action.args.get("epoch") == group.epoch
        for entry in entries
    )


def group_entries(spec: ProgramSpec) -> GroupEntries[Any]:
    """The facet of a spec's family; ``InputError`` if it has none."""
    return family_of(spec).facet(GroupEntries)
