"""A forwarding pipeline and everything that controllers have written to it.

The backend holds what packets need. What only controllers need (cookies, timeouts, the message as it was written) is
kept here, so that reads return what was written (section 8.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from p4gen.model.entries import Entry
from p4gen.p4rt import codec
from p4gen.p4rt.schema import Field, Schema, TableInfo
from p4gen.p4rt.server.target import Backend
from p4gen.p4rt.translation import Names
from p4gen.protos import p4runtime as pb

Key = tuple[object, ...]
"""What identifies an entry in its table: its match and its priority (section 9.1)."""


def key_of(entry: Entry) -> Key:
    """The identity of an entry."""
    return (entry.priority, frozenset(entry.match.items()))


@dataclass(eq=False)
class Stored:
    """An entry as it was written: the message in canonical form, without direct resources."""

    entry: Entry
    message: Any
    const: bool = False
    notified: int = 0
    """The time of the last idle notification (µs of the backend's idle time)."""


@dataclass(eq=False)
class Pipeline:
    """One configuration and its state. ``saved`` until it is committed (section 14, VERIFY_AND_SAVE)."""

    config: Any
    schema: Schema
    backend: Backend
    lock: AbstractContextManager[Any]
    ports: frozenset[int] | None = None
    tables: dict[int, dict[Key, Stored]] = field(default_factory=dict)
    defaults: dict[int, Any] = field(default_factory=dict)
    """Default entries as written, except those of the program."""
    members: dict[int, dict[int, Any]] = field(default_factory=dict)
    groups: dict[int, dict[int, Any]] = field(default_factory=dict)
    multicast: dict[int, Any] = field(default_factory=dict)
    clones: dict[int, Any] = field(default_factory=dict)
    value_sets: dict[int, Any] = field(default_factory=dict)
    digests: dict[int, Any] = field(default_factory=dict)
    """Configurations of enabled digests."""
    encoded: dict[int, tuple[list[int], bytes]] = field(default_factory=dict)
    """Registers as last read in full, with the encoded response: most do not change between two reads."""
    timed: int = 0
    """Number of entries with an idle timeout."""

    def __post_init__(self) -> None:
        for table in self.schema.tables.values():
            self.tables[table.id] = {}
            for entry in self.backend.entries(table.name):
                self.store(table, entry, codec.encode_entry(table, entry), const=self.backend.is_const(entry))
        for profile in self.schema.profiles:
            self.members[profile], self.groups[profile] = {}, {}

        for names in self.schema.translations.names.values():
            names.in_use = self._in_use

    def _in_use(self, names: Names) -> set[int]:
        """The numbers of strings in what controllers have written."""
        return {names.number(data, "") for field, data in self._written() if field.strings is names}

    def _written(self) -> Iterator[tuple[Field, bytes]]:
        """Every match field and action parameter that has been written, with its value."""
        actions = [e.action.action for e in self.defaults.values()]
        actions += [member.action for members in self.members.values() for member in members.values()]
        for table_id, entries in self.tables.items():
            keys = {key.id: key for key in self.schema.tables[table_id].keys}
            for stored in entries.values():
                yield from _values(keys, stored.message.match)
                chosen = stored.message.action
                actions.append(chosen.action)
                actions += [share.action for share in chosen.action_profile_action_set.action_profile_actions]
        for action in actions:
            if action.action_id:
                params = {p.id: p for p in self.schema.actions[action.action_id].params}
                yield from ((params[given.param_id], given.value) for given in action.params)
        for number, message in self.value_sets.items():
            fields = {field.id: field for field in self.schema.value_sets[number].fields}
            for member in message.members:
                yield from _values(fields, member.match)

    def store(self, table: TableInfo, entry: Entry, message: Any, *, const: bool = False) -> Stored:
        """Store an entry that the backend has accepted."""
        if const:
            message.is_const = True
        stored = self.tables[table.id][key_of(entry)] = Stored(entry, message, const)
        return stored

    def references(self, profile_id: int) -> Iterator[Any]:
        """The actions of all entries of the tables that a profile implements, as messages."""
        for table_id in self.schema.profiles[profile_id].table_ids:
            yield from (stored.message.action for stored in self.tables[table_id].values())

    def updates(self) -> Iterator[Any]:
        """Everything that controllers have written, as inserts and modifications in an order that can be replayed."""
        for kind, stores in (("action_profile_member", self.members), ("action_profile_group", self.groups)):
            for store in stores.values():
                yield from (_update(pb.Update.INSERT, kind, message) for message in store.values())
        for table_id, entries in self.tables.items():
            yield from (
                _update(pb.Update.INSERT, "table_entry", self._with_resources(table_id, stored))
                for stored in entries.values()
                if not stored.const
            )
        for message in self.defaults.values():
            yield _update(pb.Update.MODIFY, "table_entry", message)
        for name, messages in (("multicast_group_entry", self.multicast), ("clone_session_entry", self.clones)):
            for message in messages.values():
                update = pb.Update(type=pb.Update.INSERT)
                getattr(update.entity.packet_replication_engine_entry, name).CopyFrom(message)
                yield update
        yield from (_update(pb.Update.MODIFY, "value_set_entry", m) for m in self.value_sets.values())
        yield from (_update(pb.Update.INSERT, "digest_entry", m) for m in self.digests.values())

    def _with_resources(self, table_id: int, stored: Stored) -> Any:
        table, message = self.schema.tables[table_id], pb.TableEntry()
        message.CopyFrom(stored.message)
        if table.counter_id:
            value = self.backend.entry_counter(stored.entry)
            message.counter_data.packet_count, message.counter_data.byte_count = value.packets, value.bytes
        if table.meter_id and (config := self.backend.entry_meter(stored.entry)) is not None:
            message.meter_config.CopyFrom(
                pb.MeterConfig(cir=config.cir, cburst=config.cburst, pir=config.pir, pburst=config.pburst)
            )
        return message


def _values(keys: Mapping[int, Field], match: Iterable[Any]) -> Iterator[tuple[Field, bytes]]:
    for message in match:
        kind = message.WhichOneof("field_match_type")
        given = getattr(message, kind)
        yield keys[message.field_id], given.low if kind == "range" else given.value


def _update(kind: int, entity: str, message: Any) -> Any:
    update = pb.Update(type=kind)
    getattr(update.entity, entity).CopyFrom(message)
    return update
