"""Calls of v1model's extern methods and functions (v1model.p4, simple_switch.md), except calculations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from p4gen.arch.ports import DROP_PORT
from p4gen.model.jit import calculations
from p4gen.model.jit.blocks import BUCKET, Item
from p4gen.model.jit.build import (
    STATE,
    ExprHandler,
    Gen,
    Site,
    field_index,
    is_memory,
    is_signed,
    part_at,
    unsupported,
)
from p4gen.model.jit.emit import FALSE, TRUE, Address, Value, const
from p4gen.model.jit.layout import (
    CLONE,
    CLONE_LIST,
    CLONE_SESSION,
    COLOR,
    INGRESS_LENGTH,
    RECIRCULATE,
    RECIRCULATE_LIST,
    RESUBMIT,
    RESUBMIT_LIST,
    TRUNCATE,
    TRUNCATE_TO,
    scalar_width,
)
from p4gen.model.jit.outputs import Out, argument, constant
from p4gen.model.jit.tables import count_packet, mark
from p4gen.p4 import ir
from p4gen.p4 import types as t

# --- methods ---


def _cell(g: Gen, item: Item, index: Value) -> str:
    return g.fn.offset(g.fn.pointer(Address(STATE, item.offset)), index, item.step)


def _in_range(g: Gen, index: Value, size: int) -> Value:
    wide = max(index.width, size.bit_length()) + 1
    return g.fn.compare("ult", g.fn.resize(index, wide), const(size, wide))


def _register_read(g: Gen, call: ir.ExternCall) -> None:
    assert call.instance is not None
    fn, item, out = g.fn, g.module.state.registers[call.instance.name], Out(g, call.args[0])
    index = argument(g, call, 1)
    inside, outside, after = fn.label(), fn.label(), fn.label()
    fn.branch(_in_range(g, index, item.count), inside, outside, rare=False)
    fn.begin(inside)
    if item.count:
        out.store(g.load_container(_cell(g, item, index), max(item.width, 1)))
    fn.br(after)
    fn.begin(outside)
    _out_of_range(g, call, item.outside(": read at"), index)
    fn.begin(after)


def _register_write(g: Gen, call: ir.ExternCall) -> None:
    assert call.instance is not None
    fn, item = g.fn, g.module.state.registers[call.instance.name]
    index, value = argument(g, call, 0), argument(g, call, 1)
    inside, outside, after = fn.label(), fn.label(), fn.label()
    fn.branch(_in_range(g, index, item.count), inside, outside, rare=False)
    fn.begin(inside)
    if item.count:
        g.store_container(value, _cell(g, item, index), max(item.width, 1))
    fn.br(after)
    fn.begin(outside)
    _out_of_range(g, call, item.outside(": write at"), index)
    fn.begin(after)


def _out_of_range(g: Gen, call: ir.ExternCall, text: str, index: Value) -> None:
    g.trap(call.pos, text, index, t.Bits(index.width))


def _counter_count(g: Gen, call: ir.ExternCall) -> None:
    assert call.instance is not None
    fn, item, index = g.fn, g.module.state.counters[call.instance.name], argument(g, call, 0)
    inside, outside, after = fn.label(), fn.label(), fn.label()
    fn.branch(_in_range(g, index, item.count), inside, outside, rare=False)
    fn.begin(inside)
    count_packet(g, _cell(g, item, index))
    fn.br(after)
    fn.begin(outside)
    _out_of_range(g, call, item.outside(":"), index)
    fn.begin(after)


def _direct_counter_count(g: Gen, call: ir.ExternCall) -> None:
    """Does nothing: the table counts every hit, whether or not its action calls this (simple_switch.md)."""


def _meter_execute(g: Gen, call: ir.ExternCall) -> None:
    assert call.instance is not None
    fn, instance = g.fn, call.instance
    item = g.module.state.meters[instance.name]
    index, out = argument(g, call, 0), Out(g, call.args[1])
    inside, outside, after = fn.label(), fn.label(), fn.label()
    fn.branch(_in_range(g, index, item.count), inside, outside, rare=False)
    fn.begin(inside)
    size = g.context(INGRESS_LENGTH) if instance.args[1] == "bytes" else const(1, 64)
    bucket = fn.offset(fn.pointer(Address(STATE, item.offset)), index, BUCKET)
    out.store(mark(g, bucket, size))
    fn.br(after)
    fn.begin(outside)
    _out_of_range(g, call, item.outside(":"), index)
    fn.begin(after)


def _direct_meter_read(g: Gen, call: ir.ExternCall) -> None:
    Out(g, call.args[0]).store(g.context(COLOR))


# --- requests to the traffic manager ---


def _mark_to_drop(g: Gen, call: ir.ExternCall) -> None:
    target = call.args[0].expr if call.args else None
    if target is None:
        raise unsupported(call.pos, "mark_to_drop without standard_metadata")
    metadata, of = g.address(target), target.type
    for name, value in (("egress_spec", DROP_PORT), ("mcast_grp", 0)):
        i = field_index(of, name)
        kind = t.strip(of)
        assert isinstance(kind, t.Fields)
        field = kind.fields[i].type
        g.store(const(value, scalar_width(field)), part_at(g, metadata, of, i), field)


def _clone(g: Gen, call: ir.ExternCall) -> None:
    session = argument(g, call, 1)
    if call.method != "clone":
        g.set_context(CLONE_LIST, argument(g, call, 2))
    g.set_context(CLONE, 1 if call.method == "clone" else 2)
    g.set_context(CLONE_SESSION, session)


def _resubmit(g: Gen, call: ir.ExternCall) -> None:
    g.set_context(RESUBMIT_LIST, argument(g, call, 0))
    g.set_context(RESUBMIT, 1)


def _recirculate(g: Gen, call: ir.ExternCall) -> None:
    g.set_context(RECIRCULATE_LIST, argument(g, call, 0))
    g.set_context(RECIRCULATE, 1)


def _truncate(g: Gen, call: ir.ExternCall) -> None:
    fn, wanted = g.fn, g.fn.resize(argument(g, call, 0), 64)
    before = g.context(TRUNCATE_TO)
    first = fn.compare("eq", g.context(TRUNCATE), const(0, 64))
    shorter = fn.op("or", first, fn.compare("ult", wanted, before))
    g.set_context(TRUNCATE_TO, fn.select(shorter, wanted, before))
    g.set_context(TRUNCATE, 1)


# --- events handled by the host ---


def _part(g: Gen, e: ir.Expr) -> Value | Address:
    return g.address(e) if is_memory(e.type) else g.value(e)


def _part_type(e: ir.Expr, part: Value | Address) -> t.Type:
    if isinstance(t.strip(e.type), t.Int):
        assert isinstance(part, Value)
        return t.Bits(part.width, True)
    return e.type


def _digest(g: Gen, call: ir.ExternCall) -> None:
    argument(g, call, 0)
    expr = call.args[1].expr
    if expr is None:
        raise unsupported(call.pos, "digest without data")
    part = _part(g, expr)
    # Only what ingress asks for is sent, see V1Model._ingress.
    if g.phase in ("p", "vr", "ig"):
        kind = t.strip(expr.type)
        name = kind.name if isinstance(kind, t.Fields) else ""
        g.event(Site("digest", call.pos, name, (_part_type(expr, part),)), part)


def _log_msg(g: Gen, call: ir.ExternCall) -> None:
    text = str(constant(call, 0))
    if len(call.args) < 2:
        g.event(Site("log", call.pos, text))
        return
    expr = call.args[1].expr
    if expr is None:
        raise unsupported(call.pos, "log_msg without its argument 2")
    part = _part(g, expr)
    g.event(Site("log", call.pos, text, (_part_type(expr, part),)), part)


def _assert(g: Gen, call: ir.ExternCall) -> None:
    holds = argument(g, call, 0)
    with g.fn.when(g.fn.op("xor", holds, TRUE), rare=True):
        g.trap(call.pos, f"{call.method} does not hold")


def _random(g: Gen, call: ir.ExternCall) -> None:
    """Python's ``randint``, so that both engines draw the same numbers."""
    fn, out = g.fn, Out(g, call.args[0])
    low_expr, high_expr = call.args[1].expr, call.args[2].expr
    low, high = argument(g, call, 1), argument(g, call, 2)
    assert low_expr is not None
    assert high_expr is not None
    width = max(low.width, high.width) + 2
    low, high = fn.resize(low, width, is_signed(low_expr.type)), fn.resize(high, width, is_signed(high_expr.type))
    random = g.module.state.random
    assert random is not None
    # If low is above high, BMv2 does not change the result.
    with fn.when(fn.compare("sle", low, high)):
        count = fn.op("add", fn.op("sub", high, low), const(1, width))
        drawn = fn.local(width)
        bits = _bit_length(g, count)
        with fn.loop() as (_, after):
            number = _random_bits(g, fn.pointer(Address(STATE, random)), bits, width)
            fn.store(number, drawn)
            again = fn.label()
            fn.branch(fn.compare("ult", number, count), after, again)
            fn.begin(again)
        out.store(fn.op("add", low, fn.load(drawn, width)))


def _bit_length(g: Gen, value: Value) -> Value:
    name = g.module.need(f"llvm.ctlz.i{value.width}")
    zeros = g.fn.call(name, value.width, f"i{value.width} {value.ref}", "i1 false")
    length = g.fn.op("sub", const(value.width, max(value.width, 16)), g.fn.resize(zeros, max(value.width, 16)))
    return g.fn.resize(length, 64)


def _random_bits(g: Gen, state: str, bits: Value, width: int) -> Value:
    """``getrandbits``: 32 bits at a time, the lowest first, the last of them shifted down to what is missing."""
    fn, result = g.fn, fn_local_zero(g, width)
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


def fn_local_zero(g: Gen, width: int) -> Address:
    """A local that is 0."""
    at = g.fn.local(width)
    g.fn.store(const(0, width), at)
    return at


Compiler = Callable[[Gen, ir.ExternCall], "Value | None"]

METHODS: Mapping[tuple[str, str], Compiler] = {
    ("register", "read"): _register_read,
    ("register", "write"): _register_write,
    ("counter", "count"): _counter_count,
    ("direct_counter", "count"): _direct_counter_count,
    ("meter", "execute_meter"): _meter_execute,
    ("direct_meter", "read"): _direct_meter_read,
    ("Checksum16", "get"): calculations.checksum16_get,
}

FUNCTIONS: Mapping[str, Compiler] = {
    "mark_to_drop": _mark_to_drop,
    "hash": calculations.hash_call,
    "verify_checksum": calculations.verify_checksum,
    "verify_checksum_with_payload": calculations.verify_checksum,
    "update_checksum": calculations.update_checksum,
    "update_checksum_with_payload": calculations.update_checksum,
    "clone": _clone,
    "clone_preserving_field_list": _clone,
    "resubmit_preserving_field_list": _resubmit,
    "recirculate_preserving_field_list": _recirculate,
    "truncate": _truncate,
    "digest": _digest,
    "random": _random,
    "log_msg": _log_msg,
    "assert": _assert,
    "assume": _assert,
}


def _extern_call(g: Gen, call: ir.ExternCall) -> Value:
    if call.instance is None:
        compiler, name = FUNCTIONS.get(call.method), call.method
    else:
        compiler = METHODS.get((call.instance.extern, call.method))
        name = f"{call.instance.extern}.{call.method}"
    if compiler is None:
        raise unsupported(call.pos, f"extern {name}")
    return compiler(g, call) or FALSE


VALUES: Mapping[type[ir.Expr], ExprHandler] = {ir.ExternCall: _extern_call}
