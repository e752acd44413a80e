"""Hashes and checksums: their input as BMv2 builds it, then the algorithm (behavioral-model, calculations.cpp).

The input is the fields one after the other; checksums skip those of invalid headers. If all headers are valid, which is
the usual case, the layout is known and the input is written in words and vectors; otherwise it is written group by
group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from p4gen.model.interp.build import has_calls
from p4gen.model.jit.build import FRAME, Gen, is_memory, members, part_at, unsupported
from p4gen.model.jit.crc import fold_sum
from p4gen.model.jit.emit import TRUE, Address, Value, const
from p4gen.model.jit.expressions import header_valid
from p4gen.model.jit.layout import AT, DATA, SIZE
from p4gen.model.jit.wire import Piece, encode, sum_of_words
from p4gen.p4 import ir
from p4gen.p4 import types as t


@dataclass(frozen=True)
class Group:
    """Neighbouring pieces of one header (``guard``: only if it is valid), or one varbit."""

    guard: Address | None
    pieces: tuple[Piece, ...] = ()
    varbit: Address | None = None
    room: int = 0
    """The most bytes that the group takes."""


def parts(g: Gen, data: ir.Expr, valid_only: bool, kept: bool = False) -> Iterator[Group]:
    """The pieces of the input, evaluated in order. ``kept``: copy them, because their storage may change later."""
    if isinstance(data, ir.Aggregate):
        inside = kept or has_calls(data)
        for e in data.elements:
            yield from parts(g, e, valid_only, inside)
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


def _scalar(e: ir.Expr, of: t.Type, value: Value) -> Iterator[Group]:
    width = _width(e, of)
    if width:
        yield Group(None, (Piece(width, of, value=value),), room=-(-width // 8))


def _width(e: ir.Expr, of: t.Type) -> int:
    kind = t.strip(of)
    if not isinstance(kind, (t.Bits, t.Bool, t.SerEnum)):
        raise unsupported(e.pos, f"a calculation over {e.type} (a value of type {of} has no bits)")
    return t.width_of(kind)


def _of_type(g: Gen, e: ir.Expr, at: Address, of: t.Type, guard: Address | None, valid_only: bool) -> Iterator[Group]:
    kind = t.strip(of)
    if isinstance(kind, t.Varbits):
        yield Group(guard, varbit=at, room=-(-kind.max_width // 8))
    elif is_memory(kind):
        inner = at if valid_only and isinstance(kind, t.Header) else guard
        for i, member in enumerate(members(kind)):
            yield from _of_type(g, e, part_at(g, at, kind, i), member, inner, valid_only)
    else:
        width = _width(e, kind)
        if width:
            yield Group(guard, (Piece(width, kind, at),), room=-(-width // 8))


def grouped(parts: Iterator[Group]) -> list[Group]:
    """Neighbours with the same guard become one group."""
    result: list[Group] = []
    for part in parts:
        last = result[-1] if result else None
        if last is not None and part.varbit is None and last.varbit is None and last.guard == part.guard:
            result[-1] = Group(part.guard, last.pieces + part.pieces, None, last.room + part.room)
        else:
            result.append(part)
    return result


def _input(g: Gen, found: list[Group]) -> tuple[Address, Value]:
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


def _all_valid(g: Gen, found: list[Group]) -> Value:
    """Whether all headers of the input are valid."""
    valid = TRUE
    for guard in dict.fromkeys(group.guard for group in found if group.guard is not None):
        bit = header_valid(g, guard)
        valid = bit if valid is TRUE else g.fn.op("and", valid, bit)
    return valid


def _summed(g: Gen, found: list[Group]) -> Value:
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


def _by_groups(g: Gen, found: list[Group], buffer: Address) -> Value:
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


def calculate(g: Gen, helper: str, fields: ir.Expr, *, payload: bool = False, valid_only: bool = True) -> Value:
    """The algorithm's result, 64 bits."""
    fn, found = g.fn, grouped(parts(g, fields, valid_only))
    if helper == "hash_csum16" and not payload:
        return _summed(g, found)
    buffer, size = _input(g, found)
    at = fn.pointer(buffer)
    if not payload:
        return fn.call(helper, 64, f"ptr {at}", f"i64 {size.ref}")
    begin = fn.op("lshr", fn.op("add", g.context(AT), const(7, 64)), const(3, 64))
    rest = fn.op("sub", g.context(SIZE), begin)
    data = fn.offset(fn.load_pointer(Address(FRAME, DATA)), begin)
    if helper == "hash_crc32":
        before = fn.call(helper, 64, f"ptr {at}", f"i64 {size.ref}")
        return fn.call("crc32_from", 64, f"i64 {before.ref}", f"ptr {data}", f"i64 {rest.ref}")
    whole = fn.op("add", size, rest)
    joined = fn.ins(f"call ptr @malloc(i64 {fn.op('add', whole, const(16, 64)).ref})")
    fn.copy(joined, at, size)
    fn.copy(fn.offset(joined, size), data, rest)
    result = fn.call(helper, 64, f"ptr {joined}", f"i64 {whole.ref}")
    fn.do(f"call void @free(ptr {joined})")
    return result
