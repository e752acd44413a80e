"""Expressions: names resolved, types checked, constants folded (P4_16 specification 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from typing import cast as type_cast

from p4gen.p4 import fold, ir
from p4gen.p4.check import convert, operators, order
from p4gen.p4.check.scope import (
    ConstantEntity,
    Context,
    DefaultType,
    InvalidType,
    RecordType,
    VariableEntity,
)
from p4gen.p4.lower import calls, evaluate, type_refs
from p4gen.p4.parse import ast
from p4gen.p4.types import (
    BIT32,
    BOOL,
    INT,
    Bits,
    Bool,
    Enum,
    Error,
    Fields,
    Int,
    MatchKind,
    SerEnum,
    Stack,
    String,
    Tuple,
    Type,
    bits,
)

# --- names and literals --------------------------------------------------------------------------


def _name(cx: Context, e: ast.Name) -> ir.Expr:
    if e.name in cx.unit.match_kinds and cx.scope.find(e.name, e.at) is None:
        return ir.Literal(MatchKind(), cx.pos(e.at), e.name)
    entity = evaluate.find(cx, e.name, e.at, e.rooted)
    if isinstance(entity, VariableEntity):
        return ir.Var(entity.variable.type, cx.pos(e.at), entity.variable)
    if isinstance(entity, ConstantEntity):
        found = entity.expr
        return ir.Literal(found.type, cx.pos(e.at), found.value) if isinstance(found, ir.Literal) else found
    note = (entity.at, f"'{e.name}' was declared here")
    cx.unit.reporter.fail(e.at, f"'{e.name}' is not a value", note)


def _int(cx: Context, e: ast.IntLit) -> ir.Expr:
    pos = cx.pos(e.at)
    if e.width is None:
        return ir.Literal(INT, pos, e.value)
    if e.width > fold.MAX_BITS or (e.signed and e.width < 1):
        cx.unit.reporter.fail(e.at, f"{e.width} is not a possible width")
    found = fold.wrap(e.value, e.width, e.signed)
    if found != e.value:
        cx.unit.reporter.warn(e.at, f"value {e.value} does not fit in {e.width} bits and becomes {found}")
    return ir.Literal(bits(e.width, e.signed), pos, found)


def _bool(cx: Context, e: ast.BoolLit) -> ir.Expr:
    return ir.Literal(BOOL, cx.pos(e.at), e.value)


def _string(cx: Context, e: ast.StrLit) -> ir.Expr:
    return ir.Literal(String(), cx.pos(e.at), e.value)


def _type_name(cx: Context, e: ast.TypeName) -> ir.Expr:
    cx.unit.reporter.fail(e.at, "a type is not a value")


def _list(cx: Context, e: ast.ListOf) -> ir.Expr:
    items = tuple(evaluate.value(cx, i) for i in e.items)
    return ir.Aggregate(Tuple(tuple(i.type for i in items)), cx.pos(e.at), items)


def _struct(cx: Context, e: ast.StructOf) -> ir.Expr:
    names: list[str] = []
    items: list[ir.Expr] = []
    for item in e.items:
        assert item.name is not None
        if item.name in names:
            cx.unit.reporter.fail(item.at, f"a second value for field '{item.name}'")
        names.append(item.name)
        items.append(evaluate.value(cx, item.value))
    type_ = RecordType(tuple(names), tuple(i.type for i in items), e.dots)
    return ir.Aggregate(type_, cx.pos(e.at), tuple(items))


def _invalid(cx: Context, e: ast.InvalidOf) -> ir.Expr:
    return ir.InvalidHeader(InvalidType(), cx.pos(e.at))


def _dots(cx: Context, e: ast.Dots) -> ir.Expr:
    return ir.Literal(DefaultType(), cx.pos(e.at), 0)


def _out_of_place(cx: Context, e: ast.Expr) -> ir.Expr:
    cx.unit.reporter.fail(e.at, "this is allowed only in a keyset")


# --- members -------------------------------------------------------------------------------------


def _member(cx: Context, e: ast.Member) -> ir.Expr:
    if isinstance(e.base, ast.TypeName):
        return _type_member(cx, e, type_refs.resolve(cx, e.base.type))
    if isinstance(e.base, ast.CallOf):
        applied = calls.table_result(cx, e.base, e.name, e.at)
        if applied is not None:
            return applied
    base = evaluate.lower(cx, e.base)
    type_ = base.type
    if isinstance(type_, Fields):
        field = type_.get(e.name)
        if field is None:
            cx.unit.reporter.fail(e.at, f"{type_} has no field '{e.name}'")
        chosen = _element(base, type_.fields.index(field))
        if chosen is not None:
            return chosen
        return ir.FieldOf(field.type, cx.pos(e.at), base, e.name)
    if isinstance(type_, Stack):
        return _stack_member(cx, e, base, type_)
    if isinstance(type_, RecordType) and isinstance(base, ir.Aggregate) and e.name in type_.names:
        at = type_.names.index(e.name)
        chosen = _element(base, at)
        if chosen is None:
            cx.unit.reporter.fail(e.at, "the other fields call functions, so the type must be named")
        return chosen
    cx.unit.reporter.fail(e.at, f"{type_} has no member '{e.name}'")


def _element(base: ir.Expr, index: int) -> ir.Expr | None:
    """The element at ``index`` of a value that is written out; None unless evaluating the others has no effect."""
    if not isinstance(base, ir.Aggregate):
        return None
    others = (e for i, e in enumerate(base.elements) if i != index)
    return None if any(map(order.has_calls, others)) else base.elements[index]


def _stack_member(cx: Context, e: ast.Member, base: ir.Expr, type_: Stack) -> ir.Expr:
    pos = cx.pos(e.at)
    match e.name:
        case "next" | "last":
            if cx.place not in ("parser", "state"):
                cx.unit.reporter.fail(e.at, f"'{e.name}' of a header stack can be used only in a parser")
            return ir.StackMember(type_.element, pos, base, "next" if e.name == "next" else "last")
        case "lastIndex":
            if cx.place not in ("parser", "state"):
                cx.unit.reporter.fail(e.at, "'lastIndex' of a header stack can be used only in a parser")
            return ir.StackMember(BIT32, pos, base, "lastIndex")
        case "size":
            return ir.Literal(BIT32, pos, type_.size)
    cx.unit.reporter.fail(e.at, f"a header stack has no member '{e.name}'")


def _type_member(cx: Context, e: ast.Member, type_: Type) -> ir.Expr:
    pos = cx.pos(e.at)
    match type_:
        case Enum(members=names):
            if e.name in names:
                return ir.Literal(type_, pos, e.name)
        case SerEnum(members=pairs):
            for name, number in pairs:
                if name == e.name:
                    return ir.Literal(type_, pos, number)
        case Error():
            declared = cx.unit.errors.get(e.name)
            if declared is not None and declared <= e.at:
                return ir.Literal(type_, pos, e.name)
            cx.unit.reporter.fail(e.at, f"error.{e.name} is not declared")
        case _:
            cx.unit.reporter.fail(e.at, f"type {type_} has no members that are values")
    cx.unit.reporter.fail(e.at, f"enum {type_} has no member '{e.name}'")


# --- indexing and slicing ------------------------------------------------------------------------


def _index(cx: Context, e: ast.IndexOf) -> ir.Expr:
    base = evaluate.lower(cx, e.base)
    index = convert.without_enum(evaluate.lower(cx, e.index))
    if not isinstance(index.type, Int | Bits):
        cx.unit.reporter.fail(e.index.at, f"an index must be an integer, not {index.type}")
    known = int(index.value) if isinstance(index, ir.Literal) else None
    type_ = base.type
    if isinstance(type_, Stack):
        if known is not None and not 0 <= known < type_.size:
            cx.unit.reporter.fail(e.index.at, f"index {known} is outside the stack, which has {type_.size} elements")
        if isinstance(index.type, Int):
            index = convert.coerce(cx, index, BIT32, e.index.at)
        return ir.Index(type_.element, cx.pos(e.at), base, index)
    if isinstance(type_, Tuple):
        if known is None:
            cx.unit.reporter.fail(e.index.at, "the index into a tuple must be a compile-time constant")
        if not 0 <= known < len(type_.elements):
            cx.unit.reporter.fail(e.index.at, f"index {known} is outside the tuple, which has {len(type_.elements)}")
        chosen = _element(base, known)
        if chosen is not None:
            return chosen
        return ir.Index(type_.elements[known], cx.pos(e.at), base, ir.Literal(BIT32, index.pos, known))
    cx.unit.reporter.fail(e.at, f"{type_} cannot be indexed")


def _slice(cx: Context, e: ast.SliceOf) -> ir.Expr:
    base = convert.without_enum(evaluate.lower(cx, e.base))
    hi, lo = evaluate.constant_int(cx, e.hi, "a bit number"), evaluate.constant_int(cx, e.lo, "a bit number")
    return sliced(cx, base, hi, lo, e.at)


def sliced(cx: Context, base: ir.Expr, hi: int, lo: int, at: int) -> ir.Expr:
    """``base[hi:lo]``, folded where ``base`` is known."""
    type_ = base.type
    if not isinstance(type_, Bits | Int) or (isinstance(type_, Int) and not isinstance(base, ir.Literal)):
        cx.unit.reporter.fail(at, f"bits of {type_} cannot be selected")
    if lo < 0 or hi < lo:
        cx.unit.reporter.fail(at, f"[{hi}:{lo}] is not a range of bits")
    if isinstance(type_, Bits) and hi >= type_.width:
        cx.unit.reporter.fail(at, f"bit {hi} is outside {type_}")
    if hi - lo >= fold.MAX_BITS:
        cx.unit.reporter.fail(at, f"[{hi}:{lo}] selects too many bits")
    result = bits(hi - lo + 1)
    if isinstance(base, ir.Literal):
        return ir.Literal(result, cx.pos(at), fold.slice_of(int(base.value), hi, lo))
    return ir.Slice(result, cx.pos(at), base, hi, lo)


def _plus_slice(cx: Context, e: ast.PlusSlice) -> ir.Expr:
    base = convert.without_enum(evaluate.lower(cx, e.base))
    width = evaluate.constant_int(cx, e.width, "the number of bits")
    low = convert.without_enum(evaluate.lower(cx, e.low))
    if isinstance(low, ir.Literal) and isinstance(low.value, int):
        return sliced(cx, base, low.value + width - 1, low.value, e.at)
    if not isinstance(base.type, Bits) or not isinstance(low.type, Bits):
        cx.unit.reporter.fail(e.at, f"bits of {base.type} cannot be selected by {low.type}")
    if not 0 < width <= base.type.width:
        cx.unit.reporter.fail(e.width.at, f"{width} bits cannot be selected from {base.type}")
    pos = cx.pos(e.at)
    unsigned = convert.cast(cx, base, bits(base.type.width), e.at)
    shifted = ir.Binary(unsigned.type, pos, ">>", unsigned, low)
    return ir.Slice(bits(width), pos, shifted, width - 1, 0)


# --- operators -----------------------------------------------------------------------------------


def _unary(cx: Context, e: ast.UnaryOp) -> ir.Expr:
    operand = convert.without_enum(evaluate.lower(cx, e.operand))
    type_, pos = operand.type, cx.pos(e.at)
    if e.op == "!":
        if not isinstance(type_, Bool):
            cx.unit.reporter.fail(e.at, f"'!' needs a bool, not {type_}")
        return (
            ir.Literal(BOOL, pos, not operand.value)
            if isinstance(operand, ir.Literal)
            else ir.Unary(BOOL, pos, "!", operand)
        )
    if not isinstance(type_, Bits | Int) or (e.op == "~" and isinstance(type_, Int)):
        cx.unit.reporter.fail(e.at, f"'{e.op}' cannot be applied to {type_}")
    if e.op == "+":
        return operand
    if isinstance(operand, ir.Literal):
        number = int(operand.value)
        return ir.Literal(type_, pos, fold.to_type(-number if e.op == "-" else ~number, type_))
    if isinstance(type_, Int):
        cx.unit.reporter.fail(e.at, "the width of this value is unknown")
    return ir.Unary(type_, pos, type_cast(ir.UnaryOp, e.op), operand)


def _binary(cx: Context, e: ast.BinaryOp) -> ir.Expr:
    return operators.binary(cx, e.op, evaluate.lower(cx, e.left), evaluate.lower(cx, e.right), e.at)


def _conditional(cx: Context, e: ast.Conditional) -> ir.Expr:
    test = evaluate.condition(cx, e.condition)
    then, otherwise = evaluate.value(cx, e.then), evaluate.value(cx, e.otherwise)
    both = convert.same_type(cx, then, otherwise, e.at)
    if both is None:
        cx.unit.reporter.fail(e.at, f"the alternatives have different types: {then.type} and {otherwise.type}")
    then, otherwise = both
    if isinstance(test, ir.Literal):
        return then if test.value else otherwise
    return ir.Mux(then.type, cx.pos(e.at), test, then, otherwise)


def _cast(cx: Context, e: ast.CastTo) -> ir.Expr:
    to = type_refs.resolve(cx, e.type)
    return convert.cast(cx, evaluate.value(cx, e.operand), to, e.at)


def _call(cx: Context, e: ast.CallOf) -> ir.Expr:
    return calls.call(cx, e)


EXPRESSIONS: dict[type[ast.Expr], Callable[[Context, Any], ir.Expr]] = {
    ast.Name: _name,
    ast.TypeName: _type_name,
    ast.IntLit: _int,
    ast.BoolLit: _bool,
    ast.StrLit: _string,
    ast.Member: _member,
    ast.IndexOf: _index,
    ast.SliceOf: _slice,
    ast.PlusSlice: _plus_slice,
    ast.UnaryOp: _unary,
    ast.BinaryOp: _binary,
    ast.Conditional: _conditional,
    ast.CastTo: _cast,
    ast.CallOf: _call,
    ast.ListOf: _list,
    ast.StructOf: _struct,
    ast.InvalidOf: _invalid,
    ast.Dots: _dots,
    ast.DontCare: _out_of_place,
    ast.MaskOf: _out_of_place,
    ast.RangeOf: _out_of_place,
}
