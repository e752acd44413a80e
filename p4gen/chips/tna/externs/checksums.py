"""``Checksum``, ``ParserCounter``, ``ParserPriority`` and ``port_metadata_unpack``.

Checksums are ones' complement sums of 16 bits, a new one for each pass. ``verify`` is true where the checksum is
*wrong*. p4c's comment in the architecture says "whether the checksum is valid or not", but the bit is the hardware's
error bit. p4c itself writes ``err = checksum.verify() || err`` (``parde/check_parser_multi_write.cpp``), and all
programs use it so. ``get`` returns the sum itself, ``update`` in a deparser the complement of a sum, as headers have
it. So ``update`` can take the result of ``get`` as a field: a parser subtracts the old checksum and the fields that may
change, and the sum of the rest is left. ``subtract_all_and_deposit`` gives the same after everything that is extracted
behind the call was subtracted too. Fields of invalid headers are left out.

Several writes of ``verify`` to one place are combined with *or*, by the chip and not by the program; this is not
modelled. The parser's priority has no effect: nothing waits in front of the parser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from p4gen.model.hashes import csum16
from p4gen.model.interp.build import Build, unsupported
from p4gen.model.interp.context import Eval, Frame
from p4gen.model.interp.expressions import bits_of
from p4gen.model.interp.extern_args import Compiler, Out, argument, joined, parts_of_data
from p4gen.model.trace import show
from p4gen.p4 import ir

ALL = 0xFFFF


def total(octets: bytes) -> int:
    """The ones' complement sum of 16-bit words; an odd last byte is the upper half of a word."""
    return csum16(octets) ^ ALL


def plus(a: int, b: int) -> int:
    """Ones' complement addition."""
    found = a + b
    return (found & ALL) + (found >> 16)


def _data(b: Build, call: ir.ExternCall) -> Callable[[Frame], bytes]:
    expr = call.args[0].expr
    if expr is None:
        raise unsupported(call.pos, f"{call.method} without data")
    return joined(parts_of_data(b, expr, valid_only=True))


def _name(call: ir.ExternCall) -> str:
    assert call.instance is not None
    return call.instance.name


def _add(b: Build, call: ir.ExternCall) -> Eval:
    name, data = _name(call), _data(b, call)
    flip = ALL if call.method == "subtract" else 0

    def add(f: Frame) -> None:
        sums = f[0].sums
        sums[name] = plus(sums.get(name, 0), total(data(f)) ^ flip)

    return add


def _verify(b: Build, call: ir.ExternCall) -> Eval:
    name, pos, traced = _name(call), call.pos, b.traced

    def verify(f: Frame) -> bool:
        wrong: bool = f[0].sums.get(name, 0) != ALL
        if traced:
            f[0].trace.add("hash", f"checksum {'is wrong' if wrong else 'verified'}", pos, good=not wrong)
        return wrong

    return verify


def _get(b: Build, call: ir.ExternCall) -> Eval:
    name = _name(call)
    return lambda f: f[0].sums.get(name, 0)


def _residual(b: Build, call: ir.ExternCall) -> Eval:
    """The rest is stored when the parser is done: everything that it extracts until then is subtracted."""
    name, out = _name(call), Out(b, call.args[0])

    def deposit(f: Frame) -> None:
        ctx, place = f[0], out.locate(f)
        start = ctx.at

        def store(end: int) -> None:
            passed = ctx.data[start >> 3 : end >> 3]
            out.store(f, place, plus(ctx.sums.get(name, 0), total(passed) ^ ALL))

        ctx.residuals.append((name, store))

    return deposit


def _update(b: Build, call: ir.ExternCall) -> Eval:
    data, pos, traced = _data(b, call), call.pos, b.traced
    ones = b.expr(call.args[1].expr) if len(call.args) > 1 and call.args[1].expr is not None else None

    def update(f: Frame) -> int:
        found = csum16(data(f))
        if ones is not None and ones(f) and found == 0:
            found = ALL
        if traced:
            f[0].trace.add("hash", f"checksum becomes {show(found)}", pos, computed=found)
        return found

    return update


# --- counters of parsers ---


def _set(b: Build, call: ir.ExternCall) -> Eval:
    """``set`` and ``push``: a value, or a field rotated right and masked, plus a constant.

    The mask of TNA is the number of the highest bit that is kept, that of T2NA has a bit for each. The result is at
    most ``max``.
    """
    name, value = _name(call), argument(b, call, 0)
    push, wide = call.method == "push", call.args[0].expr
    assert wide is not None
    bits = bits_of(wide.type)
    numbers = [None if a.expr is None else b.expr(a.expr) for a in call.args[1:5]] if len(call.args) > 3 else None
    mask_type = call.args[3].expr.type if numbers and call.args[3].expr is not None else None
    mask_bits = None if mask_type is None else bits_of(mask_type)
    narrow = mask_bits is not None and mask_bits.width == 3

    def compute(f: Frame) -> int:
        found = int(value(f))
        if numbers is not None:
            most, rotate, mask, more = (0 if n is None else int(n(f)) for n in numbers)
            width = 8 if bits is None else bits.width
            found &= (1 << width) - 1
            rotate %= width
            found = (found >> rotate | found << (width - rotate)) & (1 << width) - 1
            found = (found & ((1 << mask + 1) - 1 if narrow else mask)) + more
            found = min(found, most)
        return found

    def store(f: Frame) -> None:
        stack, found = f[0].counters.setdefault(name, []), compute(f)
        if push or not stack:
            stack.append(_byte(found))
        else:
            stack[-1] = _byte(found)

    return store


def _byte(value: int) -> int:
    """A parser counter has 8 bits and a sign."""
    return (value + 256) % 512 - 256


def _change(b: Build, call: ir.ExternCall) -> Eval:
    name, by, sign = _name(call), argument(b, call, 0), 1 if call.method == "increment" else -1

    def change(f: Frame) -> None:
        stack = f[0].counters.setdefault(name, [0])
        stack[-1] = _byte(stack[-1] + sign * by(f))

    return change


def _pop(b: Build, call: ir.ExternCall) -> Eval:
    name = _name(call)

    def pop(f: Frame) -> None:
        stack = f[0].counters.get(name)
        if stack:
            stack.pop()

    return pop


def _top(test: Callable[[int], bool]) -> Compiler:
    def compiled(b: Build, call: ir.ExternCall) -> Eval:
        name = _name(call)
        return lambda f: test((f[0].counters.get(name) or [0])[-1])

    return compiled


def _nothing(b: Build, call: ir.ExternCall) -> Eval:
    return lambda f: None


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
    ("ParserCounter", "is_zero"): _top(lambda value: value == 0),
    ("ParserCounter", "is_negative"): _top(lambda value: value < 0),
    ("ParserPriority", "set"): _nothing,
}
