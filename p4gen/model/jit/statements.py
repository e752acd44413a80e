"""Statements (P4_16 specification 1.2.5, section 12), except calls and packet operations."""

from __future__ import annotations

from collections.abc import Mapping

from p4gen.model.codec import HeaderCodec
from p4gen.model.interp.build import has_calls
from p4gen.model.interp.statements import MAX_ITERATIONS
from p4gen.model.jit.build import Gen, StmtHandler, is_memory, is_signed, members, part_at, unsupported
from p4gen.model.jit.emit import Address, Value, const
from p4gen.model.jit.expressions import header_valid, set_header_valid
from p4gen.model.jit.lanes import apply_row, row_at
from p4gen.model.jit.layout import LENGTH, scalar_width
from p4gen.model.jit.places import is_dynamic, locate, only_valid, store, store_from
from p4gen.p4 import ir
from p4gen.p4 import types as t

NATIVE_SWITCH = 64
"""The widest value for a native switch, in bits."""


def body(g: Gen, statements: tuple[ir.Stmt, ...]) -> None:
    """Statements in order; rows of lanes at once."""
    i = 0
    while i < len(statements):
        count, row = row_at(g, statements, i)
        if row is not None:
            apply_row(g, row)
        else:
            for s in statements[i : i + count]:
                g.stmt(s)
        i += count


def _block(g: Gen, s: ir.Block) -> None:
    body(g, s.body)


def _declare(g: Gen, s: ir.Declare) -> None:
    at = g.storage(s.variable.type)
    if s.init is None:
        g.clear(at, s.variable.type)
    else:
        g.assign(at, s.init)
    g.env[s.variable] = at


def _assign(g: Gen, s: ir.Assign) -> None:
    # Spec 12.1: the place comes first, and the value may change what the place depends on.
    early = is_dynamic(s.target) and has_calls(s.value)
    if not is_memory(s.target.type):
        place = locate(g, s.target) if early else None
        value = g.value(s.value)
        store(g, place or locate(g, s.target), value)
        return
    place = locate(g, s.target) if early else None
    source = g.address(s.value)
    store_from(g, place or locate(g, s.target), source)


def _evaluate(g: Gen, s: ir.Evaluate) -> None:
    if isinstance(t.strip(s.expr.type), t.Void) or not is_memory(s.expr.type):
        g.value(s.expr)
    else:
        g.address(s.expr)


def _if(g: Gen, s: ir.If) -> None:
    fn = g.fn
    condition = g.value(s.condition)
    then, otherwise, after = fn.label(), fn.label(), fn.label()
    fn.branch(condition, then, otherwise if s.otherwise is not None else after)
    fn.begin(then)
    g.stmt(s.then)
    fn.br(after)
    if s.otherwise is not None:
        fn.begin(otherwise)
        g.stmt(s.otherwise)
    fn.begin(after)


def _switch(g: Gen, s: ir.Switch) -> None:
    fn, subject = g.fn, g.value(s.subject)
    after = fn.label()
    default = after
    labels = [fn.label() for _ in s.cases]
    targets: dict[int, str] = {}
    for case, label in zip(s.cases, labels, strict=True):
        if not case.labels:
            default = label
        for e in case.labels:
            if not isinstance(e, ir.Literal):
                raise unsupported(e.pos, "a switch label that is not a constant")
            number = fn.resize(g.value(e), subject.width).constant
            assert number is not None
            targets.setdefault(number, label)
    choose(g, subject, default, list(targets.items()))
    for case, label in zip(s.cases, labels, strict=True):
        fn.begin(label)
        g.stmt(case.body)
        fn.br(after)
    fn.begin(after)


def choose(g: Gen, subject: Value, default: str, targets: list[tuple[int, str]]) -> None:
    """Jump by the value of ``subject``, of any width."""
    fn = g.fn
    if subject.width <= NATIVE_SWITCH:
        fn.switch(subject, default, targets)
        return
    for number, label in targets:
        go_on = fn.label()
        fn.branch(fn.compare("eq", subject, const(number, subject.width)), label, go_on)
        fn.begin(go_on)
    fn.br(default)


# --- loops ---


def _for(g: Gen, s: ir.For) -> None:
    fn = g.fn
    body(g, s.init)
    rounds = fn.local(32)
    fn.store(const(0, 32), rounds)
    head, inside, update, after = fn.label(), fn.label(), fn.label(), fn.label()
    fn.begin(head)
    g.loops += 1
    fn.branch(g.value(s.condition), inside, after)
    fn.begin(inside)
    with g.jumping(breaks=after, continues=update):
        g.stmt(s.body)
    fn.begin(update)
    body(g, s.update)
    count = fn.op("add", fn.load(rounds, 32), const(1, 32))
    fn.store(count, rounds)
    with fn.when(fn.compare("uge", count, const(MAX_ITERATIONS, 32)), rare=True):
        g.trap(s.pos, f"the loop has not ended after {MAX_ITERATIONS} rounds; it is exited")
        fn.br(after)
    fn.br(head)
    g.loops -= 1
    fn.begin(after)


def _for_in(g: Gen, s: ir.ForIn) -> None:
    g.loops += 1
    if isinstance(s.values, tuple):
        _for_range(g, s, *s.values)
    else:
        _for_elements(g, s, s.values)
    g.loops -= 1


def _for_range(g: Gen, s: ir.ForIn, low: ir.Expr, high: ir.Expr) -> None:
    fn, of, variable = g.fn, s.variable.type, g.storage(s.variable.type)
    width = scalar_width(of) + 1  # one more bit, so that the last value has a successor
    first, last = g.value(low), g.value(high)
    last = fn.resize(last, width, is_signed(high.type))
    at = fn.local(width)
    fn.store(fn.resize(first, width, is_signed(low.type)), at)
    g.env[s.variable] = variable
    head, inside, update, after = fn.label(), fn.label(), fn.label(), fn.label()
    fn.begin(head)
    number = fn.load(at, width)
    fn.branch(fn.compare("sle" if is_signed(of) else "ule", number, last), inside, after)
    fn.begin(inside)
    g.store(fn.resize(number, width - 1), variable, of)
    with g.jumping(breaks=after, continues=update):
        g.stmt(s.body)
    fn.begin(update)
    fn.store(fn.op("add", fn.load(at, width), const(1, width)), at)
    fn.br(head)
    fn.begin(after)


def _for_elements(g: Gen, s: ir.ForIn, values: ir.Expr) -> None:
    fn, kind = g.fn, values.type
    kept = g.temporary(kind)
    g.copy(kept, g.address(values), kind)
    after = fn.label()
    for i, of in enumerate(members(kind)):
        # Each iteration has its own variable, because the body may assign to it.
        variable = g.storage(of)
        g.copy(variable, part_at(g, kept, kind, i), of)
        g.env[s.variable] = variable
        following = fn.label()
        with g.jumping(breaks=after, continues=following):
            g.stmt(s.body)
        fn.begin(following)
    fn.begin(after)


def _break(g: Gen, s: ir.Break) -> None:
    g.jump(g.jumps.breaks)


def _continue(g: Gen, s: ir.Continue) -> None:
    g.jump(g.jumps.continues)


def _return(g: Gen, s: ir.Return) -> None:
    if s.value is not None and g.jumps.result is not None:
        g.assign(g.jumps.result, s.value)
    g.jump(g.jumps.returns)


def _exit(g: Gen, s: ir.Exit) -> None:
    g.jump(g.jumps.exit)


# --- headers ---


def _set_validity(g: Gen, s: ir.SetValidity) -> None:
    fn, kind = g.fn, t.strip(s.header.type)
    if not isinstance(kind, t.Header):
        raise unsupported(s.pos, f"setValid or setInvalid of {kind}")
    place = locate(g, s.header)
    valid = header_valid(g, place.at)
    changes = fn.op("xor", valid, const(s.valid, 1))
    with fn.when(changes):
        size = header_bytes(g, place.at, kind)
        if s.valid:
            g.clear(place.at, kind)
        set_header_valid(g, place.at, const(s.valid, 1))
        g.set_context(LENGTH, fn.op("add" if s.valid else "sub", g.context(LENGTH), size))
    if s.valid and place.union is not None:
        only_valid(g, place)


def header_bytes(g: Gen, at: Address, kind: t.Header) -> Value:
    """Whole bytes that a header takes with the present contents of its varbits."""
    bits = const(HeaderCodec(kind).width, 64)
    for i, member in enumerate(members(kind)):
        if isinstance(t.strip(member), t.Varbits):
            width = g.fn.load(part_at(g, at, kind, i), 32, 4)
            bits = g.fn.op("add", bits, g.fn.resize(width, 64))
    return const(int(bits.ref) // 8, 64) if bits.constant is not None else g.fn.op("lshr", bits, const(3, 64))


def _shift_stack(g: Gen, s: ir.ShiftStack) -> None:
    fn, kind = g.fn, t.strip(s.stack.type)
    assert isinstance(kind, t.Stack)
    at, size = locate(g, s.stack).at, kind.size
    count = min(s.count, size)
    step, elements = g.types.shape(kind.element).size, at.plus(g.types.shape(kind).parts[0] if size else 4)
    low, high = fn.pointer(elements), fn.pointer(elements.plus(count * step))
    moved = (size - count) * step
    position = fn.load(at, 32, 4)
    if s.push:
        fn.move(high, low, moved)
        more = fn.op("add", position, const(count, 32))
        fn.store(fn.select(fn.compare("ugt", more, const(size, 32)), const(size, 32), more), at, 4)
        freed = range(count)
    else:
        fn.move(low, high, moved)
        less = fn.op("sub", position, const(count, 32))
        none = fn.compare("ult", position, const(count, 32))
        fn.store(fn.select(none, const(0, 32), less), at, 4)
        freed = range(size - count, size)
    for i in freed:
        _invalidate(g, elements.plus(i * step), kind.element)


def _invalidate(g: Gen, at: Address, of: t.Type) -> None:
    """Make every header in a value invalid; its fields stay."""
    if isinstance(t.strip(of), t.Header):
        set_header_valid(g, at, const(0, 1))
    elif is_memory(of) and not isinstance(t.strip(of), t.Varbits):
        for i, member in enumerate(members(of)):
            _invalidate(g, part_at(g, at, of, i), member)


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
