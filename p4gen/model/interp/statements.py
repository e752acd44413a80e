"""Statements (P4_16 specification 1.2.5, section 12), except calls of blocks and packet operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from p4gen.errors import Pos
from p4gen.model.codec import HeaderCodec, header_width
from p4gen.model.interp.build import Build, StmtHandler, fresh, has_calls, unsupported
from p4gen.model.interp.context import BREAK, CONTINUE, RETURN, Eval, Exec, ExitSignal, Frame
from p4gen.model.interp.lvalues import LValue, only_valid
from p4gen.model.trace import show
from p4gen.model.values import clear_header, copy_value, is_composite, shift_stack
from p4gen.p4 import ir
from p4gen.p4 import types as t
from p4gen.p4.show import text

MAX_ITERATIONS = 1_000_000
"""Number of iterations after which a ``for`` loop is assumed to be endless."""


def _block(b: Build, s: ir.Block) -> Exec:
    return b.body(s.body)


def _declare(b: Build, s: ir.Declare) -> Exec:
    slot = b.slot(s.variable)
    if s.init is None:
        make = fresh(s.variable.type, poison=b.state.poison)

        def declare(f: Frame) -> None:
            f[slot] = make()

        return declare
    value = _traced(b, s.pos, s.variable.name, s.variable.type, b.expr(s.init))
    if is_composite(s.variable.type):

        def declare_copy(f: Frame) -> None:
            f[slot] = copy_value(value(f))

        return declare_copy

    def declare_value(f: Frame) -> None:
        f[slot] = value(f)

    return declare_value


def _assign(b: Build, s: ir.Assign) -> Exec:
    target = LValue(b, s.target)
    value = _traced(b, s.pos, text(s.target) if b.traced else "", s.target.type, b.expr(s.value))
    if isinstance(s.target, ir.FieldOf) and b.state.decides(s.target.base.type):
        value = _plain(value)
    if target.dynamic and has_calls(s.value):
        # Spec 12.1: the place comes first, and the value may change what the place depends on.
        locate, store = target.locate, target.store

        def assign_placed(f: Frame) -> None:
            place = locate(f)
            store(place, value(f))

        return assign_placed
    match s.target:
        case ir.Var(variable=variable) if not target.composite:
            slot = b.slot(variable)

            def assign_variable(f: Frame) -> None:
                f[slot] = value(f)

            return assign_variable
    put = target.set

    def assign(f: Frame) -> None:
        put(f, value(f))

    return assign


def _plain(value: Eval) -> Eval:
    """A number, also where the value was one that nobody had assigned."""
    return lambda f: int(value(f))


def _traced(b: Build, pos: Pos, name: str, of: t.Type, value: Eval) -> Eval:
    """``value``, with an event for the trace that it is assigned to ``name``."""
    if not b.traced:
        return value

    def assigned(f: Frame) -> Any:
        found = value(f)
        f[0].trace.add("assign", f"{name} = {show(found, of)}", pos, target=name, value=copy_value(found))
        return found

    return assigned


def _decided(b: Build, pos: Pos, keyword: str, e: ir.Expr) -> Eval:
    """A condition or the subject of a switch, with an event for the trace."""
    value = b.expr(e)
    if not b.traced:
        return value
    what, of = f"{keyword} ({text(e)})", e.type

    def decided(f: Frame) -> Any:
        found = value(f)
        f[0].trace.add("condition", f"{what}: {show(found, of)}", pos, value=found)
        return found

    return decided


def _evaluate(b: Build, s: ir.Evaluate) -> Exec:
    value = b.expr(s.expr)

    def evaluate(f: Frame) -> None:
        value(f)

    return evaluate


def _if(b: Build, s: ir.If) -> Exec:
    condition, then = _decided(b, s.pos, "if", s.condition), b.stmt(s.then)
    if s.otherwise is None:
        return lambda f: then(f) if condition(f) else None
    otherwise = b.stmt(s.otherwise)
    return lambda f: then(f) if condition(f) else otherwise(f)


def _nothing(f: Frame) -> None:
    return None


def _switch(b: Build, s: ir.Switch) -> Exec:
    subject = _decided(b, s.pos, "switch", s.subject)
    default: Exec = _nothing
    by_value: dict[Any, Exec] = {}
    for case in s.cases:
        body = b.stmt(case.body)
        if not case.labels:
            default = body
        for label in case.labels:
            if not isinstance(label, ir.Literal):
                raise unsupported(label.pos, "a switch label that is not a constant")
            by_value.setdefault(label.value, body)
    return lambda f: by_value.get(subject(f), default)(f)


def _for(b: Build, s: ir.For) -> Exec:
    init, condition = b.body(s.init), _decided(b, s.pos, "for", s.condition)
    update, body = b.body(s.update), b.stmt(s.body)
    pos, state = s.pos, b.state

    def loop(f: Frame) -> int | None:
        init(f)
        rounds = 0
        while condition(f):
            signal = body(f)
            if signal == BREAK:
                break
            if signal == RETURN:
                return signal
            update(f)
            rounds += 1
            if rounds >= MAX_ITERATIONS:
                state.trap(pos, f"the loop has not ended after {MAX_ITERATIONS} rounds; it is exited")
                break
        return None

    return loop


def _for_in(b: Build, s: ir.ForIn) -> Exec:
    slot, body = b.slot(s.variable), b.stmt(s.body)
    values: Callable[[Frame], Any]
    if isinstance(s.values, tuple):
        low, high = b.expr(s.values[0]), b.expr(s.values[1])
        values = lambda f: range(low(f), high(f) + 1)  # noqa: E731
    else:
        source = b.expr(s.values)
        values = lambda f: [copy_value(v) for v in source(f).fields]  # noqa: E731

    def loop(f: Frame) -> int | None:
        for value in values(f):
            f[slot] = value
            signal = body(f)
            if signal == BREAK:
                break
            if signal == RETURN:
                return signal
        return None

    return loop


def _break(b: Build, s: ir.Break) -> Exec:
    return lambda f: BREAK


def _continue(b: Build, s: ir.Continue) -> Exec:
    return lambda f: CONTINUE


RETURN_SLOT = "return slot"


def return_slot(b: Build) -> int:
    """The slot for a function's result, which the caller reads at once."""
    if RETURN_SLOT not in b.compiled:
        b.compiled[RETURN_SLOT] = b.new_slot()
    slot: int = b.compiled[RETURN_SLOT]
    return slot


def _return(b: Build, s: ir.Return) -> Exec:
    if s.value is None:
        return lambda f: RETURN
    slot, value, composite = return_slot(b), b.expr(s.value), is_composite(s.value.type)

    def leave(f: Frame) -> int:
        result = value(f)
        f[slot] = copy_value(result) if composite else result
        return RETURN

    return leave


def _exit(b: Build, s: ir.Exit) -> Exec:
    def leave(f: Frame) -> int:
        raise ExitSignal

    return leave


# --- headers ---


def _set_validity(b: Build, s: ir.SetValidity) -> Exec:
    place, kind = LValue(b, s.header), t.strip(s.header.type)
    if not isinstance(kind, t.Header):
        raise unsupported(s.pos, f"setValid or setInvalid of {kind}")
    fixed, locate, in_union, valid = HeaderCodec(kind).width, place.locate, place.in_union, s.valid
    traced, pos, name = b.traced, s.pos, text(s.header)
    garbage = fresh(kind, poison=True) if b.state.poison else None

    def set_validity(f: Frame) -> None:
        container, key = locate(f)
        header = container[key]
        if traced:
            what = f"{name}.{'setValid' if valid else 'setInvalid'}()"
            f[0].trace.add("assign", what, pos, target=name, value=valid)
        if header.valid is not valid:
            size = header_width(header, fixed) // 8
            if valid and garbage is not None:
                header.fields[:] = garbage().fields
            elif valid:
                clear_header(header)
            header.valid = valid
            f[0].length += size if valid else -size
        if valid and in_union:
            only_valid(container, key)

    return set_validity


def _shift_stack(b: Build, s: ir.ShiftStack) -> Exec:
    stack, count, push = _owner_of(b, s.stack), s.count, s.push

    def shift(f: Frame) -> None:
        shift_stack(stack(f), count, push)

    return shift


def _owner_of(b: Build, e: ir.Expr) -> Eval:
    place = LValue(b, e)
    return lambda f: place.load(place.locate(f))


HANDLERS: Mapping[type[ir.Stmt], StmtHandler] = {
    ir.Block: _block,
    ir.Declare: _declare,
    ir.Assign: _assign,
    ir.Evaluate: _evaluate,
    ir.If: _if,
    ir.Switch: _switch,
    ir.For: _for,
    ir.ForIn: _for_in,
    ir.Break: _break,
    ir.Continue: _continue,
    ir.Return: _return,
    ir.Exit: _exit,
    ir.SetValidity: _set_validity,
    ir.ShiftStack: _shift_stack,
}
