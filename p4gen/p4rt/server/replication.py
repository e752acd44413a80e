"""Multicast groups and clone sessions (section 9.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from p4gen.model.entries import CloneSession, MulticastGroup, Replica
from p4gen.model.errors import ControlError
from p4gen.p4rt import bytestrings
from p4gen.p4rt.server.pipeline import Pipeline
from p4gen.p4rt.status import Code, StatusError, invalid, not_found
from p4gen.protos import p4runtime as pb

Undo = Callable[[], None]
INSERT, MODIFY, DELETE = pb.Update.INSERT, pb.Update.MODIFY, pb.Update.DELETE


def write(pipeline: Pipeline, kind: int, message: Any) -> Undo:
    """Carry out an update of a PacketReplicationEngineEntry."""
    match message.WhichOneof("type"):
        case "multicast_group_entry":
            entry = message.multicast_group_entry
            return _write(pipeline, kind, "multicast group", entry.multicast_group_id, entry)
        case "clone_session_entry":
            entry = message.clone_session_entry
            return _write(pipeline, kind, "clone session", entry.session_id, entry)
    raise invalid("a packet replication engine entry is a multicast group or a clone session")


def _write(pipeline: Pipeline, kind: int, what: str, number: int, message: Any) -> Undo:
    store = _store(pipeline, what)
    if number == 0:
        raise invalid(f"{what}: its id must not be 0")
    before = store.get(number)
    if kind == INSERT and before is not None:
        raise StatusError(Code.ALREADY_EXISTS, f"{what} {number} already exists")
    if kind in (MODIFY, DELETE) and before is None:
        raise not_found(f"{what} {number} does not exist")
    _put(pipeline, what, number, None if kind == DELETE else message)
    return lambda: _put(pipeline, what, number, before)


def _store(pipeline: Pipeline, what: str) -> dict[int, Any]:
    return pipeline.multicast if what == "multicast group" else pipeline.clones


def _put(pipeline: Pipeline, what: str, number: int, message: Any) -> None:
    replicas = () if message is None else tuple(_replica(f"{what} {number}", r) for r in message.replicas)
    store = _store(pipeline, what)
    try:
        if what == "multicast group":
            pipeline.backend.set_multicast_group(MulticastGroup(number, replicas))
        else:
            keep = 0 if message is None else message.packet_length_bytes
            pipeline.backend.set_clone_session(CloneSession(number, replicas, keep))
    except ControlError as error:
        raise invalid(error.diagnostics[0].message) from None
    if message is None:
        store.pop(number, None)
    else:
        kept = type(message)()
        kept.CopyFrom(message)
        store[number] = kept


def _replica(where: str, message: Any) -> Replica:
    kind = message.WhichOneof("port_kind")
    if kind is None:
        raise invalid(f"{where}: a replica has no port")
    if kind == "egress_port":
        return Replica(message.egress_port, message.instance)
    port = bytestrings.decode(message.port, 0, f"{where}: port", Code.INVALID_ARGUMENT)
    return Replica(port, message.instance)


def read(pipeline: Pipeline, message: Any) -> Iterator[Any]:
    """The groups or sessions that a request selects; id 0 is for all of them."""
    match message.WhichOneof("type"):
        case "multicast_group_entry":
            for found in _chosen(pipeline.multicast, message.multicast_group_entry.multicast_group_id):
                entity = pb.Entity()
                entity.packet_replication_engine_entry.multicast_group_entry.CopyFrom(found)
                yield entity
        case "clone_session_entry":
            for found in _chosen(pipeline.clones, message.clone_session_entry.session_id):
                entity = pb.Entity()
                entity.packet_replication_engine_entry.clone_session_entry.CopyFrom(found)
                yield entity
        case _:
            raise invalid("a packet replication engine entry is a multicast group or a clone session")


def _chosen(store: dict[int, Any], number: int) -> list[Any]:
    if number == 0:
        return list(store.values())
    return [store[number]] if number in store else []
