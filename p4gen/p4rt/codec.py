"""Conversion of table entries and actions between P4Runtime's messages and ``p4gen.model.entries`` (9.1, 9.2).

Decoding is strict, as a server must be. Encoding gives the canonical form, so that reads return what was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from p4gen.model.entries import Action, Entry, Exact, Indirect, Lpm, Match, Range, Ternary
from p4gen.model.errors import ControlError
from p4gen.model.names import alternatives, find
from p4gen.p4rt import bytestrings
from p4gen.p4rt.schema import ActionInfo, Field, Schema, TableInfo
from p4gen.p4rt.status import Code, StatusError, invalid, unimplemented
from p4gen.protos import p4runtime as pb

BAD = Code.INVALID_ARGUMENT
"""The code that sections 9.1.1 and 9.1.2 ask for, also for malformed binary strings."""


# --- from messages ---


def decode_key(table: TableInfo, message: Any) -> Entry:
    """The key of a TableEntry as an entry without an action. INVALID_ARGUMENT as sections 9.1 and 9.1.1 say."""
    if not table.needs_priority and message.priority != 0:
        raise invalid(f"table {table.name}: its entries have no priority (no ternary, range or optional field)")
    if table.needs_priority and message.priority <= 0:
        raise invalid(f"table {table.name}: entries need a priority above 0, not {message.priority}")
    return Entry(table.name, decode_match(table.name, table.keys, message.match), Action(""), message.priority)


def decode_match(where: str, keys: Iterable[Field], matches: Iterable[Any]) -> dict[str, Match]:
    """The fields of a match key by name; those left out are wildcards."""
    by_id = {k.id: k for k in keys}
    found: dict[str, Match] = {}
    for message in matches:
        key = by_id.get(message.field_id)
        if key is None:
            raise invalid(f"{where}: it has no match field with id {message.field_id}")
        if key.name in found:
            raise invalid(f"{where}: match field {key.name} is given twice")
        found[key.name] = _match(f"{where}: match field {key.name}", key, message)
    for key in by_id.values():
        if key.kind == "exact" and key.name not in found:
            raise invalid(f"{where}: match field {key.name} is exact and cannot be left out")
    return found


def _match(what: str, key: Field, message: Any) -> Match:
    kind = message.WhichOneof("field_match_type")
    if kind != key.kind:
        raise invalid(f"{what}: it is {key.kind}, the request says {kind or 'nothing'}")
    given = getattr(message, kind)
    if kind in ("exact", "optional"):
        return Exact(key.decode(given.value, what))
    if kind == "lpm":
        value = key.decode(given.value, what)
        length = key.decode_prefix(given.prefix_len, what)
        if key.bits and value & (key.full >> length):
            raise invalid(f"{what}: {value:#x} has bits beyond its prefix of {given.prefix_len}")
        return Lpm(value, length)
    if kind == "ternary":
        value = key.decode(given.value, what)
        mask = key.decode_mask(given.mask, f"{what}: mask")
        if mask == 0:
            raise invalid(f"{what}: a mask of 0 is a wildcard, which must be omitted")
        if key.bits and value & ~mask:
            raise invalid(f"{what}: {value:#x} has bits outside its mask {mask:#x}")
        return Ternary(value, mask)
    low, high = key.decode(given.low, f"{what}: low"), key.decode(given.high, f"{what}: high")
    if key.strings is not None and low != high:
        raise invalid(f"{what}: a range of strings has one string for both ends")
    if low > high:
        raise invalid(f"{what}: the range {low}..{high} is empty")
    if (low, high) == (0, key.full) and key.bits:
        raise invalid(f"{what}: the whole range is a wildcard, which must be omitted")
    return Range(low, high)


def as_masked(field: Field, match: Match | None) -> Ternary:
    """A field of a value set as value and mask; every kind of match except a range can be converted."""
    match match:
        case None:
            return Ternary(0, 0)
        case Exact(value=value) | int(value):
            return Ternary(value, field.full)
        case Lpm(value=value, prefix_len=length):
            return Ternary(value, field.full ^ field.full >> length)
        case Ternary():
            return match
        case Range():
            raise unimplemented(f"{field.name}: ranges in value sets are not supported by this target")


def decode_action(schema: Schema, table: TableInfo, message: Any, *, default: bool = False) -> Action:
    """An action of a table. INVALID_ARGUMENT for one that is none; PERMISSION_DENIED outside its scope (9.1.2)."""
    use = schema.action_of(table, message.action_id)
    if use.table_only if default else use.default_only:
        scope = "entries" if default else "the default action"
        raise StatusError(Code.PERMISSION_DENIED, f"table {table.name}: {use.action.name} is only for {scope}")
    params = {p.id: p for p in use.action.params}
    args: dict[str, int] = {}
    for given in message.params:
        what = f"table {table.name}: action {use.action.name}"
        param = params.get(given.param_id)
        if param is None:
            raise invalid(f"{what}: it has no parameter with id {given.param_id}")
        if param.name in args:
            raise invalid(f"{what}: parameter {param.name} is given twice")
        args[param.name] = param.decode(given.value, f"{what}: parameter {param.name}")
    missing = [p.name for p in params.values() if p.name not in args]
    if missing:
        raise invalid(f"table {table.name}: action {use.action.name}: parameter {', '.join(missing)} is missing")
    return Action(use.action.name, args)


def decode_table_action(schema: Schema, table: TableInfo, message: Any) -> Action:
    """The action of an entry: a plain action for a direct table, ``Indirect`` for one with a profile (9.1.2, 9.2.3)."""
    kind = message.WhichOneof("type")
    if not table.profile_id:
        if kind != "action":
            raise invalid(f"table {table.name}: it is a direct table, entries have an action, not {kind or 'nothing'}")
        return decode_action(schema, table, message.action)
    profile = schema.profiles[table.profile_id]
    if kind == "action_profile_member_id":
        return Indirect(member=message.action_profile_member_id)
    if kind == "action_profile_group_id" and profile.selector:
        return Indirect(group=message.action_profile_group_id)
    if kind == "action_profile_action_set" and profile.selector:
        return Indirect(actions=tuple(_share(schema, table, a) for a in _shares(table, message, profile)))
    raise invalid(f"table {table.name}: entries refer to {profile.name}, which does not take {kind or 'nothing'}")


def _shares(table: TableInfo, message: Any, profile: Any) -> Any:
    shares = message.action_profile_action_set.action_profile_actions
    if not shares:
        raise invalid(f"table {table.name}: a set of actions has at least one")
    total = sum(a.weight for a in shares)
    if profile.max_group_size and total > profile.max_group_size:
        raise invalid(f"table {table.name}: weights add up to {total}, the group size is {profile.max_group_size}")
    return shares


def _share(schema: Schema, table: TableInfo, message: Any) -> tuple[Action, int, int | None]:
    if message.weight <= 0:
        raise invalid(f"table {table.name}: an action's weight must be above 0, not {message.weight}")
    return decode_action(schema, table, message.action), message.weight, watch_port(message)


def watch_port(message: Any) -> int | None:
    """The port that a member watches; None if it watches none."""
    if message.WhichOneof("watch_kind") == "watch":
        return int(message.watch)
    return bytestrings.decode(message.watch_port, 0, "watch port", BAD) if message.watch_port else None


# --- to messages ---


def encode_key(table: TableInfo, entry: Entry) -> pb.TableEntry:
    """The key of an entry as a TableEntry. Raises ``ControlError`` for fields that the table does not have."""
    message = pb.TableEntry(table_id=table.id, priority=entry.priority)
    by_name = {k.name: k for k in table.keys}
    for name, match in entry.match.items():
        key = find("key", name, by_name, where=f"table {table.name}: ")
        encoded = _encode_match(f"table {table.name}: key {key.name}", key, match)
        if encoded is not None:
            message.match.append(encoded)
    message.match.sort(key=lambda m: m.field_id)
    return message


def encode_fields(keys: Iterable[Field], match: Mapping[str, Match]) -> list[pb.FieldMatch]:
    """A match key as FieldMatch messages."""
    encoded = [_encode_match(k.name, k, match[k.name]) for k in keys if k.name in match]
    return [m for m in encoded if m is not None]


def _encode_match(what: str, key: Field, match: Match) -> pb.FieldMatch | None:
    message = pb.FieldMatch(field_id=key.id)
    for number in _numbers(match):
        if not isinstance(number, int) or number < 0 or (key.bits and number >> key.bits):
            raise ControlError(f"{what}: value {number!r} does not fit bit<{key.bits}> (0 to {key.full})")
    match key.kind, match:
        case "exact" | "optional", Exact(value=value) | int(value):
            getattr(message, key.kind).value = key.encode(value, what)
        case "lpm", Lpm(value=value, prefix_len=length):
            message.lpm.value, message.lpm.prefix_len = key.encode(value, what), key.encode_prefix(length)
            return message if length else None
        case "lpm", Exact(value=value) | int(value):
            message.lpm.value, message.lpm.prefix_len = key.encode(value, what), key.encode_prefix(key.bits)
        case "ternary", Ternary(value=value, mask=mask):
            message.ternary.value, message.ternary.mask = key.encode(value, what), key.encode_mask(mask)
            return message if mask else None
        case "ternary", Lpm(value=value, prefix_len=length):
            mask = key.full ^ key.full >> length
            message.ternary.value, message.ternary.mask = key.encode(value, what), key.encode_mask(mask)
            return message if mask else None
        case "ternary", Exact(value=value) | int(value):
            message.ternary.value, message.ternary.mask = key.encode(value, what), key.encode_mask(key.full)
        case "range", Range(low=low, high=high):
            message.range.low, message.range.high = key.encode(low, what), key.encode(high, what)
            return None if (low, high) == (0, key.full) else message
        case "range", Exact(value=value) | int(value):
            message.range.low = message.range.high = key.encode(value, what)
        case _:
            raise ControlError(f"{what}: it is {key.kind}, and {type(match).__name__} does not fit it")
    return message


def _numbers(match: Match) -> tuple[int, ...]:
    match match:
        case Exact(value=value) | Lpm(value=value) | int(value):
            return (value,)
        case Ternary(value=value, mask=mask):
            return (value, mask)
        case Range(low=low, high=high):
            return (low, high)


def encode_action(action: ActionInfo, args: Mapping[str, int]) -> pb.Action:
    """An action as a message. Raises ``ControlError`` for arguments that do not fit its parameters."""
    params = {p.name: p for p in action.params}
    message = pb.Action(action_id=action.id)
    for name in args:
        if name not in params:
            raise ControlError(f"action {action.name}: no parameter {name}; {alternatives(name, params)}")
    for param in action.params:
        if param.name not in args:
            raise ControlError(f"action {action.name}: parameter {param.name}: missing")
        value = args[param.name]
        what = f"action {action.name}: parameter {param.name}"
        if value < 0 or (param.bits and value >> param.bits):
            raise ControlError(f"{what}: value {value} does not fit bit<{param.bits}> (0 to {param.full})")
        message.params.add(param_id=param.id, value=param.encode(value, what))
    return message


def named_action(table: TableInfo, name: str) -> ActionInfo:
    """A table's action by full name or unique suffix; ``ControlError`` with the alternatives."""
    return find("action", name, {u.action.name: u.action for u in table.actions}, where=f"table {table.name}: ")


def encode_table_action(table: TableInfo, action: Action) -> pb.TableAction:
    """The action of an entry as a message. Raises ``ControlError`` for what the table does not have."""
    if not isinstance(action, Indirect):
        return pb.TableAction(action=encode_action(named_action(table, action.name), action.args))
    if action.member is not None:
        return pb.TableAction(action_profile_member_id=action.member)
    if action.group is not None:
        return pb.TableAction(action_profile_group_id=action.group)
    message = pb.TableAction()
    for given, weight, watch in action.actions:
        share = message.action_profile_action_set.action_profile_actions.add(weight=weight)
        share.action.CopyFrom(encode_action(named_action(table, given.name), given.args))
        if watch is not None:
            share.watch_port = bytestrings.encode(watch)
    return message


def encode_entry(table: TableInfo, entry: Entry) -> pb.TableEntry:
    """A whole entry as a message. Raises ``ControlError``."""
    message = encode_key(table, entry)
    message.action.CopyFrom(encode_table_action(table, entry.action))
    return message


def decode_entry(schema: Schema, message: Any) -> Entry:
    """Decode a TableEntry sent by a switch. It is complete, so less is checked."""
    table = schema.tables.known(message.table_id)
    match = {} if message.is_default_action else decode_match(table.name, table.keys, message.match)
    action = Action("")
    if message.HasField("action"):
        if message.action.WhichOneof("type") == "action":
            given = message.action.action
            info = schema.actions.known(given.action_id)
            params = {p.id: p for p in info.params}
            args = {params[g.param_id].name: params[g.param_id].decode(g.value, info.name) for g in given.params}
            action = Action(info.name, args)
        else:
            action = decode_table_action(schema, table, message.action)
    return Entry(table.name, match, action, message.priority)
