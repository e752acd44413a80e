"""STF, the packet test format of p4c: text to statements.

A statement is a line; ``#`` begins a comment. Keywords may be written in either case. ``docs/stf.md`` lists the
statements; those that simple_switch_CLI has are named and ordered as there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from p4gen.arch.ports import DROP_PORT
from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.inputs import read_text
from p4gen.stf.extension import extra_commands
from p4gen.stf.lexer import Cursor, StfError, Token, number, tokens
from p4gen.stf.statements import (
    Add,
    Argument,
    Between,
    BoundAction,
    Check,
    Command,
    CreateMember,
    Expect,
    ExpectDigest,
    Handle,
    KeyMatch,
    KeyValue,
    Masked,
    NoPacket,
    Packet,
    Prefix,
    Rate,
    Remove,
    SetDefault,
    Statement,
    Value,
    Wait,
)

COMMANDS: dict[str, tuple[str, ...]] = {
    "mirroring_add": ("session", "port"),
    "mirroring_add_mc": ("session", "group"),
    "mirroring_add_truncate": ("session", "port", "bytes"),
    "mirroring_delete": ("session",),
    "mirroring_get": ("session",),
    "mc_mgrp_create": ("group",),
    "mc_mgrp_destroy": ("group",),
    "mc_node_create": ("rid", "port…"),
    "mc_node_update": ("node", "port…"),
    "mc_node_associate": ("group", "node"),
    "mc_node_dissociate": ("group", "node"),
    "mc_node_destroy": ("node",),
    "counter_read": ("NAME", "CELL"),
    "counter_write": ("NAME", "index", "packets", "bytes"),
    "counter_reset": ("NAME",),
    "register_read": ("NAME", "index"),
    "register_write": ("NAME", "index", "value"),
    "register_reset": ("NAME",),
    "meter_get_rates": ("NAME", "CELL"),
    "meter_set_rates": ("NAME", "CELL", "RATE", "RATE"),
    "meter_array_set_rates": ("NAME", "RATE", "RATE"),
    "act_prof_create_group": ("NAME",),
    "act_prof_add_member_to_group": ("NAME", "member", "group"),
    "act_prof_remove_member_from_group": ("NAME", "member", "group"),
    "act_prof_delete_member": ("NAME", "member"),
    "pvs_add": ("NAME", "value…"),
    "pvs_clear": ("NAME",),
}
"""The arguments of each command; ``…`` is one or more, and ``?`` at the end of the line may be left out. Those in
capitals are taken as they stand: a name, a meter's rate, a cell's index or an entry's handle, the digits of some BYTES,
an action with data (CALL). The others are numbers, or handles of numbers."""

LAST_PORT = DROP_PORT - 1
"""Port numbers of v1model have 9 bits, and the last one stands for dropping."""

_OPS = ("==", "!=", "<=", "<", ">=", ">")
_HEX = re.compile(r"[0-9a-fA-F]*")
_NIBBLES = re.compile(r"[0-9a-fA-F*]*")


def parse_file(path: str | Path) -> tuple[Statement, ...]:
    """The statements of the file at ``path``. Raises ``StfError`` with a diagnostic for each line that is wrong."""
    try:
        text = read_text(Path(path))
    except InputError as problem:
        raise StfError(*problem.diagnostics) from None
    return parse_text(text, str(path))


def parse_text(text: str, name: str = "test.stf") -> tuple[Statement, ...]:
    """The statements of an STF text called ``name`` in positions (see ``parse_file``)."""
    statements: list[Statement] = []
    problems: list[Diagnostic] = []
    for line, whole in enumerate(text.splitlines(), 1):
        try:
            statement = _line(whole, name, line)
        except StfError as error:
            problems.extend(Diagnostic(d.where, d.message, source_line=whole) for d in error.diagnostics)
            continue
        if statement is not None:
            statements.append(statement)
    if problems:
        raise StfError(*problems)
    return tuple(statements)


def _line(whole: str, file: str, line: int) -> Statement | None:
    text = whole.split("#", 1)[0].rstrip()
    words = text.split(None, 1)
    if not words:
        return None
    column = len(text) - len(text.lstrip()) + 1
    pos, keyword = Pos(file, line, column), words[0].lower()
    rest = column - 1 + len(words[0])
    if keyword in ("packet", "expect"):
        return _frame(keyword, text[rest:], pos, rest + 1)
    parse = _STATEMENTS.get(keyword)
    known = parse is not None or keyword == "no_packet" or keyword in COMMANDS
    if not known and keyword not in extra_commands():
        raise StfError(Diagnostic(pos, f"there is no statement {words[0]!r}"))
    cursor = Cursor(tokens(text[rest:], file, line, rest + 1))
    statement = NoPacket(pos) if keyword == "no_packet" else (parse or _command)(Token("keyword", keyword, pos), cursor)
    if cursor.here.kind != "end":
        cursor.refuse("the end of the line")
    return statement


def _frame(keyword: str, text: str, pos: Pos, column: int) -> Statement:
    """Parse ``packet`` or ``expect``: a port, then hexadecimal digits in groups of any size."""
    words = text.split()
    if not words or not words[0].isdigit():
        raise StfError(Diagnostic(Pos(pos.file, pos.line, column), f"{keyword} needs the number of a port"))
    if len(words[0]) > 9 or int(words[0]) > LAST_PORT:
        at = column + text.index(words[0])
        raise StfError(Diagnostic(Pos(pos.file, pos.line, at), f"ports are numbered from 0 to {LAST_PORT}"))
    port, data = int(words[0]), "".join(words[1:])
    exact = keyword == "expect" and data.endswith("$")
    data = data.removesuffix("$") if exact else data
    end = (_NIBBLES if keyword == "expect" else _HEX).match(data)
    assert end is not None
    if end.end() != len(data):
        bad = data[end.end()]
        at = text.index(bad, text.index(words[0]) + len(words[0]))
        raise StfError(Diagnostic(Pos(pos.file, pos.line, column + at), f"{bad!r} is no hexadecimal digit"))
    if keyword == "expect":
        return Expect(port, data.upper() if data or exact else None, exact, pos)
    if len(data) % 2:
        raise StfError(Diagnostic(pos, f"the packet has {len(data)} digits: half a byte is left over"))
    return Packet(port, bytes.fromhex(data), pos)


# --- pieces ---


def _value(cursor: Cursor, what: str) -> Value:
    return number(cursor.need("number", what))


def _whole(cursor: Cursor, what: str) -> Value:
    value = _value(cursor, what)
    if value.wild or value.value < 0:
        raise StfError(Diagnostic(value.pos, f"{what} must be a number without wildcards, not {value.text}"))
    return value


def _amount(cursor: Cursor, what: str) -> float:
    token = cursor.take("float")
    return float(token.text) if token else float(_whole(cursor, what).value)


def _reference(cursor: Cursor, what: str) -> Value | Handle:
    name = cursor.take("name")
    return Handle(name.text.removeprefix("$"), name.pos) if name else _whole(cursor, what)


def _handle(cursor: Cursor) -> str | None:
    return cursor.need("name", "the name of a handle").text.removeprefix("$") if cursor.take("=") else None


def _key_value(cursor: Cursor) -> KeyValue:
    value = _value(cursor, "a value")
    if cursor.take("&&&"):
        return Masked(value, _whole(cursor, "a mask"))
    if cursor.take("/"):
        return Prefix(value, _whole(cursor, "a prefix length").value)
    if cursor.take("..", "->"):
        return Between(value, _whole(cursor, "the end of the range"))
    return value


def _key(cursor: Cursor) -> KeyMatch:
    name = cursor.need("name", "key:value")
    cursor.need(":", "':' and a value")
    return KeyMatch(name.text, _key_value(cursor), name.pos)


def _keys(cursor: Cursor) -> tuple[KeyMatch, ...]:
    keys = []
    while cursor.here.kind == "name" and cursor.follows(":"):
        keys.append(_key(cursor))
    return tuple(keys)


def _call(cursor: Cursor) -> BoundAction:
    name = cursor.need("name", "an action")
    cursor.need("(", f"'(' after the action {name.text}")
    args: list[tuple[str, Value]] = []
    while not cursor.take(")"):
        if args:
            cursor.need(",", "',' or ')'")
        argument = cursor.need("name", "argument:value")
        cursor.need(":", "':' and a value")
        args.append((argument.text, _whole(cursor, f"argument {argument.text}")))
    return BoundAction(name.text, tuple(args), name.pos)


# --- statements ---


def _add(head: Token, cursor: Cursor) -> Statement:
    table = cursor.need("name", "a table").text
    priority = _whole(cursor, "a priority").value if cursor.here.kind == "number" else None
    keys = _keys(cursor)
    if head.text == "add":
        return Add(table, priority, keys, _call(cursor), False, _handle(cursor), head.pos)
    cursor.need("=>", "'=>' and a member or group")
    target = _reference(cursor, "a member or group")
    return Add(table, priority, keys, target, head.text.endswith("group"), _handle(cursor), head.pos)


def _set_default(head: Token, cursor: Cursor) -> Statement:
    return SetDefault(cursor.need("name", "a table").text, _call(cursor), head.pos)


def _remove(head: Token, cursor: Cursor) -> Statement:
    name = cursor.need("name", "'all' or a handle")
    return Remove(None if name.text.lower() == "all" else Handle(name.text.removeprefix("$"), name.pos), head.pos)


def _wait(head: Token, cursor: Cursor) -> Statement:
    return Wait(1.0 if cursor.here.kind == "end" else _amount(cursor, "seconds"), head.pos)


def _check(head: Token, cursor: Cursor) -> Statement:
    what = head.text.removeprefix("check_")
    name = "" if what == "traps" else cursor.need("name", f"a {what}").text
    index = None
    if what in ("counter", "register"):
        cursor.need("(", "'(' and an index")
        index = _reference(cursor, "an index")
        cursor.need(")", "')'")
    unit = cursor.take("name") if what == "counter" else None
    if unit is not None and unit.text.lower() not in ("packets", "bytes"):
        raise StfError(Diagnostic(unit.pos, f"expected packets or bytes, found {unit.text!r}"))
    op = cursor.take(*_OPS)
    if op is None and (what != "counter" or unit is not None):
        cursor.refuse("a comparison")
    wanted = _whole(cursor, "a number") if op else None
    return Check(what, name, index, unit.text.lower() if unit else "packets", op.kind if op else None, wanted, head.pos)


def _expect_digest(head: Token, cursor: Cursor) -> Statement:
    return ExpectDigest(cursor.need("name", "the type of the digest").text, _keys(cursor), head.pos)


def _create_member(head: Token, cursor: Cursor) -> Statement:
    return CreateMember(cursor.need("name", "an action profile").text, _call(cursor), _handle(cursor), head.pos)


def _command(head: Token, cursor: Cursor) -> Statement:
    args: list[Argument] = []
    own = COMMANDS.get(head.text)
    for what in extra_commands()[head.text].arguments if own is None else own:
        if what.endswith("?") and cursor.here.kind in ("end", "="):
            break
        args.append(_argument(cursor, what.rstrip("…?")))
        while what.endswith("…") and cursor.here.kind == "number":
            args.append(_argument(cursor, what))
    return Command(head.text, tuple(args), _handle(cursor), head.pos)


def _argument(cursor: Cursor, what: str) -> Argument:
    if what == "NAME":
        return cursor.need("name", "a name").text
    if what == "CALL":
        return _call(cursor)
    if what == "BYTES":
        return _whole(cursor, "bytes")
    if what != "RATE":
        return _reference(cursor, what.lower())
    rate = _amount(cursor, "rate:burst")
    cursor.need(":", "':' and a burst")
    return Rate(rate, _whole(cursor, "a burst").value)


_STATEMENTS: dict[str, Callable[[Token, Cursor], Statement]] = {
    "add": _add,
    "table_indirect_add": _add,
    "table_indirect_add_with_group": _add,
    "setdefault": _set_default,
    "remove": _remove,
    "wait": _wait,
    "check_counter": _check,
    "check_register": _check,
    "check_idle": _check,
    "check_traps": _check,
    "expect_digest": _expect_digest,
    "act_prof_create_member": _create_member,
}
