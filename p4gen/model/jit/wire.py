"""Values on the wire: most significant bit first, no padding (spec 8.17); from and to bytes in memory.

Whole bytes are the fast path: neighbouring fields are read and written together, runs of lanes as vectors. Values that
are not aligned, or whose position depends on the packet, go bit by bit through the runtime's helpers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p4gen.model.jit.build import Gen, is_memory, members, part_at
from p4gen.model.jit.emit import TRUE, Address, Value, const
from p4gen.model.jit.expressions import set_header_valid
from p4gen.model.jit.layout import container, scalar_width
from p4gen.p4 import types as t

LANES = 16
"""Elements of a vector: sixteen 32-bit lanes are 64 bytes."""

WORD = 64
"""Bits of the widest group of fields that are read or written together."""


@dataclass(frozen=True)
class Piece:
    """A scalar of ``width`` bits on the wire: in memory at ``at`` (type ``type``), or a known ``value``."""

    width: int
    type: t.Type
    at: Address | None = None
    value: Value | None = None

    def load(self, g: Gen) -> Value:
        """The bits of the value, as a number of ``width`` bits."""
        if self.value is not None:
            return self.value
        assert self.at is not None
        return g.load(self.at, self.type)


@dataclass(frozen=True)
class LaneRun:
    """``count`` lanes of ``bytes`` bytes each, side by side in memory as on the wire."""

    at: Address
    bytes: int
    count: int


def flatten(g: Gen, of: t.Type, at: Address) -> list[Piece]:
    """The scalars of a value without varbits, in order; bits of width 0 left out."""
    of = t.strip(of)
    if isinstance(of, t.Varbits):
        return []
    if is_memory(of):
        return [p for i, m in enumerate(members(of)) for p in flatten(g, m, part_at(g, at, of, i))]
    width = t.width_of(of)
    return [Piece(width, of, at)] if width else []


def varbit_of(of: t.Type) -> int | None:
    """The position of a header's one varbit field."""
    return next((i for i, m in enumerate(members(of)) if isinstance(t.strip(m), t.Varbits)), None)


def groups(pieces: Sequence[Piece]) -> list[LaneRun | list[Piece]]:
    """Pieces that begin at a byte boundary, cut into runs of lanes and groups of whole bytes.

    The last group may end within a byte.
    """
    result: list[LaneRun | list[Piece]] = []
    i = 0
    while i < len(pieces):
        count = _lanes(pieces, i)
        if count >= 4:
            first = pieces[i]
            assert first.at is not None
            result.append(LaneRun(first.at, first.width // 8, count))
            i += count
            continue
        group, bits = [pieces[i]], pieces[i].width
        i += 1
        while i < len(pieces) and (bits & 7 or (bits + pieces[i].width <= WORD and _lanes(pieces, i) < 4)):
            group.append(pieces[i])
            bits += pieces[i].width
            i += 1
            if bits >= WORD and not bits & 7:
                break
        result.append(group)
    return result


def _lanes(pieces: Sequence[Piece], first: int) -> int:
    """How many pieces from ``first`` on are equal lanes, side by side in memory."""
    head = pieces[first]
    if head.at is None or head.at.exact or head.width not in (16, 32, 64):
        return 1
    count, size = 1, head.width // 8
    base, offset = head.at.base, head.at.offset
    while first + count < len(pieces):
        following = pieces[first + count].at
        if (
            following is None
            or pieces[first + count].width != head.width
            or following.exact
            or following.base != base
            or following.offset != offset + count * size
        ):
            break
        count += 1
    return count


_WIDE = 128
"""Bits from which on an integer's bytes are turned around as a vector."""


def swap_bytes(g: Gen, value: Value) -> Value:
    """The bytes of ``value``, whole ones, in the opposite order."""
    width = value.width
    assert width % 8 == 0
    if width == 8:
        return value
    if width >= _WIDE and width % WORD == 0:
        # LLVM would turn the words of a wide integer around one by one.
        count, fn = width // 8, g.fn
        octets = fn.ins(f"bitcast i{width} {value.ref} to <{count} x i8>")
        order = ", ".join(f"i32 {i}" for i in reversed(range(count)))
        turned = fn.ins(f"shufflevector <{count} x i8> {octets}, <{count} x i8> poison, <{count} x i32> <{order}>")
        return Value(fn.ins(f"bitcast <{count} x i8> {turned} to i{width}"), width)
    wide = width if width % 16 == 0 else width + 8
    name = g.module.need(f"llvm.bswap.i{wide}")
    swapped = g.fn.call(name, wide, f"i{wide} {g.fn.resize(value, wide).ref}")
    if wide != width:
        swapped = g.fn.op("lshr", swapped, const(wide - width, wide))
    return g.fn.resize(swapped, width)


def _swap_run(g: Gen, to: str, source: str, size: int, count: int) -> None:
    """Copy lanes, turning each one's bytes around."""
    fn, done = g.fn, 0
    while done < count:
        lanes = min(LANES * 4 // size, 1 << ((count - done).bit_length() - 1))
        kind = f"<{lanes} x i{8 * size}>"
        a = fn.pointer(Address(source, done * size))
        b = fn.pointer(Address(to, done * size))
        name = g.module.need(f"llvm.bswap.v{lanes}i{8 * size}")
        loaded = fn.ins(f"load {kind}, ptr {a}, align 1")
        swapped = fn.ins(f"call {kind} @{name}({kind} {loaded})")
        fn.do(f"store {kind} {swapped}, ptr {b}, align 1")
        done += lanes


# --- whole bytes ---


def decode(g: Gen, pieces: Sequence[Piece], source: Address) -> None:
    """Read pieces of whole bytes in all from ``source`` into their places."""
    fn = g.fn
    for group in groups(pieces):
        if isinstance(group, LaneRun):
            _swap_run(g, fn.pointer(group.at), fn.pointer(source), group.bytes, group.count)
            source = source.plus(group.bytes * group.count)
            continue
        left = bits = sum(p.width for p in group)
        assert bits % 8 == 0
        word = swap_bytes(g, fn.load(source, bits))
        source = source.plus(bits // 8)
        for piece in group:
            left -= piece.width
            shifted = fn.op("lshr", word, const(left, bits)) if left else word
            assert piece.at is not None
            g.store(fn.resize(shifted, scalar_width(piece.type)), piece.at, piece.type)


def encode(g: Gen, pieces: Sequence[Piece], to: Address) -> int:
    """Write pieces to ``to``. Returns the number of bytes. Zeros fill the last byte."""
    fn, begin = g.fn, to.offset
    for group in groups(pieces):
        if isinstance(group, LaneRun):
            _swap_run(g, fn.pointer(to), fn.pointer(group.at), group.bytes, group.count)
            to = to.plus(group.bytes * group.count)
        else:
            word = joined(g, group)
            fn.store(swap_bytes(g, word), to)
            to = to.plus(word.width // 8)
    return to.offset - begin


def joined(g: Gen, pieces: Sequence[Piece]) -> Value:
    """Pieces as one number, the first of them highest; zeros fill the last byte."""
    fn, bits = g.fn, sum(p.width for p in pieces)
    left = whole = 8 * -(-bits // 8)
    word = const(0, whole)
    for piece in pieces:
        left -= piece.width
        part = fn.resize(fn.resize(piece.load(g), piece.width), whole)
        if left:
            known = part.constant
            part = fn.op("shl", part, const(left, whole)) if known is None else const(known << left, whole)
        word = part if word.ref == "0" else fn.op("or", word, part)
    return word


def sum_of_words(g: Gen, pieces: Sequence[Piece]) -> Value | None:
    """The sum of all 16-bit words, 64 bits; None where pieces do not make groups of whole words."""
    fn, found = g.fn, []
    for group in groups(pieces):
        if isinstance(group, LaneRun) or sum(p.width for p in group) % 16:
            return None
        found.append(group)
    total = const(0, 64)
    for group in found:
        word = joined(g, group)
        for low in range(0, word.width, 16):
            shifted = fn.op("lshr", word, const(low, word.width)) if low else word
            part = fn.resize(fn.resize(shifted, 16), 64)
            total = part if total.ref == "0" else fn.op("add", total, part)
    return total


# --- any number of bits ---


def read_bits(g: Gen, data: str, at: Value, width: int) -> Value:
    """``width`` bits from bit ``at`` of ``data`` on; they exist."""
    fn = g.fn
    if width == 0:
        return const(0, 1)
    size = container(width + 7)
    bits = 16 * -(-8 * size // 16)
    room = fn.pointer(g.room(bits // 8))
    fn.clear(room, bits // 8)
    first = fn.op("lshr", at, const(3, 64))
    end = fn.op("add", at, const(width + 7, 64))
    count = fn.op("sub", fn.op("lshr", end, const(3, 64)), first)
    fn.copy(room, fn.offset(data, first), count)
    word = swap_bytes(g, fn.load(room, bits))
    skip = fn.resize(fn.op("and", at, const(7, 64)), bits)
    word = fn.op("shl", word, skip)
    return fn.resize(fn.op("lshr", word, const(bits - width, bits)), width)


def decode_bits(g: Gen, pieces: Sequence[Piece], data: str, at: Value) -> None:
    """As ``decode``, from bit ``at`` of ``data`` on."""
    for piece in pieces:
        value = read_bits(g, data, at, piece.width)
        assert piece.at is not None
        g.store(g.fn.resize(value, scalar_width(piece.type)), piece.at, piece.type)
        at = g.fn.op("add", at, const(piece.width, 64))


def write_bits(g: Gen, value: Value, width: int, to: str, at: Value) -> None:
    """Write ``width`` bits at bit ``at`` of ``to``. Everything from that bit to the byte's end must be 0; up to 15 bits
    after them are cleared."""
    fn = g.fn
    bits = 16 * -(-(width + 7) // 16)
    place = fn.offset(to, fn.op("lshr", at, const(3, 64)))
    skip = fn.op("and", at, const(7, 64))
    left = fn.op("sub", const(bits - width, bits), fn.resize(skip, bits))
    word = fn.op("shl", fn.resize(fn.resize(value, width), bits), left)
    begun = fn.load(place, 8)
    begun = fn.select(fn.compare("eq", skip, const(0, 64)), const(0, 8), begun)
    # The bytes are turned around, so what has begun is now the lowest byte.
    fn.store(fn.op("or", swap_bytes(g, word), fn.resize(begun, bits)), place)


def mark_valid(g: Gen, of: t.Type, at: Address) -> None:
    """Make every header in a value valid."""
    of = t.strip(of)
    if isinstance(of, t.Header):
        set_header_valid(g, at, TRUE)
    elif isinstance(of, (t.Struct, t.Tuple)):
        for i, member in enumerate(members(of)):
            mark_valid(g, member, part_at(g, at, of, i))
