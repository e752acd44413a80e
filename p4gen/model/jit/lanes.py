"""Lanes: applications of equal sub-controls to neighbouring fields become vector code.

``lane_0.apply(payload.lane_0, slot); lane_1.apply(payload.lane_1, slot); …`` are instances of one declaration, each
with its own registers, which the state block interleaves. If all arguments except the neighbouring fields are the same,
the row is executed at once, sixteen 32-bit lanes per vector. All other code is scalar.

A row has one register index for all lanes. If it is out of range, registers are not accessed, and every access traps,
lane by lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from p4gen.model.jit.blocks import Item
from p4gen.model.jit.build import FRAME, TEMPORARY, Gen, is_memory
from p4gen.model.jit.emit import Address, Value, const
from p4gen.model.jit.lanes_code import Body, Lanes
from p4gen.model.jit.lanes_inline import flattened
from p4gen.model.jit.layout import bits_of, container, scalar_width
from p4gen.p4 import ir
from p4gen.p4 import types as t

SHORTEST = 4
"""The least number of sub-controls in a row."""

_WIDTHS = (8, 16, 32, 64)
_LONG = 24
"""Statements; more than this are a loop's body."""
_SKIPPED = frozenset(("pos", "annotations", "name"))


@dataclass(frozen=True)
class Row:
    """``count`` applications of controls like ``control``, whose parameters are of these kinds."""

    control: ir.Control
    count: int
    lanes: dict[ir.Variable, tuple[Address, str]]
    """Parameters that are neighbouring fields: the address of the first, and the direction."""
    same: dict[ir.Variable, ir.Expr]
    """Parameters that are the same for all."""
    flags: dict[ir.Variable, ir.Expr]
    """Parameters that the control only ever sets, all of them the same variable."""
    registers: dict[ir.ExternInstance, Item]
    """The first instance's registers; the others' cells follow."""
    index: tuple[ir.Variable, int] | None
    """The register index, and the size that it must be below."""
    twins: tuple[dict[ir.ExternInstance, Item], ...]
    """For each lane, its registers by the first lane's registers to which they correspond."""


def row_at(g: Gen, statements: Sequence[ir.Stmt], start: int) -> tuple[int, Row | None]:
    """How many statements from ``start`` on apply instances of one declaration (at least 1), and the row that they
    form, if they do."""
    first = statements[start]
    if not isinstance(first, ir.ApplyBlock) or not isinstance(first.block, ir.Control) or first.block.tables:
        return 1, None
    applied = [first]
    for s in statements[start + 1 :]:
        if not isinstance(s, ir.ApplyBlock) or s.block.pos != first.block.pos or s.block is first.block:
            break
        applied.append(s)
    if len(applied) < SHORTEST:
        return len(applied), None
    control = flattened(first.block)
    return len(applied), _row(g, control, applied) if _simple(control) else None


def _row(g: Gen, control: ir.Control, applied: Sequence[ir.ApplyBlock]) -> Row | None:
    matched: list[dict[object, object]] = []
    for s in applied:
        assert isinstance(s.block, ir.Control)
        other = flattened(s.block)
        pairs: dict[object, object] = {}
        alike = _alike((control.locals, control.body, control.params), (other.locals, other.body, other.params), pairs)
        if not alike or len({id(v) for v in pairs.values()}) != len(pairs):
            return None
        matched.append(pairs)
    lanes: dict[ir.Variable, tuple[Address, str]] = {}
    same: dict[ir.Variable, ir.Expr] = {}
    flags: dict[ir.Variable, ir.Expr] = {}
    for i, param in enumerate(control.params):
        args = [s.args[i].expr for s in applied]
        head, variable = args[0], param.variable
        if head is None or is_memory(variable.type):
            return None
        if all(a is not None and _alike(head, a, None) for a in args):
            if param.direction in ("in", "none") and _static(g, head):
                same[variable] = head
            elif param.direction == "inout" and isinstance(head, ir.Var) and _only_set(control, variable):
                flags[variable] = head
            else:
                return None
            continue
        at = _neighbours(g, args, variable.type)
        if at is None:
            return None
        lanes[variable] = (at, param.direction)
    accesses = _accesses(control, same)
    if accesses is None or not lanes or not _apart(g, lanes, same, flags, len(applied)):
        return None
    registers = _registers(g, [c for c, _ in accesses], matched)
    sizes = {item.count for item in registers.values()} if registers is not None else set()
    if registers is None or len(sizes) > 1 or len({v for _, v in accesses}) > 1:
        return None
    index = (accesses[0][1], sizes.pop()) if accesses else None
    twins = tuple({each: _twin(g, each, i, pairs) for each in registers} for i, pairs in enumerate(matched))
    return Row(control, len(applied), lanes, same, flags, registers, index, twins)


# --- comparison of controls ---


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name not in _SKIPPED)


def _kind(node: object) -> Any:
    return type(node)


def _alike(a: object, b: object, pairs: dict[object, object] | None) -> bool:
    """Whether two pieces of IR are equal except for variables and instances, which are then added to ``pairs`` (None:
    they must be equal, too)."""
    if a is b:
        return pairs is None or not isinstance(a, (ir.Variable, ir.ExternInstance)) or pairs.setdefault(a, b) is b
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        assert isinstance(b, tuple)
        return len(a) == len(b) and all(_alike(x, y, pairs) for x, y in zip(a, b, strict=True))
    if isinstance(a, (ir.Variable, ir.ExternInstance)):
        return pairs is not None and pairs.setdefault(a, b) is b
    if isinstance(a, t.Type) or not hasattr(a, "__dataclass_fields__"):
        return a == b
    if isinstance(a, (ir.Function, ir.Table, ir.Control, ir.Parser)):
        return False
    if isinstance(a, ir.FieldOf) and isinstance(b, ir.FieldOf) and a.name != b.name:
        return False
    return all(_alike(getattr(a, n), getattr(b, n), pairs) for n in _names(_kind(a)))


# --- arguments ---


def _static(g: Gen, e: ir.Expr) -> bool:
    """Whether ``e`` is a constant, a variable or a fixed part of one."""
    if isinstance(e, ir.Literal):
        return True
    while isinstance(e, ir.FieldOf):
        e = e.base
    return isinstance(e, ir.Var) and _fixed(g.env.get(e.variable))


def _fixed(at: Address | None) -> bool:
    return at is not None and (at.exact or at.base in (FRAME, TEMPORARY))


def _neighbours(g: Gen, args: Sequence[ir.Expr | None], of: t.Type) -> Address | None:
    """The address of the first argument, if all are adjacent fields of ``of``'s width; otherwise None."""
    bits = bits_of(of)
    if bits is None or bits.width not in _WIDTHS:
        return None
    places = []
    for arg in args:
        if not isinstance(arg, ir.FieldOf) or not _static(g, arg):
            return None
        places.append(g.address(arg))
    first, size = places[0], container(bits.width)
    if first.exact or any(p != first.plus(i * size) for i, p in enumerate(places)):
        return None
    return first


def _apart(
    g: Gen, lanes: dict[ir.Variable, tuple[Address, str]], same: dict[ir.Variable, ir.Expr],
    flags: dict[ir.Variable, ir.Expr], count: int,
) -> bool:  # fmt: skip
    """Whether written variables do not alias others: neither lanes nor flags occur in the arguments that are the same
    for all, and lanes do not overlap."""
    spans = [(at, count * container(scalar_width(v.type))) for v, (at, _) in lanes.items()]
    spans += [(g.address(e), container(scalar_width(v.type))) for v, e in flags.items()]
    for variable, e in same.items():
        if not isinstance(e, ir.Literal):
            spans.append((g.address(e), container(scalar_width(variable.type))))
    written = len(lanes) + len(flags)
    for i, (a, size_a) in enumerate(spans[:written]):
        for b, size_b in spans[i + 1 :]:
            if a.base == b.base and a.offset < b.offset + size_b and b.offset < a.offset + size_a:
                return False
    return True


# --- body of the control ---

_OPERATORS = frozenset(
    ("+", "-", "*", "&", "|", "^", "|+|", "|-|", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "<<", ">>", "++")
)  # fmt: skip


def _simple(control: ir.Control) -> bool:
    return all(map(_plain, control.locals)) and _plain(control.body)


def _plain(s: ir.Stmt) -> bool:
    """Whether a statement has vector code."""
    match s:
        case ir.Block(body=body):
            return all(map(_plain, body))
        case ir.Declare(variable=variable, init=init):
            return _narrow(variable.type) and (init is None or _vectorable(init))
        case ir.Assign(target=ir.Var(), value=value):
            return _vectorable(value)
        case ir.If(condition=condition, then=then, otherwise=otherwise):
            return _vectorable(condition) and _plain(then) and (otherwise is None or _plain(otherwise))
        case ir.Evaluate(expr=ir.ExternCall(instance=ir.ExternInstance(extern="register")) as call):
            index, moved = _access(call)
            return isinstance(index, ir.Var) and moved is not None and _vectorable(moved)
    return False


def _access(call: ir.ExternCall) -> tuple[ir.Expr | None, ir.Expr | None]:
    """The index of a register access, and the variable or value read or written."""
    first, second = (a.expr for a in call.args)
    if call.method == "read":
        return second, first if isinstance(first, ir.Var) else None
    return first, second


def _narrow(of: t.Type) -> bool:
    bits = bits_of(of)
    return isinstance(t.strip(of), t.Bool) or (bits is not None and 0 < bits.width <= _WIDTHS[-1])


def _pure(function: ir.Function) -> bool:
    """Whether a function computes a value from its arguments, and nothing else, and returns it at its end."""
    body = function.body.body
    if not body or not all(p.direction == "in" and _narrow(p.variable.type) for p in function.params):
        return False
    last = body[-1]
    ends = isinstance(last, ir.Return) and last.value is not None and _vectorable(last.value)
    accesses = (isinstance(s, ir.Evaluate) for part in body for s in _statements(part))
    return ends and all(map(_plain, body[:-1])) and not any(accesses)


def _vectorable(e: ir.Expr) -> bool:
    if not _narrow(e.type):
        return False
    match e:
        case ir.Literal() | ir.Var():
            return True
        case ir.Unary(operand=operand) | ir.Cast(operand=operand):
            return _vectorable(operand)
        case ir.Binary(op="<<" | ">>", left=left, right=ir.Literal()):
            return _vectorable(left)
        case ir.Binary(op=op, left=left, right=right):
            return op in _OPERATORS and _vectorable(left) and _vectorable(right)
        case ir.Slice(base=base, hi=hi):
            return hi < scalar_width(base.type) and _vectorable(base)
        case ir.FunctionCall(callee=callee, args=args):
            return _pure(callee) and all(a.expr is not None and _vectorable(a.expr) for a in args)
        case ir.Mux(condition=condition, then=then, otherwise=otherwise):
            return all(map(_vectorable, (condition, then, otherwise)))
    return False


def _statements(s: ir.Stmt) -> list[ir.Stmt]:
    match s:
        case ir.Block(body=body):
            return [x for part in body for x in _statements(part)]
        case ir.If(then=then, otherwise=otherwise):
            return [s, *_statements(then), *(_statements(otherwise) if otherwise is not None else ())]
    return [s]


def _mentions(e: object, variable: ir.Variable) -> bool:
    if isinstance(e, ir.Var):
        return e.variable is variable
    if isinstance(e, tuple):
        return any(_mentions(x, variable) for x in e)
    if isinstance(e, (ir.Expr, ir.Arg)):
        return any(_mentions(getattr(e, n), variable) for n in _names(_kind(e)))
    return False


def _only_set(control: ir.Control, variable: ir.Variable) -> bool:
    """Whether a parameter is only ever assigned, always with the same constant."""
    values = set()
    for s in (x for part in (*control.locals, control.body) for x in _statements(part)):
        match s:
            case ir.Assign(target=ir.Var(variable=target), value=ir.Literal(value=value)) if target is variable:
                values.add(value)
            case ir.If(condition=condition):
                if _mentions(condition, variable):
                    return False
            case ir.Declare(init=init):
                if _mentions(init, variable):
                    return False
            case ir.Assign(target=target_expr, value=value_expr):
                if _mentions(target_expr, variable) or _mentions(value_expr, variable):
                    return False
            case ir.Evaluate(expr=evaluated):
                if _mentions(evaluated, variable):
                    return False
    return len(values) <= 1


def _accesses(control: ir.Control, same: dict[ir.Variable, ir.Expr]) -> list[tuple[ir.ExternCall, ir.Variable]] | None:
    """The register accesses with their indices, if all lanes make the same ones, and the indices are the same for all
    lanes; None if not."""
    found: list[tuple[ir.ExternCall, ir.Variable]] = []

    def sound(s: ir.Stmt, *, together: bool) -> bool:
        match s:
            case ir.Block(body=body):
                return all(sound(each, together=together) for each in body)
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                together = together and _uniform(condition, same)
                return sound(then, together=together) and (otherwise is None or sound(otherwise, together=together))
            case ir.Assign(target=ir.Var(variable=variable)):
                return variable not in same
            case ir.Evaluate(expr=ir.ExternCall() as call):
                index, _ = _access(call)
                if not together or not isinstance(index, ir.Var) or index.variable not in same:
                    return False
                found.append((call, index.variable))
        return True

    return found if all(sound(each, together=True) for each in (*control.locals, control.body)) else None


def _uniform(e: ir.Expr, same: dict[ir.Variable, ir.Expr]) -> bool:
    """Whether an expression has one value for all lanes, which is computed as a scalar."""
    match e:
        case ir.Literal():
            return True
        case ir.Var(variable=variable):
            return variable in same
        case ir.Unary(operand=operand) | ir.Cast(operand=operand):
            return _uniform(operand, same)
        case ir.Slice(base=base):
            return _uniform(base, same)
        case ir.Binary(op=op, left=left, right=right):
            return op in ("==", "!=", "&&", "||", "&", "|", "^") and _uniform(left, same) and _uniform(right, same)
    return False


def _registers(
    g: Gen, accesses: Sequence[ir.ExternCall], matched: Sequence[dict[object, object]]
) -> dict[ir.ExternInstance, Item] | None:
    """The first control's registers, if the others' follow them cell by cell."""
    found: dict[ir.ExternInstance, Item] = {}
    for call in accesses:
        assert call.instance is not None
        item = found[call.instance] = g.module.state.registers[call.instance.name]
        for i, pairs in enumerate(matched):
            other = _twin(g, call.instance, i, pairs)
            if (other.offset, other.step) != (item.offset + i * item.bytes, item.step) or item.width not in _WIDTHS:
                return None
    return found


def _twin(g: Gen, instance: ir.ExternInstance, i: int, pairs: dict[object, object]) -> Item:
    """The register of lane ``i`` that corresponds to one of the first lane."""
    twin = pairs[instance] if i else instance
    assert isinstance(twin, ir.ExternInstance)
    return g.module.state.registers[twin.name]


# --- code ---


def apply_row(g: Gen, row: Row) -> None:
    """Generate vector code for a row."""
    fn = g.fn
    values = {v: g.value(e) for v, e in row.same.items()}
    flags: dict[ir.Variable, Address] = {v: fn.local(1) for v in row.flags}
    for at in flags.values():
        fn.store(const(0, 1), at)
    if row.index is None:
        _chunks(g, row, values, flags, dry=False)
    else:
        index, size = values[row.index[0]], row.index[1]
        wide = max(index.width, size.bit_length()) + 1
        inside, outside, after = fn.label(), fn.label(), fn.label()
        below = fn.compare("ult", fn.resize(index, wide), const(size, wide))
        fn.branch(below, inside, outside, rare=False)
        fn.begin(outside)
        conditions = Body(g, SHORTEST, values, {}, dry=True)
        for twins in row.twins:
            for s in (*row.control.locals, row.control.body):
                _traps(g, conditions, s, twins, index)
        _chunks(g, row, values, flags, dry=True)
        fn.br(after)
        fn.begin(inside)
        _chunks(g, row, values, flags, dry=False)
        fn.begin(after)
    for variable, flag in flags.items():
        e = row.flags[variable]
        at = g.address(e)
        new = const(int(_constant(row.control, variable)), scalar_width(variable.type))
        g.store(fn.select(fn.load(flag, 1), new, g.load(at, e.type)), at, e.type)


def _traps(g: Gen, body: Body, s: ir.Stmt, twins: dict[ir.ExternInstance, Item], index: Value) -> None:
    """Traps in the place of a lane's register accesses."""
    match s:
        case ir.Block(body=statements):
            for each in statements:
                _traps(g, body, each, twins, index)
        case ir.If(condition=condition, then=then, otherwise=otherwise) if _accesses_registers(s):
            fn = g.fn
            yes, no, after = fn.label(), fn.label(), fn.label()
            fn.branch(_scalar(body.value(condition)), yes, no)
            fn.begin(yes)
            _traps(g, body, then, twins, index)
            fn.br(after)
            fn.begin(no)
            if otherwise is not None:
                _traps(g, body, otherwise, twins, index)
            fn.begin(after)
        case ir.Evaluate(expr=ir.ExternCall(instance=ir.ExternInstance() as instance) as call):
            g.trap(call.pos, twins[instance].outside(f": {call.method} at"), index, t.Bits(index.width))


def _accesses_registers(s: ir.Stmt) -> bool:
    return any(isinstance(each, ir.Evaluate) for each in _statements(s))


def _scalar(value: Lanes) -> Value:
    assert isinstance(value, Value)
    return value


def _chunks(
    g: Gen, row: Row, values: dict[ir.Variable, Value], flags: dict[ir.Variable, Address], *, dry: bool
) -> None:
    done, widest = 0, max(scalar_width(v.type) for v in row.lanes)
    most = 512 // widest
    if row.count >= 2 * most and _long(row.control):
        # The code stands once, in a loop.
        fn, at = g.fn, g.fn.local(64)
        fn.store(const(0, 64), at)
        with fn.loop() as (_, after):
            _chunk(g, row, Body(g, most, values, flags, dry=dry), fn.load(at, 64))
            fn.store(fn.op("add", fn.load(at, 64), const(most, 64)), at)
            more = fn.label()
            fn.branch(fn.compare("ult", fn.load(at, 64), const(row.count // most * most, 64)), more, after)
            fn.begin(more)
        done = row.count // most * most
    while done < row.count:
        count = min(most, 1 << ((row.count - done).bit_length() - 1))
        _chunk(g, row, Body(g, count, values, flags, dry=dry), const(done, 64))
        done += count


def _long(control: ir.Control) -> bool:
    """Whether a control's code is long: it has many statements, or calls functions."""
    return _calls(control) or len([x for part in (*control.locals, control.body) for x in _statements(part)]) > _LONG


def _calls(node: object) -> bool:
    """Whether functions are called somewhere in a piece of a control's code."""
    if isinstance(node, ir.FunctionCall):
        return True
    if isinstance(node, tuple):
        return any(map(_calls, node))
    if isinstance(node, ir.Control):
        return _calls((node.locals, node.body))
    return isinstance(node, (ir.Stmt, ir.Expr, ir.Arg)) and any(_calls(getattr(node, n)) for n in _names(_kind(node)))


def _constant(control: ir.Control, variable: ir.Variable) -> int | bool:
    """The constant to which a flag is set."""
    for s in (x for part in (*control.locals, control.body) for x in _statements(part)):
        match s:
            case ir.Assign(target=ir.Var(variable=target), value=ir.Literal(value=int() as value)):
                if target is variable:
                    return value
    return 0  # never set


def _chunk(g: Gen, row: Row, body: Body, first: Value) -> None:
    """Generate the lanes of one ``body``, from ``first`` on."""
    places = {}
    for variable, (at, direction) in row.lanes.items():
        width = scalar_width(variable.type)
        places[variable] = _place(g, at, first, container(width))
        body.declare(variable, width, None if direction == "out" else body.load(places[variable], width))
    for instance, item in row.registers.items():
        start = Address(g.module.machine.memory, item.offset)
        body.registers[instance] = _place(g, start, first, item.bytes), item.step
    for s in (*row.control.locals, row.control.body):
        body.stmt(s)
    for variable, (_, direction) in row.lanes.items():
        if direction in ("inout", "out"):
            body.save(body.get(variable), places[variable])


def _place(g: Gen, at: Address, number: Value, size: int) -> str:
    """A pointer to one of several pieces of ``size`` bytes that begin at ``at``."""
    if number.constant is not None:
        return g.fn.pointer(at.plus(number.constant * size))
    return g.fn.offset(g.fn.pointer(at), number, size)
