"""Expressions (P4_16 specification 1.2.5, section 8), except calls and operations on the packet."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from p4gen.model.interp.build import has_calls
from p4gen.model.jit.build import (
    AddressHandler,
    ExprHandler,
    Gen,
    field_index,
    is_memory,
    is_pure,
    is_signed,
    members,
    part_at,
    unsupported,
)
from p4gen.model.jit.emit import FALSE, TRUE, Address, Value, const
from p4gen.model.jit.layout import bits_of, scalar_width
from p4gen.p4 import ir
from p4gen.p4 import types as t

NATIVE_DIVISION = 64
"""The largest width, in bits, for native division: from 65 to 128 bits LLVM would call a missing function, beyond that
it divides bit by bit."""


def is_void_number(of: t.Type) -> bool:
    """Whether a type is ``bit<0>``. LLVM has no such integer, so it is represented by one bit that is always 0."""
    bits = bits_of(of)
    return bits is not None and bits.width == 0


def _literal(g: Gen, e: ir.Literal) -> Value:
    if isinstance(t.strip(e.type), t.Int):
        assert not isinstance(e.value, str)
        return const(int(e.value), max(int(e.value).bit_length() + 1, 32))
    return const(g.types.number(e.value, e.type), scalar_width(e.type))


def _unary(g: Gen, e: ir.Unary) -> Value:
    operand = g.value(e.operand)
    if is_void_number(e.type):
        return FALSE
    ones = const(-1, operand.width)
    return g.fn.op("sub", const(0, operand.width), operand) if e.op == "-" else g.fn.op("xor", operand, ones)


# --- two operands ---


def _logical(g: Gen, e: ir.Binary) -> Value:
    fn, left = g.fn, g.value(e.left)
    if is_pure(e.right):
        return fn.op("and" if e.op == "&&" else "or", left, g.value(e.right))
    result = fn.local(1)
    fn.store(left, result)
    go_on, after = fn.label(), fn.label()
    fn.branch(left, *((go_on, after) if e.op == "&&" else (after, go_on)))
    fn.begin(go_on)
    fn.store(g.value(e.right), result)
    fn.begin(after)
    return fn.load(result, 1)


def _compare(g: Gen, e: ir.Binary) -> Value:
    if is_memory(e.left.type):
        left = g.address(e.left)
        if has_calls(e.right):
            # Evaluating the right side may change the storage of the left side's value.
            kept = g.temporary(e.left.type)
            g.copy(kept, left, e.left.type)
            left = kept
        same = equal(g, left, g.address(e.right), e.left.type)
        return same if e.op == "==" else g.fn.op("xor", same, TRUE)
    a, b = _same_width(g, g.value(e.left), e.left.type, g.value(e.right), e.right.type)
    signed = is_signed(e.left.type)
    return g.fn.compare(("s" if signed and e.op not in ("==", "!=") else _U[e.op]) + PREDICATES[e.op], a, b)


PREDICATES = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_U = {"==": "", "!=": "", "<": "u", "<=": "u", ">": "u", ">=": "u"}


def _same_width(g: Gen, a: Value, of_a: t.Type, b: Value, of_b: t.Type) -> tuple[Value, Value]:
    width = max(a.width, b.width)
    return g.fn.resize(a, width, is_signed(of_a)), g.fn.resize(b, width, is_signed(of_b))


def equal(g: Gen, a: Address, b: Address, of: t.Type) -> Value:
    """``a == b`` of two values in memory: invalid headers are equal, valid ones if their fields are (spec 8.17);
    everything else is compared part by part (8.15, 8.16, 8.18)."""
    of, fn = t.strip(of), g.fn
    if isinstance(of, t.Varbits):
        size = -(-of.max_width // 8)
        pointers = f"ptr {fn.pointer(a)}", f"ptr {fn.pointer(b)}"
        return fn.call(g.module.need("bytes_equal"), 1, *pointers, f"i64 {4 + size}")
    if not is_memory(of):
        return fn.compare("eq", g.load(a, of), g.load(b, of))
    same = TRUE
    for i, member in enumerate(members(of)):
        part = equal(g, part_at(g, a, of, i), part_at(g, b, of, i), member)
        same = part if same is TRUE else fn.op("and", same, part)
    if isinstance(of, t.Header):
        valid_a, valid_b = header_valid(g, a), header_valid(g, b)
        both_invalid = fn.op("xor", fn.op("or", valid_a, valid_b), TRUE)
        both_valid = fn.op("and", valid_a, valid_b)
        return fn.op("or", both_invalid, fn.op("and", both_valid, same))
    return same


def _shift(g: Gen, e: ir.Binary) -> Value:
    fn, value, by = g.fn, g.value(e.left), g.value(e.right)
    width = value.width
    if is_void_number(e.type):
        return FALSE
    signed = is_signed(e.left.type)
    if by.constant is not None:
        number = by.constant
        if number >= width:
            if e.op == "<<" or not signed:
                return const(0, width)
            number = width - 1
        name = "shl" if e.op == "<<" else "ashr" if signed else "lshr"
        return fn.op(name, value, const(number, width))
    # One bit more than either, so that the limit and every distance can be written.
    wide = max(by.width, width.bit_length()) + 1
    distance = fn.resize(by, wide)
    too_far = fn.compare("uge", distance, const(width, wide))
    if e.op == ">>" and signed:
        distance = fn.select(too_far, const(width - 1, wide), distance)
        return fn.op("ashr", value, fn.resize(distance, width))
    distance = fn.select(too_far, const(0, wide), distance)
    shifted = fn.op("shl" if e.op == "<<" else "lshr", value, fn.resize(distance, width))
    return fn.select(too_far, const(0, width), shifted)


def _concat(g: Gen, e: ir.Binary) -> Value:
    fn, left, right = g.fn, g.value(e.left), g.value(e.right)
    if is_void_number(e.left.type) or is_void_number(e.right.type):
        return fn.resize(right if is_void_number(e.left.type) else left, scalar_width(e.type))
    width = left.width + right.width
    high = fn.op("shl", fn.resize(left, width), const(right.width, width))
    return fn.op("or", high, fn.resize(right, width))


def _divide(g: Gen, e: ir.Binary) -> Value:
    fn, n, d = g.fn, g.value(e.left), g.value(e.right)
    width = n.width
    if is_void_number(e.type):
        g.trap(e.pos, "division by zero, taken as 0")
        return FALSE
    signed = is_signed(e.left.type)
    zero = fn.compare("eq", d, const(0, width))
    if d.constant is None or d.constant == 0:
        with fn.when(zero, rare=True):
            g.trap(e.pos, "division by zero, taken as 0")
    divisor = fn.select(zero, const(1, width), d)
    negative_n = fn.compare("slt", n, const(0, width)) if signed else FALSE
    negative_d = fn.compare("slt", divisor, const(0, width)) if signed else FALSE
    # By magnitudes: dividing the most negative number by -1 would trap in hardware.
    result = _unsigned(g, e.op, _magnitude(g, n, negative_n), _magnitude(g, divisor, negative_d))
    if signed:
        negative = fn.op("xor", negative_n, negative_d) if e.op == "/" else negative_n
        result = fn.select(negative, fn.op("sub", const(0, width), result), result)
    return fn.select(zero, const(0, width), result)


def _magnitude(g: Gen, value: Value, negative: Value) -> Value:
    if negative is FALSE:
        return value
    return g.fn.select(negative, g.fn.op("sub", const(0, value.width), value), value)


def _unsigned(g: Gen, op: str, n: Value, d: Value) -> Value:
    width, name = n.width, "udiv" if op == "/" else "urem"
    if NATIVE_DIVISION < width <= 128:
        wide = g.fn.op(name, g.fn.resize(n, 136), g.fn.resize(d, 136))
        return g.fn.resize(wide, width)
    return g.fn.op(name, n, d)


def _saturate(g: Gen, e: ir.Binary) -> Value:
    a, b = g.value(e.left), g.value(e.right)
    if is_void_number(e.type):
        return FALSE
    name = f"llvm.{'s' if is_signed(e.type) else 'u'}{'add' if e.op == '|+|' else 'sub'}.sat.i{a.width}"
    g.module.need(name)
    return g.fn.call(name, a.width, f"i{a.width} {a.ref}", f"i{a.width} {b.ref}")


_PLAIN = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}


def _arithmetic(g: Gen, e: ir.Binary) -> Value:
    a, b = _same_width(g, g.value(e.left), e.left.type, g.value(e.right), e.right.type)
    return FALSE if is_void_number(e.type) else g.fn.op(_PLAIN[e.op], a, b)


_BINARY: Mapping[str, Callable[[Gen, ir.Binary], Value]] = {
    **dict.fromkeys(("&&", "||"), _logical),
    **dict.fromkeys(PREDICATES, _compare),
    **dict.fromkeys(("<<", ">>"), _shift),
    **dict.fromkeys(("|+|", "|-|"), _saturate),
    **dict.fromkeys(_PLAIN, _arithmetic),
    **dict.fromkeys(("/", "%"), _divide),
    "++": _concat,
}


def _binary(g: Gen, e: ir.Binary) -> Value:
    return _BINARY[e.op](g, e)


# --- the other operators ---


def _slice(g: Gen, e: ir.Slice) -> Value:
    base = g.value(e.base)
    width = e.hi - e.lo + 1
    if e.hi >= base.width:
        base = g.fn.resize(base, e.hi + 1, is_signed(e.base.type))
    return g.fn.resize(g.fn.op("lshr", base, const(e.lo, base.width)) if e.lo else base, width)


def _cast_value(g: Gen, e: ir.Cast) -> Value:
    source, target = t.strip(e.operand.type), t.strip(e.type)
    operand = g.value(e.operand)
    if isinstance(target, t.Bool):
        return operand if isinstance(source, t.Bool) else g.fn.compare("ne", operand, const(0, operand.width))
    if bits_of(target) is None:
        return operand
    if bits_of(source) is None and not isinstance(source, (t.Bool, t.Int)):
        raise unsupported(e.pos, f"a cast from {e.operand.type} to {e.type}")
    if is_void_number(target):
        return FALSE
    return g.fn.resize(operand, scalar_width(target), is_signed(source))


def _cast_address(g: Gen, e: ir.Cast) -> Address:
    # Between types of one representation, such as a tuple and a struct.
    return g.address(e.operand)


def _mux_value(g: Gen, e: ir.Mux) -> Value:
    fn, condition = g.fn, g.value(e.condition)
    if is_pure(e.then) and is_pure(e.otherwise):
        return fn.select(condition, g.value(e.then), g.value(e.otherwise))
    result = fn.local(scalar_width(e.type))
    yes, no, after = fn.label(), fn.label(), fn.label()
    fn.branch(condition, yes, no)
    fn.begin(yes)
    fn.store(g.value(e.then), result)
    fn.br(after)
    fn.begin(no)
    fn.store(g.value(e.otherwise), result)
    fn.begin(after)
    return fn.load(result, scalar_width(e.type))


def _mux_address(g: Gen, e: ir.Mux) -> Address:
    fn, result = g.fn, g.fn.alloca("ptr")
    yes, no, after = fn.label(), fn.label(), fn.label()
    fn.branch(g.value(e.condition), yes, no)
    fn.begin(yes)
    fn.store_pointer(fn.pointer(g.address(e.then)), Address(result))
    fn.br(after)
    fn.begin(no)
    fn.store_pointer(fn.pointer(g.address(e.otherwise)), Address(result))
    fn.begin(after)
    return Address(fn.load_pointer(Address(result)))


# --- places ---


def _var(g: Gen, e: ir.Var) -> Address:
    return g.env[e.variable]


def _field(g: Gen, e: ir.FieldOf) -> Address:
    return part_at(g, g.address(e.base), e.base.type, field_index(e.base.type, e.name))


def _element(g: Gen, base: Address, stack: t.Stack, index: Value) -> Address:
    shape = g.types.shape(stack.element)
    first = g.types.shape(stack).parts[0]
    return Address(g.fn.offset(g.fn.pointer(base.plus(first)), index, shape.size))


def _index(g: Gen, e: ir.Index) -> Address:
    fn, kind = g.fn, t.strip(e.base.type)
    base = g.address(e.base)
    size = kind.size if isinstance(kind, t.Stack) else len(members(kind))
    if isinstance(e.index, ir.Literal) and not isinstance(e.index.value, str) and 0 <= int(e.index.value) < size:
        return part_at(g, base, kind, int(e.index.value))
    index = g.value(e.index)
    # Wide enough for the size, and for a comparison that sees negative numbers as far too large.
    wide = max(index.width, 32) + 1
    number = fn.resize(index, wide, is_signed(e.index.type))
    outside = fn.compare("uge", number, const(size, wide))
    # Spec 8.18: a read outside a stack is undefined, a write has no effect.
    nowhere = fn.pointer(g.temporary(e.type))
    place = fn.alloca("ptr")
    with fn.when(outside, rare=True):
        g.trap(e.pos, f"stack index {{}} is out of range, the stack has {size} elements", index, e.index.type)
        fn.clear(nowhere, g.types.shape(e.type).size)
    if size == 0:
        return Address(nowhere)
    assert isinstance(kind, t.Stack)
    safe = fn.select(outside, const(0, 64), fn.resize(number, 64))
    inside = fn.pointer(_element(g, base, kind, safe))
    fn.store_pointer(fn.select_pointer(outside, nowhere, inside), Address(place))
    return Address(fn.load_pointer(Address(place)))


def _stack_member_address(g: Gen, e: ir.StackMember) -> Address:
    fn, kind = g.fn, t.strip(e.base.type)
    assert isinstance(kind, t.Stack)
    base = g.address(e.base)
    at = fn.load(base, 32, 4)
    if e.name == "last":
        at = fn.op("sub", at, const(1, 32))
    g.reject_if(fn.compare("uge", at, const(kind.size, 32)), "StackOutOfBounds")
    if kind.size == 0:
        return g.temporary(kind.element)
    return _element(g, base, kind, at)


def _stack_member_value(g: Gen, e: ir.StackMember) -> Value:
    if e.name != "lastIndex":
        raise unsupported(e.pos, f"{e.name} as a number")
    return g.fn.op("sub", g.fn.load(g.address(e.base), 32, 4), const(1, 32))


# --- composite values ---


def _aggregate(g: Gen, e: ir.Aggregate) -> Address:
    at = g.temporary(e.type)
    kind, fn = t.strip(e.type), g.fn
    fn.clear(fn.pointer(at), g.types.shape(kind).size)
    for i, part in enumerate(e.elements):
        g.assign(part_at(g, at, kind, i), part)
    if isinstance(kind, t.Header):
        set_header_valid(g, at, TRUE)
    return at


def _invalid_header(g: Gen, e: ir.InvalidHeader) -> Address:
    at = g.temporary(e.type)
    g.clear(at, e.type)
    return at


def header_valid(g: Gen, header: Address) -> Value:
    """The validity bit of the header there."""
    return g.fn.resize(g.fn.load(header, 8), 1)


def set_header_valid(g: Gen, header: Address, valid: Value) -> None:
    """Set the validity bit alone."""
    g.fn.store(g.fn.resize(valid, 8), header)


def _is_valid(g: Gen, e: ir.IsValid) -> Value:
    at, kind = g.address(e.header), t.strip(e.header.type)
    if isinstance(kind, t.Header):
        return header_valid(g, at)
    valid = FALSE
    for i, _ in enumerate(members(kind)):
        valid = g.fn.op("or", valid, header_valid(g, part_at(g, at, kind, i)))
    return valid


VALUES: Mapping[type[ir.Expr], ExprHandler] = {
    ir.Literal: _literal,
    ir.Unary: _unary,
    ir.Binary: _binary,
    ir.Slice: _slice,
    ir.Cast: _cast_value,
    ir.Mux: _mux_value,
    ir.IsValid: _is_valid,
    ir.StackMember: _stack_member_value,
}

ADDRESSES: Mapping[type[ir.Expr], AddressHandler] = {
    ir.Var: _var,
    ir.FieldOf: _field,
    ir.Index: _index,
    ir.StackMember: _stack_member_address,
    ir.Aggregate: _aggregate,
    ir.InvalidHeader: _invalid_header,
    ir.Cast: _cast_address,
    ir.Mux: _mux_address,
}
