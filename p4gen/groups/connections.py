"""Connections between hosts, as switches see them: the facet of families whose programs know connections.

Programs of other families only route such packets, which takes no entries but routes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic

from p4gen.families import Facet, OwnSpec, answering, family_of
from p4gen.groups.group import Endpoint
from p4gen.model.entries import CloneSession, Entry
from p4gen.vocabulary import ProgramSpec


@dataclass(frozen=True)
class Connection:
    """A reliable connection. Requests go from ``source`` to ``destination``, answers go back."""

    number: int
    """Among the connections of a network, from 0."""
    source: Endpoint
    destination: Endpoint
    answer_port: int
    """UDP source port of answers."""
    answer_tos: int = 0
    """Byte of DSCP and ECN in the IP headers of answers."""
    writes_only: bool = False
    """Whether only WRITEs may come out of order."""


@dataclass(frozen=True)
class Tier:
    """How the switches of a tier choose among next hops: by ``bits`` bits of their hash, from bit ``shift`` on."""

    name: str
    bits: int
    shift: int


@dataclass(frozen=True)
class ConnectionHere:
    """A connection at a switch that one of its ends is connected to."""

    connection: Connection
    paths: int
    """Next hops of equal cost that its requests have at the source's switch; with ``tiers`` all paths."""
    source_port: int | None
    """The port of the switch that the source is connected to; None if it is elsewhere."""
    destination_port: int | None
    """The port that the destination is connected to."""
    path_set: int
    """Number of the set of its paths; connections of a set have equally many, and the same tiers."""
    index: int = 0
    """The index of the state that the destination's switch keeps of the connection."""
    epoch: int = 1
    """1 to 255; one that no former connection with this index had since the program was loaded."""
    filtered: bool = True
    """Whether the destination's switch may block answers; otherwise all pass."""
    tiers: tuple[Tier, ...] = ()
    """The tiers on its way that choose among next hops, if the program needs to know them."""


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections a program knows at the same time."""

    starts: int
    """Connections of the switch's hosts to others; 0 if the program does not treat them specially."""
    ends: int
    """Connections to the switch's hosts; their indices begin at 0."""
    path_sets: int
    """Numbers of sets of paths begin at 0."""
    tiers: bool = False
    """Whether the program changes requests so that all tiers choose the paths intended; it must know the tiers."""
    restores: bool = False
    """Whether the program undoes such changes of requests to the switch's hosts."""


@dataclass(frozen=True)
class Tally:
    """A count that a switch keeps for a connection: the packets of a table entry, or of cells of a counter."""

    name: str
    entry: Entry | None = None
    """The entry whose counter it is."""
    counter: str = ""
    cells: tuple[int, ...] = ()
    """The cells of ``counter`` that count the connection's packets; the count is their sum."""


@dataclass(frozen=True)
class ConnectionEntries(Facet, Generic[OwnSpec]):
    """The state of connections in a family's switches: table entries, counters, registers."""

    module: ClassVar[str] = "connections"

    entries: Callable[[OwnSpec, Sequence[ConnectionHere]], tuple[Entry, ...]]
    """The table entries for connections that start or end at a switch, never both. Routes come on top of them. Raises
    ``InputError`` for what the program cannot hold."""
    limits: Callable[[OwnSpec], ConnectionLimits]
    host_entries: Callable[[OwnSpec, Mapping[int, int]], tuple[Entry, ...]] = lambda _spec, _hosts: ()
    """The table entries for a switch's own hosts, IP addresses by port, whether they have connections or not."""
    tallies: Callable[[OwnSpec, ConnectionHere], tuple[Tally, ...]] = lambda _spec, _here: ()
    """What a switch counts of a connection that starts or ends there, in the order in which it is shown."""
    clone_sessions: Callable[[OwnSpec], tuple[CloneSession, ...]] = lambda _spec: ()
    core: Callable[[OwnSpec], ProgramSpec] = lambda spec: spec
    """The program of switches without hosts, at which no connection starts or ends: the same, or one that only
    routes."""
    queue_registers: Callable[[OwnSpec], tuple[str, ...]] = lambda _spec: ()
    """The registers that hold the lengths of queues in bytes, for programs that want them (``wants_queue_lengths``):
    one register of one cell for each of a route's next hops, in order."""


def connection_limits(spec: ProgramSpec) -> ConnectionLimits:
    """The limits of a spec's programs; no connections for families that know none."""
    facet = connection_entries(spec)
    return ConnectionLimits(0, 0, 0) if facet is None else facet.limits(spec)


def connection_entries(spec: ProgramSpec) -> ConnectionEntries[Any] | None:
    """The facet of a spec's family, or of the one beside it; None if its programs know no connections."""
    part = answering(spec, ConnectionEntries)
    if part is None:
        return None
    facet = family_of(part).facet(ConnectionEntries)
    return facet if part is spec else _of_guest(facet)


def _of_guest(facet: ConnectionEntries[Any]) -> ConnectionEntries[Any]:
    """The facet of the guest, the family beside a program's own, as a function of the whole program's spec."""
    return ConnectionEntries(
        entries=lambda spec, connections: facet.entries(spec.beside, connections),
        limits=lambda spec: facet.limits(spec.beside),
        host_entries=lambda spec, hosts: facet.host_entries(spec.beside, hosts),
        clone_sessions=lambda spec: facet.clone_sessions(spec.beside),
        queue_registers=lambda spec: facet.queue_registers(spec.beside),
    )
