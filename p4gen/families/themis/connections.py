"""The entries of a leaf switch for connections between its hosts and those of other racks."""

from __future__ import annotations

from collections.abc import Sequence

from p4gen.errors import InputError
from p4gen.families.themis.control import (
    Connection,
    PathSet,
    Peer,
    clone_sessions,
    cm_entries,
    filter_entries,
    path_set_entries,
    spray_entry,
)
from p4gen.families.themis.spec import Spread, ThemisSpec
from p4gen.groups.connections import ConnectionEntries, ConnectionHere, ConnectionLimits
from p4gen.model.entries import Entry


def _entries(spec: ThemisSpec, connections: Sequence[ConnectionHere]) -> tuple[Entry, ...]:
    if not spec.by_psn:
        return ()
    if spec.tiers > 2:
        raise InputError("tiers 3 needs a PathMap for the fabric's hashes; routes are made for tiers 2")
    sets = sorted({(here.path_set, here.paths) for here in connections})
    found = [entry for number, paths in sets for entry in path_set_entries(spec, PathSet.equal(number, paths))]
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
            found.append(spray_entry(connection, here.path_set))
        port = here.destination_port
        if port is not None and spec.filters:
            if here.index >= spec.connections:
                raise InputError(
                    f"more connections end at this switch than its program holds: {spec.connections} (connections)"
                )
            answers, data = filter_entries(connection, here.path_set, index=here.index, epoch=here.epoch, port=port)
            found += [answers, data] if here.filtered else [data]  # without its entry an answer passes
    return tuple(found)


def _limits(spec: ThemisSpec) -> ConnectionLimits:
    """A program that sprays by PSN but does not filter (``psn``) has no state, and as many connections."""
    ends = spec.filters or spec.spread is Spread.PSN
    return ConnectionLimits(spec.connections * spec.sprays, spec.connections * ends, spec.path_sets)


def _queue_registers(spec: ThemisSpec) -> tuple[str, ...]:
    return tuple(f"spray_path.queue_{hop}.length" for hop in range(spec.paths))


FACET = ConnectionEntries(
    entries=_entries,
    limits=_limits,
    host_entries=cm_entries,
    clone_sessions=clone_sessions,
    queue_registers=_queue_registers,
)
