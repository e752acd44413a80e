"""Connections between hosts, as switches see them: the facet of families whose programs know connections.

Programs of other families only route such packets, which takes no entries but routes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from p4gen.families import Facet, family_of
from p4gen.groups.group import Endpoint
from p4gen.model.entries import CloneSession, Entry
from p4gen.spec import ProgramSpec


@dataclass(frozen=True)
class Connection:
    """A reliable connection. Requests go from ``source`` to ``destination``, answers go back."""

    number: int
    """Among the connections of a network, from 0."""
    source: Endpoint
    destination: Endpoint
    request_port: int
    """UDP source port of requests."""
    answer_port: int
    """UDP source port of answers."""
    answer_tos: int = 0
    """Byte of DSCP and ECN in the IPv4 headers of answers."""


@dataclass(frozen=True)
class ConnectionHere:
    """A connection at a switch that one of its ends is connected to."""

    connection: Connection
    paths: int
    """Next hops of equal cost that its requests have at the source's switch."""
    source_port: int | None
    """The port of the switch that the source is connected to; None if it is elsewhere."""
    destination_port: int | None
    """The port that the destination is connected to."""


@dataclass(frozen=True)
class ConnectionEntries(Facet):
    """What a switch holds of connections. Functions take the family's own spec."""

    module: ClassVar[str] = "connections"

    entries: Callable[[Any, Sequence[ConnectionHere]], tuple[Entry, ...]]
    """The table entries for connections that start or end at a switch, never both. Routes come on top of them. Raises
    ``InputError`` if the program cannot hold so many."""
    clone_sessions: Callable[[Any], tuple[CloneSession, ...]] = lambda _spec: ()
    queue_registers: Callable[[Any], tuple[str, ...]] = lambda _spec: ()
    """Of programs that want the lengths of queues (``wants_queue_lengths``): the registers of one cell that hold them
    in bytes, one for each of a route's next hops, in order."""


def connection_entries(spec: ProgramSpec) -> ConnectionEntries | None:
    """The facet of a spec's family; None if its programs know no connections."""
    family = family_of(spec)
    return family.facet(ConnectionEntries) if family.answers(ConnectionEntries) else None
