"""``Checksum``, ``ParserCounter`` and ``ParserPriority``, as ``p4gen.chips.tna.externs.checksums`` runs them."""

from __future__ import annotations

from collections.abc import Mapping

from p4gen.chips.tna.externs.checksums import ALL
from p4gen.chips.tna.jit.module import tofino
from p4gen.chips.tna.jit.registers import instance_of
from p4gen.model.jit.build import FRAME, Compiler, Gen, is_signed, unsupported
from p4gen.model.jit.calculations import calculate
from p4gen.model.jit.emit import FALSE, Address, Value, const
from p4gen.model.jit.layout import AT, DATA, bits_of, scalar_width
from p4gen.model.jit.outputs import argument, expression
from p4gen.model.jit.places import is_dynamic, locate, store
from p4gen.p4 import ir

DEPTH = 64
"""The most values on a parser counter's stack; more replace the last one."""


def _sum(g: Gen, call: ir.ExternCall) -> Address:
    """The address of an instance's sum."""
    return tofino(g).slot(("sum", instance_of(call).name))


def plus(g: Gen, a: Value, b: Value) -> Value:
    """Ones' complement addition of 16 bits, as 64."""
    found = g.fn.op("add", a, b)
    return g.fn.op("add", g.fn.op("and", found, const(ALL, 64)), g.fn.op("lshr", found, const(16, 64)))


def _csum(g: Gen, data: ir.Expr) -> Value:
    return calculate(g, g.module.need("hash_csum16"), data)


def _add(g: Gen, call: ir.ExternCall) -> None:
    at, found = _sum(g, call), _csum(g, expression(call, 0))
    if call.method == "add":
        found = g.fn.op("xor", found, const(ALL, 64))
    g.fn.store(plus(g, g.fn.load(at, 64, 8), found), at, 8)


def _verify(g: Gen, call: ir.ExternCall) -> Value:
    return g.fn.compare("ne", g.fn.load(_sum(g, call), 64, 8), const(ALL, 64))


def _get(g: Gen, call: ir.ExternCall) -> Value:
    return g.fn.resize(g.fn.load(_sum(g, call), 64, 8), scalar_width(call.type))


def _residual(g: Gen, call: ir.ExternCall) -> None:
    """The rest is stored when the parser is done: everything that it extracts until then is subtracted."""
    target = expression(call, 0)
    if is_dynamic(target):
        raise unsupported(call.pos, f"{call.method} into a place that the packet decides")
    place, total = locate(g, target), _sum(g, call)
    begin = tofino(g).slot(("residual", id(call)))
    # One more than the position, so that 0 means that the call was not made.
    g.fn.store(g.fn.op("add", g.context(AT), const(1, 64)), begin, 8)

    def deposit() -> None:
        fn = g.fn
        start = fn.load(begin, 64, 8)
        with fn.when(fn.compare("ne", start, const(0, 64))):
            first = fn.op("lshr", fn.op("sub", start, const(1, 64)), const(3, 64))
            size = fn.op("sub", fn.op("lshr", g.context(AT), const(3, 64)), first)
            data = fn.offset(fn.load_pointer(Address(FRAME, DATA)), first)
            passed = fn.call(g.module.need("hash_csum16"), 64, f"ptr {data}", f"i64 {size.ref}")
            found = plus(g, fn.load(total, 64, 8), passed)
            store(g, place, fn.resize(found, scalar_width(target.type)))

    g.at_end(deposit)


def _update(g: Gen, call: ir.ExternCall) -> Value:
    fn, found = g.fn, _csum(g, expression(call, 0))
    if len(call.args) > 1 and call.args[1].expr is not None:
        ones = g.value(call.args[1].expr)
        none = fn.op("and", ones, fn.compare("eq", found, const(0, 64)))
        found = fn.select(none, const(ALL, 64), found)
    return fn.resize(found, scalar_width(call.type))


# --- counters of parsers ---


def _stack(g: Gen, call: ir.ExternCall) -> tuple[Address, str]:
    """The addresses of the depth of an instance's stack, and of its values, 2 bytes each."""
    name = instance_of(call).name
    module = tofino(g)
    return module.slot(("depth", name)), g.fn.pointer(module.values((module.gress.label, name), 2 * DEPTH))


def _at(g: Gen, values: str, depth: Value) -> str:
    """The place of the last of ``depth`` values."""
    last = g.fn.op("sub", depth, const(1, 64))
    last = g.fn.select(g.fn.compare("ult", last, const(DEPTH, 64)), last, const(DEPTH - 1, 64))
    return g.fn.offset(values, last, 2)


def _byte(g: Gen, value: Value) -> Value:
    """A parser counter has 8 bits and a sign."""
    return g.fn.resize(g.fn.resize(value, 9), 16, signed=True)


def _given(g: Gen, call: ir.ExternCall) -> Value:
    """A value, or a field rotated right and masked, plus a constant; at most ``max``."""
    fn, wide = g.fn, expression(call, 0)
    value, bits = g.value(wide), bits_of(wide.type)
    if len(call.args) <= 3:
        return fn.resize(value, max(value.width, 16), is_signed(wide.type))
    width = 8 if bits is None else bits.width
    numbers = [const(0, 64) if a.expr is None else fn.resize(g.value(a.expr), 64) for a in call.args[1:5]]
    most, rotate, mask, more = numbers
    mask_expr = call.args[3].expr
    mask_bits = None if mask_expr is None else bits_of(mask_expr.type)
    size = max(2 * width, 64)
    found = fn.resize(fn.resize(value, width), size)
    by = fn.resize(fn.op("urem", rotate, const(width, 64)), size)
    left = fn.op("shl", found, fn.op("sub", const(width, size), by))
    found = fn.op("and", fn.op("or", fn.op("lshr", found, by), left), const((1 << width) - 1, size))
    if mask_bits is not None and mask_bits.width == 3:
        # The number of the highest bit that is kept.
        one_more = fn.op("shl", const(2, 64), mask)
        mask = fn.op("sub", one_more, const(1, 64))
    found = fn.op("add", fn.op("and", found, fn.resize(mask, size)), fn.resize(more, size))
    limit = fn.resize(most, size)
    return fn.select(fn.compare("ult", limit, found), limit, found)


def _set(g: Gen, call: ir.ExternCall) -> None:
    fn, found = g.fn, _byte(g, _given(g, call))
    at, values = _stack(g, call)
    depth = fn.load(at, 64, 8)
    deeper = fn.op("add", depth, const(1, 64))
    if call.method != "push":
        deeper = fn.select(fn.compare("eq", depth, const(0, 64)), const(1, 64), depth)
    fn.store(deeper, at, 8)
    fn.store(found, _at(g, values, deeper), 2)


def _change(g: Gen, call: ir.ExternCall) -> None:
    fn, by = g.fn, g.fn.resize(argument(g, call, 0), 16)
    at, values = _stack(g, call)
    depth, value = fn.load(at, 64, 8), _top(g, call)
    fn.store(fn.select(fn.compare("eq", depth, const(0, 64)), const(1, 64), depth), at, 8)
    changed = fn.op("add" if call.method == "increment" else "sub", value, by)
    fn.store(_byte(g, changed), _at(g, values, fn.load(at, 64, 8)), 2)


def _pop(g: Gen, call: ir.ExternCall) -> None:
    fn, (at, _) = g.fn, _stack(g, call)
    depth = fn.load(at, 64, 8)
    less = fn.op("sub", depth, const(1, 64))
    fn.store(fn.select(fn.compare("eq", depth, const(0, 64)), depth, less), at, 8)


def _top(g: Gen, call: ir.ExternCall) -> Value:
    """The last value, 16 bits; 0 if there is none."""
    fn, (at, values) = g.fn, _stack(g, call)
    depth = fn.load(at, 64, 8)
    value = fn.load(_at(g, values, depth), 16, 2)
    return fn.select(fn.compare("eq", depth, const(0, 64)), const(0, 16), value)


def _is_zero(g: Gen, call: ir.ExternCall) -> Value:
    return g.fn.compare("eq", _top(g, call), const(0, 16))


def _is_negative(g: Gen, call: ir.ExternCall) -> Value:
    return g.fn.compare("slt", _top(g, call), const(0, 16))


def _nothing(g: Gen, call: ir.ExternCall) -> Value:
    return FALSE


METHODS: Mapping[tuple[str, str], Compiler] = {
    ("Checksum", "add"): _add,
    ("Checksum", "subtract"): _add,
    ("Checksum", "verify"): _verify,
    ("Checksum", "get"): _get,
    ("Checksum", "subtract_all_and_deposit"): _residual,
    ("Checksum", "update"): _update,
    ("ParserCounter", "set"): _set,
    ("ParserCounter", "push"): _set,
    ("ParserCounter", "pop"): _pop,
    ("ParserCounter", "increment"): _change,
    ("ParserCounter", "decrement"): _change,
    ("ParserCounter", "is_zero"): _is_zero,
    ("ParserCounter", "is_negative"): _is_negative,
    ("ParserPriority", "set"): _nothing,
}
