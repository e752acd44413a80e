"""Hashes, random numbers and functions of values, as ``p4gen.chips.tna.externs.arithmetic`` runs them."""

from __future__ import annotations

from collections.abc import Mapping

from p4gen.chips.tna.hashing import XORS, Polynomial, polynomial_of, random_rows
from p4gen.chips.tna.jit.registers import instance_of
from p4gen.model.jit.build import STATE, Compiler, Gen, is_signed, unsupported
from p4gen.model.jit.calculations import grouped, parts
from p4gen.model.jit.emit import Address, Function, Value, const
from p4gen.model.jit.expressions import NATIVE_DIVISION
from p4gen.model.jit.externs import random_bits
from p4gen.model.jit.layout import scalar_width
from p4gen.model.jit.outputs import Out, argument, expression
from p4gen.model.jit.wire import Piece, encode
from p4gen.p4 import ir
from p4gen.p4 import types as t

# --- hashes ---


def _padding(bits: int) -> list[Piece]:
    """Zeros in pieces that can be written."""
    sizes = [64] * (bits // 64) + ([bits % 64] if bits % 64 else [])
    return [Piece(size, t.Bits(size, False), value=const(0, size)) for size in sizes]


def _hash(g: Gen, instance: ir.ExternInstance, pieces: list[Piece]) -> Value:
    """The hash of pieces, one after the other, by an instance of ``Hash``; as wide as its result."""
    size = sum(piece.width for piece in pieces)
    wanted = t.width_of(instance.type_args[0])
    polynomial, algorithm = polynomial_of(instance), str(instance.arguments["algo"])
    if polynomial is not None:
        data, count = _written(g, [*_padding(-size % 8), *pieces])
        return _crc(g, polynomial, data, count, wanted)
    if algorithm in XORS:
        width = XORS[algorithm]
        data, count = _written(g, [*pieces, *_padding(-size % width)])
        return g.fn.resize(_xor(g, data, count, width), wanted)
    data, count = _written(g, [*_padding(-size % 8), *pieces])
    if algorithm == "IDENTITY":
        return _identity(g, data, count, wanted)
    return _random_function(g, instance.name, data, size, wanted)


def _written(g: Gen, pieces: list[Piece]) -> tuple[Address, int]:
    """Write pieces to memory. Returns the address, and the number of bytes."""
    count = sum(piece.width for piece in pieces) // 8
    buffer = g.room(count + 16, 64)
    if count:
        encode(g, pieces, buffer)
    return buffer, count


def _crc(g: Gen, polynomial: Polynomial, data: Address, count: int, wanted: int) -> Value:
    name = f"tofino_crc_{abs(hash(polynomial)) % (1 << 61)}"
    g.module.define(name, lambda: _crc_function(name, polynomial))
    found = g.fn.call(name, 64, f"ptr {g.fn.pointer(data)}", f"i64 {count}")
    width, wide = polynomial.width, max(wanted, 64)
    found = g.fn.resize(found, wide)
    if polynomial.extended:
        once = found
        for at in range(width, wanted, width):
            found = g.fn.op("or", found, g.fn.op("shl", once, const(at, wide)))
    return g.fn.resize(found, wanted)


def _crc_function(name: str, polynomial: Polynomial) -> str:
    """A CRC byte by byte: reflected ones in the lowest bits of the register, others in the highest of 64."""
    reflected, width = polynomial.reversed, polynomial.width
    mask = (1 << width) - 1

    def turned(value: int) -> int:
        return int(f"{value:0{width}b}"[::-1], 2)

    table = []
    for octet in range(256):
        register = octet if reflected else octet << 56
        for _ in range(8):
            if reflected:
                register = register >> 1 ^ (turned(polynomial.coefficients) if register & 1 else 0)
            else:
                over = register >> 63
                register = register << 1 & (1 << 64) - 1
                register ^= polynomial.coefficients << (64 - width) if over else 0
        table.append(register)
    numbers = ", ".join(f"i64 {number}" for number in table)
    fn = Function(name, [("ptr readonly", "p"), ("i64", "n")], "i64", "noinline")
    state, at = fn.local(64), fn.local(64)
    start = turned(polynomial.initial) if reflected else polynomial.initial << (64 - width)
    fn.store(const(start, 64), state)
    fn.store(const(0, 64), at)
    with fn.loop() as (_, after):
        i, more = fn.load(at, 64), fn.label()
        fn.branch(fn.compare("ult", i, Value("%n", 64)), more, after)
        fn.begin(more)
        octet_here, register_now = fn.resize(fn.load(fn.offset("%p", i), 8), 64), fn.load(state, 64)
        if reflected:
            index = fn.op("and", fn.op("xor", register_now, octet_here), const(255, 64))
            rest = fn.op("lshr", register_now, const(8, 64))
        else:
            index = fn.op("xor", fn.op("lshr", register_now, const(56, 64)), octet_here)
            rest = fn.op("shl", register_now, const(8, 64))
        entry = fn.load(fn.offset(f"@{name}_table", index, 8), 64, 8)
        fn.store(fn.op("xor", rest, entry), state)
        fn.store(fn.op("add", i, const(1, 64)), at)
    found = fn.load(state, 64)
    if not reflected:
        found = fn.op("lshr", found, const(64 - width, 64))
    last = turned(polynomial.xor) if reflected else polynomial.xor
    fn.ret(fn.op("xor", fn.op("and", found, const(mask, 64)), const(last, 64)))
    constant = f"@{name}_table = private unnamed_addr constant [256 x i64] [{numbers}], align 64\n"
    return constant + fn.text()


def _xor(g: Gen, data: Address, count: int, width: int) -> Value:
    """The exclusive or of all words, whose bytes are then turned around."""
    fn, step = g.fn, width // 8
    total = const(0, width)
    for at in range(0, count, step):
        total = fn.op("xor", total, fn.load(data.plus(at), width))
    if width == 8:
        return fn.resize(total, 64)
    return fn.resize(fn.call(g.module.need(f"llvm.bswap.i{width}"), width, f"i{width} {total.ref}"), 64)


def _identity(g: Gen, data: Address, count: int, wanted: int) -> Value:
    """The lowest bits of the input."""
    fn, found = g.fn, const(0, wanted)
    for i, at in enumerate(range(count - 1, -1, -1)):
        if 8 * i >= wanted:
            break
        octet = fn.resize(fn.load(data.plus(at), 8), max(wanted, 8))
        octet = fn.op("shl", octet, const(8 * i, octet.width)) if i else octet
        found = fn.op("or", found, fn.resize(octet, wanted))
    return found


def _random_function(g: Gen, name: str, data: Address, size: int, wanted: int) -> Value:
    """A linear function of the input's bits, by its bytes."""
    fn = g.fn
    seed, rows = random_rows(name, wanted, size)
    octets = -(-wanted // 64) * 8
    label = f'"tofino_random_{name}_{size}"'

    def table() -> str:
        numbers = []
        for at in range(-(-size // 8)):
            for octet in range(256):
                value = 0
                for bit in range(8):
                    if octet >> bit & 1 and 8 * at + bit < size:
                        value ^= rows[8 * at + bit]
                numbers.append(f"i{8 * octets} {value}")
        kind = f"[{len(numbers)} x i{8 * octets}]"
        return f"@{label} = private unnamed_addr constant {kind} [{', '.join(numbers)}], align 64\n"

    g.module.define(label, table)
    found, count = const(seed, 8 * octets), -(-size // 8)
    for at in range(count):
        # The lowest bits are in the last byte.
        octet = fn.resize(fn.load(data.plus(count - 1 - at), 8), 64)
        place = fn.offset(f"@{label}", fn.op("add", octet, const(256 * at, 64)), octets)
        found = fn.op("xor", found, fn.load(place, 8 * octets, 8))
    return fn.resize(found, wanted)


def _get(g: Gen, call: ir.ExternCall) -> Value:
    data = expression(call, 0)
    found = grouped(parts(g, data, valid_only=False))
    if any(group.varbit is not None for group in found):
        raise unsupported(data.pos, f"a hash over a varbit ({data.type}) in the native engine")
    pieces = [piece for group in found for piece in group.pieces]
    return g.fn.resize(_hash(g, instance_of(call), pieces), scalar_width(call.type))


def selector_hash(g: Gen, table: ir.Table, keys: list[ir.Key]) -> Value:
    """The hash of a table's selector keys, by the selector's instance of ``Hash``."""
    pieces = [Piece(t.width_of(k.expr.type), k.expr.type, value=g.value(k.expr)) for k in keys]
    assert table.implementation is not None
    hashed = table.implementation.arguments.get("hash")
    if not isinstance(hashed, ir.ExternInstance):
        raise unsupported(table.pos, f"table {table.name}: an action profile with groups, but without a selector")
    found = _hash(g, hashed, pieces)
    if found.width > NATIVE_DIVISION:
        raise unsupported(table.pos, f"table {table.name}: a selector whose hash has more than 64 bits")
    return g.fn.resize(found, 64)


# --- the others ---


def _random(g: Gen, call: ir.ExternCall) -> Value:
    """All values are equally likely; the generator is the switch's, from its seed."""
    random, width = g.module.state.random, t.width_of(call.type)
    assert random is not None
    return random_bits(g, g.fn.pointer(Address(STATE, random)), const(width, 64), width)


def _smaller(g: Gen, call: ir.ExternCall) -> Value:
    left, right = argument(g, call, 0), argument(g, call, 1)
    signed = is_signed(expression(call, 0).type)
    below = g.fn.compare("slt" if signed else "ult", right, left)
    # Equal ones cannot be told apart: the first is taken.
    return g.fn.select(below, *((right, left) if call.method == "min" else (left, right)))


def _size(g: Gen, call: ir.ExternCall) -> Value:
    """``sizeInBits`` and ``sizeInBytes``: the header's declared size, whether it is valid or not."""
    bits = t.width_of(expression(call, 0).type)
    return const(bits if call.method == "sizeInBits" else bits // 8, scalar_width(call.type))


def _funnel_shift(g: Gen, call: ir.ExternCall) -> None:
    """The lower half of both sources, one after the other, shifted right."""
    fn, out = g.fn, Out(g, call.args[0])
    first, second, by = (argument(g, call, i) for i in (1, 2, 3))
    width = t.width_of(expression(call, 2).type)
    size = 2 * max(width, by.width, 32)
    whole = fn.op("shl", fn.resize(fn.resize(first, width), size), const(width, size))
    whole = fn.op("or", whole, fn.resize(fn.resize(second, width), size))
    distance = fn.resize(by, size)
    far = fn.compare("uge", distance, const(2 * width, size))
    shifted = fn.op("lshr", whole, fn.select(far, const(0, size), distance))
    out.store(fn.resize(fn.select(far, const(0, size), shifted), width))


METHODS: Mapping[tuple[str, str], Compiler] = {("Hash", "get"): _get, ("Random", "get"): _random}
FUNCTIONS: Mapping[str, Compiler] = {
    "max": _smaller,
    "min": _smaller,
    "sizeInBits": _size,
    "sizeInBytes": _size,
    "funnel_shift_right": _funnel_shift,
}
