"""Operations that the language or its core library defines: header and stack methods, sizes, packets, ``verify``,
``static_assert`` (P4_16 specification 8.17, 8.18, 9, 12.8, 15)."""

from __future__ import annotations

from p4gen.errors import Pos
from p4gen.p4 import ir
from p4gen.p4.check import convert, order
from p4gen.p4.check.scope import Context, ExternType, Signature, TypeVar
from p4gen.p4.lower import arguments, evaluate, externs, type_refs
from p4gen.p4.parse import ast
from p4gen.p4.types import (
    BIT32,
    BOOL,
    INT,
    Bits,
    Bool,
    Fields,
    Header,
    HeaderUnion,
    NewType,
    SerEnum,
    Stack,
    Struct,
    Tuple,
    Type,
    Varbits,
    Void,
    strip,
    width_of,
)

Lowered = ir.Expr | ir.Stmt


# --- sizes ---------------------------------------------------------------------------------------


def size_of(cx: Context, callee: ast.Member, type_: Type, pos: Pos) -> ir.Expr | None:
    """``minSizeInBits`` and similar methods (spec 9.1), folded; None if ``callee`` is not one of them."""
    if callee.name not in ("minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes"):
        return None
    if isinstance(type_, TypeVar):
        return ir.Literal(INT, pos, 1)
    try:
        size = minimum(type_) if callee.name.startswith("min") else width_of(type_)
    except TypeError:
        cx.unit.reporter.fail(callee.at, f"a value of type {type_} has no size")
    return ir.Literal(INT, pos, (size + 7) // 8 if callee.name.endswith("Bytes") else size)


def minimum(type_: Type) -> int:
    """The least number of bits a value takes: a varbit none, a union its smallest member."""
    type_ = strip(type_)
    match type_:
        case Varbits():
            return 0
        case HeaderUnion(fields=fields):
            return min((minimum(f.type) for f in fields), default=0)
        case Fields(fields=fields):
            return sum(minimum(f.type) for f in fields)
        case Stack(element=element, size=size):
            return minimum(element) * size
        case Tuple(elements=elements):
            return sum(map(minimum, elements))
    return width_of(type_)


# --- methods of values ---------------------------------------------------------------------------


def method(cx: Context, e: ast.CallOf, callee: ast.Member, base: ir.Expr) -> Lowered:
    """A method of a header, union or stack, or a size."""
    pos, type_, name = cx.pos(callee.at), base.type, callee.name
    size = size_of(cx, callee, type_, pos)
    if size is not None:
        return size
    if e.type_args:
        cx.unit.reporter.fail(e.at, f"'{name}' takes no type arguments")
    if isinstance(type_, Header | HeaderUnion) and name == "isValid":
        _no_args(cx, e)
        return ir.IsValid(BOOL, pos, base)
    if isinstance(type_, Header) and name in ("setValid", "setInvalid"):
        _no_args(cx, e)
        evaluate.check_lvalue(cx, base, callee.at)
        return ir.SetValidity(pos, base, name == "setValid")
    if isinstance(type_, Stack) and name in ("push_front", "pop_front"):
        evaluate.check_lvalue(cx, base, callee.at)
        if len(e.args) != 1:
            cx.unit.reporter.fail(e.at, f"'{name}' takes one argument")
        count = evaluate.constant_int(cx, e.args[0].value, f"the argument of '{name}'")
        if count < 0:
            cx.unit.reporter.fail(e.args[0].at, f"the argument of '{name}' must not be negative")
        return ir.ShiftStack(pos, base, count, name == "push_front")
    cx.unit.reporter.fail(callee.at, f"{type_} has no method '{name}'")


def _no_args(cx: Context, e: ast.CallOf) -> None:
    if e.args:
        cx.unit.reporter.fail(e.args[0].at, "this method takes no arguments")


# --- packets -------------------------------------------------------------------------------------


def packet(cx: Context, e: ast.CallOf, callee: ast.Member, type_: ExternType) -> Lowered:
    """A method of ``packet_in`` or ``packet_out``."""
    if type_.name not in ("packet_in", "packet_out"):
        return externs.extern_method(cx, e, callee, None, type_)
    decl, sig = externs.extern_signature(cx, e, callee, type_)
    pos = cx.pos(callee.at)
    given = arguments.match(cx, e.at, sig, e.args)
    types = tuple(type_refs.resolve(cx, t) for t in e.type_args)
    if len(types) not in (0, len(sig.type_vars)):
        cx.unit.reporter.fail(e.at, f"'{decl.name}' takes {len(sig.type_vars)} type arguments, not {len(types)}")
    match decl.name:
        case "extract":
            return _extract(cx, e, sig, given, types, pos)
        case "lookahead":
            if not types:
                cx.unit.reporter.fail(e.at, "lookahead needs its type: lookahead<T>()")
            if not fixed_width(types[0]):
                cx.unit.reporter.fail(e.at, f"lookahead needs a type of fixed width, not {types[0]}")
            return ir.Lookahead(types[0], pos)
        case "advance":
            assert given[0] is not None
            return ir.Advance(pos, evaluate.lower_as(cx, given[0], BIT32, "the argument of 'advance'"))
        case "length":
            return ir.PacketLength(BIT32, pos)
        case "emit":
            assert given[0] is not None
            value = evaluate.value(cx, given[0])
            if types:
                value = convert.coerce(cx, value, types[0], given[0].at)
            if not emittable(value.type):
                cx.unit.reporter.fail(given[0].at, f"emit takes headers and structures of headers, not {value.type}")
            return ir.Emit(pos, value)
    cx.unit.reporter.fail(callee.at, f"'{decl.name}' of {type_} is not supported")


def _extract(
    cx: Context, e: ast.CallOf, sig: Signature, given: list[ast.Expr | None], types: tuple[Type, ...], pos: Pos
) -> ir.Stmt:
    if cx.place not in ("state", "parser", "function"):
        cx.unit.reporter.fail(e.at, "packets can be read only in a parser")
    target = given[0]
    assert target is not None
    bits = None
    if len(given) > 1:
        assert given[1] is not None
        bits = evaluate.lower_as(cx, given[1], BIT32, "the number of bits of the varbit field")
    if isinstance(target, ast.DontCare):
        if not types:
            cx.unit.reporter.fail(e.at, "extract(_) needs the type to skip: extract<T>(_)")
        return ir.Extract(pos, None, bits, types[0])
    header = evaluate.lvalue(cx, target)
    if isinstance(header.type, TypeVar):
        return ir.Extract(pos, header, bits)
    if not isinstance(header.type, Header):
        cx.unit.reporter.fail(target.at, f"extract needs a header, not {header.type}")
    if types and types[0] != header.type:
        cx.unit.reporter.fail(target.at, f"extract<{types[0]}> cannot fill a {header.type}")
    varying = any(isinstance(f.type, Varbits) for f in header.type.fields)
    if varying != (bits is not None):
        what = "has no varbit field" if bits is not None else "has a varbit field: extract needs its size too"
        cx.unit.reporter.fail(target.at, f"{header.type} {what}")
    if e.args[0].name == sig.params[-1].name and bits is not None and order.has_calls(bits):
        # The size is written, and so evaluated, before the header's index.
        size = ir.Variable("size", bits.type, bits.pos)
        extract = ir.Extract(pos, header, ir.Var(size.type, size.pos, size))
        return ir.Block(pos, (ir.Declare(bits.pos, size, bits), extract))
    return ir.Extract(pos, header, bits)


def fixed_width(type_: Type) -> bool:
    """Whether every value of ``type_`` takes the same number of bits of a packet."""
    match type_:
        case NewType(base=base):
            return fixed_width(base)
        case Struct(fields=fields) | Header(fields=fields):
            return all(fixed_width(f.type) for f in fields)
        case Tuple(elements=elements):
            return all(map(fixed_width, elements))
        case Stack(element=element):
            return fixed_width(element)
    return isinstance(type_, Bits | Bool | SerEnum | TypeVar)


def emittable(type_: Type) -> bool:
    """Whether a deparser can emit values of ``type_``: headers and what is made of them."""
    match type_:
        case Header() | HeaderUnion() | Stack() | TypeVar():
            return True
        case Struct(fields=fields):
            return all(emittable(f.type) for f in fields)
        case Tuple(elements=elements):
            return all(map(emittable, elements))
    return False


# --- functions of the core library ---------------------------------------------------------------


def core_function(cx: Context, e: ast.CallOf, decl: ast.FunctionDecl, sig: Signature) -> Lowered | None:
    """``verify`` and ``static_assert``; None for other extern functions."""
    if decl.name == "verify" and len(sig.params) == 2:
        if cx.place not in ("state", "parser", "function"):
            cx.unit.reporter.fail(e.at, "verify can be called only in a parser")
        pos = cx.pos(e.callee.at)

        def verified(passed: tuple[ir.Arg, ...]) -> ir.Stmt:
            condition, problem = (a.expr for a in passed)
            assert condition is not None
            assert problem is not None
            return ir.Verify(pos, condition, problem)

        _, args = arguments.lower(cx, e.at, sig, (), e.args, constants=True)
        return order.evaluated(decl.name, pos, Void(), args, arguments.order(sig, e.args), verified)
    if decl.name == "static_assert" and isinstance(sig.returns, Bool):
        _, args = arguments.lower(cx, e.at, sig, (), e.args, constants=True)
        check = args[0].expr
        if isinstance(check, ir.Literal) and not check.value:
            message = args[1].expr if len(args) > 1 else None
            text = f": {message.value}" if isinstance(message, ir.Literal) else ""
            cx.unit.reporter.fail(e.at, f"static_assert failed{text}")
        return ir.Literal(BOOL, cx.pos(e.at), True)
    return None
