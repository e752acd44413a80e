"""The client that controls every target: the ``ControlPlane`` protocol over P4Runtime, by names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from typing_extensions import override

from p4gen.errors import InputError
from p4gen.model import MeterConfig
from p4gen.model.control import describe_match
from p4gen.model.control_plane import ControlPlane
from p4gen.model.entries import Action, CloneSession, CounterValue, Entry, MulticastGroup, Replica
from p4gen.p4rt import codec, p4data, wire
from p4gen.p4rt.schema import Schema, TableInfo
from p4gen.p4rt.session import Election, RequestError, Session
from p4gen.p4rt.status import Code
from p4gen.protos import p4runtime as pb
from p4gen.protos.p4runtime import P4Data

_INSERT, _MODIFY, _DELETE = pb.Update.INSERT, pb.Update.MODIFY, pb.Update.DELETE
_INDEX, _DATA = 2, 3
"""Numbers of fields of CounterEntry and RegisterEntry."""
_COOKIE_ONLY = pb.GetForwardingPipelineConfigRequest.COOKIE_ONLY
_VERBS = {_INSERT: "insert", _MODIFY: "modify", _DELETE: "delete"}


class Registers(Protocol):
    """Access to a switch's registers if its P4Runtime server has none (BMv2's)."""

    def registers(self, name: str) -> list[int]:
        """All cells of a register, as unsigned numbers."""
        ...

    def write(self, name: str, index: int, value: int) -> None:
        """Set a cell of a register."""


class Client(ControlPlane):
    """A primary controller of one switch. Names are those of the P4Info, or unique suffixes of them.

    Methods raise ``RequestError`` (a ``ControlError``) for what the switch refuses, naming the update, ``ControlError``
    for what does not fit the P4Info, and ``GoneError`` (a ``FailedError``) when the switch has ended. Use as a context
    manager, or call ``close``. For ``limit``, ``load_limit``, ``ended`` and ``heard`` see ``Session``.
    """

    def __init__(
        self,
        address: str,
        device_id: int = 1,
        *,
        election: Election | None = None,
        timeout: float = 10.0,
        registers: Registers | None = None,
        record: Path | None = None,
        limit: float | None = None,
        load_limit: float | None = None,
        ended: Callable[[], None] | None = None,
        refused: Callable[[], bool] | None = None,
        heard: Callable[[bytes], None] | None = None,
    ) -> None:
        self.session = Session(
            address,
            device_id,
            election,
            timeout,
            record,
            limit=limit,
            load_limit=load_limit,
            ended=ended,
            refused=refused,
            heard=heard,
        )
        self._config: Any = None
        self._schema: Schema | None = None
        self._registers = registers
        self._atomic = True
        self._arrays: dict[bytes, tuple[list[bytes], list[bytes]]] = {}
        """The last raw data of whole counters and registers, and the decoded cells: most do not change between two
        reads."""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection to the switch."""
        self.session.tear_down()

    # --- the pipeline ---

    def set_pipeline(self, p4info: Any, device_config: bytes, cookie: int | None = None) -> None:
        """Load a program, with a cookie for controllers that connect later. All state of the switch is lost."""
        if self.session.get_config() is not None:
            self._clear_replication()
        self._config = pb.ForwardingPipelineConfig(p4info=p4info, p4_device_config=device_config)
        if cookie is not None:
            self._config.cookie.cookie = cookie
        self._schema = Schema(p4info)
        self.session.set_config(self._config)

    def cookie(self) -> int | None:
        """The cookie of the loaded program; None when there is no program or it has no cookie."""
        config = self.session.get_config(_COOKIE_ONLY)
        return config.cookie.cookie if config is not None and config.HasField("cookie") else None

    def expect(self, schema: Schema) -> None:
        """Use this P4Info instead of asking the switch for it, which takes longer."""
        self._config, self._schema = None, schema

    @override
    def reset(self) -> None:
        """Load the same program again. Raises ``InputError`` when there is none."""
        if self._config is None:
            self._config = self.session.get_config()
        if self._config is None:
            raise InputError(f"the switch at {self.session.address} has no program yet")
        self._clear_replication()
        self.session.set_config(self._config)

    def _clear_replication(self) -> None:
        """Remove all multicast groups and clone sessions: BMv2 keeps their replicas when it loads a program."""
        wanted = pb.Entity(), pb.Entity()
        wanted[0].packet_replication_engine_entry.multicast_group_entry.SetInParent()
        wanted[1].packet_replication_engine_entry.clone_session_entry.SetInParent()
        found = [entity for kind in wanted for entity in self.session.read_all(kind)]
        if found:
            self.write(*(pb.Update(type=_DELETE, entity=entity) for entity in found))

    @property
    def schema(self) -> Schema:
        """The P4Info of the loaded program. Raises ``InputError`` when there is none."""
        if self._schema is None:
            self._config = self.session.get_config()
            if self._config is None:
                raise InputError(f"the switch at {self.session.address} has no program yet")
            self._schema = Schema(self._config.p4info)
        return self._schema

    # --- tables ---

    @override
    def insert(self, *entries: Entry) -> None:
        self._write_entries(_INSERT, entries)

    @override
    def modify(self, *entries: Entry) -> None:
        self._write_entries(_MODIFY, entries)

    @override
    def delete(self, *entries: Entry) -> None:
        self._write_entries(_DELETE, entries)

    @override
    def entries(self, table: str) -> list[Entry]:
        """All entries, in the order in which the switch gives them."""
        found = self.session.read_all(self._table_entity(self.schema.tables.named(table)))
        return [codec.decode_entry(self.schema, e.table_entry) for e in found]

    def default(self, table: str) -> Action:
        """The current default action of a table."""
        entity = self._table_entity(self.schema.tables.named(table))
        entity.table_entry.is_default_action = True
        (found,) = self.session.read_all(entity)
        return codec.decode_entry(self.schema, found.table_entry).action

    @override
    def set_default(self, table: str, action: Action | None) -> None:
        info = self.schema.tables.named(table)
        message = pb.TableEntry(table_id=info.id, is_default_action=True)
        if action is not None:
            message.action.CopyFrom(codec.encode_table_action(info, action))
        self.write(pb.Update(type=_MODIFY, entity=pb.Entity(table_entry=message)))

    def entry_counters(self, entries: Sequence[Entry]) -> list[tuple[Entry, int]]:
        """The packets counted by the direct counters of entries, in one request. All of them must exist."""
        entities = [pb.Entity() for _ in entries]
        for entity, entry in zip(entities, entries, strict=True):
            key = codec.encode_key(self.schema.tables.named(entry.table), entry)
            entity.direct_counter_entry.table_entry.CopyFrom(key)
        found = self.session.read_all(*entities) if entities else ()
        by_key = {
            _key_bytes(entity.direct_counter_entry.table_entry): entity.direct_counter_entry.data.packet_count
            for entity in found
        }
        keys = [_key_bytes(entity.direct_counter_entry.table_entry) for entity in entities]
        return [(entry, by_key[key]) for entry, key in zip(entries, keys, strict=True)]

    def entry_counter(self, entry: Entry) -> CounterValue:
        """The value of the table's direct counter for an entry."""
        entity = pb.Entity()
        entity.direct_counter_entry.table_entry.CopyFrom(codec.encode_key(self.schema.tables.named(entry.table), entry))
        (found,) = self.session.read_all(entity)
        return CounterValue(found.direct_counter_entry.data.packet_count, found.direct_counter_entry.data.byte_count)

    def _table_entity(self, table: TableInfo) -> Any:
        return pb.Entity(table_entry=pb.TableEntry(table_id=table.id))

    def _write_entries(self, kind: int, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        updates = []
        for entry in entries:
            table = self.schema.tables.named(entry.table)
            encode = codec.encode_key if kind == _DELETE else codec.encode_entry
            updates.append(pb.Update(type=kind, entity=pb.Entity(table_entry=encode(table, entry))))
        try:
            self._all_or_none(kind, updates, entries)
        except RequestError as error:
            raise _named(error, kind, entries) from None

    def _all_or_none(self, kind: int, updates: list[Any], entries: Sequence[Entry]) -> None:
        if len(updates) == 1:
            self.session.write_all(updates)
            return
        if self._atomic:
            try:
                self.session.write_all(updates, pb.WriteRequest.ROLLBACK_ON_ERROR)
                return
            except RequestError as error:
                if error.code is not Code.UNIMPLEMENTED or error.failures:
                    raise
                self._atomic = False  # BMv2's server does not support atomic batches
        before = {} if kind == _INSERT else self._read_entries(entries)
        try:
            self.session.write_all(updates)
        except RequestError as error:
            failed = {number for number, _, _ in error.failures}
            done = [entry for number, entry in enumerate(entries) if number not in failed]
            self._take_back(kind, done, before)
            raise

    def _read_entries(self, entries: Iterable[Entry]) -> dict[bytes, Any]:
        """The entries of all tables concerned, by key, as the switch holds them."""
        tables = {self.schema.tables.named(e.table).id for e in entries}
        held = {}
        for table in tables:
            for found in self.session.read_all(self._table_entity(self.schema.tables[table])):
                held[_key_bytes(found.table_entry)] = found
        return held

    def _take_back(self, kind: int, done: Iterable[Entry], before: Mapping[bytes, Any]) -> None:
        back = {_INSERT: _DELETE, _MODIFY: _MODIFY, _DELETE: _INSERT}[kind]
        updates = []
        for entry in done:
            key = codec.encode_key(self.schema.tables.named(entry.table), entry)
            entity = pb.Entity(table_entry=key) if kind == _INSERT else before[_key_bytes(key)]
            updates.append(pb.Update(type=back, entity=entity))
        if updates:
            self.session.write_all(updates)

    # --- packet replication ---

    @override
    def set_multicast_group(self, group: MulticastGroup) -> None:
        entity = pb.Entity()
        message = entity.packet_replication_engine_entry.multicast_group_entry
        message.multicast_group_id = group.group_id
        self._replicate(entity, message, group.replicas)

    @override
    def set_clone_session(self, session: CloneSession) -> None:
        entity = pb.Entity()
        message = entity.packet_replication_engine_entry.clone_session_entry
        message.session_id, message.packet_length_bytes = session.session_id, session.packet_length
        self._replicate(entity, message, session.replicas)

    def _replicate(self, entity: Any, message: Any, replicas: Iterable[Replica]) -> None:
        exists = self._exists(entity)
        for replica in replicas:
            # egress_port is deprecated, but the one that BMv2's server knows.
            message.replicas.add(egress_port=replica.port, instance=replica.rid)
        if message.replicas:
            self.write(pb.Update(type=_MODIFY if exists else _INSERT, entity=entity))
        elif exists:
            self.write(pb.Update(type=_DELETE, entity=entity))

    def _exists(self, entity: Any) -> bool:
        try:
            return any(self.session.read_all(entity))
        except RequestError as error:
            if error.code is Code.NOT_FOUND:  # BMv2's server answers so
                return False
            raise

    # --- action profiles ---

    def set_member(self, profile: str, member: int, action: Action) -> None:
        """Create or replace a member of an action profile."""
        info = self.schema.profiles.named(profile)
        table = self.schema.profile_table(info)
        message = pb.ActionProfileMember(action_profile_id=info.id, member_id=member)
        entity = pb.Entity(action_profile_member=message)
        exists = self._exists(entity)
        entity.action_profile_member.action.CopyFrom(codec.encode_table_action(table, action).action)
        self.write(pb.Update(type=_MODIFY if exists else _INSERT, entity=entity))

    def set_group(self, profile: str, group: int, weights: Mapping[int, int], max_size: int = 0) -> None:
        """Create or replace a group of an action selector: the weights of its members, by member id."""
        info = self.schema.profiles.named(profile)
        entity = pb.Entity()
        message = entity.action_profile_group
        message.action_profile_id, message.group_id = info.id, group
        exists = self._exists(entity)
        message.max_size = max_size or info.max_group_size
        for member, weight in weights.items():
            message.members.add(member_id=member, weight=weight)
        self.write(pb.Update(type=_MODIFY if exists else _INSERT, entity=entity))

    # --- counters, meters, registers ---

    @override
    def counter(self, name: str, index: int = 0) -> CounterValue:
        entity = pb.Entity()
        entity.counter_entry.counter_id = self.schema.counters.named(name).id
        entity.counter_entry.index.index = index
        (found,) = self.session.read_all(entity)
        return CounterValue(found.counter_entry.data.packet_count, found.counter_entry.data.byte_count)

    @override
    def counters(self, name: str) -> list[CounterValue]:
        info = self.schema.counters.named(name)
        cells = self._array(pb.Entity(counter_entry=pb.CounterEntry(counter_id=info.id)), info.size)
        return [CounterValue(_number(cell, 2), _number(cell, 1)) for cell in cells]

    def cells(self, wanted: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The packets counted by cells of indexed counters, by name and index, in one request."""
        named = {(self.schema.counters.named(name).id, index): (name, index) for name, index in wanted}
        entities = [
            pb.Entity(counter_entry=pb.CounterEntry(counter_id=number, index=pb.Index(index=index)))
            for number, index in named
        ]
        found = self.session.read_all(*entities) if entities else ()
        entries = [entity.counter_entry for entity in found]
        return {named[entry.counter_id, entry.index.index]: entry.data.packet_count for entry in entries}

    def set_meter(self, name: str, index: int | None, config: MeterConfig | None) -> None:
        """Configure one cell of an indexed meter, or with ``index`` None all of them."""
        message = pb.MeterEntry(meter_id=self.schema.meters.named(name).id)
        if index is not None:
            message.index.index = index
        if config is not None:
            message.config.cir, message.config.cburst = config.cir, config.cburst
            message.config.pir, message.config.pburst = config.pir, config.pburst
        self.write(pb.Update(type=_MODIFY, entity=pb.Entity(meter_entry=message)))

    @override
    def register(self, name: str, index: int) -> int:
        return self.registers(name)[index]

    @override
    def registers(self, name: str) -> list[int]:
        info = self.schema.registers.named(name)
        if self._registers is not None:
            return self._registers.registers(info.name)
        signed = info.element.bitstring.int.bitwidth
        cells = self._array(pb.Entity(register_entry=pb.RegisterEntry(register_id=info.id)), info.size)
        types = self.schema.info.type_info
        if len(p4data.widths(info.element, types)) > 1:
            known = {cell: p4data.number_of(info.element, types, P4Data.FromString(cell)) for cell in set(cells)}
            return [known[cell] for cell in cells]
        return [_register(cell, signed) for cell in cells]

    @override
    def write_register(self, name: str, index: int, value: int) -> None:
        info = self.schema.registers.named(name)
        if self._registers is not None:
            self._registers.write(info.name, index, value)
            return
        types = self.schema.info.type_info
        leaves = p4data.scalars(value, p4data.widths(info.element, types))
        message = pb.RegisterEntry(register_id=info.id, data=p4data.encode(info.element, types, leaves))
        message.index.index = index
        self.write(pb.Update(type=_MODIFY, entity=pb.Entity(register_entry=message)))

    def _array(self, entity: Any, size: int) -> list[bytes]:
        """The encoded data of all cells of a counter or register, which are too many for protobuf's decoder."""
        responses = self.session.read_bytes(entity)
        name = entity.SerializeToString()
        known = self._arrays.get(name)
        if known is not None and known[0] == responses:
            return known[1]
        cells = [b""] * size
        for response in responses:
            for _, found in wire.fields(response):
                assert isinstance(found, bytes)
                ((_, entry),) = wire.fields(found)
                assert isinstance(entry, bytes)
                index, data = 0, b""
                for number, value in wire.fields(entry):
                    if number == _INDEX and isinstance(value, bytes):
                        index = _number(value, 1)
                    elif number == _DATA and isinstance(value, bytes):
                        data = value
                cells[index] = data
        self._arrays[name] = (responses, cells)
        return cells

    # --- the stream ---

    def packet_out(self, payload: bytes, **metadata: int) -> None:
        """Send a packet through the switch; ``metadata`` are the fields of its packet_out header."""
        request = pb.StreamMessageRequest()
        request.packet.payload = payload
        for field in self.schema.packet_out or ():
            what = f"packet_out: metadata {field.name}"
            if field.name not in metadata:
                raise InputError(f"{what} is missing")
            request.packet.metadata.add(metadata_id=field.id, value=field.encode(metadata[field.name], what))
        self.session.stream_out_q.put(request)

    def packet_in(self, timeout: float = 1.0) -> tuple[bytes, dict[str, int]] | None:
        """The next packet from the switch and its packet_in header; None if none arrives within ``timeout`` seconds."""
        message = self.session.get_stream_packet("packet", timeout)
        if message is None:
            return None
        fields = {f.id: f for f in self.schema.packet_in or ()}
        given = ((fields[m.metadata_id], m.value) for m in message.packet.metadata)
        return message.packet.payload, {f.name: f.decode(value, f"packet-in metadata {f.name}") for f, value in given}

    # --- updates of any kind ---

    def write(self, *updates: Any) -> None:
        """Write updates in one batch; the switch tries each of them."""
        self.session.write_all(list(updates))


def _number(message: bytes, field: int) -> int:
    """An integer field of a message on the wire."""
    for number, value in wire.fields(message):
        if number == field and isinstance(value, int):
            return value
    return 0


def _register(cell: bytes, signed: int) -> int:
    """A register's P4Data as an unsigned number; ``signed`` is the width of a signed one, which comes sign-extended."""
    for _, value in wire.fields(cell):
        if isinstance(value, int):
            return value  # a bool
        if signed:
            return int.from_bytes(value, signed=True) & (1 << signed) - 1
        return int.from_bytes(value)
    return 0


def _key_bytes(message: Any) -> bytes:
    key = pb.TableEntry(table_id=message.table_id, priority=message.priority)
    key.match.extend(sorted(message.match, key=lambda m: m.field_id))
    return bytes(key.SerializeToString(deterministic=True))


def _named(error: RequestError, kind: int, entries: Sequence[Entry]) -> RequestError:
    """The error, with each failing update's table and match instead of its index."""
    if not error.failures:
        return error
    lines = [
        f"{_VERBS[kind]} {number + 1} of {len(entries)}, table {entries[number].table} "
        f"[{describe_match(entries[number])}]: {code.name}: {message}"
        for number, code, message in error.failures
        if code is not Code.ABORTED
    ]
    return RequestError(*lines, code=error.code, failures=error.failures)
