"""The configuration of a switch as a mapping of bytes, for handling thousands of entries at a time.

Table entries, multicast groups and clone sessions are pairs of a key and a value in P4Runtime's canonical form: two
objects are the same exactly if their bytes are. Protobuf's Python implementation takes a third of a millisecond for an
entry; this takes some twenty microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from p4gen.model.control import describe_match
from p4gen.model.entries import CloneSession, Entry, Exact, Lpm, MulticastGroup, Replica
from p4gen.p4rt import bytestrings, codec, wire
from p4gen.p4rt.schema import Field, Schema, TableInfo
from p4gen.protos import p4runtime as pb

Key = tuple[int, bytes]
"""The identity of an object: its kind (a table's id, ``MULTICAST`` or ``CLONE``) and the identifying fields of its
message on the wire."""
Held = dict[Key, bytes]
"""Objects by key. The values are the other fields of their messages."""

MULTICAST, CLONE = -1, -2
"""Negative numbers of the fields of PacketReplicationEngineEntry."""
_TABLE, _REPLICATION = 2, 9
"""Fields of Entity; then those of TableEntry and of TableAction, Action, and Action.Param."""
_TABLE_ID, _MATCH, _ACTION, _PRIORITY, _IS_DEFAULT, _IS_CONST = 1, 2, 3, 4, 8, 13
_DIRECT = 1
_ACTION_ID, _PARAMS = 1, 4
_PARAM_ID, _PARAM_VALUE = 2, 3
_EXACT, _LPM = 2, 4
_REPLICA, _PACKET_LENGTH = 2, 4
_PORT, _INSTANCE, _NEW_PORT = 1, 2, 3
_PORT_0 = bytes([_PORT << 3, 0])

EVERYTHING = (
    wire.blob(_TABLE, b""),
    wire.blob(_REPLICATION, wire.blob(-MULTICAST, b"")),
    wire.blob(_REPLICATION, wire.blob(-CLONE, b"")),
)
"""Entities that read all table entries, all multicast groups and all clone sessions."""


def entity(key: Key, value: bytes = b"") -> bytes:
    """An object as an Entity; without its value, an Entity that reads or deletes it."""
    kind, inner = key
    if kind > 0:
        return wire.blob(_TABLE, inner + value)
    return wire.blob(_REPLICATION, wire.blob(-kind, inner + value))


# --- to bytes ---


class Encoder:
    """Encodes objects for a P4Info. Raises ``ControlError`` for what does not fit."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._tables: dict[str, _Table] = {}

    def entry(self, entry: Entry) -> tuple[Key, bytes]:
        """Encode a table entry. The most common kinds of match and action are encoded here, the others by protobuf."""
        table = self._tables.get(entry.table)
        if table is None:
            table = self._tables[entry.table] = _Table(self._schema.tables.named(entry.table))
        match = table.match(entry)
        action = table.action(entry)
        if match is None or action is None or entry.priority:
            message = codec.encode_entry(table.info, entry)
            ((key, value),) = decode([wire.blob(1, wire.blob(_TABLE, message.SerializeToString()))], ())
            return key, value
        return (table.info.id, table.prefix + match), action


class _Table:
    """A table, with the encoded beginnings of its keys' and actions' fields."""

    def __init__(self, info: TableInfo) -> None:
        self.info = info
        self.prefix = wire.number(_TABLE_ID, info.id)
        self._keys: dict[str, Field | None] = {}
        self._actions: dict[str, tuple[bytes, dict[str, tuple[bytes, int]]]] = {}

    def match(self, entry: Entry) -> bytes | None:
        """The match fields in the order of their ids; None if protobuf has to encode them, or they have errors."""
        found: list[tuple[int, bytes]] = []
        for name, match in entry.match.items():
            if name not in self._keys:
                # Protobuf's path reports wrong names.
                fields = [k for k in self.info.keys if k.name == name or k.name.endswith("." + name)]
                self._keys[name] = fields[0] if len(fields) == 1 else None
            key = self._keys[name]
            value = match if isinstance(match, int) else match.value if isinstance(match, Exact | Lpm) else -1
            if key is None or key.strings is not None or value < 0 or value >> key.width:
                return None
            data = wire.blob(1, bytestrings.encode(value))
            if key.kind == "exact" and not isinstance(match, Lpm):
                data = wire.blob(_EXACT, data)
            elif key.kind == "lpm" and isinstance(match, Lpm) and 0 < match.prefix_len <= key.width:
                data = wire.blob(_LPM, data + wire.number(2, match.prefix_len))
            else:
                return None
            found.append((key.id, wire.blob(_MATCH, wire.number(1, key.id) + data)))
        found.sort()
        return b"".join([data for _, data in found])

    def action(self, entry: Entry) -> bytes | None:
        """The action with its parameters in the order of their ids; None if protobuf has to encode it."""
        action = entry.action
        known = self._actions.get(action.name)
        if known is None:
            uses = [u.action for u in self.info.actions]
            found = [a for a in uses if a.name == action.name] or [
                a for a in uses if a.name.endswith("." + action.name)
            ]
            if self.info.profile_id or len(found) != 1 or any(p.strings for p in found[0].params):
                return None
            params = {p.name: (wire.number(_PARAM_ID, p.id), p.full) for p in found[0].params}
            known = self._actions[action.name] = (wire.number(_ACTION_ID, found[0].id), params)
        parts, params = [known[0]], known[1]
        if len(action.args) != len(params):
            return None
        for name, (prefix, full) in params.items():
            value = action.args.get(name, -1)
            if not 0 <= value <= full:
                return None
            parts.append(wire.blob(_PARAMS, prefix + wire.blob(_PARAM_VALUE, bytestrings.encode(value))))
        return wire.blob(_ACTION, wire.blob(_DIRECT, b"".join(parts)))


def multicast_group(group: MulticastGroup) -> tuple[Key, bytes]:
    """Key and value of a multicast group."""
    return (MULTICAST, wire.number(1, group.group_id)), _replicas((r.port, r.rid) for r in group.replicas)


def clone_session(session: CloneSession) -> tuple[Key, bytes]:
    """Key and value of a clone session."""
    value = _replicas((r.port, r.rid) for r in session.replicas)
    return (CLONE, wire.number(1, session.session_id)), value + wire.number(_PACKET_LENGTH, session.packet_length)


def _replicas(replicas: Iterable[tuple[int, int]]) -> bytes:
    # egress_port is deprecated, but the one that BMv2's server knows; as one of several kinds of port it is there even
    # if it is 0.
    return b"".join(
        [
            wire.blob(_REPLICA, (wire.number(_PORT, port) or _PORT_0) + wire.number(_INSTANCE, rid))
            for port, rid in sorted(replicas)
        ]
    )


# --- from bytes ---


def decode(responses: Iterable[bytes], const_tables: Iterable[int]) -> Iterator[tuple[Key, bytes]]:
    """The objects in ReadResponses, in canonical form, without constant and default entries and those of
    ``const_tables``, which a controller cannot write."""
    skipped = frozenset(const_tables)
    for response in responses:
        for _, found in wire.fields(response):
            assert isinstance(found, bytes)
            for number, message in wire.fields(found):
                assert isinstance(message, bytes)
                if number == _TABLE:
                    decoded = _entry(message)
                    if decoded is not None and decoded[0][0] not in skipped:
                        yield decoded
                elif number == _REPLICATION:
                    ((kind, inner),) = wire.fields(message)
                    assert isinstance(inner, bytes)
                    yield _replicated(-kind, inner)


def _entry(message: bytes) -> tuple[Key, bytes] | None:
    table = priority = 0
    matches: list[tuple[int, bytes]] = []
    action = b""
    for number, value in wire.fields(message):
        if isinstance(value, bytes):
            if number == _MATCH:
                matches.append(_match(value))
            elif number == _ACTION:
                action = _action(value)
        elif number == _TABLE_ID:
            table = value
        elif number == _PRIORITY:
            priority = value
        elif number in (_IS_DEFAULT, _IS_CONST) and value:
            return None
    matches.sort()
    key = [wire.number(_TABLE_ID, table), *(data for _, data in matches), wire.number(_PRIORITY, priority)]
    return (table, b"".join(key)), action


@lru_cache(maxsize=1 << 16)
def _match(message: bytes) -> tuple[int, bytes]:
    """A FieldMatch: its field's id, and the field of TableEntry that it makes in canonical form."""
    field, kinds = 0, b""
    for number, value in wire.fields(message):
        if isinstance(value, int):
            field = value
        else:
            kinds = wire.blob(number, b"".join([_canonical(n, v) for n, v in wire.fields(value)]))
    return field, wire.blob(_MATCH, wire.number(1, field) + kinds)


@lru_cache(maxsize=1 << 16)
def _action(message: bytes) -> bytes:
    """A TableAction as the field of TableEntry that it makes in canonical form."""
    ((kind, value),) = wire.fields(message)
    if kind != _DIRECT or not isinstance(value, bytes):
        return wire.blob(_ACTION, message)
    action, params = 0, []
    for _, found in wire.fields(value):
        if isinstance(found, int):
            action = found
        else:
            param, data = 0, b"\0"
            for _, part in wire.fields(found):
                if isinstance(part, int):
                    param = part
                else:
                    data = part
            params.append((param, wire.number(_PARAM_ID, param) + _canonical(_PARAM_VALUE, data)))
    params.sort()
    inner = wire.number(_ACTION_ID, action) + b"".join([wire.blob(_PARAMS, data) for _, data in params])
    return wire.blob(_ACTION, wire.blob(_DIRECT, inner))


def _canonical(number: int, value: int | bytes) -> bytes:
    """A field that is an integer, or one as a binary string, which gets no leading zeros."""
    if isinstance(value, int):
        return wire.number(number, value)
    return wire.blob(number, value.lstrip(b"\0") or b"\0")


def _replicated(kind: int, message: bytes) -> tuple[Key, bytes]:
    name = length = 0
    replicas = []
    for number, value in wire.fields(message):
        if isinstance(value, int):
            if number == 1:
                name = value
            elif number == _PACKET_LENGTH:
                length = value
        elif number == _REPLICA:
            replicas.append(_replica(value))
    value = _replicas(replicas)
    return (kind, wire.number(1, name)), value + (wire.number(_PACKET_LENGTH, length) if kind == CLONE else b"")


def _replica(message: bytes) -> tuple[int, int]:
    port = rid = 0
    for number, value in wire.fields(message):
        if number == _NEW_PORT and isinstance(value, bytes):
            port = int.from_bytes(value)
        elif number == _PORT and isinstance(value, int):
            port = value
        elif number == _INSTANCE and isinstance(value, int):
            rid = value
    return port, rid


# --- to objects and text ---


def to_entry(schema: Schema, key: Key, value: bytes) -> Entry:
    """A table entry, with full names."""
    return codec.decode_entry(schema, pb.TableEntry.FromString(key[1] + value))


def to_multicast_group(key: Key, value: bytes) -> MulticastGroup:
    """The multicast group that ``multicast_group`` has encoded."""
    return MulticastGroup(_number(key[1]), _to_replicas(value))


def to_clone_session(key: Key, value: bytes) -> CloneSession:
    """The clone session that ``clone_session`` has encoded."""
    length = next((n for field, n in wire.fields(value) if field == _PACKET_LENGTH and isinstance(n, int)), 0)
    return CloneSession(_number(key[1]), _to_replicas(value), length)


def _to_replicas(value: bytes) -> tuple[Replica, ...]:
    return tuple(Replica(*_replica(r)) for _, r in wire.fields(value) if isinstance(r, bytes))


def describe(schema: Schema, key: Key) -> str:
    """A key as text: the table and its match, or the number of the group or session."""
    kind, inner = key
    if kind > 0:
        entry = to_entry(schema, key, b"")
        return f"table {entry.table} [{describe_match(entry)}]"
    return f"{'multicast group' if kind == MULTICAST else 'clone session'} {_number(inner)}"


def _number(inner: bytes) -> int:
    """The number in the key of a multicast group or a clone session."""
    return next((n for _, n in wire.fields(inner) if isinstance(n, int)), 0)


def differences(held: Mapping[Key, bytes], wanted: Mapping[Key, bytes]) -> tuple[list[Key], list[Key], list[Key]]:
    """The keys to delete, modify and insert in order to turn ``held`` into ``wanted``."""
    deleted = [key for key in held if key not in wanted]
    modified = [key for key, value in wanted.items() if key in held and held[key] != value]
    inserted = [key for key in wanted if key not in held]
    return deleted, modified, inserted
