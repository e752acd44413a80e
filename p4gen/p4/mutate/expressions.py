"""Mutations of expressions: variants with one small change, each named by what was changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

from p4gen.p4 import ir
from p4gen.p4.types import BOOL, Bits, Fields, SerEnum, strip, width_of

Variants = Iterator[tuple[str, ir.Expr]]

_EXCHANGED: dict[ir.BinaryOp, ir.BinaryOp] = {
    "+": "-", "-": "+", "|+|": "+", "|-|": "-", "*": "+", "&": "|", "|": "&", "^": "|", "<<": ">>", ">>": "<<",
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "&&": "||", "||": "&&",
}  # fmt: skip
_ORDERED = ("-", "|-|", "<", "<=", ">", ">=", "++")
"""Operators that are not commutative."""
_INDEXED = {"register": {"read": 1, "write": 0}, "counter": {"count": 0}}
"""The position of the cell index among the arguments of an extern's method."""


def condition_variants(e: ir.Expr) -> Variants:
    """Variants of a condition: also negated, always and never true."""
    yield "condition negated", ir.Unary(BOOL, e.pos, "!", e)
    yield "always", ir.Literal(BOOL, e.pos, True)
    yield "never", ir.Literal(BOOL, e.pos, False)
    yield from variants(e)


def variants(e: ir.Expr) -> Variants:
    """Each expression that differs from ``e`` in one place; all have its type."""
    yield from _own(e)
    match e:
        case ir.ExternCall(args=args) | ir.FunctionCall(args=args):
            index = _index_of(e) if isinstance(e, ir.ExternCall) else None
            for what, new in argument_variants(args, index):
                yield what, replace(e, args=new)
        case ir.ApplyTable() | ir.Lookahead() | ir.IsValid():
            return
        case ir.Aggregate(elements=elements):
            for i, element in enumerate(elements):
                for what, new_element in variants(element):
                    yield what, replace(e, elements=(*elements[:i], new_element, *elements[i + 1 :]))
        case _:
            for name in (f.name for f in fields(e)):
                if isinstance(child := getattr(e, name), ir.Expr):
                    for what, new_child in variants(child):
                        yield what, replace(e, **{name: new_child})  # type: ignore[arg-type]


def argument_variants(args: tuple[ir.Arg, ...], index: int | None = None) -> Iterator[tuple[str, tuple[ir.Arg, ...]]]:
    """Variants of a call's arguments; the one at ``index`` is the index of a cell."""

    def changed(i: int, e: ir.Expr) -> tuple[ir.Arg, ...]:
        return (*args[:i], replace(args[i], expr=e), *args[i + 1 :])

    for i, arg in enumerate(args):
        e = arg.expr
        if e is None:
            continue
        if i == index and not isinstance(e, ir.Literal):
            yield "index 0", changed(i, ir.Literal(e.type, e.pos, 0))
        if arg.direction in ("in", "none"):
            if isinstance(e, ir.Aggregate):
                for k, element in enumerate(e.elements):
                    if (zero := zero_of(element)) is not None:
                        elements = (*e.elements[:k], zero, *e.elements[k + 1 :])
                        yield "left out", changed(i, replace(e, elements=elements))
            of = condition_variants if e.type is BOOL else variants
            for what, new in of(e):
                yield what, changed(i, new)
        else:
            for what, new in misplaced(e):
                yield what, changed(i, new)
        after = args[i + 1] if i + 1 < len(args) else ir.Arg("none", None)
        if after.expr is not None and after.direction == arg.direction and after.expr.type == e.type:
            yield "arguments swapped", (*args[:i], after, arg, *args[i + 2 :])


def misplaced(e: ir.Expr) -> Variants:
    """The neighbours of a slice or a field that have the same type.

    For a slice these are the slices one bit higher and one bit lower; for a field, the next such field of its struct or
    header.
    """
    match e:
        case ir.Slice(base=base, hi=hi, lo=lo):
            whole = strip(base.type)
            if isinstance(whole, Bits) and hi + 1 < whole.width:
                yield "slice off by one", replace(e, hi=hi + 1, lo=lo + 1)
            if lo > 0:
                yield "slice off by one", replace(e, hi=hi - 1, lo=lo - 1)
        case ir.FieldOf(base=base, name=name):
            of = strip(base.type)
            names = [field.name for field in of.fields if field.type == e.type] if isinstance(of, Fields) else []
            if len(names) > 1:
                yield "neighbouring field", replace(e, name=names[(names.index(name) + 1) % len(names)])


def parts_kept(target: ir.Expr, e: ir.Expr, lo: int = 0) -> Variants:
    """Variants of a concatenation that is assigned to ``target`` from bit ``lo``, each with one part not written."""
    match e:
        case ir.Binary(op="++", left=left, right=right):
            yield from ((what, replace(e, right=new)) for what, new in parts_kept(target, right, lo))
            above = lo + width_of(right.type)
            yield from ((what, replace(e, left=new)) for what, new in parts_kept(target, left, above))
        case _:
            yield "part not written", ir.Slice(e.type, e.pos, target, lo + width_of(e.type) - 1, lo)


def zero_of(e: ir.Expr) -> ir.Expr | None:
    """Zero in the type of ``e``; None if ``e`` is no number, or is a literal."""
    if isinstance(e, ir.Literal) or not isinstance(strip(e.type), Bits | SerEnum):
        return None
    return ir.Literal(e.type, e.pos, 0)


def _own(e: ir.Expr) -> Variants:
    match e:
        case ir.Literal(value=bool() as value):
            yield "constant", replace(e, value=not value)
        case ir.Literal(value=int() as value, type=type_):
            yield from _constants(e, value, strip(type_))
        case ir.Slice() | ir.FieldOf():
            yield from misplaced(e)
        case ir.Unary(operand=operand):
            yield "operator dropped", operand
        case ir.Mux(then=then, otherwise=otherwise):
            yield "always", then
            yield "never", otherwise
        case ir.Binary(op=op, left=left, right=right):
            if op in _EXCHANGED:
                yield "operator exchanged", replace(e, op=_EXCHANGED[op])
            if op in _ORDERED:
                yield "operands swapped", replace(e, left=right, right=left)
            if op not in ("++", "==", "!=", "<", "<=", ">", ">="):
                yield from (("operand dropped", side) for side in (left, right) if side.type == e.type)


def _constants(e: ir.Literal, value: int, type_: object) -> Variants:
    if isinstance(type_, SerEnum):
        numbers = [number for _, number in type_.members]
        if value in numbers and len(numbers) > 1:
            yield "constant", replace(e, value=numbers[(numbers.index(value) + 1) % len(numbers)])
    elif isinstance(type_, Bits):
        low = -(1 << type_.width - 1) if type_.signed else 0
        for by in (1, -1) if type_.width > 1 else (1,):
            yield "constant", replace(e, value=(value + by - low) % (1 << type_.width) + low)


def _index_of(e: ir.ExternCall) -> int | None:
    return _INDEXED.get(e.instance.extern, {}).get(e.method) if e.instance is not None else None
