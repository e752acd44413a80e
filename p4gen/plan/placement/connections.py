"""Connections of hosts in different racks: their next hops, and their resources on the switches of their ends."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from p4gen.errors import InputError
from p4gen.groups.connections import (
    Connection,
    ConnectionHere,
    ConnectionLimits,
    Tier,
    connection_entries,
    connection_limits,
)
from p4gen.groups.group import Endpoint
from p4gen.host.transport.nicinfo import MTUS, OUR_NIC, QPNS
from p4gen.host.transport.verbs import Recovery
from p4gen.plan.placement.placer import Names, switch_of
from p4gen.plan.placement.planner import View
from p4gen.plan.placement.pools import EPOCHS, History, Kind
from p4gen.plan.placement.request import Code, ConnectionSpec, ManagerError
from p4gen.plan.placement.spans import Spans, gaps
from p4gen.plan.placement.tiers import choosing_tiers, connection_tiers, path_choice
from p4gen.plan.placement.tree import no_path


class NoEpochError(ManagerError):
    """Only epochs are lacking, at ``switch``: loading its program again would free them."""

    def __init__(self, switch: str) -> None:
        super().__init__(
            Code.NO_ROOM,
            f"{switch}: all 255 epochs of its free connections have been used since its program was loaded; "
            "it can be loaded again when the switch serves no group and no connection",
        )
        self.switch = switch


@dataclass(frozen=True)
class PlacedConnection:
    """A connection with all its resources."""

    number: int
    spec: ConnectionSpec
    source: Endpoint
    destination: Endpoint
    source_switch: str
    destination_switch: str
    source_port: int
    destination_port: int
    """Ports of the two switches that its hosts are connected to."""
    ports: tuple[int, ...]
    """Numbers of the links of its requests' next hops at the source's switch."""
    path_set: int
    """Number of its set of paths, the same at both switches. Sets are equal if they have equally many paths, and the
    same tiers."""
    index: int
    """The index of the connection's state at the destination's switch."""
    epoch: int
    tiers: tuple[Tier, ...] = ()
    """The tiers that choose among next hops, if the programs need to know them."""

    @property
    def paths(self) -> int:
        """How many paths it has: the next hops, or with ``tiers`` what all of them choose among."""
        return 1 << sum(tier.bits for tier in self.tiers) if self.tiers else len(self.ports)

    def here(self, switch: str, *, filtered: bool = True) -> ConnectionHere:
        """The connection as one of its switches sees it."""
        spec = self.spec
        known = Connection(
            self.number, self.source, self.destination, spec.answer_port, spec.answer_tos, spec.writes_only
        )
        starts = switch == self.source_switch
        return ConnectionHere(
            known,
            self.paths,
            source_port=self.source_port if starts else None,
            destination_port=None if starts else self.destination_port,
            path_set=self.path_set,
            index=self.index,
            epoch=self.epoch,
            filtered=filtered,
            tiers=self.tiers,
        )


def check_connection(
    spec: ConnectionSpec, view: View, neighbours: Mapping[str, Sequence[str]], out_of_order: Collection[str]
) -> None:
    """Refuse connections that no program can serve. ``neighbours`` are the nodes that each switch has reported to be
    connected to, ``out_of_order`` the hosts whose NICs take packets out of order.

    Raises ``ManagerError`` with every reason.
    """
    hosts = view.topology.hosts
    unknown = [host for host in dict.fromkeys((spec.source, spec.destination)) if host not in hosts]
    if unknown:
        raise ManagerError(Code.NOT_FOUND, "\n".join(f"there is no host '{host}'" for host in unknown))
    problems = [
        f"QP {qp} of {host} is not one of {QPNS.start} to {QPNS.stop - 1}"
        for host, qp in ((spec.source, spec.source_qp), (spec.destination, spec.destination_qp))
        if qp not in QPNS
    ]
    if spec.mtu not in MTUS:
        problems.append(f"MTU {spec.mtu} is not one of {', '.join(map(str, MTUS))}")
    if not 0 <= spec.answer_port < 1 << 16:
        problems.append(f"UDP source port {spec.answer_port} does not fit into 16 bits")
    if not 0 <= spec.answer_tos < 1 << 8:
        problems.append(f"DSCP and ECN {spec.answer_tos} do not fit into 8 bits")
    if spec.source == spec.destination:
        problems.append(f"both ends are {spec.source}")
    if problems:
        raise ManagerError(Code.INVALID, "\n".join(problems))
    for host in (spec.source, spec.destination):
        racks = [switch for switch, others in neighbours.items() if host in others]
        if len(racks) > 1:
            problems.append(
                f"{host} is connected to {' and '.join(racks)}: the packets of a path would arrive over several links"
            )
        if view.nics.get(host, OUR_NIC).recovery is Recovery.GO_BACK_N:
            problems.append(f"the NIC of {host} goes back N, so it takes no packets out of order")
        elif host not in out_of_order:
            problems.append(
                f"{host} does not say that its NIC takes packets out of order: one that goes back N does not"
            )
    first, last = (switch_of(view.topology, host) for host in (spec.source, spec.destination))
    if first == last:
        problems.append(f"{spec.source} and {spec.destination} are both connected to {first}: there is one path only")
    if problems:
        raise ManagerError(Code.REFUSED, "\n".join(problems))


def place_connection(
    number: int,
    spec: ConnectionSpec,
    view: View,
    others: Sequence[PlacedConnection],
    histories: Mapping[str, History],
    keep: PlacedConnection | None = None,
) -> PlacedConnection:
    """Find a place for a connection in the fabric as it is now, beside ``others``.

    ``keep`` is its present place, whose state at the destination's switch it keeps. Raises ``NoEpochError`` if only
    epochs are lacking, otherwise ``ManagerError`` with the reason.
    """
    topology, names = view.topology, view.names
    first, last = (switch_of(topology, host) for host in (spec.source, spec.destination))
    limits = {switch: _limits(view, switch) for switch in (first, last)}
    starts = sum(other.source_switch == first for other in others)
    if starts >= limits[first].starts:
        raise ManagerError(Code.NO_ROOM, _full(first, "start", limits[first].starts))
    ports = view.next_ports(first, spec.destination)
    if not ports:
        raise ManagerError(Code.UNREACHABLE, no_path(topology, spec.destination, first, view.down))
    if keep is not None and keep.destination_switch == last:
        index, epoch = keep.index, keep.epoch
    else:
        taken = Spans((other.index, other.index + 1) for other in others if other.destination_switch == last)
        index, epoch = _free(last, limits[last].ends, taken, histories.get(last) or History())
    (source_port,) = topology.next_ports(first, spec.source)
    (destination_port,) = topology.next_ports(last, spec.destination)
    ends = (_endpoint(names, spec.source, spec.source_qp), _endpoint(names, spec.destination, spec.destination_qp))
    try:
        tiers = connection_tiers(topology, view.programs, view.next_ports, spec.source, spec.destination)
    except InputError as error:
        raise ManagerError(Code.NO_ROOM, "\n".join(diagnostic.message for diagnostic in error.diagnostics)) from error
    here, there = (view.programs[switch].architecture for switch in (first, last))
    placed = PlacedConnection(
        number,
        spec,
        *ends,
        first,
        last,
        here.front_port(source_port),
        there.front_port(destination_port),
        ports,
        0,
        index,
        epoch,
        tiers,
    )
    placed = replace(placed, path_set=_path_set(placed, others, keep))
    _check_programs(view, placed)
    return placed


def same_place(placed: PlacedConnection, view: View) -> bool:
    """Whether the connection's next hops are those of the present routes, and other tiers choose paths as before."""
    spec = placed.spec
    if view.next_ports(placed.source_switch, spec.destination) != placed.ports:
        return False
    if not placed.tiers:
        return True
    try:
        return placed.tiers == choosing_tiers(
            view.topology, view.programs, view.next_ports, spec.source, spec.destination
        )
    except InputError:
        return False


def _limits(view: View, switch: str) -> ConnectionLimits:
    if switch not in view.programs:
        raise ManagerError(Code.UNREACHABLE, f"switch {switch} is not registered")
    return connection_limits(view.programs[switch])


def _full(switch: str, what: str, limit: int) -> str:
    if not limit:
        return f"{switch}: its program does not treat connections that {what} there differently from others"
    return f"{switch}: {limit} connections {what} there, as many as its program knows (connections)"


def _free(switch: str, limit: int, taken: Spans, history: History) -> tuple[int, int]:
    """The first free index with the least epoch that it has not had; if all have had it, the first free one with an
    epoch left."""
    first = next(gaps(0, limit, taken), None)
    if first is None:
        raise ManagerError(Code.NO_ROOM, _full(switch, "end", limit))
    for epoch in EPOCHS:
        if not history.seen(Kind.CONNECTION, 0, epoch).meets(first[0], first[0] + 1):
            return first[0], epoch
    for epoch in EPOCHS:
        clean = next(gaps(0, limit, taken, history.seen(Kind.CONNECTION, 0, epoch)), None)
        if clean is not None:
            return clean[0], epoch
    raise NoEpochError(switch)


def _path_set(placed: PlacedConnection, others: Sequence[PlacedConnection], keep: PlacedConnection | None) -> int:
    """The number of the set with these paths; an unused number if there is none."""
    sets = {path_choice(other.paths, other.tiers): other.path_set for other in (*others, *([keep] if keep else []))}
    used = set(sets.values())
    wanted = path_choice(placed.paths, placed.tiers)
    return sets.get(wanted, next(number for number in range(len(used) + 1) if number not in used))


def _check_programs(view: View, placed: PlacedConnection) -> None:
    problems = []
    for switch in (placed.source_switch, placed.destination_switch):
        spec = view.programs[switch]
        facet = connection_entries(spec)
        try:
            if facet is not None:
                facet.entries(spec, (placed.here(switch),))
        except InputError as error:
            problems += [f"{switch}: {diagnostic.message}" for diagnostic in error.diagnostics]
    if problems:
        raise ManagerError(Code.NO_ROOM, "\n".join(problems))


def _endpoint(names: Names, host: str, qp: int) -> Endpoint:
    return Endpoint(names.mac[host], names.ip[host], qp)
