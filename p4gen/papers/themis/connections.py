"""The entries of a leaf switch for connections between its hosts and those of other racks."""

from __future__ import annotations

from collections.abc import Sequence

from p4gen.errors import InputError
from p4gen.groups.connections import ConnectionEntries, ConnectionHere, ConnectionLimits, Tally
from p4gen.model.entries import Entry
from p4gen.papers.themis.control import (
    Connection,
    PathSet,
    Peer,
    clone_sessions,
    cm_entries,
    filter_entries,
    path_map,
    path_map_entries,
    path_set_entries,
    spray_entry,
)
from p4gen.papers.themis.spec import Spread, ThemisSpec
from p4gen.papers.themis.verdicts import TALLIES, VERDICT_COUNTER, VERDICTS
from p4gen.rocev2.headers import is_ipv6


def _entries(spec: ThemisSpec, connections: Sequence[ConnectionHere]) -> tuple[Entry, ...]:
    if not spec.by_psn:
        return ()
    sets = {here.path_set: here for here in connections}
    found = [entry for _, here in sorted(sets.items()) for entry in _path_set(spec, here)]
    for here in connections:
        placed = here.connection
        connection = Connection(
            Peer(placed.source.ip, placed.source.qp),
            Peer(placed.destination.ip, placed.destination.qp),
            placed.answer_port,
            placed.answer_tos,
            placed.writes_only,
        )
        if here.source_port is not None and spec.sprays:
            found.append(spray_entry(spec, connection, here.path_set))
        port = here.destination_port
        if port is not None and spec.filters:
            if here.index >= spec.connections:
                raise InputError(
                    f"more connections end at this switch than its program holds: {spec.connections} (connections)"
                )
            answers, data = filter_entries(
                spec, connection, here.path_set, index=here.index, epoch=here.epoch, port=port
            )
            found += [answers, data] if here.filtered else [data]  # without its entry an answer passes
    return tuple(found)


def _path_set(spec: ThemisSpec, here: ConnectionHere) -> tuple[Entry, ...]:
    """The entries of a connection's set of paths, and of its PathMap."""
    entries = path_set_entries(spec, PathSet.equal(here.path_set, here.paths))
    if spec.tiers == 2:
        return entries
    deltas = path_map(here.tiers, ipv6=is_ipv6(here.connection.source.ip))
    return (*entries, *path_map_entries(spec, here.path_set, deltas))


def _limits(spec: ThemisSpec) -> ConnectionLimits:
    """A program that sprays by PSN but does not filter (``psn``) has no state, and as many connections."""
    ends = spec.filters or spec.spread is Spread.PSN
    mapped = spec.tiers > 2
    return ConnectionLimits(
        spec.connections * spec.sprays,
        spec.connections * ends,
        spec.path_sets,
        tiers=mapped and spec.sprays,
        restores=mapped and spec.filters,
    )


def _queue_registers(spec: ThemisSpec) -> tuple[str, ...]:
    return tuple(f"spray_path.queue_{hop}.length" for hop in range(spec.paths))


def _core(spec: ThemisSpec) -> ThemisSpec:
    """It only routes, so it needs no state."""
    if not spec.by_psn or spec.tiers > 2:
        return spec
    return ThemisSpec(arch=spec.arch, ports=spec.ports, icrc=spec.icrc, ip=spec.ip, spread=Spread.ECMP)


def _tallies(spec: ThemisSpec, here: ConnectionHere) -> tuple[Tally, ...]:
    if here.source_port is not None:
        entries = _entries(spec, (here,)) if spec.sprays else ()
        return tuple(Tally("sprayed", entry) for entry in entries if entry.table == "data_flows")
    if not spec.filters:
        return ()
    first = VERDICTS * here.index
    return tuple(
        Tally(name, counter=VERDICT_COUNTER, cells=tuple(first + verdict for verdict in verdicts))
        for name, verdicts in TALLIES.items()
    )


FACET: ConnectionEntries[ThemisSpec] = ConnectionEntries(
    entries=_entries,
    limits=_limits,
    host_entries=cm_entries,
    clone_sessions=clone_sessions,
    tallies=_tallies,
    core=_core,
    queue_registers=_queue_registers,
)
