"""v1model's hashes and checksums."""

from __future__ import annotations

from p4gen.chips.v1model.jit.frame import CHECKSUM_ERROR
from p4gen.model.hashes import ALGORITHMS
from p4gen.model.jit.build import Gen, is_signed, unsupported
from p4gen.model.jit.calculations import calculate
from p4gen.model.jit.emit import Value, const
from p4gen.model.jit.expressions import header_valid
from p4gen.model.jit.layout import scalar_width
from p4gen.model.jit.outputs import Out, argument, constant, expression
from p4gen.model.jit.wire import Piece, encode
from p4gen.p4 import ir
from p4gen.p4 import types as t


def algorithm_of(g: Gen, call: ir.ExternCall, position: int) -> str:
    """The function that computes the algorithm that an argument names."""
    name = constant(call, position)
    if name not in ALGORITHMS:
        raise unsupported(call.pos, f"hash algorithm {name}")
    return g.module.need("hash_" + str(name).removesuffix("_custom"))


def hash_call(g: Gen, call: ir.ExternCall) -> None:
    """``hash``: base + H mod max, or base where max is below 1."""
    fn, out = g.fn, Out(g, call.args[0])
    base_expr, most_expr = expression(call, 2), expression(call, 4)
    base = g.value(base_expr)
    found = calculate(g, algorithm_of(g, call, 1), expression(call, 3), valid_only=False)
    most = g.value(most_expr)
    signed = is_signed(most_expr.type)
    width = out.width
    start = fn.resize(base, max(width, base.width), is_signed(base_expr.type))
    start = fn.resize(start, width)
    # H has at most 64 bits, so a larger max does not change it.
    wide = max(most.width, 64)
    limit = fn.resize(most, wide, signed)
    none = fn.compare("sle" if signed else "eq", limit, const(0, wide))
    known = most.constant
    if known is not None and known.bit_count() == 1 and not (signed and known >> (most.width - 1)):
        out.store(fn.op("add", start, fn.resize(fn.op("and", found, const(known - 1, 64)), width)))
        return
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
    found = calculate(g, algorithm_of(g, call, 3), expression(call, 1), payload=_payload(call))
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
        found = calculate(g, algorithm_of(g, call, 3), expression(call, 1), payload=_payload(call))
        Out(g, call.args[2]).store(found)


def checksum16_get(g: Gen, call: ir.ExternCall) -> Value:
    """``Checksum16.get``: deprecated, the same as ``hash`` with csum16."""
    return g.fn.resize(calculate(g, g.module.need("hash_csum16"), expression(call, 0)), scalar_width(call.type))


def _payload(call: ir.ExternCall) -> bool:
    return call.method.endswith("_with_payload")


def selector_hash(g: Gen, table: ir.Table, keys: list[ir.Key]) -> Value:
    """The hash of a table's selector keys, 64 bits."""
    assert table.implementation is not None
    args = table.implementation.args
    name = str(args[0])
    helper = g.module.need("hash_" + (name if name in ALGORITHMS else "identity").removesuffix("_custom"))
    pieces = [Piece(t.width_of(k.expr.type), k.expr.type, value=g.value(k.expr)) for k in keys]
    bits = sum(p.width for p in pieces)
    buffer = g.room(-(-bits // 8) + 16)
    encode(g, pieces, buffer)
    h = g.fn.call(helper, 64, f"ptr {g.fn.pointer(buffer)}", f"i64 {-(-bits // 8)}")
    return g.fn.op("and", h, const((1 << min(int(args[2]), 64)) - 1, 64))
