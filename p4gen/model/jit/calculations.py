"""Hashes and checksums: their input as BMv2 builds it, then the algorithm (behavioral-model, calculations.cpp).

The input is the fields one after the other; checksums skip those of invalid headers. If all headers are valid, which is
the usual case, the layout is known and the input is written in words and vectors; otherwise it is written group by
group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from p4gen.model.hashes import ALGORITHMS
from p4gen.model.interp.build import has_calls
from p4gen.model.jit.build import FRAME, Gen, is_memory, is_signed, members, part_at, unsupported
from p4gen.model.jit.crc import fold_sum
from p4gen.model.jit.emit import TRUE, Address, Value, const
from p4gen.model.jit.expressions import header_valid
from p4gen.model.jit.layout import AT, CHECKSUM_ERROR, DATA, SIZE, scalar_width
from p4gen.model.jit.outputs import Out, argument, constant, expression
from p4gen.model.jit.wire import Piece, encode, sum_of_words
from p4gen.p4 import ir
from p4gen.p4 import types as t


@dataclass(frozen=True)
class _Group:
    """Neighbouring pieces of one header (``guard``: only if it is valid), or one varbit."""

    guard: Address | None
    pieces: tuple[Piece, ...] = ()
    varbit: Address | None = None
    room: int = 0
    """The most bytes that the group takes."""


def _parts(g: Gen, data: ir.Expr, valid_only: bool, kept: bool = False) -> Iterator[_Group]:
    """The pieces of the input, evaluated in order. ``kept``: copy them, because their storage may change later."""
    if isinstance(data, ir.Aggregate):
        inside = kept or has_calls(data)
        for e in data.elements:
            yield from _parts(g, e, valid_only, inside)
    elif kept and not is_memory(data.type):
        yield from _scalar(data, data.type, g.value(data))
    elif isinstance(data, ir.FieldOf) and isinstance(t.strip(data.base.type), t.Header):
        header = g.address(data.base)
        guard = header if valid_only else None
        index = next(i for i, f in enumerate(_fields(data.base.type)) if f.name == data.name)
        yield from _of_type(g, data, part_at(g, header, data.base.type, index), data.type, guard, valid_only)
    elif is_memory(data.type):
        yield from _of_type(g, data, g.address(data), data.type, None, valid_only)
    else:
        yield from _scalar(data, data.type, g.value(data))


def _fields(of: t.Type) -> tuple[t.FieldDef, ...]:
    kind = t.strip(of)
    assert isinstance(kind, t.Fields)
    return kind.fields


def _scalar(e: ir.Expr, of: t.Type, value: Value) -> Iterator[_Group]:
    width = _width(e, of)
    if width:
        yield _Group(None, (Piece(width, of, value=value),), room=-(-width // 8))


def _width(e: ir.Expr, of: t.Type) -> int:
    kind = t.strip(of)
    if not isinstance(kind, (t.Bits, t.Bool, t.SerEnum)):
        raise unsupported(e.pos, f"a calculation over {e.type} (a value of type {of} has no bits)")
    return t.width_of(kind)


def _of_type(g: Gen, e: ir.Expr, at: Address, of: t.Type, guard: Address | None, valid_only: bool) -> Iterator[_Group]:
    kind = t.strip(of)
    if isinstance(kind, t.Varbits):
        yield _Group(guard, varbit=at, room=-(-kind.max_width // 8))
    elif is_memory(kind):
        inner = at if valid_only and isinstance(kind, t.Header) else guard
        for i, member in enumerate(members(kind)):
            yield from _of_type(g, e, part_at(g, at, kind, i), member, inner, valid_only)
    else:
        width = _width(e, kind)
        if width:
            yield _Group(guard, (Piece(width, kind, at),), room=-(-width // 8))


def _joined(parts: Iterator[_Group]) -> list[_Group]:
    """Neighbours with the same guard become one group."""
    result: list[_Group] = []
    for part in parts:
        last = result[-1] if result else None
        if last is not None and part.varbit is None and last.varbit is None and last.guard == part.guard:
            result[-1] = _Group(part.guard, last.pieces + part.pieces, None, last.room + part.room)
        else:
            result.append(part)
    return result


def _input(g: Gen, found: list[_Group]) -> tuple[Address, Value]:
    """The input in memory: (address, number of bytes)."""
    fn = g.fn
    buffer = g.room(sum(p.room for p in found) + 32, 64)
    pieces = [p for group in found for p in group.pieces]
    if any(group.varbit is not None for group in found):
        return buffer, _by_groups(g, found, buffer)
    whole = const(-(-sum(p.width for p in pieces) // 8), 64)
    valid = _all_valid(g, found)
    if valid is TRUE:
        encode(g, pieces, buffer)
        return buffer, whole
    size = fn.local(64)
    fast, slow, after = fn.label(), fn.label(), fn.label()
    fn.branch(valid, fast, slow, rare=False)
    fn.begin(fast)
    encode(g, pieces, buffer)
    fn.store(whole, size)
    fn.br(after)
    fn.begin(slow)
    fn.store(_by_groups(g, found, buffer), size)
    fn.begin(after)
    return buffer, fn.load(size, 64)


def _all_valid(g: Gen, found: list[_Group]) -> Value:
    """Whether all headers of the input are valid."""
    valid = TRUE
    for guard in dict.fromkeys(group.guard for group in found if group.guard is not None):
        bit = header_valid(g, guard)
        valid = bit if valid is TRUE else g.fn.op("and", valid, bit)
    return valid


def _summed(g: Gen, found: list[_Group]) -> Value:
    """The Internet checksum without going through memory, where all headers are valid and words are whole."""
    fn, helper = g.fn, g.module.need("hash_csum16")
    result = fn.local(64)
    fast, slow, after = fn.label(), fn.label(), fn.label()
    fn.branch(_all_valid(g, found), fast, slow, rare=False)
    fn.begin(fast)
    total = None
    if not any(group.varbit is not None for group in found):
        total = sum_of_words(g, [p for group in found for p in group.pieces])
    if total is None:
        fn.br(slow)
    else:
        fn.store(fn.op("xor", fold_sum(fn, total), const(0xFFFF, 64)), result)
        fn.br(after)
    fn.begin(slow)
    buffer = g.room(sum(p.room for p in found) + 32, 64)
    size = _by_groups(g, found, buffer)
    fn.store(fn.call(helper, 64, f"ptr {fn.pointer(buffer)}", f"i64 {size.ref}"), result)
    fn.begin(after)
    return fn.load(result, 64)


def _by_groups(g: Gen, found: list[_Group], buffer: Address) -> Value:
    """Write the groups one after the other. Returns the number of bytes. Zeros fill the last one."""
    fn, at = g.fn, g.fn.local(64)
    fn.store(const(0, 64), at)
    for group in found:
        skip = fn.label()
        if group.guard is not None:
            write = fn.label()
            fn.branch(header_valid(g, group.guard), write, skip)
            fn.begin(write)
        if group.varbit is not None:
            bits = fn.resize(fn.load(group.varbit, 32, 4), 64)
            source = group.varbit.plus(4)
        else:
            source = g.room(group.room + 16)
            encode(g, group.pieces, source)
            bits = const(sum(p.width for p in group.pieces), 64)
        position = fn.load(at, 64)
        name = g.module.need("copy_bits")
        to, whence = f"ptr {fn.pointer(buffer)}", f"ptr {fn.pointer(source)}"
        fn.do(f"call void @{name}({to}, i64 {position.ref}, {whence}, i64 0, i64 {bits.ref})")
        fn.store(fn.op("add", position, bits), at)
        fn.begin(skip)
    return fn.op("lshr", fn.op("add", fn.load(at, 64), const(7, 64)), const(3, 64))


def algorithm_of(g: Gen, call: ir.ExternCall, position: int) -> str:
    """The function that computes the algorithm that an argument names."""
    name = constant(call, position)
    if name not in ALGORITHMS:
        raise unsupported(call.pos, f"hash algorithm {name}")
    return g.module.need("hash_" + str(name).removesuffix("_custom"))


def _calculate(g: Gen, helper: str, data: ir.Expr, *, payload: bool = False, valid_only: bool = True) -> Value:
    """The algorithm's result, 64 bits."""
    fn, found = g.fn, _joined(_parts(g, data, valid_only))
    if helper == "hash_csum16" and not payload:
        return _summed(g, found)
    buffer, size = _input(g, found)
    at = fn.pointer(buffer)
    if not payload:
        return fn.call(helper, 64, f"ptr {at}", f"i64 {size.ref}")
    begin = fn.op("lshr", fn.op("add", g.context(AT), const(7, 64)), const(3, 64))
    rest = fn.op("sub", g.context(SIZE), begin)
    whole = fn.op("add", size, rest)
    joined = fn.ins(f"call ptr @malloc(i64 {fn.op('add', whole, const(16, 64)).ref})")
    fn.copy(joined, at, size)
    fn.copy(fn.offset(joined, size), fn.offset(fn.load_pointer(Address(FRAME, DATA)), begin), rest)
    result = fn.call(helper, 64, f"ptr {joined}", f"i64 {whole.ref}")
    fn.do(f"call void @free(ptr {joined})")
    return result


def hash_call(g: Gen, call: ir.ExternCall) -> None:
    """``hash``: base + H mod max, or base where max is below 1."""
    fn, out = g.fn, Out(g, call.args[0])
    base_expr, most_expr = expression(call, 2), expression(call, 4)
    base = g.value(base_expr)
    found = _calculate(g, algorithm_of(g, call, 1), expression(call, 3), valid_only=False)
    most = g.value(most_expr)
    signed = is_signed(most_expr.type)
    width = out.width
    start = fn.resize(base, max(width, base.width), is_signed(base_expr.type))
    start = fn.resize(start, width)
    # H has at most 64 bits, so a larger max does not change it.
    wide = max(most.width, 64)
    limit = fn.resize(most, wide, signed)
    none = fn.compare("sle" if signed else "eq", limit, const(0, wide))
    divisor = fn.resize(limit, 64)
    remainder = fn.op("urem", found, fn.select(fn.compare("eq", divisor, const(0, 64)), const(1, 64), divisor))
    if wide > 64:
        high = fn.op("lshr", limit, const(64, wide))
        remainder = fn.select(fn.compare("ne", high, const(0, wide)), found, remainder)
    result = fn.op("add", start, fn.resize(remainder, width))
    out.store(fn.select(none, start, result))


def verify_checksum(g: Gen, call: ir.ExternCall) -> None:
    """``verify_checksum``, ``verify_checksum_with_payload``: record a difference in the packet's frame."""
    fn, target = g.fn, expression(call, 2)
    condition = argument(g, call, 0)
    after = fn.label()
    go_on = fn.label()
    fn.branch(condition, go_on, after)
    fn.begin(go_on)
    if isinstance(target, ir.FieldOf) and isinstance(t.strip(target.base.type), t.Header):
        present = fn.label()
        fn.branch(header_valid(g, g.address(target.base)), present, after)
        fn.begin(present)
    found = _calculate(g, algorithm_of(g, call, 3), expression(call, 1), payload=_payload(call))
    width = max(scalar_width(target.type), 64)
    mask = const((1 << scalar_width(target.type)) - 1, width)
    wanted = fn.resize(g.value(target), width)
    wrong = fn.compare("ne", fn.op("and", fn.resize(found, width), mask), wanted)
    with fn.when(wrong):
        g.set_context(CHECKSUM_ERROR, 1)
    fn.begin(after)


def update_checksum(g: Gen, call: ir.ExternCall) -> None:
    """``update_checksum``, ``update_checksum_with_payload``."""
    fn = g.fn
    with fn.when(argument(g, call, 0)):
        found = _calculate(g, algorithm_of(g, call, 3), expression(call, 1), payload=_payload(call))
        Out(g, call.args[2]).store(found)


def checksum16_get(g: Gen, call: ir.ExternCall) -> Value:
    """``Checksum16.get``: deprecated, the same as ``hash`` with csum16."""
    return g.fn.resize(_calculate(g, g.module.need("hash_csum16"), expression(call, 0)), scalar_width(call.type))


def _payload(call: ir.ExternCall) -> bool:
    return call.method.endswith("_with_payload")


def selector_hash(g: Gen, name: str, keys: list[ir.Key]) -> Value:
    """The hash of a table's selector keys, 64 bits."""
    helper = g.module.need("hash_" + (name if name in ALGORITHMS else "identity").removesuffix("_custom"))
    pieces = [Piece(t.width_of(k.expr.type), k.expr.type, value=g.value(k.expr)) for k in keys]
    bits = sum(p.width for p in pieces)
    buffer = g.room(-(-bits // 8) + 16)
    encode(g, pieces, buffer)
    return g.fn.call(helper, 64, f"ptr {g.fn.pointer(buffer)}", f"i64 {-(-bits // 8)}")
