"""Writing and reading table entries, default entries, and direct counters and meters (sections 9.1, 9.3.1, 9.4.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from p4gen.model import MeterConfig
from p4gen.model.entries import Action, CounterValue, Entry, Indirect
from p4gen.p4rt import codec
from p4gen.p4rt.schema import TableInfo
from p4gen.p4rt.server.pipeline import Pipeline, Stored, key_of
from p4gen.p4rt.server.profiles import check_ports
from p4gen.p4rt.status import Code, StatusError, invalid, not_found, unimplemented
from p4gen.protos import p4runtime as pb

Undo = Callable[[], None]
INSERT, MODIFY, DELETE = pb.Update.INSERT, pb.Update.MODIFY, pb.Update.DELETE


def write(pipeline: Pipeline, kind: int, message: Any) -> Undo:
    """Carry out an update of a TableEntry. The result undoes it."""
    table = pipeline.schema.tables.known(message.table_id)
    if message.is_const:
        raise invalid(f"table {table.name}: is_const must not be set in an update")
    if message.is_default_action:
        return _write_default(pipeline, table, kind, message)
    entry = codec.decode_key(table, message)
    if kind == DELETE:
        return _delete(pipeline, table, entry)
    _check_timeout(table, message)
    if kind == INSERT:
        return _insert(pipeline, table, entry, message)
    return _modify(pipeline, table, entry, message)


def _insert(pipeline: Pipeline, table: TableInfo, key: Entry, message: Any) -> Undo:
    _check_mutable(table)
    if not table.keys:
        raise invalid(f"table {table.name}: it has no key, so it has no entries but the default one")
    if not message.HasField("action"):
        raise invalid(f"table {table.name}: an inserted entry needs an action")
    entry = _with_action(pipeline, table, key, message)
    entries = pipeline.tables[table.id]
    if key_of(entry) in entries:
        raise StatusError(Code.ALREADY_EXISTS, f"table {table.name}: there is already an entry with this match")
    if table.size and len(entries) >= table.size:
        raise StatusError(Code.RESOURCE_EXHAUSTED, f"table {table.name}: full, it has room for {table.size} entries")
    meter = _direct_resources(table, message)
    pipeline.backend.insert(entry)
    stored = pipeline.store(table, entry, _stored_entry(table, entry, message))
    pipeline.timed += bool(message.idle_timeout_ns)
    _apply_resources(pipeline, table, entry, message, meter)
    return lambda: _forget(pipeline, table, stored)


def _modify(pipeline: Pipeline, table: TableInfo, key: Entry, message: Any) -> Undo:
    stored = pipeline.tables[table.id].get(key_of(key))
    if (stored is not None and stored.const) or table.is_const:
        if message.HasField("action"):
            raise StatusError(Code.PERMISSION_DENIED, f"table {table.name}: the actions of its entries are const")
        if not (message.HasField("counter_data") or message.HasField("meter_config")):
            raise StatusError(Code.PERMISSION_DENIED, f"table {table.name}: its entries are const")
    if stored is None:
        raise not_found(f"table {table.name}: there is no entry with this match")
    entry = stored.entry
    if message.HasField("action"):
        entry = _with_action(pipeline, table, key, message)
    meter = _direct_resources(table, message)
    before = _resources(pipeline, table, stored.entry)
    if entry is not stored.entry:
        pipeline.backend.modify(entry)
    old_entry, old_message = stored.entry, stored.message
    stored.entry = entry
    if not stored.const:
        kept = _stored_entry(table, entry, message)
        if not message.HasField("action"):
            kept.action.CopyFrom(old_message.action)
        stored.message = kept
        pipeline.timed += bool(kept.idle_timeout_ns) - bool(old_message.idle_timeout_ns)
    _apply_resources(pipeline, table, entry, message, meter)

    def undo() -> None:
        if old_entry is not entry:
            pipeline.backend.modify(old_entry)
        pipeline.timed += bool(old_message.idle_timeout_ns) - bool(stored.message.idle_timeout_ns)
        stored.entry, stored.message = old_entry, old_message
        _restore_resources(pipeline, table, old_entry, before)

    return undo


def _delete(pipeline: Pipeline, table: TableInfo, key: Entry) -> Undo:
    _check_mutable(table)
    stored = pipeline.tables[table.id].get(key_of(key))
    if stored is None:
        raise not_found(f"table {table.name}: there is no entry with this match")
    if stored.const:
        raise StatusError(Code.PERMISSION_DENIED, f"table {table.name}: the entry is const")
    before = _resources(pipeline, table, stored.entry)
    _forget(pipeline, table, stored)

    def undo() -> None:
        pipeline.backend.insert(stored.entry)
        pipeline.tables[table.id][key_of(stored.entry)] = stored
        pipeline.timed += bool(stored.message.idle_timeout_ns)
        _restore_resources(pipeline, table, stored.entry, before)

    return undo


def _forget(pipeline: Pipeline, table: TableInfo, stored: Stored) -> None:
    pipeline.backend.delete(stored.entry)
    del pipeline.tables[table.id][key_of(stored.entry)]
    pipeline.timed -= bool(stored.message.idle_timeout_ns)


def _check_mutable(table: TableInfo) -> None:
    if table.is_const:
        raise StatusError(Code.PERMISSION_DENIED, f"table {table.name}: its entries are const")


def _with_action(pipeline: Pipeline, table: TableInfo, key: Entry, message: Any) -> Entry:
    action = codec.decode_table_action(pipeline.schema, table, message.action)
    if isinstance(action, Indirect):
        if action.member is not None and action.member not in pipeline.members[table.profile_id]:
            raise not_found(f"table {table.name}: there is no member {action.member}")
        if action.group is not None and action.group not in pipeline.groups[table.profile_id]:
            raise not_found(f"table {table.name}: there is no group {action.group}")
        check_ports(pipeline, [watch for _, _, watch in action.actions])
    return Entry(key.table, key.match, action, key.priority)


def _stored_entry(table: TableInfo, entry: Entry, message: Any) -> Any:
    """An entry as reads return it: its canonical form with cookies and timeout."""
    kept = codec.encode_entry(table, entry)
    kept.controller_metadata, kept.metadata = message.controller_metadata, message.metadata
    kept.idle_timeout_ns = message.idle_timeout_ns
    return kept


def _check_timeout(table: TableInfo, message: Any) -> None:
    if not table.idle_timeout and (message.idle_timeout_ns or message.HasField("time_since_last_hit")):
        raise invalid(f"table {table.name}: it does not support idle timeouts")
    if message.HasField("time_since_last_hit"):
        raise invalid(f"table {table.name}: time_since_last_hit must not be set in an update")
    if message.idle_timeout_ns < 0:
        raise invalid(f"table {table.name}: idle timeout {message.idle_timeout_ns} ns is negative")


# --- default entries ---


def _write_default(pipeline: Pipeline, table: TableInfo, kind: int, message: Any) -> Undo:
    where = f"table {table.name}: the default entry"
    if kind != MODIFY:
        raise invalid(f"{where} can only be modified")
    if message.match or message.priority:
        raise invalid(f"{where} has neither match nor priority")
    if message.idle_timeout_ns or message.HasField("time_since_last_hit"):
        raise invalid(f"{where} has no idle timeout")
    if table.profile_id:
        raise invalid(f"{where} cannot be changed, because the table has an action profile (section 9.1.3)")
    if table.const_default:
        raise StatusError(Code.PERMISSION_DENIED, f"{where} is const")
    if message.HasField("counter_data") or message.HasField("meter_config"):
        raise unimplemented(f"{where} has no direct resources on this target")
    before = pipeline.defaults.get(table.id)
    old = pipeline.backend.default(table.name)
    if message.HasField("action"):
        if message.action.WhichOneof("type") != "action":
            raise invalid(f"{where} takes an action")
        action = codec.decode_action(pipeline.schema, table, message.action.action, default=True)
        pipeline.backend.set_default(table.name, action)
        kept = pb.TableEntry(
            table_id=table.id,
            action=codec.encode_table_action(table, action),
            is_default_action=True,
            controller_metadata=message.controller_metadata,
            metadata=message.metadata,
        )
        pipeline.defaults[table.id] = kept
    else:
        pipeline.backend.set_default(table.name, None)
        pipeline.defaults.pop(table.id, None)

    def undo() -> None:
        pipeline.backend.set_default(table.name, old)
        if before is None:
            pipeline.defaults.pop(table.id, None)
        else:
            pipeline.defaults[table.id] = before

    return undo


def _default_message(pipeline: Pipeline, table: TableInfo) -> Any:
    stored = pipeline.defaults.get(table.id)
    message = pb.TableEntry()
    if stored is not None:
        message.CopyFrom(stored)
    else:
        message.table_id, message.is_default_action = table.id, True
        message.action.CopyFrom(codec.encode_table_action(table, pipeline.backend.default(table.name)))
    message.is_const = table.const_default
    return message


# --- direct resources ---


def _direct_resources(table: TableInfo, message: Any) -> MeterConfig | None:
    """Check the direct resources of an update. Returns the meter's configuration."""
    if message.HasField("counter_data") and not table.counter_id:
        raise invalid(f"table {table.name}: it has no direct counter")
    if message.HasField("meter_counter_data"):
        raise unimplemented(f"table {table.name}: this target does not count by colour")
    if not message.HasField("meter_config"):
        return None
    if not table.meter_id:
        raise invalid(f"table {table.name}: it has no direct meter")
    return meter_config(f"table {table.name}", message.meter_config)


def meter_config(where: str, message: Any, meter_type: int = 0) -> MeterConfig:
    """A meter's configuration; INVALID_ARGUMENT if it does not fit its type (section 9.4)."""
    values = (message.cir, message.cburst, message.pir, message.pburst)
    if min(values) < 0:
        raise invalid(f"{where}: rates and bursts cannot be negative")
    if message.eburst and meter_type != 1:
        raise invalid(f"{where}: eburst is for single-rate three-colour meters only")
    if message.eburst:
        raise unimplemented(f"{where}: this target has no single-rate three-colour meters")
    if meter_type in (1, 2) and (message.pir, message.pburst) != (message.cir, message.cburst):
        raise invalid(f"{where}: a single-rate meter's peak rate and burst are its committed ones")
    if message.cir > message.pir:
        raise invalid(f"{where}: the committed rate {message.cir} is above the peak rate {message.pir}")
    return MeterConfig(*values)


def meter_message(config: MeterConfig) -> Any:
    """A meter's configuration as a message."""
    return pb.MeterConfig(cir=config.cir, cburst=config.cburst, pir=config.pir, pburst=config.pburst)


Resources = tuple[CounterValue | None, MeterConfig | None]


def _resources(pipeline: Pipeline, table: TableInfo, entry: Entry) -> Resources:
    backend = pipeline.backend
    return (
        backend.entry_counter(entry) if table.counter_id else None,
        backend.entry_meter(entry) if table.meter_id else None,
    )


def _restore_resources(pipeline: Pipeline, table: TableInfo, entry: Entry, before: Resources) -> None:
    if before[0] is not None:
        pipeline.backend.set_entry_counter(entry, before[0])
    if table.meter_id:
        pipeline.backend.set_entry_meter(entry, before[1])


def _apply_resources(
    pipeline: Pipeline, table: TableInfo, entry: Entry, message: Any, meter: MeterConfig | None
) -> None:
    # An unset counter stays as it is, an unset meter returns to its default (section 9.1.6).
    if message.HasField("counter_data"):
        value = CounterValue(message.counter_data.packet_count, message.counter_data.byte_count)
        pipeline.backend.set_entry_counter(entry, value)
    if table.meter_id:
        pipeline.backend.set_entry_meter(entry, meter)


def _stored(pipeline: Pipeline, message: Any) -> tuple[TableInfo, Stored]:
    """The entry to which a DirectCounterEntry or DirectMeterEntry refers; NOT_FOUND when there is none."""
    table = pipeline.schema.tables.known(message.table_entry.table_id)
    stored = pipeline.tables[table.id].get(key_of(codec.decode_key(table, message.table_entry)))
    if stored is None:
        raise not_found(f"table {table.name}: there is no entry with this match")
    return table, stored


def write_counter(pipeline: Pipeline, kind: int, message: Any) -> Undo:
    """Carry out an update of a DirectCounterEntry (section 9.3.1)."""
    if kind != MODIFY:
        raise invalid("direct counters can only be modified")
    table, stored = _stored(pipeline, message)
    if not table.counter_id:
        raise invalid(f"table {table.name}: it has no direct counter")
    before = _resources(pipeline, table, stored.entry)
    if message.HasField("data"):
        value = CounterValue(message.data.packet_count, message.data.byte_count)
        pipeline.backend.set_entry_counter(stored.entry, value)
    return lambda: _restore_resources(pipeline, table, stored.entry, before)


def write_meter(pipeline: Pipeline, kind: int, message: Any) -> Undo:
    """Carry out an update of a DirectMeterEntry (section 9.4.1)."""
    if kind != MODIFY:
        raise invalid("direct meters can only be modified")
    table, stored = _stored(pipeline, message)
    if not table.meter_id:
        raise invalid(f"table {table.name}: it has no direct meter")
    if message.HasField("counter_data"):
        raise unimplemented(f"table {table.name}: this target does not count by colour")
    before = _resources(pipeline, table, stored.entry)
    config = meter_config(f"table {table.name}", message.config) if message.HasField("config") else None
    pipeline.backend.set_entry_meter(stored.entry, config)
    return lambda: _restore_resources(pipeline, table, stored.entry, before)


# --- reading ---


def read(pipeline: Pipeline, message: Any) -> Iterator[Any]:
    """The entries that a TableEntry in a ReadRequest selects (section 9.1.5), as entities."""
    for table in pipeline.schema.tables.select(message.table_id):
        if message.HasField("time_since_last_hit") and not table.idle_timeout and message.table_id:
            raise invalid(f"table {table.name}: it does not support idle timeouts")
        if message.table_id and message.HasField("counter_data") and not table.counter_id:
            raise invalid(f"table {table.name}: it has no direct counter")
        if message.table_id and message.HasField("meter_config") and not table.meter_id:
            raise invalid(f"table {table.name}: it has no direct meter")
        if message.is_default_action:
            yield pb.Entity(table_entry=_default_message(pipeline, table))
            continue
        for stored in _selected(pipeline, table, message):
            yield pb.Entity(table_entry=_entry_message(pipeline, table, stored, message))


def _selected(pipeline: Pipeline, table: TableInfo, message: Any) -> Iterable[Stored]:
    entries = pipeline.tables[table.id]
    if message.table_id and message.match:
        match = codec.decode_match(table.name, table.keys, message.match)
        if table.needs_priority:
            chosen = [s for s in entries.values() if s.entry.match == match]
        else:
            found = entries.get(key_of(Entry(table.name, match, Action(""))))
            chosen = [] if found is None else [found]
    else:
        chosen = list(entries.values())
    for stored in chosen:
        if message.table_id and (
            (message.priority and stored.message.priority != message.priority)
            or (message.controller_metadata and stored.message.controller_metadata != message.controller_metadata)
            or (message.metadata and stored.message.metadata != message.metadata)
            or not _action_selected(table, stored, message)
        ):
            continue
        yield stored


def _action_selected(table: TableInfo, stored: Stored, message: Any) -> bool:
    if not message.HasField("action"):
        return True
    if message.action.WhichOneof("type") != "action" or table.profile_id:
        raise invalid(f"table {table.name}: entries can be filtered by action in direct tables only")
    return bool(stored.message.action.action.action_id == message.action.action.action_id)


def _entry_message(pipeline: Pipeline, table: TableInfo, stored: Stored, request: Any) -> Any:
    out = pb.TableEntry()
    out.CopyFrom(stored.message)
    counter, meter = _resources(pipeline, table, stored.entry)
    if request.HasField("counter_data") and counter is not None:
        out.counter_data.packet_count, out.counter_data.byte_count = counter.packets, counter.bytes
    if request.HasField("meter_config") and meter is not None:
        out.meter_config.CopyFrom(meter_message(meter))
    if request.HasField("time_since_last_hit") and table.idle_timeout:
        out.time_since_last_hit.elapsed_ns = pipeline.backend.idle_time(stored.entry) * 1000
    return out


def read_counters(pipeline: Pipeline, message: Any) -> Iterator[Any]:
    """Direct counters: one entry's, a table's, or all."""
    for table, stored in _direct(pipeline, message, lambda t: t.counter_id):
        value = pipeline.backend.entry_counter(stored.entry)
        entity = pb.Entity()
        entity.direct_counter_entry.table_entry.CopyFrom(stored.message)
        entity.direct_counter_entry.data.packet_count = value.packets
        entity.direct_counter_entry.data.byte_count = value.bytes
        assert table.counter_id
        yield entity


def read_meters(pipeline: Pipeline, message: Any) -> Iterator[Any]:
    """Direct meters: one entry's, a table's, or all."""
    if message.HasField("counter_data"):
        raise unimplemented("this target does not count by colour")
    for _, stored in _direct(pipeline, message, lambda t: t.meter_id):
        config = pipeline.backend.entry_meter(stored.entry)
        entity = pb.Entity()
        entity.direct_meter_entry.table_entry.CopyFrom(stored.message)
        if config is not None:
            entity.direct_meter_entry.config.CopyFrom(meter_message(config))
        yield entity


def _direct(
    pipeline: Pipeline, message: Any, resource: Callable[[TableInfo], int]
) -> Iterator[tuple[TableInfo, Stored]]:
    if message.table_entry.table_id and message.table_entry.match:
        found = _stored(pipeline, message)
        if not resource(found[0]):
            raise invalid(f"table {found[0].name}: it has no such direct resource")
        yield found
        return
    for table in pipeline.schema.tables.select(message.table_entry.table_id):
        if resource(table):
            yield from ((table, stored) for stored in pipeline.tables[table.id].values())
        elif message.table_entry.table_id:
            raise invalid(f"table {table.name}: it has no such direct resource")
