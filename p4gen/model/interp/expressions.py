"""Expressions (P4_16 specification 1.2.5, section 8), except calls."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from p4gen.model.codec import decoder, read_bits
from p4gen.model.interp.build import Build, ExprHandler, fresh, has_calls, unsupported
from p4gen.model.interp.context import Eval, Frame, Reject
from p4gen.model.values import (
    StackValue,
    StructValue,
    UnionValue,
    copy_value,
    equal,
    is_composite,
    union_or_header_valid,
)
from p4gen.p4 import ir
from p4gen.p4 import types as t

Wrap = Callable[[int], int]


def bits_of(of: t.Type) -> t.Bits | None:
    """The ``bit`` or ``int`` type that represents ``of``, if it is one or a serialisable enum."""
    of = t.strip(of)
    if isinstance(of, t.SerEnum):
        of = of.base
    return of if isinstance(of, t.Bits) else None


def wrapper(of: t.Bits) -> Wrap:
    """A function that wraps any integer to the width of ``of`` (two's complement where signed)."""
    mask = (1 << of.width) - 1
    if not of.signed:
        return lambda v: v & mask
    half, full = 1 << of.width >> 1, 1 << of.width

    def wrap(v: int) -> int:
        v &= mask
        return v - full if v >= half else v

    return wrap


def _literal(b: Build, e: ir.Literal) -> Eval:
    value = e.value
    return lambda f: value


def _var(b: Build, e: ir.Var) -> Eval:
    return operator.itemgetter(b.slot(e.variable))


def field_index(of: t.Type, name: str) -> int:
    """The position of a field in its struct, header or union."""
    of = t.strip(of)
    assert isinstance(of, t.Fields)
    return next(i for i, f in enumerate(of.fields) if f.name == name)


def _field(b: Build, e: ir.FieldOf) -> Eval:
    index = field_index(e.base.type, e.name)
    match e.base:
        case ir.Var(variable=variable):
            slot = b.slot(variable)
            return lambda f: f[slot].fields[index]
        case ir.FieldOf(base=ir.Var(variable=variable), name=name) as inner:
            slot, outer = b.slot(variable), field_index(inner.base.type, name)
            return lambda f: f[slot].fields[outer].fields[index]
    base = b.expr(e.base)
    return lambda f: base(f).fields[index]


def _stack_member(b: Build, e: ir.StackMember) -> Eval:
    base = b.expr(e.base)
    if e.name == "lastIndex":
        return lambda f: (base(f).next - 1) & 0xFFFFFFFF
    offset = 0 if e.name == "next" else -1

    def get(f: Frame) -> Any:
        stack = base(f)
        return stack.fields[stack_position(stack, offset)]

    return get


def stack_position(stack: StackValue, offset: int) -> int:
    """The index of ``next`` (offset 0) or ``last`` (offset -1); rejects outside the stack (spec 8.18)."""
    index = stack.next + offset
    if not 0 <= index < len(stack.fields):
        raise Reject("StackOutOfBounds")
    return index


def _index(b: Build, e: ir.Index) -> Eval:
    base = b.expr(e.base)
    if isinstance(e.index, ir.Literal) and isinstance(e.index.value, int):
        known = e.index.value
        kind = t.strip(e.base.type)
        size = kind.size if isinstance(kind, t.Stack) else known + 1
        if 0 <= known < size:
            return lambda f: base(f).fields[known]
    index, make, state, pos = b.expr(e.index), fresh(e.type), b.state, e.pos

    def get(f: Frame) -> Any:
        elements = base(f).fields
        i = index(f)
        if 0 <= i < len(elements):
            return elements[i]
        state.trap(pos, f"stack index {i} is out of range, the stack has {len(elements)} elements")
        return make()

    return get


def _slice(b: Build, e: ir.Slice) -> Eval:
    base, lo, mask = b.expr(e.base), e.lo, (1 << (e.hi - e.lo + 1)) - 1
    return lambda f: (base(f) >> lo) & mask


# --- operators ---


def _unary(b: Build, e: ir.Unary) -> Eval:
    operand, op = b.expr(e.operand), e.op
    if op == "!":
        return lambda f: not operand(f)
    bits = bits_of(e.type)
    if bits is None:
        return (lambda f: -operand(f)) if op == "-" else (lambda f: ~operand(f))
    wrap = wrapper(bits)
    return (lambda f: wrap(-operand(f))) if op == "-" else (lambda f: wrap(~operand(f)))


def _logical(b: Build, e: ir.Binary) -> Eval:
    left, right = b.expr(e.left), b.expr(e.right)
    if e.op == "&&":
        return lambda f: left(f) and right(f)
    return lambda f: left(f) or right(f)


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _compare(b: Build, e: ir.Binary) -> Eval:
    left, right = b.expr(e.left), b.expr(e.right)
    if e.op in _COMPARE:
        compare = _COMPARE[e.op]
        return lambda f: compare(left(f), right(f))
    wanted = e.op == "=="
    if is_composite(e.left.type):
        if has_calls(e.right):
            # Evaluating the right side may change the storage of the left side's value.
            return lambda f: equal(copy_value(left(f)), right(f)) is wanted
        return lambda f: equal(left(f), right(f)) is wanted
    if isinstance(e.right, ir.Literal):
        value = e.right.value
        return (lambda f: left(f) == value) if wanted else (lambda f: left(f) != value)
    return (lambda f: left(f) == right(f)) if wanted else (lambda f: left(f) != right(f))


def _shift(b: Build, e: ir.Binary) -> Eval:
    left, right, bits = b.expr(e.left), b.expr(e.right), bits_of(e.type)
    if bits is None:
        return (lambda f: left(f) << right(f)) if e.op == "<<" else (lambda f: left(f) >> right(f))
    width, wrap = bits.width, wrapper(bits)
    if e.op == ">>":
        # Python's shift of a negative number is arithmetic, as spec 8.7 wants for int<N>.
        return lambda f: left(f) >> min(right(f), width)

    def shift_left(f: Frame) -> int:
        value, by = left(f), right(f)
        return wrap(value << by) if by < width else 0

    return shift_left


def _concat(b: Build, e: ir.Binary) -> Eval:
    left, right = b.expr(e.left), b.expr(e.right)
    by, bits = t.width_of(e.right.type), bits_of(e.type)
    assert bits is not None
    mask, wrap = (1 << by) - 1, wrapper(bits)
    return lambda f: wrap((left(f) << by) | (right(f) & mask))


def _divide(b: Build, e: ir.Binary) -> Eval:
    left, right, state, pos = b.expr(e.left), b.expr(e.right), b.state, e.pos
    quotient = e.op == "/"
    bits = bits_of(e.type)
    wrap: Wrap = wrapper(bits) if bits is not None else lambda v: v

    def divide(f: Frame) -> int:
        n, d = left(f), right(f)
        if d == 0:
            state.trap(pos, "division by zero, taken as 0")
            return 0
        q = abs(n) // abs(d)
        if (n < 0) != (d < 0):
            q = -q
        return wrap(q if quotient else n - q * d)

    return divide


def _saturate(b: Build, e: ir.Binary) -> Eval:
    left, right, bits = b.expr(e.left), b.expr(e.right), bits_of(e.type)
    assert bits is not None
    high = (1 << (bits.width - 1)) - 1 if bits.signed else (1 << bits.width) - 1
    low = -(1 << (bits.width - 1)) if bits.signed else 0
    step = operator.add if e.op == "|+|" else operator.sub

    def saturate(f: Frame) -> int:
        v: int = step(left(f), right(f))
        return high if v > high else low if v < low else v

    return saturate


def _arithmetic(b: Build, e: ir.Binary) -> Eval:
    left, right, bits = b.expr(e.left), b.expr(e.right), bits_of(e.type)
    if bits is None:
        plain = _PLAIN[e.op]
        return lambda f: plain(left(f), right(f))
    if not bits.signed:
        mask = (1 << bits.width) - 1
        if e.op == "+":
            return lambda f: (left(f) + right(f)) & mask
        if e.op == "-":
            return lambda f: (left(f) - right(f)) & mask
        return lambda f: (left(f) * right(f)) & mask
    wrap, step = wrapper(bits), _PLAIN[e.op]
    return lambda f: wrap(step(left(f), right(f)))


_PLAIN: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip


def _bitwise(b: Build, e: ir.Binary) -> Eval:
    # On wrapped operands of one type these need no wrapping, signed or not.
    left, right = b.expr(e.left), b.expr(e.right)
    if e.op == "&":
        return lambda f: left(f) & right(f)
    if e.op == "|":
        return lambda f: left(f) | right(f)
    return lambda f: left(f) ^ right(f)


_BINARY: Mapping[str, Callable[[Build, ir.Binary], Eval]] = {
    **dict.fromkeys(("&&", "||"), _logical),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), _compare),
    **dict.fromkeys(("<<", ">>"), _shift),
    **dict.fromkeys(("|+|", "|-|"), _saturate),
    **dict.fromkeys(("&", "|", "^"), _bitwise),
    **dict.fromkeys(("+", "-", "*"), _arithmetic),
    **dict.fromkeys(("/", "%"), _divide),
    "++": _concat,
}


def _binary(b: Build, e: ir.Binary) -> Eval:
    return _BINARY[e.op](b, e)


def _cast(b: Build, e: ir.Cast) -> Eval:
    operand, source, target = b.expr(e.operand), t.strip(e.operand.type), t.strip(e.type)
    if isinstance(target, t.Bool):
        return operand if isinstance(source, t.Bool) else lambda f: operand(f) != 0
    bits = bits_of(target)
    if bits is None:
        return operand  # between types of one representation, such as a tuple and a struct
    if isinstance(source, t.Bool):
        wrap = wrapper(bits)
        return lambda f: wrap(int(operand(f)))
    from_bits = bits_of(source)
    if from_bits is not None:
        if from_bits == bits:
            return operand
        if not bits.signed and not from_bits.signed and bits.width >= from_bits.width:
            return operand
        if bits.signed and from_bits.signed and bits.width >= from_bits.width:
            return operand
    if not isinstance(source, t.Int) and from_bits is None:
        raise unsupported(e.pos, f"a cast from {e.operand.type} to {e.type}")
    wrap = wrapper(bits)
    return lambda f: wrap(operand(f))


def _mux(b: Build, e: ir.Mux) -> Eval:
    condition, then, otherwise = b.expr(e.condition), b.expr(e.then), b.expr(e.otherwise)
    return lambda f: then(f) if condition(f) else otherwise(f)


# --- composite values ---


def _aggregate(b: Build, e: ir.Aggregate) -> Eval:
    parts = tuple(_copied_value(b, part) for part in e.elements)
    kind = t.strip(e.type)
    if isinstance(kind, t.Header):
        make = fresh(kind)

        def header(f: Frame) -> Any:
            value = make()
            value.fields = [part(f) for part in parts]
            value.valid = True
            return value

        return header
    if isinstance(kind, t.Stack):
        return lambda f: StackValue([part(f) for part in parts])
    if isinstance(kind, t.HeaderUnion):
        return lambda f: UnionValue([part(f) for part in parts])
    return lambda f: StructValue([part(f) for part in parts])


def _copied_value(b: Build, e: ir.Expr) -> Eval:
    """An expression whose value is kept: composites are copied."""
    value = b.expr(e)
    return (lambda f: copy_value(value(f))) if is_composite(e.type) else value


def _invalid_header(b: Build, e: ir.InvalidHeader) -> Eval:
    make = fresh(e.type)
    return lambda f: make()


def _is_valid(b: Build, e: ir.IsValid) -> Eval:
    header = b.expr(e.header)
    if isinstance(t.strip(e.header.type), t.Header):
        return lambda f: header(f).valid
    return lambda f: union_or_header_valid(header(f))


# --- the packet ---


def _lookahead(b: Build, e: ir.Lookahead) -> Eval:
    try:
        width, decode = t.width_of(e.type), decoder(e.type)
    except TypeError as problem:
        raise unsupported(e.pos, f"lookahead of {e.type} ({problem})") from None

    def look(f: Frame) -> Any:
        ctx = f[0]
        if ctx.at + width > 8 * len(ctx.data):
            raise Reject("PacketTooShort")
        return decode(read_bits(ctx.data, ctx.at, width))

    return look


def _packet_length(b: Build, e: ir.PacketLength) -> Eval:
    return lambda f: len(f[0].data)


HANDLERS: Mapping[type[ir.Expr], ExprHandler] = {
    ir.Literal: _literal,
    ir.Var: _var,
    ir.FieldOf: _field,
    ir.StackMember: _stack_member,
    ir.Index: _index,
    ir.Slice: _slice,
    ir.Unary: _unary,
    ir.Binary: _binary,
    ir.Cast: _cast,
    ir.Mux: _mux,
    ir.Aggregate: _aggregate,
    ir.InvalidHeader: _invalid_header,
    ir.IsValid: _is_valid,
    ir.Lookahead: _lookahead,
    ir.PacketLength: _packet_length,
}
