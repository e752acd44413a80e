"""The hash algorithms of ``p4gen.model.hashes`` as LLVM functions of (bytes, number of bytes) with a 64-bit result.

CRC-32 uses carry-less multiplication if the machine has it (V. Gopal et al., "Fast CRC Computation for Generic
Polynomials Using PCLMULQDQ Instruction", Intel 2009, for the reflected polynomial), and slices of eight bytes otherwise
and for less than 16 bytes.
"""

from __future__ import annotations

from collections.abc import Callable

from p4gen.model.jit.emit import Address, Function, Value, const

_P = 0x104C11DB7
_BARRETT = (0x1DB710641, 0x1F7011641)
"""P with its inverse, reflected."""

_PARAMS = [("ptr readonly", "p"), ("i64", "n")]
_N = Value("%n", 64)
_V = "<2 x i64>"
_BYTES = "<16 x i8>"
_SHIFTS = bytes([0x80] * 16) + bytes(range(16)) + bytes([0x80] * 16)
"""From byte i on: what moves 16 bytes by 16 - i places towards the end, or 16 + i: by i towards the start."""


def _tables(polynomial: int, count: int) -> list[list[int]]:
    first = []
    for octet in range(256):
        value = octet
        for _ in range(8):
            value = (value >> 1) ^ (polynomial if value & 1 else 0)
        first.append(value)
    tables = [first]
    for _ in range(count - 1):
        tables.append([(v >> 8) ^ first[v & 0xFF] for v in tables[-1]])
    return tables


def _constant(name: str, tables: list[list[int]], width: int) -> str:
    numbers = ", ".join(f"i{width} {v}" for table in tables for v in table)
    return f"@{name} = private unnamed_addr constant [{256 * len(tables)} x i{width}] [{numbers}], align 64\n"


def _counted(fn: Function, at: Address, limit: Value, step: int, body: Callable[[Value], None]) -> None:
    """Run ``body`` on the position while ``step`` more bytes fit below ``limit``."""
    with fn.loop() as (_, after):
        i = fn.load(at, 64)
        more = fn.label()
        fn.branch(fn.compare("ule", fn.op("add", i, const(step, 64)), limit), more, after)
        fn.begin(more)
        body(i)
        fn.store(fn.op("add", i, const(step, 64)), at)


# --- CRC-32 ---


def crc32(*, carryless: bool) -> str:
    """The function for CRC-32 (ISO-HDLC), and ``crc32_from``, whose first parameter is the CRC of what comes before the
    bytes."""
    fn = Function("crc32_from", [("i64", "before"), *_PARAMS], "i64", "noinline")
    before = fn.resize(Value("%before", 64), 32)
    state, at = fn.local(32), fn.local(64)
    fn.store(fn.op("xor", before, const(-1, 32)), state)
    fn.store(const(0, 64), at)
    if carryless:
        with fn.when(fn.compare("uge", _N, const(16, 64))):
            _fold(fn, state, at)

    def slice_of_eight(i: Value) -> None:
        data = fn.load(fn.offset("%p", i), 64)
        data = fn.op("xor", data, fn.resize(fn.load(state, 32), 64))
        parts = []
        for k in range(8):
            octet = fn.op("and", fn.op("lshr", data, const(8 * k, 64)) if k else data, const(255, 64))
            place = fn.op("add", octet, const(256 * (7 - k), 64))
            parts.append(fn.load(fn.offset("@crc32_table", place, 4), 32, 4))
        while len(parts) > 1:
            parts = [fn.op("xor", a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        fn.store(parts[0], state)

    def octet_alone(i: Value) -> None:
        crc = fn.load(state, 32)
        index = fn.op("xor", fn.op("and", crc, const(255, 32)), fn.resize(fn.load(fn.offset("%p", i), 8), 32))
        entry = fn.load(fn.offset("@crc32_table", index, 4), 32, 4)
        fn.store(fn.op("xor", fn.op("lshr", crc, const(8, 32)), entry), state)

    _counted(fn, at, _N, 8, slice_of_eight)
    _counted(fn, at, _N, 1, octet_alone)
    fn.ret(fn.resize(fn.op("xor", fn.load(state, 32), const(-1, 32)), 64))
    alone = Function("hash_crc32", _PARAMS, "i64")
    alone.ret(alone.call("crc32_from", 64, "i64 0", "ptr %p", f"i64 {_N.ref}"))
    table = _constant("crc32_table", _tables(0xEDB88320, 8), 32)
    return table + (_FOLDING if carryless else "") + fn.text() + alone.text()


_FOLDING = f"""declare {_V} @llvm.x86.pclmulqdq({_V}, {_V}, i8 immarg)
declare {_BYTES} @llvm.x86.ssse3.pshuf.b.128({_BYTES}, {_BYTES})
@crc32_shifts = private unnamed_addr constant [{len(_SHIFTS)} x i8] [{", ".join(f"i8 {octet}" for octet in _SHIFTS)}]
"""


def _clmul(fn: Function, a: str, b: str, halves: int) -> str:
    return fn.ins(f"call {_V} @llvm.x86.pclmulqdq({_V} {a}, {_V} {b}, i8 {halves})")


def _xor(fn: Function, *values: str) -> str:
    result = values[0]
    for value in values[1:]:
        result = fn.ins(f"xor {_V} {result}, {value}")
    return result


def _load(fn: Function, at: Value, offset: int = 0) -> str:
    return fn.ins(f"load {_V}, ptr {fn.pointer(Address(fn.offset('%p', at), offset))}, align 1")


def _pair(values: tuple[int, int]) -> str:
    return f"<i64 {values[0]}, i64 {values[1]}>"


def _shift_right(fn: Function, value: str, bits: int) -> str:
    whole = fn.ins(f"bitcast {_V} {value} to i128")
    return fn.ins(f"bitcast i128 {fn.ins(f'lshr i128 {whole}, {bits}')} to {_V}")


def _power(bits: int) -> int:
    """x^bits mod P, reflected, as a factor of a carry-less product."""
    value = 1
    for _ in range(bits):
        value = value << 1 ^ (_P if value >> 31 else 0)
    return int(f"{value:032b}"[::-1], 2) << 1


def _over(size: int) -> str:
    """The factors that move 16 bytes over the ``size`` bytes behind them."""
    return _pair((_power(8 * size + 32), _power(8 * size - 32)))


def _moved(fn: Function, value: str, size: int) -> str:
    factors = _over(size)
    return _xor(fn, _clmul(fn, value, factors, 0), _clmul(fn, value, factors, 0x11))


def _append(fn: Function, value: str, size: Value) -> str:
    """Append the ``size`` bytes behind the last complete block of 16, fewer than that, to the value of all blocks."""
    octets = fn.ins(f"bitcast {_V} {value} to {_BYTES}")
    at, last = fn.offset("@crc32_shifts", size), fn.offset("%p", fn.op("sub", _N, const(16, 64)))
    up, down, tail = (
        fn.ins(f"load {_BYTES}, ptr {fn.pointer(place)}, align 1")
        for place in (Address(at), Address(at, 16), Address(last))
    )
    first, rest = (
        fn.ins(f"call {_BYTES} @llvm.x86.ssse3.pshuf.b.128({_BYTES} {octets}, {_BYTES} {shift})")
        for shift in (up, down)
    )
    free = fn.ins(f"icmp slt {_BYTES} {down}, zeroinitializer")
    last_block = fn.ins(f"select <16 x i1> {free}, {_BYTES} {tail}, {_BYTES} {rest}")
    first, last_block = (fn.ins(f"bitcast {_BYTES} {each} to {_V}") for each in (first, last_block))
    return _xor(fn, _moved(fn, first, 16), last_block)


def _fold(fn: Function, state: Address, at: Address) -> None:
    """Process all bytes; there are at least 16.

    Blocks are processed in rows of four, which do not wait for each other. Where their number is no multiple of four,
    the first row begins with zeros, which change nothing.
    """
    whole = fn.op("and", _N, const(-16, 64))
    first = fn.op("add", fn.op("and", fn.op("sub", whole, const(16, 64)), const(48, 64)), const(16, 64))
    fn.store(first, at)
    seed = fn.ins(f"insertelement {_V} zeroinitializer, i64 {fn.resize(fn.load(state, 32), 64).ref}, i32 0")
    x = [fn.alloca(_V, 16) for _ in range(4)]

    def get(i: int) -> str:
        return fn.ins(f"load {_V}, ptr {x[i]}, align 16")

    def put(i: int, value: str) -> None:
        fn.do(f"store {_V} {value}, ptr {x[i]}, align 16")

    for i in range(3):
        put(i, "zeroinitializer")
    after = fn.label()
    for blocks, i in enumerate((3, 2, 1, 0), 1):
        begins = fn.compare("eq", first, const(16 * blocks, 64))
        part = fn.ins(f"select i1 {begins.ref}, {_V} {seed}, {_V} zeroinitializer")
        put(i, _xor(fn, _load(fn, fn.op("sub", first, const(16 * blocks, 64))), part))
        if i:
            more = fn.label()
            fn.branch(begins, after, more)
            fn.begin(more)
    fn.br(after)
    fn.begin(after)

    def row(position: Value) -> None:
        for i in range(4):
            put(i, _xor(fn, _moved(fn, get(i), 64), _load(fn, position, 16 * i)))

    _counted(fn, at, _N, 64, row)
    fn.store(_N, at)
    value = _xor(fn, _moved(fn, get(0), 48), _moved(fn, get(1), 32), _moved(fn, get(2), 16), get(3))
    rest = fn.op("and", _N, const(15, 64))
    put(0, value)
    with fn.when(fn.compare("ne", rest, const(0, 64))):
        put(0, _append(fn, get(0), rest))
    value = get(0)
    low = _pair((0xFFFFFFFF, 0xFFFFFFFF))
    value = _xor(fn, _shift_right(fn, value, 64), _clmul(fn, value, _over(16), 0x10))
    masked = fn.ins(f"and {_V} {value}, {low}")
    value = _xor(fn, _shift_right(fn, value, 32), _clmul(fn, masked, _pair((_power(64), 0)), 0))
    quotient = _clmul(fn, fn.ins(f"and {_V} {value}, {low}"), _pair(_BARRETT), 0x10)
    product = _clmul(fn, fn.ins(f"and {_V} {quotient}, {low}"), _pair(_BARRETT), 0)
    words = fn.ins(f"bitcast {_V} {_xor(fn, value, product)} to <4 x i32>")
    fn.store(Value(fn.ins(f"extractelement <4 x i32> {words}, i32 1"), 32), state)


# --- the others ---


def crc16() -> str:
    """The function for CRC-16 (ARC)."""
    fn = Function("hash_crc16", _PARAMS, "i64", "noinline")
    state, at = fn.local(16), fn.local(64)
    fn.store(const(0, 16), state)
    fn.store(const(0, 64), at)

    def octet(i: Value) -> None:
        crc = fn.load(state, 16)
        index = fn.op("xor", fn.op("and", crc, const(255, 16)), fn.resize(fn.load(fn.offset("%p", i), 8), 16))
        entry = fn.load(fn.offset("@crc16_table", index, 2), 16, 2)
        fn.store(fn.op("xor", fn.op("lshr", crc, const(8, 16)), entry), state)

    _counted(fn, at, _N, 1, octet)
    fn.ret(fn.resize(fn.load(state, 16), 64))
    return _constant("crc16_table", _tables(0xA001, 1), 16) + fn.text()


def _by_words(name: str, step: str) -> tuple[Function, Value]:
    """Combine all 16-bit words in network order, an odd last byte padded with zero, with ``step``."""
    fn = Function(name, _PARAMS, "i64", "noinline")
    total, at = fn.local(64), fn.local(64)
    fn.store(const(0, 64), total)
    fn.store(const(0, 64), at)

    def add(value: Value) -> None:
        fn.store(fn.op(step, fn.load(total, 64), fn.resize(value, 64)), total)

    # Words in the machine's order: sums and exclusive ors come out with their bytes turned around.
    _counted(fn, at, _N, 4, lambda i: add(fn.load(fn.offset("%p", i), 32)))
    _counted(fn, at, _N, 2, lambda i: add(fn.load(fn.offset("%p", i), 16)))
    _counted(fn, at, _N, 1, lambda i: add(fn.load(fn.offset("%p", i), 8)))
    return fn, fn.load(total, 64)


def _turned(fn: Function, value: Value) -> Value:
    low = fn.op("and", value, const(0xFF, 64))
    high = fn.op("and", fn.op("lshr", value, const(8, 64)), const(0xFF, 64))
    return fn.op("or", fn.op("shl", low, const(8, 64)), high)


def fold_sum(fn: Function, total: Value) -> Value:
    """A sum of 16-bit words with its carries added until there are none (RFC 1071)."""
    for bits in (32, 16, 16, 16):
        total = fn.op("add", fn.op("and", total, const((1 << bits) - 1, 64)), fn.op("lshr", total, const(bits, 64)))
    return total


def csum16() -> str:
    """The function for the Internet checksum (RFC 1071)."""
    fn, total = _by_words("hash_csum16", "add")
    fn.ret(fn.op("xor", _turned(fn, fold_sum(fn, total)), const(0xFFFF, 64)))
    return fn.text()


def xor16() -> str:
    """The function for the exclusive or of all 16-bit words."""
    fn, total = _by_words("hash_xor16", "xor")
    total = fn.op("xor", total, fn.op("lshr", total, const(16, 64)))
    fn.ret(_turned(fn, total))
    return fn.text()


def identity() -> str:
    """The function for the first eight bytes, as a number."""
    fn = Function("hash_identity", _PARAMS, "i64", "noinline")
    total, at = fn.local(64), fn.local(64)
    fn.store(const(0, 64), total)
    fn.store(const(0, 64), at)
    eight = fn.select(fn.compare("ult", _N, const(8, 64)), _N, const(8, 64))

    def octet(i: Value) -> None:
        shifted = fn.op("shl", fn.load(total, 64), const(8, 64))
        fn.store(fn.op("or", shifted, fn.resize(fn.load(fn.offset("%p", i), 8), 64)), total)

    _counted(fn, at, eight, 1, octet)
    fn.ret(fn.load(total, 64))
    return fn.text()
