"""The Read RPC (section 13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from p4gen.p4rt import wire
from p4gen.p4rt.server import arrays, digests, profiles, replication, tables
from p4gen.p4rt.server.pipeline import Pipeline
from p4gen.p4rt.status import invalid, unimplemented

CHUNK_BYTES = 1 << 20
"""Size of one ReadResponse in bytes; gRPC's clients accept up to 4 MiB by default."""

# Readers yield Entity messages, or bytes: fields of a ReadResponse with any number of entities.
_READERS: dict[str, Callable[[Pipeline, Any], Iterator[Any]]] = {
    "table_entry": tables.read,
    "direct_counter_entry": tables.read_counters,
    "direct_meter_entry": tables.read_meters,
    "action_profile_member": profiles.read_members,
    "action_profile_group": profiles.read_groups,
    "packet_replication_engine_entry": replication.read,
    "counter_entry": arrays.read_counters,
    "meter_entry": arrays.read_meters,
    "register_entry": arrays.read_registers,
    "value_set_entry": arrays.read_value_sets,
    "digest_entry": digests.read,
}


def read(pipeline: Pipeline, entities: Any) -> list[bytes]:
    """The encoded ReadResponses with everything that ``entities`` select, from one point in time. Raises
    ``StatusError``."""
    chunks: list[bytes] = []
    chunk: list[bytes] = []
    size = 0
    with pipeline.lock:
        for entity in entities:
            for found in _read(pipeline, entity):
                data = found if isinstance(found, bytes) else wire.blob(1, found.SerializeToString())
                chunk.append(data)
                size += len(data)
                if size > CHUNK_BYTES:
                    chunks.append(b"".join(chunk))
                    chunk, size = [], 0
    return [*chunks, b"".join(chunk)] if chunk else chunks


def _read(pipeline: Pipeline, entity: Any) -> Iterator[Any]:
    kind = entity.WhichOneof("entity")
    if kind is None:
        raise invalid("an entity to read is not specified")
    reader = _READERS.get(kind)
    if reader is None:
        raise unimplemented(f"{kind}: this target has no such entities")
    return reader(pipeline, getattr(entity, kind))
