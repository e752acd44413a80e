"""Calls of v1model's extern methods and functions (v1model.p4, simple_switch.md), except calculations."""

from __future__ import annotations

from collections.abc import Mapping

from p4gen.arch.ports import DROP_PORT
from p4gen.chips.v1model.jit import calculations
from p4gen.chips.v1model.jit.frame import (
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
)
from p4gen.model.interp.build import unsupported_extern
from p4gen.model.jit.blocks import BUCKET, TablePlace
from p4gen.model.jit.build import STATE, Compiler, Gen, Site, field_index, is_signed, part_at, unsupported
from p4gen.model.jit.emit import TRUE, Address, const
from p4gen.model.jit.externs import bit_length, cell, in_range, out_of_range, part, part_type, random_bits
from p4gen.model.jit.layout import scalar_width
from p4gen.model.jit.outputs import Out, argument, constant
from p4gen.model.jit.tables import count_packet, entry_number, mark
from p4gen.p4 import ir
from p4gen.p4 import types as t

# --- methods ---


def _register_read(g: Gen, call: ir.ExternCall) -> None:
    assert call.instance is not None
    fn, item, out = g.fn, g.module.state.registers[call.instance.name], Out(g, call.args[0])
    index = argument(g, call, 1)
    inside, outside, after = fn.label(), fn.label(), fn.label()
    fn.branch(in_range(g, index, item.count), inside, outside, rare=False)
    fn.begin(inside)
    if item.count:
        out.store(g.load_container(cell(g, item, index), max(item.width, 1)))
    fn.br(after)
    fn.begin(outside)
    out_of_range(g, call, item.outside(": read at"), index)
    fn.begin(after)


def _register_write(g: Gen, call: ir.ExternCall) -> None:
    assert call.instance is not None
    fn, item = g.fn, g.module.state.registers[call.instance.name]
    index, value = argument(g, call, 0), argument(g, call, 1)
    inside, outside, after = fn.label(), fn.label(), fn.label()
    fn.branch(in_range(g, index, item.count), inside, outside, rare=False)
    fn.begin(inside)
    if item.count:
        g.store_container(value, cell(g, item, index), max(item.width, 1))
    fn.br(after)
    fn.begin(outside)
    out_of_range(g, call, item.outside(": write at"), index)
    fn.begin(after)


def _counter_count(g: Gen, call: ir.ExternCall) -> None:
    assert call.instance is not None
    fn, item, index = g.fn, g.module.state.counters[call.instance.name], argument(g, call, 0)
    inside, outside, after = fn.label(), fn.label(), fn.label()
    fn.branch(in_range(g, index, item.count), inside, outside, rare=False)
    fn.begin(inside)
    count_packet(g, cell(g, item, index), g.context(INGRESS_LENGTH))
    fn.br(after)
    fn.begin(outside)
    out_of_range(g, call, item.outside(":"), index)
    fn.begin(after)


def _direct_counter_count(g: Gen, call: ir.ExternCall) -> None:
    """Does nothing: the table counts every hit, whether or not its action calls this (simple_switch.md)."""


def _meter_execute(g: Gen, call: ir.ExternCall) -> None:
    assert call.instance is not None
    fn, instance = g.fn, call.instance
    item = g.module.state.meters[instance.name]
    index, out = argument(g, call, 0), Out(g, call.args[1])
    inside, outside, after = fn.label(), fn.label(), fn.label()
    fn.branch(in_range(g, index, item.count), inside, outside, rare=False)
    fn.begin(inside)
    size = g.context(INGRESS_LENGTH) if instance.args[1] == "bytes" else const(1, 64)
    bucket = fn.offset(fn.pointer(Address(STATE, item.offset)), index, BUCKET)
    out.store(mark(g, bucket, size))
    fn.br(after)
    fn.begin(outside)
    out_of_range(g, call, item.outside(":"), index)
    fn.begin(after)


def _direct_meter_read(g: Gen, call: ir.ExternCall) -> None:
    Out(g, call.args[0]).store(g.context(COLOR))


def hit(g: Gen, place: TablePlace, entry: str) -> None:
    """Direct counters and meters: every hit, whatever the action does (simple_switch.md)."""
    fn, number = g.fn, entry_number(g, place, entry)
    if place.counters is not None:
        counted = fn.offset(fn.pointer(Address(STATE, place.counters)), number, 16)
        count_packet(g, counted, g.context(INGRESS_LENGTH))
    if place.meters is not None:
        bucket = fn.offset(fn.pointer(Address(STATE, place.meters)), number, BUCKET)
        metered = next(e for e in place.table.direct if e.extern == "direct_meter")
        size = g.context(INGRESS_LENGTH) if "bytes" in metered.args else const(1, 64)
        g.set_context(COLOR, mark(g, bucket, size))


# --- requests to the traffic manager ---


def _mark_to_drop(g: Gen, call: ir.ExternCall) -> None:
    target = call.args[0].expr if call.args else None
    if target is None:
        raise unsupported_extern(call, "mark_to_drop without standard_metadata")
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


def _digest(g: Gen, call: ir.ExternCall) -> None:
    argument(g, call, 0)
    expr = call.args[1].expr
    if expr is None:
        raise unsupported(call.pos, "digest without data")
    value = part(g, expr)
    # Only what ingress asks for is sent, see V1Model._ingress.
    if g.phase in ("p", "vr", "ig"):
        kind = t.strip(expr.type)
        name = kind.name if isinstance(kind, t.Fields) else ""
        g.event(Site("digest", call.pos, name, (part_type(expr, value),)), value)


def _log_msg(g: Gen, call: ir.ExternCall) -> None:
    text = str(constant(call, 0))
    if len(call.args) < 2:
        g.event(Site("log", call.pos, text))
        return
    expr = call.args[1].expr
    if expr is None:
        raise unsupported(call.pos, "log_msg without its argument 2")
    value = part(g, expr)
    g.event(Site("log", call.pos, text, (part_type(expr, value),)), value)


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
        bits = bit_length(g, count)
        with fn.loop() as (_, after):
            number = random_bits(g, fn.pointer(Address(STATE, random)), bits, width)
            fn.store(number, drawn)
            again = fn.label()
            fn.branch(fn.compare("ult", number, count), after, again)
            fn.begin(again)
        out.store(fn.op("add", low, fn.load(drawn, width)))


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
