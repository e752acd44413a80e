"""Runtime functions for generated code; only those that a program needs are generated into it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from p4gen.model.jit import crc
from p4gen.model.jit.emit import Address, Function, Value, const
from p4gen.model.jit.exchange import (
    EVENT,
    EVENTS,
    EVENTS_ROOM,
    EVENTS_USED,
    OUT_AT,
    OUT_BASE,
    OUT_DATA,
    OUT_ROOM,
    OUT_USED,
)

IO = "%io"


def word(fn: Function, base: str, offset: int) -> Value:
    """An 8-byte number in an area."""
    return fn.load(Address(base, offset), 64, 8)


def set_word(fn: Function, base: str, offset: int, value: Value | int) -> None:
    """Store an 8-byte number into an area."""
    fn.store(const(value, 64) if isinstance(value, int) else fn.resize(value, 64), Address(base, offset), 8)


def grow(fn: Function, pointer: int, room: int, needed: Value) -> None:
    """Make the buffer whose pointer and size are at these offsets of the exchange area hold ``needed`` bytes."""
    with fn.when(fn.compare("ugt", needed, word(fn, IO, room)), rare=True):
        larger = fn.op("add", fn.op("shl", needed, const(1, 64)), const(1 << 16, 64))
        moved = fn.ins(f"call ptr @realloc(ptr {fn.load_pointer(Address(IO, pointer))}, i64 {larger.ref})")
        fn.store_pointer(moved, Address(IO, pointer))
        set_word(fn, IO, room, larger)


def grow_output(fn: Function, extra: Value) -> None:
    """Reserve room for ``extra`` more bytes after the deparser's output."""
    written = fn.op("lshr", fn.op("add", word(fn, IO, OUT_AT), const(7, 64)), const(3, 64))
    used = word(fn, IO, OUT_USED)
    grow(fn, OUT_DATA, OUT_ROOM, fn.op("add", fn.op("add", used, written), extra))
    fn.store_pointer(fn.offset(fn.load_pointer(Address(IO, OUT_DATA)), used), Address(IO, OUT_BASE))


def _emit_room() -> str:
    fn = Function("emit_room", [("ptr", "io"), ("i64", "extra")], attributes="noinline")
    grow_output(fn, Value("%extra", 64))
    fn.ret()
    return fn.text()


def _event() -> str:
    fn = Function("event", [("ptr", "io"), ("i64", "site"), ("i64", "size")], "ptr", "noinline cold")
    used = word(fn, IO, EVENTS_USED)
    end = fn.op("add", fn.op("add", used, const(EVENT, 64)), Value("%size", 64))
    grow(fn, EVENTS, EVENTS_ROOM, end)
    at = fn.offset(fn.load_pointer(Address(IO, EVENTS)), used)
    set_word(fn, at, 0, Value("%site", 64))
    set_word(fn, at, 8, Value("%size", 64))
    set_word(fn, IO, EVENTS_USED, end)
    fn.ret(f"ptr {fn.pointer(Address(at, EVENT))}")
    return fn.text()


def _bytes_equal() -> str:
    fn = Function("bytes_equal", [("ptr", "a"), ("ptr", "b"), ("i64", "size")], "i1", "noinline")
    at = fn.local(64)
    fn.store(const(0, 64), at)
    with fn.loop() as (_, after):
        i = fn.load(at, 64)
        more, differ, following = fn.label(), fn.label(), fn.label()
        fn.branch(fn.compare("ult", i, Value("%size", 64)), more, after)
        fn.begin(more)
        same = fn.compare("eq", fn.load(fn.offset("%a", i), 8), fn.load(fn.offset("%b", i), 8))
        fn.branch(same, following, differ)
        fn.begin(differ)
        fn.ret(const(0, 1))
        fn.begin(following)
        fn.store(fn.op("add", i, const(1, 64)), at)
    fn.ret(const(1, 1))
    return fn.text()


def _copy_bits() -> str:
    """Copy ``bits`` bits from bit ``from`` of ``source`` to bit ``at`` of ``to``. Bits before them in their first byte
    stay, bits after them in their last byte become 0."""
    params = [("ptr", "to"), ("i64", "at"), ("ptr", "source"), ("i64", "from"), ("i64", "bits")]
    fn = Function("copy_bits", params, attributes="noinline")
    at, whence, bits = Value("%at", 64), Value("%from", 64), Value("%bits", 64)
    whole, done = fn.label(), fn.label()
    either = fn.op("and", fn.op("or", fn.op("or", at, whence), bits), const(7, 64))
    slow = fn.label()
    fn.branch(fn.compare("eq", either, const(0, 64)), whole, slow)
    fn.begin(whole)
    three = const(3, 64)
    to, source = fn.offset("%to", fn.op("lshr", at, three)), fn.offset("%source", fn.op("lshr", whence, three))
    fn.copy(to, source, fn.op("lshr", bits, three))
    fn.br(done)
    fn.begin(slow)
    count = fn.local(64)
    fn.store(const(0, 64), count)
    with fn.loop() as (_, after):
        i = fn.load(count, 64)
        more = fn.label()
        fn.branch(fn.compare("ult", i, bits), more, after)
        fn.begin(more)
        bit = _bit(fn, "%source", fn.op("add", whence, i))
        _set_bit(fn, "%to", fn.op("add", at, i), bit)
        fn.store(fn.op("add", i, const(1, 64)), count)
    fn.begin(done)
    fn.ret()
    return fn.text()


def _bit(fn: Function, base: str, at: Value) -> Value:
    octet = fn.load(fn.offset(base, fn.op("lshr", at, const(3, 64))), 8)
    down = fn.op("sub", const(7, 64), fn.op("and", at, const(7, 64)))
    return fn.op("and", fn.op("lshr", octet, fn.resize(down, 8)), const(1, 8))


def _set_bit(fn: Function, base: str, at: Value, bit: Value) -> None:
    """Set a bit, and clear the bits after it in its byte."""
    place = fn.offset(base, fn.op("lshr", at, const(3, 64)))
    position = fn.resize(fn.op("and", at, const(7, 64)), 16)
    before = fn.resize(fn.op("lshr", const(0xFF00, 16), position), 8)
    kept = fn.op("and", fn.load(place, 8), before)
    kept = fn.select(fn.compare("eq", position, const(0, 16)), const(0, 8), kept)
    up = fn.op("sub", const(7, 8), fn.resize(position, 8))
    fn.store(fn.op("or", kept, fn.op("shl", bit, up)), place)


def _meter_mark() -> str:
    """``externs.Bucket.mark``. Tokens are 128-bit numbers."""
    fn = Function("meter_mark", [("ptr", "b"), ("i64", "size"), ("i64", "now")], "i64", "noinline")
    set_up = fn.label()
    green = fn.label()
    fn.branch(fn.compare("eq", word(fn, "%b", 0), const(0, 64)), green, set_up)
    fn.begin(green)
    fn.ret(const(0, 64))
    fn.begin(set_up)
    now, last = Value("%now", 64), word(fn, "%b", 40)
    later = fn.compare("sgt", now, last)
    elapsed = fn.select(later, fn.op("sub", now, last), const(0, 64))
    set_word(fn, "%b", 40, fn.select(later, now, last))
    tokens = []
    for offset, rate, burst in ((48, 8, 16), (64, 24, 32)):
        earned = fn.op("mul", fn.resize(elapsed, 128), fn.resize(word(fn, "%b", rate), 128))
        most = fn.op("mul", fn.resize(word(fn, "%b", burst), 128), const(1_000_000, 128))
        have = fn.op("add", fn.load(Address("%b", offset), 128, 8), earned)
        have = fn.select(fn.compare("ugt", have, most), most, have)
        fn.store(have, Address("%b", offset), 8)
        tokens.append(have)
    committed, peak = tokens
    cost = fn.op("mul", fn.resize(Value("%size", 64), 128), const(1_000_000, 128))
    for have, offset, color in ((peak, 64, 2), (committed, 48, 1)):
        short, enough = fn.label(), fn.label()
        fn.branch(fn.compare("ult", have, cost), short, enough)
        fn.begin(short)
        fn.ret(const(color, 64))
        fn.begin(enough)
        fn.store(fn.op("sub", have, cost), Address("%b", offset), 8)
    fn.ret(const(0, 64))
    return fn.text()


def _random_word() -> str:
    """The Mersenne Twister (Matsumoto and Nishimura, 1998): the next 32 bits."""
    fn = Function("random_word", [("ptr", "s")], "i32", "noinline")
    position = Address("%s", 4 * 624)

    def at(i: Value) -> str:
        return fn.offset("%s", fn.op("urem", i, const(624, 64)), 4)

    index = fn.resize(fn.load(position, 32, 4), 64)
    with fn.when(fn.compare("uge", index, const(624, 64)), rare=True):
        k = fn.local(64)
        fn.store(const(0, 64), k)
        with fn.loop() as (_, after):
            i = fn.load(k, 64)
            more = fn.label()
            fn.branch(fn.compare("ult", i, const(624, 64)), more, after)
            fn.begin(more)
            high = fn.op("and", fn.load(at(i), 32, 4), const(0x80000000, 32))
            low = fn.op("and", fn.load(at(fn.op("add", i, const(1, 64))), 32, 4), const(0x7FFFFFFF, 32))
            y = fn.op("or", high, low)
            odd = fn.compare("ne", fn.op("and", y, const(1, 32)), const(0, 32))
            new = fn.op("xor", fn.load(at(fn.op("add", i, const(397, 64))), 32, 4), fn.op("lshr", y, const(1, 32)))
            new = fn.op("xor", new, fn.select(odd, const(0x9908B0DF, 32), const(0, 32)))
            fn.store(new, at(i), 4)
            fn.store(fn.op("add", i, const(1, 64)), k)
        fn.store(const(0, 32), position, 4)
    index = fn.resize(fn.load(position, 32, 4), 64)
    fn.store(fn.resize(fn.op("add", index, const(1, 64)), 32), position, 4)
    y = fn.load(fn.offset("%s", index, 4), 32, 4)
    y = fn.op("xor", y, fn.op("lshr", y, const(11, 32)))
    y = fn.op("xor", y, fn.op("and", fn.op("shl", y, const(7, 32)), const(0x9D2C5680, 32)))
    y = fn.op("xor", y, fn.op("and", fn.op("shl", y, const(15, 32)), const(0xEFC60000, 32)))
    fn.ret(fn.op("xor", y, fn.op("lshr", y, const(18, 32))))
    return fn.text()


_MAKERS: dict[str, Callable[[], str]] = {
    "emit_room": _emit_room,
    "event": _event,
    "bytes_equal": _bytes_equal,
    "copy_bits": _copy_bits,
    "meter_mark": _meter_mark,
    "random_word": _random_word,
    "hash_crc16": crc.crc16,
    "hash_csum16": crc.csum16,
    "hash_xor16": crc.xor16,
    "hash_identity": crc.identity,
}

_ALWAYS = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @malloc(i64)
declare ptr @realloc(ptr, i64)
declare void @free(ptr)
!0 = !{!"branch_weights", i32 1, i32 2000}
!1 = !{!"branch_weights", i32 2000, i32 1}
"""


def runtime(helpers: Iterable[str], *, carryless: bool) -> str:
    """IR of the helpers, and of what they need; ``carryless``: the machine multiplies without carries."""
    texts = [_ALWAYS]
    for name in sorted(helpers):
        if name.startswith("llvm."):
            texts.append(_declaration(name))
        elif name == "hash_crc32":
            texts.append(crc.crc32(carryless=carryless))
        else:
            texts.append(_MAKERS[name]())
    return "\n".join(texts)


def _declaration(name: str) -> str:
    """The declaration of an intrinsic, from its name: ``llvm.bswap.v16i32``, ``llvm.uadd.sat.i8``."""
    base, _, suffix = name.rpartition(".")
    kind = f"<{suffix[1:].replace('i', ' x i', 1)}>" if suffix.startswith("v") else suffix
    if base in ("llvm.ctlz", "llvm.cttz"):
        return f"declare {kind} @{name}({kind}, i1)"
    return f"declare {kind} @{name}({', '.join([kind] * (2 if base.endswith('.sat') else 1))})"
