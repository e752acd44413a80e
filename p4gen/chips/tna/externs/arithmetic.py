"""Hashes, random numbers, and functions of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from p4gen.chips.tna.hashing import calculation
from p4gen.model.codec import to_bytes
from p4gen.model.interp.build import Build, unsupported
from p4gen.model.interp.context import Eval, Frame
from p4gen.model.interp.expressions import bits_of, wrapper
from p4gen.model.interp.extern_args import Compiler, Out, argument, parts_of_data
from p4gen.model.trace import show
from p4gen.p4 import ir
from p4gen.p4 import types as t


def _hash(b: Build, call: ir.ExternCall) -> Eval:
    assert call.instance is not None
    expr = call.args[0].expr
    if expr is None:
        raise unsupported(call.pos, "Hash.get without data")
    parts, compute = parts_of_data(b, expr, valid_only=False), calculation(call.instance)
    bits = bits_of(call.type)
    if bits is None:
        raise unsupported(call.pos, f"a hash of type {call.type}")
    name, pos, traced, wrap = call.instance.name, call.pos, b.traced, wrapper(bits)

    def get(f: Frame) -> int:
        joined = width = 0
        for part in parts:
            more, by = part(f)
            joined, width = joined << by | more, width + by
        found = wrap(compute(joined, width))
        if traced:
            what = f"hash {name} over {width} bits is {show(found)}"
            f[0].trace.add("hash", what, pos, data=to_bytes(joined, width), result=found)
        return found

    return get


def _random(b: Build, call: ir.ExternCall) -> Eval:
    """All values are equally likely; the generator is the switch's, from its seed."""
    bits, state = bits_of(call.type), b.state
    if bits is None:
        raise unsupported(call.pos, f"a random number of type {call.type}")
    width, wrap = bits.width, wrapper(bits)
    return lambda f: wrap(state.random.getrandbits(width))


def _of_two(choose: Callable[[Any, Any], Any]) -> Compiler:
    def compiled(b: Build, call: ir.ExternCall) -> Eval:
        left, right = argument(b, call, 0), argument(b, call, 1)
        return lambda f: choose(left(f), right(f))

    return compiled


def _size(per: int) -> Compiler:
    """``sizeInBits`` and ``sizeInBytes``: the header's declared size, whether it is valid or not."""

    def compiled(b: Build, call: ir.ExternCall) -> Eval:
        expr = call.args[0].expr
        if expr is None:
            raise unsupported(call.pos, f"{call.method} without a header")
        size = t.width_of(expr.type) // per
        return lambda f: size

    return compiled


def _funnel_shift(b: Build, call: ir.ExternCall) -> Eval:
    """The lower half of both sources, one after the other, shifted right."""
    out, first, second, by = Out(b, call.args[0]), argument(b, call, 1), argument(b, call, 2), argument(b, call, 3)
    source = call.args[2].expr
    assert source is not None
    width = t.width_of(source.type)
    mask = (1 << width) - 1

    def shift(f: Frame) -> None:
        place = out.locate(f)
        out.store(f, place, ((first(f) & mask) << width | second(f) & mask) >> by(f) & mask)

    return shift


METHODS: Mapping[tuple[str, str], Compiler] = {("Hash", "get"): _hash, ("Random", "get"): _random}
FUNCTIONS: Mapping[str, Compiler] = {
    "max": _of_two(max),
    "min": _of_two(min),
    "sizeInBits": _size(1),
    "sizeInBytes": _size(8),
    "funnel_shift_right": _funnel_shift,
}
