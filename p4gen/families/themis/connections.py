"""The entries of a leaf switch for connections between its hosts and those of other racks."""

from __future__ import annotations

from collections.abc import Sequence

from p4gen.errors import InputError
from p4gen.families.themis.control import (
    Connection,
    PathSet,
    Peer,
    clone_sessions,
    filter_entries,
    path_set_entries,
    spray_entry,
)
from p4gen.families.themis.spec import ThemisSpec
from p4gen.groups.connections import ConnectionEntries, ConnectionHere
from p4gen.model.entries import Entry


def _entries(spec: ThemisSpec, connections: Sequence[ConnectionHere]) -> tuple[Entry, ...]:
    """A path set for each number of paths; indices of state in the order of the connections."""
    if not spec.by_psn:
        return ()
    if spec.tiers > 2:
        raise InputError("tiers 3 needs a PathMap for the fabric's hashes; routes are made for tiers 2")
    counts = sorted({here.paths for here in connections})
    if len(counts) > spec.path_sets:
        raise InputError(f"{len(counts)} path sets are needed; the program has {spec.path_sets} (path_sets)")
    sets = {count: PathSet.equal(number, count) for number, count in enumerate(counts)}
    found = [entry for paths in sets.values() for entry in path_set_entries(spec, paths)]
    index = 0
    for here in connections:
        placed = here.connection
        connection = Connection(
            Peer(placed.source.ip, placed.source.qp),
            Peer(placed.destination.ip, placed.destination.qp),
            placed.answer_port,
            placed.answer_tos,
        )
        path_set = sets[here.paths].number
        if here.source_port is not None and spec.sprays:
            found.append(spray_entry(connection, path_set))
        if here.destination_port is not None and spec.filters:
            if index == spec.connections:
                raise InputError(
                    f"more connections end at this switch than its program holds: {spec.connections} (connections)"
                )
            found += filter_entries(connection, path_set, index=index, epoch=1, port=here.destination_port)
            index += 1
    return tuple(found)


def _queue_registers(spec: ThemisSpec) -> tuple[str, ...]:
    return tuple(f"spray_path.queue_{hop}.length" for hop in range(spec.paths))


FACET = ConnectionEntries(entries=_entries, clone_sessions=clone_sessions, queue_registers=_queue_registers)
