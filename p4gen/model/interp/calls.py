"""Calls: argument passing, functions, actions, tables, sub-controls and sub-parsers.

Arguments are evaluated left to right, ``out`` and ``inout`` lvalues are located once, everything is
copied in, the body runs, and results are copied out left to right (spec 6.8). ``exit`` copies out, too
(spec 12.5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from p4gen.errors import Pos
from p4gen.model.interp.build import Build, ExprHandler, StmtHandler, children, copies_of, fresh, is_packet
from p4gen.model.interp.context import Eval, Exec, ExitSignal, Frame, Reject
from p4gen.model.interp.lvalues import LValue
from p4gen.model.interp.parsers import parser_body
from p4gen.model.interp.statements import return_slot
from p4gen.model.profiles import Bound, Chosen, Profile
from p4gen.model.state import profile_of
from p4gen.model.tables import Installed, key_width
from p4gen.model.trace import show
from p4gen.model.values import copy_value, is_composite
from p4gen.p4 import ir
from p4gen.p4 import types as t


@dataclass(frozen=True)
class _Passing:
    """How one argument is passed. ``prepare`` runs in the caller and returns the value to copy in and the place to copy
    out to; ``store`` copies out."""

    slot: int
    prepare: Callable[[Frame], tuple[Any, Any]]
    store: Callable[[Any, Any], None] | None


def _passing(b: Build, param: ir.Param, arg: ir.Arg, *, shared: bool) -> _Passing:
    slot, variable = b.slot(param.variable), param.variable
    make, composite = copies_of(b.state.unassigned(variable.type)), is_composite(variable.type)
    if arg.expr is None:
        return _Passing(slot, lambda f: (make(), None), None)
    if param.direction in ("in", "none") or (shared and param.direction == "inout"):
        value = b.expr(arg.expr)
        if composite and not shared:
            return _Passing(slot, lambda f: (copy_value(value(f)), None), None)
        return _Passing(slot, lambda f: (value(f), None), None)
    target = LValue(b, arg.expr)
    locate, load = target.locate, target.load
    if param.direction == "out":
        return _Passing(slot, lambda f: (make(), locate(f)), target.store)

    def prepare(f: Frame) -> tuple[Any, Any]:
        place = locate(f)
        return copy_value(load(place)), place

    return _Passing(slot, prepare, target.store)


def _variables(node: object) -> set[ir.Variable]:
    """The variables that an expression names."""
    if isinstance(node, ir.Var):
        return {node.variable}
    return set().union(*map(_variables, children(node)))


def _can_share(at: int, params: Sequence[ir.Param], args: Sequence[ir.Arg]) -> bool:
    """Whether argument ``at`` of a sub-block or function can be passed by reference instead of copied.

    The callee sees its caller's variables only through its parameters. So for a composite value that is a whole
    variable, or a fixed part of one that no other argument refers to, sharing cannot be distinguished from copying in
    and out.
    """
    expr = args[at].expr
    if params[at].direction == "out" or not is_composite(params[at].variable.type):
        return False
    part = expr
    while isinstance(part, ir.FieldOf):
        if isinstance(t.strip(part.base.type), t.HeaderUnion):
            return False
        part = part.base
    if not isinstance(part, ir.Var):
        return False
    return not any(i != at and part.variable in _variables(other) for i, other in enumerate(args))


def call(
    b: Build, params: Sequence[ir.Param], args: Sequence[ir.Arg], body: Exec, *, closed: bool
) -> Callable[[Frame], None]:
    """A call of ``body``; ``closed`` if it can reach the caller's variables only through parameters."""
    passed = [
        _passing(b, param, arg, shared=closed and _can_share(i, params, args))
        for i, (param, arg) in enumerate(zip(params, args, strict=True))
        if not is_packet(param.variable.type)
    ]
    if not passed:
        return lambda f: void(body(f))
    prepare = tuple(p.prepare for p in passed)
    slots = tuple(p.slot for p in passed)
    outs = tuple((i, p.slot, p.store) for i, p in enumerate(passed) if p.store is not None)

    def run(f: Frame) -> None:
        ready = [p(f) for p in prepare]
        for slot, item in zip(slots, ready, strict=True):
            f[slot] = item[0]
        try:
            body(f)
        except (ExitSignal, Reject):
            for i, slot, store in outs:
                store(ready[i][1], f[slot])
            raise
        for i, slot, store in outs:
            store(ready[i][1], f[slot])

    def run_without_outs(f: Frame) -> None:
        ready = [p(f) for p in prepare]
        for slot, item in zip(slots, ready, strict=True):
            f[slot] = item[0]
        body(f)

    return run if outs else run_without_outs


def void(_: object) -> None:
    """Drop a signal: a return or the like ends at the call."""


# --- functions and actions ---


def function_body(b: Build, function: ir.Function) -> Exec:
    """The compiled body, compiled once."""
    if function not in b.compiled:
        b.compiled[function] = b.stmt(function.body)
    found: Exec = b.compiled[function]
    return found


def _call(b: Build, e: ir.FunctionCall) -> Eval:
    callee = e.callee
    run = call(b, (*callee.params, *callee.data), e.args, function_body(b, callee), closed=not callee.is_action)
    if isinstance(callee.returns, t.Void):
        return run
    slot, make = return_slot(b), fresh(callee.returns)

    def value(f: Frame) -> Any:
        f[slot] = None
        run(f)
        result = f[slot]
        return make() if result is None else result

    return value


# --- tables ---


def _key_part(b: Build, key: ir.Key) -> Eval:
    value, width = b.expr(key.expr), key_width(key.expr.type)
    kind = t.strip(key.expr.type)
    if width == 0 or (isinstance(kind, t.Bits) and not kind.signed):
        return value
    mask = (1 << width) - 1
    return lambda f: int(value(f)) & mask


def key_tuple(b: Build, keys: Sequence[ir.Key]) -> Callable[[Frame], tuple[Any, ...]]:
    """A function that evaluates a table's key from left to right."""
    parts = tuple(_key_part(b, k) for k in keys)
    if len(parts) == 1:
        only = parts[0]
        return lambda f: (only(f),)
    if len(parts) == 2:
        first, second = parts
        return lambda f: (first(f), second(f))
    return lambda f: tuple([part(f) for part in parts])


def _action_runner(b: Build, ref: ir.ActionRef) -> Callable[[Frame, tuple[Any, ...]], None]:
    """Runs an action of a table with the entry's data; its bound arguments are evaluated then."""
    slots = tuple(b.slot(p.variable) for p in ref.action.data)
    run = call(b, *ref.passed, function_body(b, ref.action), closed=False)

    def act(f: Frame, data: tuple[Any, ...]) -> None:
        for slot, value in zip(slots, data, strict=True):
            f[slot] = value
        run(f)

    return act


Applied = Callable[[Frame], tuple[bool, str]]


def table_apply(b: Build, table: ir.Table) -> Applied:
    """Applies a table: (hit, name of the action that ran)."""
    if table not in b.compiled:
        b.compiled[table] = _table_apply(b, table)
    found: Applied = b.compiled[table]
    return found


def _table_apply(b: Build, table: ir.Table) -> Applied:
    state = b.state.tables[table.name]
    key = key_tuple(b, [k for k in table.keys if k.match_kind != "selector"])
    runners = {ref: _action_runner(b, ref) for ref in table.actions}
    for entry_call in (table.default_action, *(e.action for e in table.entries)):
        if entry_call.ref not in runners:
            runners[entry_call.ref] = _action_runner(b, entry_call.ref)
    # A table without keys always misses (spec 14.2.1.4).
    keyless = not state.keys
    counted = any(e.extern == "direct_counter" for e in table.direct)
    metered = next((e for e in table.direct if e.extern == "direct_meter"), None)
    in_bytes = metered is not None and "bytes" in metered.args
    clock = b.state
    timed = table.support_timeout
    profile = profile_of(b.state, table)
    chooser = _selector_hash(b, table, profile) if profile is not None else None
    # Externs that the action calls by itself, for the entry whose action it is.
    called = any(e.extern not in ("direct_counter", "direct_meter") for e in table.direct)
    note = _table_note(table) if b.traced else None

    def apply(f: Frame) -> tuple[bool, str]:
        values = key(f)
        entry = None if keyless else state.lookup(values)
        hit = entry is not None
        if entry is None:
            entry = state.default
        elif counted or metered or timed:
            if timed:
                entry.last_hit = clock.clock()
            ctx = f[0]
            if counted:
                entry.packets += 1
                entry.bytes += ctx.ingress_length
            if metered:
                size = ctx.ingress_length if in_bytes else 1
                ctx.color = entry.meter.mark(size, clock.clock()) if entry.meter else 0
        if called:
            f[0].matched = entry
        bound, chosen = entry.bound, None
        if chooser is not None and bound is not None:
            chosen = bound.choose(lambda: chooser(f))
            if chosen is not None:  # without a live member, the entry's own action runs (NoAction)
                entry = Installed(entry.fields, *chosen.choice, entry.priority)
        if note is not None:
            note(f, values, hit, entry)
            if bound is not None:
                _note_choice(f, table, bound, chosen)
            _note_action(f, entry)
        # Stored before the action runs, because the action may change the entry.
        ref, data = entry.ref, entry.args
        runners[ref](f, data)
        if called:
            f[0].matched = None
        return hit, ref.name

    return apply


def _selector_hash(b: Build, table: ir.Table, profile: Profile) -> Callable[[Frame], int]:
    """The hash of a table's selector keys, by the algorithm of its action selector."""
    keys = [k for k in table.keys if k.match_kind == "selector"]
    values, widths = key_tuple(b, keys), [t.width_of(k.expr.type) for k in keys]

    def chosen(f: Frame) -> int:
        joined = 0
        for value, width in zip(values(f), widths, strict=True):
            joined = joined << width | int(value)
        return profile.hash(joined, sum(widths))

    return chosen


def _table_note(table: ir.Table) -> Callable[[Frame, tuple[Any, ...], bool, Installed], None]:
    names = {k.name: k.expr.type for k in table.keys if k.match_kind != "selector"}

    def note(f: Frame, values: tuple[Any, ...], hit: bool, entry: Installed) -> None:
        keys = dict(zip(names, values, strict=True))
        shown = ", ".join(f"{k}={show(v, names[k])}" for k, v in keys.items()) or "no key"
        f[0].trace.add(
            "table", f"table {table.name} [{shown}]: {'hit' if hit else 'miss'}", table.pos,
            table=table.name, keys=keys, hit=hit, priority=entry.priority, fields=entry.fields,
        )  # fmt: skip

    return note


def _note_choice(f: Frame, table: ir.Table, bound: Bound, chosen: Chosen | None) -> None:
    what = "action" if bound.indirect.actions else "member"
    shown = "no live member" if chosen is None else f"{what} {chosen.member}"
    by = "" if chosen is None or chosen.hash is None else f" by hash {show(chosen.hash)}"
    data = {} if chosen is None else {"member": chosen.member, "hash": chosen.hash}
    f[0].trace.add("selector", f"  {bound}: {shown}{by}", table.pos, table=table.name, **data)


def _note_action(f: Frame, entry: Installed) -> None:
    params = {p.variable.name: p.variable.type for p in entry.ref.action.data}
    args = dict(zip(params, entry.args, strict=True))
    call_text = ", ".join(f"{k}={show(v, params[k])}" for k, v in args.items())
    f[0].trace.add(
        "action", f"  action {entry.ref.action.name}({call_text})", entry.ref.action.pos,
        action=entry.ref.action.name, args=args,
    )  # fmt: skip


def _apply_table(b: Build, e: ir.ApplyTable) -> Eval:
    apply = table_apply(b, e.table)
    match e.result:
        case "hit":
            return lambda f: apply(f)[0]
        case "miss":
            return lambda f: not apply(f)[0]
        case "action_run":
            return lambda f: apply(f)[1]
    return apply


# --- sub-blocks ---


def control_body(b: Build, control: ir.Control) -> Exec:
    """A control's locals and body, compiled once; a signal other than ``exit`` ends with it."""
    if control not in b.compiled:
        b.compiled[control] = b.body((*control.locals, control.body))
    body: Exec = b.compiled[control]
    return body


def _announced(b: Build, control: ir.Control, pos: Pos) -> Exec:
    """A sub-control's body, with an event for the trace."""
    body = control_body(b, control)
    if not b.traced:
        return body

    def traced(f: Frame) -> None:
        f[0].trace.add("block", f"control {control.name}", pos, block=control.name)
        body(f)

    return traced


def _apply_block(b: Build, s: ir.ApplyBlock) -> Exec:
    block = s.block
    body = _announced(b, block, s.pos) if isinstance(block, ir.Control) else parser_body(b, block)
    return call(b, block.params, s.args, body, closed=True)


EXPRESSIONS: Mapping[type[ir.Expr], ExprHandler] = {ir.FunctionCall: _call, ir.ApplyTable: _apply_table}
STATEMENTS: Mapping[type[ir.Stmt], StmtHandler] = {ir.ApplyBlock: _apply_block}
