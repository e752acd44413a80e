"""Indexed counters, meters and registers, and parser value sets (sections 9.3.2, 9.4.2, 9.6, 9.7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from p4gen.model.entries import CounterValue
from p4gen.p4rt import bytestrings, codec, p4data, wire
from p4gen.p4rt.schema import ArrayInfo, ObjectIndex
from p4gen.p4rt.server.pipeline import Pipeline
from p4gen.p4rt.server.tables import meter_config, meter_message
from p4gen.p4rt.status import Code, StatusError, invalid, unimplemented
from p4gen.protos import p4runtime as pb

Undo = Callable[[], None]
MODIFY = pb.Update.MODIFY
_COUNTER_ENTRY, _REGISTER_ENTRY = 7, 11
"""Numbers of fields of Entity."""
_BITSTRING = 1
"""Number of a field of P4Data."""


def _indices(array: ArrayInfo, kind: str, message: Any) -> range:
    """The cells that ``message`` is about: one, or without an index all."""
    if not message.HasField("index"):
        return range(array.size)
    index = message.index.index
    if index < 0:
        raise invalid(f"{kind} {array.name}: index {index} is negative")
    if index >= array.size:
        raise StatusError(Code.OUT_OF_RANGE, f"{kind} {array.name}: index {index}; it has {array.size} cells")
    return range(index, index + 1)


def _changed(kind: int, arrays: ObjectIndex[ArrayInfo], number: int) -> ArrayInfo:
    if kind != MODIFY:
        raise invalid(f"a {arrays.kind} can only be modified")
    return arrays.known(number)


# --- counters ---


def write_counter(pipeline: Pipeline, kind: int, message: Any) -> Undo:
    """Set cells of a counter; without data nothing changes."""
    counter = _changed(kind, pipeline.schema.counters, message.counter_id)
    indices = _indices(counter, "counter", message)
    if not message.HasField("data"):
        return lambda: None
    before = pipeline.backend.counters(counter.name)
    value = CounterValue(message.data.packet_count, message.data.byte_count)
    for index in indices:
        pipeline.backend.write_counter(counter.name, index, value)

    def undo() -> None:
        for index in indices:
            pipeline.backend.write_counter(counter.name, index, before[index])

    return undo


def read_counters(pipeline: Pipeline, message: Any) -> Iterator[bytes]:
    """Cells of one counter or of all, as fields of a ReadResponse on the wire."""
    for counter in pipeline.schema.counters.select(message.counter_id):
        indices = _indices(counter, "counter", message if message.counter_id else pb.CounterEntry())
        if len(indices) == 1:
            values = [pipeline.backend.counter(counter.name, indices.start)]
        else:
            values = pipeline.backend.counters(counter.name)
        head = wire.number(1, counter.id)
        for index, value in zip(indices, values, strict=True):
            data = wire.number(1, value.bytes) + wire.number(2, value.packets)
            entry = head + wire.blob(2, wire.number(1, index)) + wire.blob(3, data)
            yield wire.blob(1, wire.blob(_COUNTER_ENTRY, entry))


# --- meters ---


def write_meter(pipeline: Pipeline, kind: int, message: Any) -> Undo:
    """Configure cells of a meter. Without a configuration they return to the default, green."""
    meter = _changed(kind, pipeline.schema.meters, message.meter_id)
    indices = _indices(meter, "meter", message)
    if message.HasField("counter_data"):
        raise unimplemented(f"meter {meter.name}: this target does not count by colour")
    config = None
    if message.HasField("config"):
        config = meter_config(f"meter {meter.name}", message.config, meter.meter_type)
    before = [pipeline.backend.meter(meter.name, index) for index in indices]
    for index in indices:
        pipeline.backend.set_meter(meter.name, index, config)

    def undo() -> None:
        for index, old in zip(indices, before, strict=True):
            pipeline.backend.set_meter(meter.name, index, old)

    return undo


def read_meters(pipeline: Pipeline, message: Any) -> Iterator[Any]:
    """Configurations of the cells of one meter or of all."""
    if message.HasField("counter_data"):
        raise unimplemented("this target does not count by colour")
    for meter in pipeline.schema.meters.select(message.meter_id):
        for index in _indices(meter, "meter", message if message.meter_id else pb.MeterEntry()):
            entity = pb.Entity()
            entity.meter_entry.meter_id = meter.id
            entity.meter_entry.index.index = index
            config = pipeline.backend.meter(meter.name, index)
            if config is not None:
                entity.meter_entry.config.CopyFrom(meter_message(config))
            yield entity


# --- registers ---


def write_register(pipeline: Pipeline, kind: int, message: Any) -> Undo:
    """Set a cell of a register, or without an index all cells, to one value."""
    register = _changed(kind, pipeline.schema.registers, message.register_id)
    indices = _indices(register, "register", message)
    types, strings = pipeline.schema.info.type_info, pipeline.schema.translations.by_type
    value = p4data.decode_number(register.element, types, message.data, f"register {register.name}", strings)
    before = pipeline.backend.registers(register.name)
    for index in indices:
        pipeline.backend.write_register(register.name, index, value)

    def undo() -> None:
        for index in indices:
            pipeline.backend.write_register(register.name, index, before[index])

    return undo


def read_registers(pipeline: Pipeline, message: Any) -> Iterator[bytes]:
    """Cells of one register or of all, as fields of a ReadResponse on the wire."""
    for register in pipeline.schema.registers.select(message.register_id):
        values = pipeline.backend.registers(register.name)
        indices = _indices(register, "register", message if message.register_id else pb.RegisterEntry())
        if len(indices) < register.size:
            yield _register_entries(pipeline, register, values, indices)
            continue
        known = pipeline.encoded.get(register.id)
        if known is None or known[0] != values:
            known = pipeline.encoded[register.id] = (values, _register_entries(pipeline, register, values, indices))
        yield known[1]


def _register_entries(pipeline: Pipeline, register: ArrayInfo, values: list[int], indices: range) -> bytes:
    types, strings = pipeline.schema.info.type_info, pipeline.schema.translations.by_type
    plain = p4data.resolve(register.element, types).bitstring.HasField("bit")
    parts = p4data.widths(register.element, types)
    head = wire.number(1, register.id)
    cache: dict[int, bytes] = {}  # most cells hold the same few values
    entries = []
    for index in indices:
        value = values[index]
        data = cache.get(value)
        if data is None:
            if plain:
                encoded = wire.blob(_BITSTRING, bytestrings.encode(value))
            else:
                leaves = p4data.scalars(value, parts) if len(parts) > 1 else iter((value,))
                encoded = p4data.encode(register.element, types, leaves, strings).SerializeToString()
            data = cache[value] = wire.blob(3, encoded)
        entry = head + wire.blob(2, wire.number(1, index)) + data
        entries.append(wire.blob(1, wire.blob(_REGISTER_ENTRY, entry)))
    return b"".join(entries)


# --- value sets ---


def write_value_set(pipeline: Pipeline, kind: int, message: Any) -> Undo:
    """Replace the members of a value set (section 9.6)."""
    if kind != MODIFY:
        raise invalid("a value set can only be modified")
    value_set = pipeline.schema.value_sets.known(message.value_set_id)
    where = f"value set {value_set.name}"
    if len(message.members) > value_set.size:
        raise StatusError(Code.RESOURCE_EXHAUSTED, f"{where}: it has room for {value_set.size} members")
    members = [codec.decode_match(where, value_set.fields, m.match) for m in message.members]
    if any(member in members[:i] for i, member in enumerate(members)):
        raise StatusError(Code.ALREADY_EXISTS, f"{where}: two members are the same")
    before = pipeline.value_sets.get(value_set.id)
    kept = pb.ValueSetEntry(value_set_id=value_set.id)
    for member in members:
        kept.members.add(match=codec.encode_fields(value_set.fields, member))
    _put_value_set(pipeline, kept)

    def undo() -> None:
        _put_value_set(pipeline, before if before is not None else pb.ValueSetEntry(value_set_id=value_set.id))

    return undo


def _put_value_set(pipeline: Pipeline, message: Any) -> None:
    value_set = pipeline.schema.value_sets[message.value_set_id]
    members = []
    for given in message.members:
        match = codec.decode_match(value_set.name, value_set.fields, given.match)
        members.append(tuple(codec.as_masked(field, match.get(field.name)) for field in value_set.fields))
    pipeline.backend.set_value_set(value_set.name, *members)
    pipeline.value_sets[value_set.id] = message


def read_value_sets(pipeline: Pipeline, message: Any) -> Iterator[Any]:
    """The members of one value set, or of all."""
    for value_set in pipeline.schema.value_sets.select(message.value_set_id):
        stored = pipeline.value_sets.get(value_set.id)
        yield pb.Entity(value_set_entry=stored or pb.ValueSetEntry(value_set_id=value_set.id))
