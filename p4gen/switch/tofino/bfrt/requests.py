"""Requests of BF-Runtime, checked against the description of tables, in the form that the SDE's Python client gives
them: keys and data in the order of their names, numbers in as many bytes as their type has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from p4gen.model.entries import Exact, Lpm, Match, Range, Ternary
from p4gen.model.errors import ControlError
from p4gen.protos.package import Package
from p4gen.switch.tofino.bfrt.schema import FieldInfo, Names, TableInfo

ALL_PIPES: Final = 0xFFFF
INSERT, MODIFY, DELETE = 1, 2, 4
"""Numbers of ``Update.Type``."""

Value = int | bool | str | bytes | Sequence[int] | Sequence[bool]
"""The value of a data field, by its type: numbers (``bytes`` for long ones), flags, names, and arrays of them."""


@dataclass(frozen=True)
class Row:
    """A row of any table: its key, and data with the name of the action, if the table has actions."""

    key: Mapping[str, Match] = field(default_factory=dict)
    data: Mapping[str, Value] = field(default_factory=dict)
    action: str | None = None


@dataclass(frozen=True)
class Found:
    """A row in an answer of the switch. Words of registers are lists: one for each pipe."""

    key: Mapping[str, Match]
    data: Mapping[str, Any]
    action: str | None
    default: bool


class Requests:
    """Makes the requests for one device, and reads its answers."""

    def __init__(self, protos: Package, client: int = 0, device: int = 0, program: str = "") -> None:
        self.protos, self.client, self.device, self.program = protos, client, device, program

    # --- requests ---

    def write(
        self, kind: int, table: TableInfo, rows: Iterable[Row], *, all_or_none: bool = False, pipe: int = ALL_PIPES
    ) -> Any:
        """Insert, modify or delete rows."""
        request = self._request("WriteRequest", pipe)
        request.atomicity = int(all_or_none)
        for row in rows:
            update = request.updates.add()
            update.type = kind
            entry = update.entity.table_entry
            entry.table_id = table.id
            if kind == MODIFY:
                entry.table_flags.reset_ttl = entry.table_flags.reset_stats = True
            self._key(entry, table, row.key)
            if kind != DELETE:
                self._data(entry, table, row)
        return request

    def clear(self, table: TableInfo) -> Any:
        """Delete all rows of a table; words of registers and counters return to their first values."""
        request = self._request("WriteRequest", ALL_PIPES)
        update = request.updates.add()
        update.type = DELETE
        update.entity.table_entry.table_id = table.id
        return request

    def default(self, table: TableInfo, row: Row | None) -> Any:
        """Set the default action; None restores the program's."""
        request = self._request("WriteRequest", ALL_PIPES)
        update = request.updates.add()
        update.type = DELETE if row is None else MODIFY
        entry = update.entity.table_entry
        entry.table_id, entry.is_default_entry = table.id, True
        if row is not None:
            self._data(entry, table, row)
        return request

    def operation(self, table: TableInfo, name: str) -> Any:
        """Carry out one of a table's operations."""
        if name not in table.operations:
            raise ControlError(f"table {table.name} has no operation {name}; it has: {_list(table.operations)}")
        request = self._request("WriteRequest", ALL_PIPES)
        update = request.updates.add()
        update.type = INSERT
        operation = update.entity.table_operation
        operation.table_id, operation.table_operations_type = table.id, name
        return request

    def read(
        self,
        table: TableInfo,
        keys: Iterable[Mapping[str, Match]] = (),
        *,
        hardware: bool = True,
        default: bool = False,
        pipe: int = ALL_PIPES,
    ) -> Any:
        """Read rows by key; all of them without keys; or the default action."""
        request = self._request("ReadRequest", pipe)
        wanted: list[Mapping[str, Match] | None] = [*keys]
        for key in wanted or [None]:
            entry = request.entities.add().table_entry
            entry.table_id, entry.is_default_entry = table.id, default
            entry.table_flags.from_hw = hardware
            if key is not None:
                self._key(entry, table, key)
        return request

    def bind(self) -> Any:
        """Bind this client to the program, which only one client can do."""
        request = self.protos.SetForwardingPipelineConfigRequest(client_id=self.client)
        request.config.add().p4_name = self.program
        return request

    def subscribe(self) -> Any:
        """The first message of a client's stream; it asks for no notifications."""
        request = self.protos.StreamMessageRequest(client_id=self.client)
        request.subscribe.device_id = self.device
        request.subscribe.notifications.SetInParent()
        return request

    def description(self) -> Any:
        """Ask for the program and the description of all tables."""
        return self.protos.GetForwardingPipelineConfigRequest(device_id=self.device, client_id=self.client)

    def _request(self, name: str, pipe: int) -> Any:
        request = getattr(self.protos, name)(client_id=self.client)
        request.target.device_id, request.target.pipe_id = self.device, pipe
        request.target.direction = request.target.prsr_id = 0xFF
        return request

    def _key(self, entry: Any, table: TableInfo, key: Mapping[str, Match]) -> None:
        given = {table.keys.named(name).name: match for name, match in key.items()}
        missing = [info.name for info in table.keys.all if info.mandatory and info.name not in given]
        if missing:
            raise ControlError(f"table {table.name}: the key needs {_list(missing)}")
        entry.key.SetInParent()
        for name in sorted(given):
            info = table.keys.named(name)
            message = entry.key.fields.add(field_id=info.id)
            _match(message, table, info, given[name])

    def _data(self, entry: Any, table: TableInfo, row: Row) -> None:
        fields = table.fields(row.action)
        if row.action is not None:
            entry.data.action_id = table.actions.named(row.action).id
        elif table.actions.all:
            raise ControlError(f"table {table.name}: an entry needs an action")
        given = {fields.named(name).name: value for name, value in row.data.items()}
        missing = [info.name for info in fields.all if info.mandatory and info.name not in given]
        if missing:
            raise ControlError(f"table {table.name}: {row.action or 'data'} needs {_list(missing)}")
        entry.data.SetInParent()
        for name in sorted(given):
            info = fields.named(name)
            _datum(entry.data.fields.add(field_id=info.id), f"table {table.name}: {name}", info, given[name])

    # --- answers ---

    def rows(self, table: TableInfo, answers: Iterable[Any]) -> list[Found]:
        """The rows of a table in the answers to a read request."""
        found = []
        for answer in answers:
            for entity in answer.entities:
                entry = entity.table_entry
                if entry.table_id == table.id:
                    found.append(_found(table, entry))
        return found


def _list(words: Iterable[str]) -> str:
    return ", ".join(words) or "none"


def _bytes(where: str, info: FieldInfo, value: int) -> bytes:
    if not 0 <= value < 1 << info.bits:
        raise ControlError(f"{where}: {value} does not fit {info.bits} bits")
    return value.to_bytes(info.size)


def _match(message: Any, table: TableInfo, info: FieldInfo, match: Match) -> None:
    where = f"table {table.name}: {info.name}"
    kind = "Exact" if isinstance(match, int) else match.__class__.__name__
    wanted = {"LPM": "Lpm", "Optional": "Exact"}.get(info.match, info.match)
    if kind != wanted:
        raise ControlError(f"{where}: {kind.lower()} match on a key that is {info.match.lower()}")
    if isinstance(match, Ternary):
        message.ternary.value = _bytes(where, info, match.value & match.mask)
        message.ternary.mask = _bytes(where, info, match.mask)
    elif isinstance(match, Lpm):
        if not 0 <= match.prefix_len <= info.bits:
            raise ControlError(f"{where}: a prefix of {match.prefix_len} bits of {info.bits}")
        message.lpm.value = _bytes(where, info, match.value)
        message.lpm.prefix_len = match.prefix_len
    elif isinstance(match, Range):
        message.range.low, message.range.high = _bytes(where, info, match.low), _bytes(where, info, match.high)
    else:
        value = _bytes(where, info, match if isinstance(match, int) else match.value)
        if info.match == "Optional":
            message.optional.value, message.optional.is_valid = value, True
        else:
            message.exact.value = value


def _datum(message: Any, where: str, info: FieldInfo, value: Value) -> None:
    """Set the kind of value that the field's type has."""
    wrong = ControlError(f"{where}: {value!r} is no {info.type}{' array' if info.repeated else ''}")
    if isinstance(value, bytes):
        if info.type != "bytes":
            raise wrong
        message.stream = value
    elif info.repeated:
        if not isinstance(value, (list, tuple)) or info.type not in ("bool", *_NUMBERS):
            raise wrong
        if info.type == "bool":
            message.bool_arr_val.SetInParent()
            message.bool_arr_val.val.extend(value)
        else:
            for number in value:
                _bytes(where, info, number)
            message.int_arr_val.SetInParent()
            message.int_arr_val.val.extend(value)
    elif isinstance(value, bool) and info.type == "bool":
        message.bool_val = value
    elif isinstance(value, str) and info.type == "string":
        if info.choices and value not in info.choices:
            raise ControlError(f"{where}: {value} is none of {_list(info.choices)}")
        message.str_val = value
    elif isinstance(value, int) and not isinstance(value, bool) and info.type in _NUMBERS:
        message.stream = _bytes(where, info, value)
    else:
        raise wrong


_NUMBERS: Final = ("bytes", "uint8", "uint16", "uint32", "uint64", "int32", "int64")


def _found(table: TableInfo, entry: Any) -> Found:
    action = table.actions[entry.data.action_id].name if entry.data.action_id else None
    fields: Names[FieldInfo] = table.fields(action)
    data: dict[str, Any] = {}
    for message in entry.data.fields:
        info = fields[message.field_id]
        value = _value(message, info)
        if info.register:
            data.setdefault(info.name, []).append(value)
        else:
            data[info.name] = value
    key = {table.keys[message.field_id].name: _key_value(message) for message in entry.key.fields}
    return Found(key, data, action, entry.is_default_entry)


def _value(message: Any, info: FieldInfo) -> Any:
    kind = message.WhichOneof("value")
    if kind == "stream":
        return int.from_bytes(message.stream)
    if kind in ("int_arr_val", "bool_arr_val", "str_arr_val"):
        return list(getattr(message, kind).val)
    if kind in ("float_val", "str_val", "bool_val"):
        return getattr(message, kind)
    return [] if info.repeated else None


def _key_value(message: Any) -> Match:
    kind = message.WhichOneof("match_type")
    if kind == "ternary":
        return Ternary(int.from_bytes(message.ternary.value), int.from_bytes(message.ternary.mask))
    if kind == "lpm":
        return Lpm(int.from_bytes(message.lpm.value), message.lpm.prefix_len)
    if kind == "range":
        return Range(int.from_bytes(message.range.low), int.from_bytes(message.range.high))
    return Exact(int.from_bytes(message.optional.value if kind == "optional" else message.exact.value))
