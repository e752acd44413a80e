"""Counters and meters, as ``p4gen.chips.tna.externs.meters`` runs them."""

from __future__ import annotations

from collections.abc import Mapping

from p4gen.chips.tna.externs.meters import COLOURS, NAMES, colour_places
from p4gen.chips.tna.jit.registers import instance_of
from p4gen.model.jit.blocks import BUCKET, TablePlace
from p4gen.model.jit.build import STATE, Compiler, Gen
from p4gen.model.jit.emit import Address, Value, const
from p4gen.model.jit.externs import cell, in_range, out_of_range
from p4gen.model.jit.layout import LENGTH, scalar_width
from p4gen.model.jit.outputs import argument
from p4gen.model.jit.tables import count_packet, entry_number, mark
from p4gen.p4 import ir


def hit(g: Gen, place: TablePlace, entry: str) -> None:
    """Nothing: actions count by themselves."""


def _size(g: Gen, call: ir.ExternCall, position: int) -> Value:
    """The bytes to count: the packet's length without ``adjust_byte_count``."""
    expr = call.args[position].expr if len(call.args) > position else None
    length = g.context(LENGTH)
    if expr is None:
        return length
    less = g.fn.resize(g.value(expr), 64)
    return g.fn.select(g.fn.compare("ult", length, less), const(0, 64), g.fn.op("sub", length, less))


def _count(g: Gen, call: ir.ExternCall) -> None:
    fn, item, index = g.fn, g.module.state.counters[instance_of(call).name], argument(g, call, 0)
    size = _size(g, call, 1)
    inside, outside, after = fn.label(), fn.label(), fn.label()
    fn.branch(in_range(g, index, item.count), inside, outside, rare=False)
    fn.begin(inside)
    count_packet(g, cell(g, item, index), size)
    fn.br(after)
    fn.begin(outside)
    out_of_range(g, call, item.outside(":"), index)
    fn.begin(after)


def _of_entry(g: Gen, offset: int, step: int, place: TablePlace, entry: str) -> tuple[Value, str]:
    """Whether the entry is one of the control plane's, and the place of its element in an array of the table's."""
    fn = g.fn
    default = fn.pointer(Address(STATE, place.default))
    own = Value(fn.ins(f"icmp ne ptr {entry}, {default}"), 1)
    number = fn.select(own, entry_number(g, place, entry), const(0, 64))
    return own, fn.offset(fn.pointer(Address(STATE, offset)), number, step)


def _count_entry(g: Gen, call: ir.ExternCall) -> None:
    if g.entry is None or g.entry[0].counters is None:
        return
    place, entry = g.entry
    assert place.counters is not None
    own, counter = _of_entry(g, place.counters, 16, place, entry)
    size = _size(g, call, 0)
    with g.fn.when(own):
        count_packet(g, counter, size)


def _execute(g: Gen, call: ir.ExternCall) -> Value:
    fn, instance = g.fn, instance_of(call)
    item, index = g.module.state.meters[instance.name], argument(g, call, 0)
    coloured, adjust = colour_places(call, 1)
    size, before = _size(g, call, adjust), _colour(g, call, coloured)
    cost = size if str(instance.args[1]).lower() == "bytes" else const(1, 64)
    result = fn.local(64)
    fn.store(const(0, 64), result)
    inside, outside, after = fn.label(), fn.label(), fn.label()
    fn.branch(in_range(g, index, item.count), inside, outside, rare=False)
    fn.begin(inside)
    level = _worse(g, mark(g, cell(g, item, index), cost), before)
    fn.store(_choose(g, level, COLOURS, 64), result)
    fn.br(after)
    fn.begin(outside)
    out_of_range(g, call, item.outside(":"), index)
    fn.begin(after)
    return fn.resize(fn.load(result, 64), scalar_width(call.type))


def _execute_entry(g: Gen, call: ir.ExternCall) -> Value:
    fn, given = g.fn, instance_of(call).arguments
    coloured, adjust = colour_places(call, 0)
    size, before = _size(g, call, adjust), _colour(g, call, coloured)
    cost = size if given["type"] == "BYTES" else const(1, 64)
    level = fn.local(64)
    fn.store(const(0, 64), level)
    if g.entry is not None and g.entry[0].meters is not None:
        place, entry = g.entry
        assert place.meters is not None
        own, bucket = _of_entry(g, place.meters, BUCKET, place, entry)
        with fn.when(own):
            fn.store(mark(g, bucket, cost), level)
    values = [given.get(name, value) for name, value in zip(NAMES, COLOURS, strict=True)]
    width = scalar_width(call.type)
    numbers = tuple(value for value in values if isinstance(value, int))
    return _choose(g, _worse(g, fn.load(level, 64), before), numbers, width)


def _never(g: Gen, call: ir.ExternCall) -> Value:
    """Early detection without thresholds: no packet is to be dropped."""
    for position, _ in enumerate(call.args):
        argument(g, call, position)
    value = instance_of(call).arguments["no_drop_value"]
    assert isinstance(value, int)
    return const(value, scalar_width(call.type))


def _colour(g: Gen, call: ir.ExternCall, position: int | None) -> Value:
    """The level that the packet has already."""
    expr = None if position is None else call.args[position].expr
    if expr is None:
        return const(0, 64)
    value, level = g.fn.resize(g.value(expr), 64), const(0, 64)
    for number, colour in enumerate(COLOURS):
        level = g.fn.select(g.fn.compare("eq", value, const(colour, 64)), const(number, 64), level)
    return level


def _worse(g: Gen, a: Value, b: Value) -> Value:
    return g.fn.select(g.fn.compare("ugt", a, b), a, b)


def _choose(g: Gen, level: Value, values: tuple[int, ...], width: int) -> Value:
    found = const(values[0], width)
    for number, value in list(enumerate(values))[1:]:
        found = g.fn.select(g.fn.compare("eq", level, const(number, 64)), const(value, width), found)
    return found


METHODS: Mapping[tuple[str, str], Compiler] = {
    ("Counter", "count"): _count,
    ("DirectCounter", "count"): _count_entry,
    ("Meter", "execute"): _execute,
    ("DirectMeter", "execute"): _execute_entry,
    ("Wred", "execute"): _never,
    ("DirectWred", "execute"): _never,
}
