"""Valid P4 that BMv2's v1model does not support; it is rejected like in p4c's back end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from p4gen.chips.v1model.lint import objects
from p4gen.errors import Diagnostic, Pos
from p4gen.p4 import ir
from p4gen.p4.live import Live
from p4gen.p4.simplify import simplified
from p4gen.p4.types import (
    Bits,
    Fields,
    Header,
    HeaderUnion,
    Stack,
    Struct,
    Tuple,
    Type,
    Varbits,
    strip,
    width_of,
)
from p4gen.p4.walk import walk

_CHECKSUM_CALLS = {
    "vr": frozenset({"verify_checksum", "verify_checksum_with_payload"}),
    "ck": frozenset({"update_checksum", "update_checksum_with_payload"}),
}
_SHIFT_BITS = 8
FOR_IN = "BMv2 does not support loops over ranges and lists; count with 'for (…; …; …)'"
"""Only a warning, because the embedded switch runs them."""
Next = tuple[int, ...]
"""Identifies what is executed after a statement: the statement, by the path that leads to it."""


def check(program: ir.Program, places: Mapping[str, Pos]) -> list[Diagnostic]:
    """Errors for constructs of a v1model program that BMv2 does not support, and warnings for what the embedded switch
    runs all the same.

    ``places`` gives the declarations of header types, by name.
    """
    found: list[tuple[Pos, str]] = []
    for name, allowed in _CHECKSUM_CALLS.items():
        block = program.blocks.get(name)
        if isinstance(block, ir.Control):
            found += _checksum(block, allowed)
    deparser = program.blocks.get("dep")
    if isinstance(deparser, ir.Control):
        found += [(s.pos, "branches and loops cannot be used in a deparser on BMv2") for s in _branches(deparser.body)]
    for name in ("ig", "eg"):
        block = program.blocks.get(name)
        if isinstance(block, ir.Control):
            found += _successors(block)
    for block in program.blocks.values():
        found += _code(block)
    found += objects.unsupported(program, places)
    for header in _headers(program.type_args[0] if program.type_args else None):
        width = sum(width_of(f.type) for f in header.fields if not isinstance(strip(f.type), Varbits))
        place = places.get(header.name)
        if width % 8 and place is not None:
            found.append((place, f"header '{header.name}' has {width} bits; BMv2 needs a multiple of 8"))
    return [Diagnostic(pos, text, "warning" if text == FOR_IN else "error") for pos, text in sorted(set(found))]


def _headers(type_: Type | None) -> Iterator[Header]:
    match type_:
        case Header():
            yield type_
        case Struct() | HeaderUnion():
            for f in type_.fields:
                yield from _headers(f.type)
        case Stack(element=element):
            yield from _headers(element if isinstance(element, Fields) else None)


def _flat(s: ir.Stmt) -> Iterator[ir.Stmt]:
    """``s`` without blocks, sub-blocks and branches whose condition is known."""
    match s:
        case ir.Block(body=body):
            for item in body:
                yield from _flat(item)
        case ir.If(condition=ir.Literal(value=value), then=then, otherwise=otherwise):
            taken = then if value else otherwise
            if taken is not None:
                yield from _flat(taken)
        case ir.ApplyBlock(block=ir.Control() as block):
            yield from _flat(block.body)
        case _:
            yield s


def _branches(body: ir.Stmt) -> list[ir.Stmt]:
    return [s for s in _flat(body) if isinstance(s, ir.If | ir.Switch | ir.For | ir.ForIn)]


def _checksum(block: ir.Control, allowed: frozenset[str]) -> list[tuple[Pos, str]]:
    """A checksum control holds calls of its functions and nothing else."""
    found: list[tuple[Pos, str]] = []
    params = {p.variable for p in block.params}
    message = f"only calls of {' and '.join(sorted(allowed))} are allowed in this control on BMv2"
    for s in _flat(block.body):
        match s:
            case ir.Evaluate(expr=ir.ExternCall(instance=None, method=method)) if method in allowed:
                pass
            case ir.Assign(target=target) if _root(target) not in params:
                pass
            case ir.Assign() | ir.If() | ir.Switch() | ir.For() | ir.ForIn() | ir.Evaluate(expr=ir.ExternCall()):
                found.append((s.pos, message))
    return found


def _root(e: ir.Expr) -> ir.Variable | None:
    while isinstance(e, ir.FieldOf | ir.Index | ir.Slice | ir.StackMember):
        e = e.base
    return e.variable if isinstance(e, ir.Var) else None


def _code(block: ir.Control | ir.Parser) -> Iterator[tuple[Pos, str]]:
    """Unsupported statements and calls in ``block``."""
    live = Live.of(block)
    bodies: list[tuple[object, str]] = []
    for b in live.blocks:
        if isinstance(b, ir.Control):
            bodies.append((live.code(b.body), "control"))
            continue
        for state in live.states(b):
            yield from objects.next_elsewhere(state)
            bodies.append(((state.body, state.transition), "parser"))
    bodies += [(live.code(f.body), "action") for f in live.functions]
    for code, place in bodies:
        needless = _unread(code)
        for node in walk(code):
            match node:
                case ir.Binary() if node in needless:
                    continue
                case ir.Binary(op="<<" | ">>", right=right) if not _folds(node) and (limit := _shift_limit(right)):
                    yield _begin(node), f"BMv2 shifts by {limit}"
                case ir.ForIn():
                    yield node.pos, FOR_IN
                case ir.Switch() if place == "action":
                    yield node.pos, "'switch' cannot be used in an action on BMv2; use 'if'"
                case ir.ExternCall(instance=None, method="digest") if place == "parser":
                    yield node.pos, "a parser cannot send digests on BMv2"
                case ir.ExternCall(instance=None, method="hash", args=args):
                    data = args[3].expr if len(args) > 3 else None
                    if data is not None and not isinstance(data.type, Fields | Tuple):
                        yield _begin(data), f"'hash' takes fields in a list or struct on BMv2, not {data.type}"
                case ir.ExternCall(instance=None, method=method, args=args) if "_checksum" in method:
                    data = args[1].expr if len(args) > 1 else None
                    for item in data.elements if isinstance(data, ir.Aggregate) else ():
                        if isinstance(item, ir.Unary | ir.Binary | ir.Cast | ir.Slice | ir.Mux):
                            yield _begin(item), f"'{method}' takes whole fields on BMv2, not expressions"


def _unread(code: object) -> set[object]:
    """Expressions for local variables that nothing reads: p4c removes them."""
    nodes = list(walk(code))
    uses = Counter(node.variable for node in nodes if isinstance(node, ir.Var))
    values: dict[ir.Variable, list[ir.Expr | None]] = {n.variable: [n.init] for n in nodes if isinstance(n, ir.Declare)}
    for node in nodes:
        if isinstance(node, ir.Assign) and isinstance(node.target, ir.Var) and node.target.variable in values:
            uses[node.target.variable] -= 1
            values[node.target.variable].append(node.value)
    return {
        node for variable, found in values.items() if not uses[variable] for node in walk(tuple(filter(None, found)))
    }


def _folds(shift: ir.Binary) -> bool:
    """Whether a shift is folded: of zero, by zero, or of a known value."""
    zero = isinstance(shift.left, ir.Literal) and shift.left.value == 0
    found = simplified(shift)
    return zero or not isinstance(found, ir.Binary) or found.op != shift.op


def _shift_limit(amount: ir.Expr) -> str | None:
    """The amount of a shift that BMv2 supports, if this one is another."""
    if isinstance(amount.type, Bits):
        too_wide = amount.type.width > _SHIFT_BITS
        return f"amounts of {_SHIFT_BITS} bits at most, not {amount.type}; cast it" if too_wide else None
    too_far = isinstance(amount, ir.Literal) and int(amount.value) > 1 << _SHIFT_BITS
    return f"{1 << _SHIFT_BITS} bits at most" if too_far else None


def _begin(e: ir.Expr) -> Pos:
    """Where ``e`` starts, as written."""
    while isinstance(e, ir.FieldOf | ir.Index | ir.Slice | ir.StackMember | ir.Binary | ir.Mux):
        e = e.left if isinstance(e, ir.Binary) else e.condition if isinstance(e, ir.Mux) else e.base
    return e.pos


def _successors(block: ir.Control) -> list[tuple[Pos, str]]:
    """Tables that are applied in several places with different successors: BMv2 has one node for a table."""
    uses: dict[ir.Table, dict[tuple[Next, ...], Pos]] = {}
    _follow(block.body, (), (), uses)
    return [
        (
            table.pos,
            f"table '{table.name}' is applied in places with different continuations; BMv2 does not support this",
        )
        for table, ways in uses.items()
        if len(ways) > 1
    ]


Uses = dict[ir.Table, dict[tuple[Next, ...], Pos]]


def _follow(s: ir.Stmt, way: Next, after: Next, uses: Uses) -> Next:
    """Record the tables applied in ``s``, where ``after`` is executed next. Returns what is executed first."""
    match s:
        case ir.Block(body=body):
            for item in reversed(body):
                after = _follow(item, way, after, uses)
            return after
        case ir.ApplyBlock(block=ir.Control() as block):
            return _follow(block.body, (*way, id(s)), after, uses)
        case ir.If(condition=ir.Literal(value=value), then=then, otherwise=otherwise):
            taken = then if value else otherwise
            return _follow(taken, way, after, uses) if taken is not None else after
        case ir.If(condition=condition, then=then, otherwise=otherwise):
            ends: tuple[Next, ...] = (
                _follow(then, way, after, uses),
                _follow(otherwise, way, after, uses) if otherwise is not None else after,
            )
            return _applied(condition, s, way, ends, uses)
        case ir.Switch(subject=subject, cases=cases):
            ends = tuple(_follow(c.body, way, after, uses) for c in cases)
            return _applied(subject, s, way, (*ends, after), uses)
        case ir.Evaluate(expr=expr):
            return _applied(expr, s, way, (after,), uses)
        case ir.Declare(init=None):
            return after
        case ir.Return() | ir.Exit():
            return (id(s),) if isinstance(s, ir.Exit) else ()
    return (*way, id(s))


def _applied(e: ir.Expr, s: ir.Stmt, way: Next, ends: tuple[Next, ...], uses: Uses) -> Next:
    if isinstance(e, ir.ApplyTable):
        uses.setdefault(e.table, {}).setdefault(ends, e.pos)
        return (id(e.table),)
    return (*way, id(s))
