"""A table's entries written in the program, and their priorities (P4_16 specification 14.2.1.4).

Values are as literals of the key's type have them; masks and masked values are bit patterns.
"""

from __future__ import annotations

from p4gen.p4 import fold, ir
from p4gen.p4.check import convert
from p4gen.p4.check.scope import Context
from p4gen.p4.lower import evaluate, table_actions
from p4gen.p4.parse import ast, ast_table
from p4gen.p4.parse.source import Reported
from p4gen.p4.types import Bits, SerEnum, Type, strip

_NEEDS_PRIORITY = frozenset({"ternary", "range", "optional"})


def lower(
    cx: Context,
    decl: ast_table.TableDecl,
    keys: tuple[ir.Key, ...],
    entities: table_actions.Entities,
    properties: dict[str, ast_table.Property],
) -> tuple[ir.TableEntry, ...]:
    """The entries in order, each with the priority that the control plane sees."""
    if decl.entries is None:
        return ()
    if decl.entries and not keys:
        cx.unit.reporter.fail(decl.at, f"table '{decl.name}' has no key, so it cannot have entries")
    priorities = _priorities(cx, decl, keys, properties)
    found: list[ir.TableEntry] = []
    first: dict[tuple[ir.KeyValue, ...], int] = {}
    for entry, priority in zip(decl.entries, priorities, strict=True):
        try:
            values = _values(cx, entry, keys)
            if values in first and all(k.match_kind == "exact" for k in keys):
                note = (first[values], "the first is here")
                cx.unit.reporter.error(entry.at, "a second entry for this key", note)
            first.setdefault(values, entry.at)
            call = table_actions.action_call(cx, entry.action, entities, "the action of an entry")
            if call.ref.default_only:
                cx.unit.reporter.fail(entry.action.at, f"'{call.ref.name}' is @defaultonly: entries cannot use it")
        except Reported:
            continue
        const = decl.const_entries or entry.const
        found.append(ir.TableEntry(values, call, const, priority, cx.pos(entry.at)))
    return tuple(found)


def _priorities(
    cx: Context, decl: ast_table.TableDecl, keys: tuple[ir.Key, ...], properties: dict[str, ast_table.Property]
) -> list[int | None]:
    entries = decl.entries or ()
    explicit = [e for e in entries if e.priority is not None]
    if decl.const_entries and explicit:
        cx.unit.reporter.error(explicit[0].at, "entries of a table with 'const entries' cannot have a priority")
    if not any(k.match_kind in _NEEDS_PRIORITY for k in keys):
        if explicit:
            note = (dict(decl.order)["key"], "the key is here")
            cx.unit.reporter.error(
                explicit[0].at, "entries of this table need no priority: its keys are exact or lpm", note
            )
        return [None] * len(entries)
    if decl.const_entries:
        # BMv2 numbers entries from 1, smaller first; @priority, which p4c knows, sets such a number.
        order = [_priority_annotation(e, i + 1) for i, e in enumerate(entries)]
        last = max(order, default=0)
        return [last + 1 - number for number in order]
    largest_wins = table_actions.flag(cx, properties.get("largest_priority_wins"), True)
    delta = _delta(cx, properties.get("priority_delta"))
    if entries and explicit and entries[0].priority is None:
        cx.unit.reporter.fail(entries[0].at, "the first entry needs a priority, since others have one")
    given: list[int] = []
    for i, entry in enumerate(entries):
        if entry.priority is not None:
            given.append(evaluate.constant_int(cx, entry.priority, "a priority"))
        elif not given:
            given.append((len(entries) - 1) * delta + 1 if largest_wins else 1)
        else:
            given.append(given[-1] - delta if largest_wins else given[-1] + delta)
        if given[-1] < 0:
            note = (decl.at, "the table is declared here")
            cx.unit.reporter.error(entry.at, f"the priority of entry {i + 1} would be {given[-1]}", note)
    if largest_wins:
        return list(given)
    top = max(given, default=0) + 1
    return [top - p for p in given]


def _priority_annotation(entry: ast_table.TableEntry, default: int) -> int:
    for a in entry.annotations:
        if a.name == "priority" and a.args and isinstance(a.args[0], int):
            return int(a.args[0])
    return default


def _delta(cx: Context, prop: ast_table.Property | None) -> int:
    if prop is None:
        return 1
    found = evaluate.constant_int(cx, prop.value, "'priority_delta'")
    if found <= 0:
        cx.unit.reporter.fail(prop.value.at, "'priority_delta' must be positive")
    return found


def _values(cx: Context, entry: ast_table.TableEntry, keys: tuple[ir.Key, ...]) -> tuple[ir.KeyValue, ...]:
    given = entry.keys.items if isinstance(entry.keys, ast.ListOf) else (entry.keys,)
    if len(given) == 1 and isinstance(given[0], ast.DontCare) and len(keys) > 1:
        given = given * len(keys)
    if len(given) != len(keys):
        cx.unit.reporter.fail(entry.at, f"{len(given)} values for a table with {len(keys)} keys")
    return tuple(_value(cx, e, k) for e, k in zip(given, keys, strict=True))


def _value(cx: Context, e: ast.Expr, key: ir.Key) -> ir.KeyValue:
    type_, kind = key.expr.type, key.match_kind
    if isinstance(e, ast.DontCare):
        return ir.Anything()
    if isinstance(e, ast.MaskOf):
        if kind not in ("ternary", "lpm"):
            cx.unit.reporter.fail(e.at, f"a mask cannot be given for a key that is '{kind}'")
        width = _width(cx, type_, e.at)
        value, mask = (_number(cx, part, type_) & ((1 << width) - 1) for part in (e.value, e.mask))
        if kind == "lpm" and not _is_prefix(mask, width):
            cx.unit.reporter.fail(e.at, "the mask of an lpm key must be a prefix")
        return ir.Masked(value, mask)
    if isinstance(e, ast.RangeOf):
        if kind != "range":
            cx.unit.reporter.fail(e.at, f"a range cannot be given for a key that is '{kind}'")
        low, high = _number(cx, e.low, type_), _number(cx, e.high, type_)
        if low > high:
            cx.unit.reporter.fail(e.at, f"the range {low}..{high} is empty")
        return ir.Between(low, high)
    return ir.Exactly(evaluate.constant(cx, e, type_, "the value of a key").value)


def _width(cx: Context, type_: Type, at: int) -> int:
    bare = strip(type_)
    if isinstance(bare, SerEnum):
        return bare.base.width
    if not isinstance(bare, Bits):
        cx.unit.reporter.fail(at, f"a mask cannot be given for a key of type {type_}")
    return bare.width


def _number(cx: Context, e: ast.Expr, type_: Type) -> int:
    bare = strip(type_)
    found = evaluate.value(cx, e)
    if isinstance(bare, SerEnum) and isinstance(found.type, SerEnum):
        found = convert.cast_to_base(found, found.type)
    base = bare.base if isinstance(bare, SerEnum) else bare
    found = convert.cast(cx, found, base, e.at) if found.type == type_ else convert.coerce(cx, found, base, e.at)
    if not isinstance(found, ir.Literal) or not isinstance(found.value, int):
        cx.unit.reporter.fail(e.at, "the value of a key must be a compile-time constant")
    return fold.to_type(found.value, base)


def _is_prefix(mask: int, width: int) -> bool:
    inverted = ~mask & ((1 << width) - 1)
    return inverted & (inverted + 1) == 0
