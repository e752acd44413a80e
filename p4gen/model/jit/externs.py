"""Calls of externs, which architectures compile (``build.Machine``), and what such calls have in common."""

from __future__ import annotations

from collections.abc import Mapping

from p4gen.model.interp.build import unsupported_extern
from p4gen.model.jit.blocks import Item
from p4gen.model.jit.build import AddressHandler, ExprHandler, Gen, is_memory
from p4gen.model.jit.emit import FALSE, Address, Value, const
from p4gen.p4 import ir
from p4gen.p4 import types as t


def cell(g: Gen, item: Item, index: Value) -> str:
    """The place of an array's element; its index is in range."""
    return g.fn.offset(g.fn.pointer(Address(g.module.machine.memory, item.offset)), index, item.step)


def in_range(g: Gen, index: Value, size: int) -> Value:
    """Whether an index is below ``size``."""
    wide = max(index.width, size.bit_length()) + 1
    return g.fn.compare("ult", g.fn.resize(index, wide), const(size, wide))


def out_of_range(g: Gen, call: ir.ExternCall, text: str, index: Value) -> None:
    """Count an index that is out of range."""
    g.trap(call.pos, text, index, t.Bits(index.width))


def part(g: Gen, e: ir.Expr) -> Value | Address:
    """The content of an event: a scalar, or the place of a composite value."""
    return g.address(e) if is_memory(e.type) else g.value(e)


def part_type(e: ir.Expr, part: Value | Address) -> t.Type:
    """The type of an event's content."""
    if isinstance(t.strip(e.type), t.Int):
        assert isinstance(part, Value)
        return t.Bits(part.width, True)
    return e.type


def bit_length(g: Gen, value: Value) -> Value:
    """Bits that a number needs, 64 bits."""
    name = g.module.need(f"llvm.ctlz.i{value.width}")
    zeros = g.fn.call(name, value.width, f"i{value.width} {value.ref}", "i1 false")
    length = g.fn.op("sub", const(value.width, max(value.width, 16)), g.fn.resize(zeros, max(value.width, 16)))
    return g.fn.resize(length, 64)


def random_bits(g: Gen, state: str, bits: Value, width: int) -> Value:
    """``getrandbits``: 32 bits at a time, the lowest first, the last of them shifted down to what is missing."""
    fn, result = g.fn, zero_local(g, width)
    for low in range(0, width, 32):
        with fn.when(fn.compare("ugt", bits, const(low, 64))):
            word = fn.call(g.module.need("random_word"), 32, f"ptr {state}")
            missing = fn.op("sub", bits, const(low, 64))
            excess = fn.op("sub", const(32, 64), missing)
            excess = fn.select(fn.compare("slt", excess, const(0, 64)), const(0, 64), excess)
            word = fn.op("lshr", word, fn.resize(excess, 32))
            wide = fn.resize(word, max(width, 32))
            placed = fn.op("shl", wide, const(low, wide.width)) if low else wide
            fn.store(fn.op("or", fn.load(result, width), fn.resize(placed, width)), result)
    return fn.load(result, width)


def zero_local(g: Gen, width: int) -> Address:
    """A new local of this width that is 0."""
    at = g.fn.local(width)
    g.fn.store(const(0, width), at)
    return at


def _compiled(g: Gen, call: ir.ExternCall) -> Value | Address | None:
    machine = g.module.machine
    if call.instance is None:
        compiler, name = machine.functions.get(call.method), call.method
    else:
        compiler = machine.methods.get((call.instance.extern, call.method))
        name = f"{call.instance.extern}.{call.method}"
    if compiler is None:
        raise unsupported_extern(call, name)
    return compiler(g, call)


def _value(g: Gen, call: ir.ExternCall) -> Value:
    found = _compiled(g, call)
    return found if isinstance(found, Value) else FALSE


def _address(g: Gen, call: ir.ExternCall) -> Address:
    found = _compiled(g, call)
    assert isinstance(found, Address)
    return found


VALUES: Mapping[type[ir.Expr], ExprHandler] = {ir.ExternCall: _value}
ADDRESSES: Mapping[type[ir.Expr], AddressHandler] = {ir.ExternCall: _address}
