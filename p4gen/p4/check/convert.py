"""From one type to another: implicit and explicit casts (P4_16 specification 8.11), and default values (7.3)."""

from __future__ import annotations

from dataclasses import replace

from p4gen.p4 import fold, ir
from p4gen.p4.check import order
from p4gen.p4.check.scope import Context, DefaultType, DontCareType, InvalidType, RecordType, SequenceType
from p4gen.p4.types import (
    BOOL,
    INT,
    Bits,
    Bool,
    Enum,
    Error,
    Header,
    HeaderUnion,
    Int,
    NewType,
    SerEnum,
    Stack,
    String,
    Struct,
    Tuple,
    Type,
)


def as_int(cx: Context, expr: ir.Expr, at: int, to: Bits) -> ir.Expr:
    """A compile-time ``int`` as a bit string; one that does not fit is cut off with a warning."""
    if isinstance(expr, ir.Literal) and isinstance(expr.value, int):
        value = fold.wrap(expr.value, to.width, to.signed)
        if value != expr.value:
            what = "signed value" if to.signed else "value"
            cx.unit.reporter.warn(at, f"{what} does not fit: {expr.value} becomes {value} as {to}")
        return ir.Literal(to, expr.pos, value)
    match expr:
        # The low bits of sums, differences and products depend only on the low bits of the operands.
        case ir.Cast(operand=operand) if isinstance(operand.type, Bits):
            same_sign = Bits(to.width, operand.type.signed)
            return ir.Cast(to, expr.pos, ir.Cast(same_sign, expr.pos, operand))
        case ir.Binary(op=op, left=left, right=right):
            return ir.Binary(to, expr.pos, op, as_low_bits(cx, left, at, to), as_low_bits(cx, right, at, to))
    if isinstance(expr, ir.Mux):
        return ir.Mux(to, expr.pos, expr.condition, as_int(cx, expr.then, at, to), as_int(cx, expr.otherwise, at, to))
    cx.unit.reporter.fail(at, f"the width of this value is unknown; cast it to {to}")


def as_low_bits(cx: Context, expr: ir.Expr, at: int, to: Bits) -> ir.Expr:
    """The low bits of ``expr``, an ``int``; the bits above them may be lost."""
    if isinstance(expr, ir.Literal) and isinstance(expr.value, int):
        return ir.Literal(to, expr.pos, fold.wrap(expr.value, to.width, to.signed))
    return as_int(cx, expr, at, to)


def try_coerce(cx: Context, expr: ir.Expr, to: Type, at: int) -> ir.Expr | None:
    """``expr`` converted implicitly to ``to``; None where no implicit cast leads there."""
    have = expr.type
    if isinstance(have, Int) and isinstance(to, Int) and not isinstance(expr, ir.Literal | ir.Mux):
        cx.unit.reporter.fail(at, "an int must be known at compile time; cast it to a bit string")
    if have is to or have == to or isinstance(to, DontCareType):
        return expr
    if isinstance(have, Int):
        if isinstance(to, Bits):
            return as_int(cx, expr, at, to)
        return None
    if isinstance(have, SerEnum) and isinstance(to, Bits):
        return cast_to_base(expr, have) if have.base == to else None
    if isinstance(have, DefaultType):
        return default_value(cx, to, expr, at)
    if isinstance(have, InvalidType):
        if isinstance(to, Header | HeaderUnion | Stack):
            return ir.InvalidHeader(to, expr.pos) if not isinstance(to, Stack) else default_value(cx, to, expr, at)
        return None
    if isinstance(expr, ir.Mux):
        then, otherwise = try_coerce(cx, expr.then, to, at), try_coerce(cx, expr.otherwise, to, at)
        if then is None or otherwise is None:
            return None
        return ir.Mux(to, expr.pos, expr.condition, then, otherwise)
    if isinstance(expr, ir.Aggregate):
        return _aggregate(cx, expr, to, at)
    return None


def coerce(cx: Context, expr: ir.Expr, to: Type, at: int, what: str = "", *notes: tuple[int, str]) -> ir.Expr:
    """``expr`` converted implicitly to ``to``; reports an error, with ``notes``, where that cannot be."""
    found = try_coerce(cx, expr, to, at)
    if found is None:
        message = f"{what or 'this expression'} has type {expr.type}, but {to} is needed here"
        cx.unit.reporter.fail(at, message, *notes)
    return found


def assigned(cx: Context, expr: ir.Expr, to: Type, at: int, what: str = "") -> ir.Expr:
    """``expr`` converted for a constant, a variable or a result of type ``to``.

    As with p4c, a number becomes a value of a ``type`` there, and a known bit string becomes a number. The language
    allows neither.
    """
    if isinstance(expr.type, Int) and isinstance(to, NewType) and isinstance(to.base, Bits):
        number = try_coerce(cx, expr, to.base, at)
        if isinstance(number, ir.Literal):
            cx.unit.reporter.warn(at, f"an int becomes {to} without a cast, as p4c allows it; write ({to}) before it")
            return ir.Literal(to, expr.pos, number.value)
    if isinstance(to, Int) and isinstance(expr.type, Bits) and isinstance(expr, ir.Literal):
        cx.unit.reporter.warn(
            at, f"a {expr.type} becomes an int without a cast, as p4c allows it; write (int) before it"
        )
        return ir.Literal(to, expr.pos, expr.value)
    return coerce(cx, expr, to, at, what)


def _aggregate(cx: Context, expr: ir.Aggregate, to: Type, at: int) -> ir.Expr | None:
    have = expr.type
    if isinstance(have, RecordType):
        if isinstance(to, Struct | Header):
            return _record(cx, expr, have, to, at)
        return None
    wanted: list[Type]
    if isinstance(to, Struct | Header):
        wanted = [f.type for f in to.fields]
    elif isinstance(to, Tuple):
        wanted = list(to.elements)
    elif isinstance(to, SequenceType):
        wanted = [to.element] * len(expr.elements)
    elif isinstance(to, Stack):
        wanted = [to.element] * to.size
    else:
        return None
    if not isinstance(have, Tuple | SequenceType) or (isinstance(have, SequenceType) and isinstance(to, SequenceType)):
        return None  # a list with a written type has no other type
    given = list(expr.elements)
    if given and isinstance(given[-1].type, DefaultType):
        rest = given.pop()
        given += [rest] * (len(wanted) - len(given))
    if len(given) != len(wanted):
        cx.unit.reporter.fail(at, f"{len(given)} values for {to}, which has {len(wanted)}")
    return ir.Aggregate(to, expr.pos, tuple(coerce(cx, e, t, at) for e, t in zip(given, wanted, strict=True)))


def _record(cx: Context, expr: ir.Aggregate, have: RecordType, to: Struct | Header, at: int) -> ir.Expr:
    given = dict(zip(have.names, expr.elements, strict=True))
    for name in have.names:
        if to.get(name) is None:
            cx.unit.reporter.fail(at, f"{to} has no field '{name}'")
    elements: list[ir.Expr] = []
    for field in to.fields:
        if field.name in given:
            elements.append(coerce(cx, given[field.name], field.type, at, f"the value of '{field.name}'"))
        elif have.dots:
            elements.append(default_value(cx, field.type, expr, at))
        else:
            cx.unit.reporter.fail(at, f"no value for field '{field.name}' of {to}")
    where = {f.name: i for i, f in enumerate(to.fields)}
    made = order.evaluated(
        to.name, expr.pos, to, [ir.Arg("in", e) for e in elements], [where[n] for n in have.names],
        lambda args: ir.Aggregate(to, expr.pos, tuple(a.expr for a in args if a.expr is not None)),
    )  # fmt: skip
    assert isinstance(made, ir.Expr)
    return made


def default_value(cx: Context, type_: Type, where: ir.Expr, at: int) -> ir.Expr:
    """The default value of a type (spec 7.3)."""
    pos = where.pos
    match type_:
        case Bits() | Int() | SerEnum():
            return ir.Literal(type_, pos, 0)
        case NewType(base=base):
            inner = default_value(cx, base, where, at)
            return ir.Literal(type_, pos, inner.value) if isinstance(inner, ir.Literal) else ir.Cast(type_, pos, inner)
        case Bool():
            return ir.Literal(type_, pos, False)
        case Error():
            return ir.Literal(type_, pos, "NoError")
        case Enum(members=members):
            return ir.Literal(type_, pos, members[0])
        case String():
            return ir.Literal(type_, pos, "")
        case Header() | HeaderUnion():
            return ir.InvalidHeader(type_, pos)
        case Struct(fields=fields):
            return ir.Aggregate(type_, pos, tuple(default_value(cx, f.type, where, at) for f in fields))
        case Tuple(elements=elements):
            return ir.Aggregate(type_, pos, tuple(default_value(cx, t, where, at) for t in elements))
        case Stack(element=element, size=size):
            return ir.Aggregate(type_, pos, tuple(default_value(cx, element, where, at) for _ in range(size)))
    cx.unit.reporter.fail(at, f"a value of type {type_} has no default")


def cast_to_base(expr: ir.Expr, have: SerEnum) -> ir.Expr:
    """A serialisable enum's value as the bit string that represents it."""
    if isinstance(expr, ir.Literal):
        return ir.Literal(have.base, expr.pos, expr.value)
    return ir.Cast(have.base, expr.pos, expr)


# --- explicit casts ------------------------------------------------------------------------------


def cast(cx: Context, expr: ir.Expr, to: Type, at: int) -> ir.Expr:
    """``(to) expr`` (spec 8.11.1)."""
    have = expr.type
    if have == to:
        return replace(expr)
    found = _cast(cx, expr, have, to, at)
    if found is None:
        found = try_coerce(cx, expr, to, at)
    if found is None:
        cx.unit.reporter.fail(at, f"cannot cast from {have} to {to}")
    return found


def _cast(cx: Context, expr: ir.Expr, have: Type, to: Type, at: int) -> ir.Expr | None:
    if isinstance(to, NewType):
        if have == to.base or isinstance(have, Int) or isinstance(to.base, NewType):
            return _retyped(cast(cx, expr, to.base, at), to)
        return cast(cx, _retyped(expr, have.base), to, at) if isinstance(have, NewType) else None
    if isinstance(have, NewType):
        return cast(cx, _retyped(expr, have.base), to, at)
    if isinstance(have, SerEnum):
        base = cast_to_base(expr, have)
        return base if have.base == to else _cast(cx, base, have.base, to, at)
    if isinstance(to, SerEnum):
        if not isinstance(have, Bits | Int):
            return None
        return _retyped(cast(cx, expr, to.base, at), to)
    if isinstance(to, Bits):
        return _cast_to_bits(cx, expr, have, to, at)
    if isinstance(to, Int):
        if isinstance(have, Bits) and isinstance(expr, ir.Literal):
            return ir.Literal(INT, expr.pos, expr.value)
        return ir.Cast(INT, expr.pos, expr) if isinstance(have, Bits) else None
    if isinstance(to, Bool):
        if isinstance(have, Bits) and have.width == 1 and not have.signed:
            return (
                ir.Literal(BOOL, expr.pos, bool(expr.value))
                if isinstance(expr, ir.Literal)
                else ir.Cast(to, expr.pos, expr)
            )
        if isinstance(have, Int) and isinstance(expr, ir.Literal) and expr.value in (0, 1):
            return ir.Literal(BOOL, expr.pos, bool(expr.value))
    return None


def _cast_to_bits(cx: Context, expr: ir.Expr, have: Type, to: Bits, at: int) -> ir.Expr | None:
    if isinstance(have, Int) and not isinstance(expr, ir.Literal):
        return as_int(cx, expr, at, to)
    if isinstance(have, Bits | Int):
        if (
            isinstance(expr, ir.Literal)
            and isinstance(expr.value, int)
            and (isinstance(have, Int) or have.signed == to.signed or have.width == to.width)
        ):
            return ir.Literal(to, expr.pos, fold.wrap(expr.value, to.width, to.signed))
        if isinstance(have, Bits) and have.signed != to.signed and have.width != to.width:
            cx.unit.reporter.fail(at, f"a cast changes the width or the sign, not both: {have} to {to}")
        return ir.Cast(to, expr.pos, expr)
    if isinstance(have, Bool) and to.width == 1 and not to.signed:
        return (
            ir.Literal(to, expr.pos, int(expr.value)) if isinstance(expr, ir.Literal) else ir.Cast(to, expr.pos, expr)
        )
    return None


def _retyped(expr: ir.Expr, to: Type) -> ir.Expr:
    return ir.Literal(to, expr.pos, expr.value) if isinstance(expr, ir.Literal) else ir.Cast(to, expr.pos, expr)


# --- operands ------------------------------------------------------------------------------------


def without_enum(expr: ir.Expr) -> ir.Expr:
    """``expr`` for arithmetic: a serialisable enum's value becomes its bits, everything else stays."""
    return cast_to_base(expr, expr.type) if isinstance(expr.type, SerEnum) else expr


def same_type(cx: Context, left: ir.Expr, right: ir.Expr, at: int) -> tuple[ir.Expr, ir.Expr] | None:
    """Both operands in one type, by implicit casts; None where there is none."""
    if left.type == right.type:
        return left, right
    found = try_coerce(cx, right, left.type, at)
    if found is not None:
        return left, found
    found = try_coerce(cx, left, right.type, at)
    if found is not None:
        return found, right
    bare_left, bare_right = without_enum(left), without_enum(right)
    if bare_left is not left or bare_right is not right:
        return same_type(cx, bare_left, bare_right, at)
    return None
