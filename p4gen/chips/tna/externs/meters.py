"""Counters and meters, of arrays and of tables' entries.

Bytes are those of the frame with its FCS; in egress, headers in front of it that the program adds for itself are
part of it, as for ``pkt_length``. ``adjust_byte_count`` is subtracted. Meters are two-rate three-colour markers (RFC
2698) on the switch's clock, green without rates; colours are those of ``MeterColor_t``, 0, 1 and 3, or those that a
direct meter's constructor names. A packet that arrives coloured gets no better colour. Entries' meters are one for all
pipes, and so are entries' counters, which are sums.
"""

from __future__ import annotations

from collections.abc import Callable

from p4gen.chips.tna.memory import Memory
from p4gen.model.interp.build import Build
from p4gen.model.interp.context import Eval, Frame
from p4gen.model.interp.extern_args import Compiler, argument, trap
from p4gen.p4 import ir
from p4gen.p4 import types as t

COLOURS = (0, 1, 3)
NAMES = ("green", "yellow", "red")


def methods(memory: Memory) -> dict[tuple[str, str], Compiler]:
    """The compilers of counters' and meters' methods, for the memory of one pipe."""
    return {
        ("Counter", "count"): lambda b, call: _count(b, call, memory),
        ("DirectCounter", "count"): _count_entry,
        ("Meter", "execute"): lambda b, call: _execute(b, call, memory),
        ("DirectMeter", "execute"): _execute_entry,
    }


def _less(b: Build, call: ir.ExternCall, position: int) -> Callable[[Frame], int]:
    """The bytes to count: the packet's length without ``adjust_byte_count``."""
    expr = call.args[position].expr if len(call.args) > position else None
    if expr is None:
        return lambda f: int(f[0].length)
    less = b.expr(expr)
    return lambda f: max(int(f[0].length) - int(less(f)), 0)


def _count(b: Build, call: ir.ExternCall, memory: Memory) -> Eval:
    assert call.instance is not None
    counter, index, size = memory.counters[call.instance.name], argument(b, call, 0), _less(b, call, 1)
    pos, state, traced = call.pos, b.state, b.traced

    def count(f: Frame) -> None:
        i = index(f)
        if not 0 <= i < counter.size:
            trap(f, state.trap, pos, f"counter {counter.name}: index {i}, it has {counter.size} elements")
            return
        counter.count(i, size(f))
        if traced:
            what = f"count {counter.name}[{i}]: {counter.packets[i]} packets"
            f[0].trace.add("count", what, pos, counter=counter.name, index=i)

    return count


def _count_entry(b: Build, call: ir.ExternCall) -> Eval:
    size = _less(b, call, 0)

    def count(f: Frame) -> None:
        entry = f[0].matched
        if entry is not None:
            entry.packets += 1
            entry.bytes += size(f)

    return count


def _execute(b: Build, call: ir.ExternCall, memory: Memory) -> Eval:
    assert call.instance is not None
    meter, index = memory.meters[call.instance.name], argument(b, call, 0)
    coloured, adjust = colour_places(call, 1)
    size, before = _less(b, call, adjust), _colour(b, call, coloured)
    pos, state, traced, clock = call.pos, b.state, b.traced, b.state

    def execute(f: Frame) -> int:
        i = index(f)
        if not 0 <= i < meter.size:
            trap(f, state.trap, pos, f"meter {meter.name}: index {i}, it has {meter.size} elements")
            return 0
        level = max(meter.buckets[i].mark(size(f) if meter.in_bytes else 1, clock.clock()), before(f))
        if traced:
            f[0].trace.add(
                "meter", f"meter {meter.name}[{i}]: {NAMES[level]}", pos, meter=meter.name, index=i, color=level
            )
        return COLOURS[level]

    return execute


def _execute_entry(b: Build, call: ir.ExternCall) -> Eval:
    assert call.instance is not None
    given = call.instance.arguments
    in_bytes = given["type"] == "BYTES"
    values = tuple(given.get(name, value) for name, value in zip(NAMES, COLOURS, strict=True))
    coloured, adjust = colour_places(call, 0)
    size, before, state = _less(b, call, adjust), _colour(b, call, coloured), b.state

    def execute(f: Frame) -> object:
        entry = f[0].matched
        marked = entry is not None and entry.meter is not None
        level = entry.meter.mark(size(f) if in_bytes else 1, state.clock()) if marked else 0
        return values[max(level, before(f))]

    return execute


def colour_places(call: ir.ExternCall, first: int) -> tuple[int | None, int]:
    """The positions of the colour, if the method has one, and of ``adjust_byte_count``."""
    expr = call.args[first].expr if len(call.args) > first else None
    if len(call.args) > first + 1 or (expr is not None and isinstance(t.strip(expr.type), t.SerEnum)):
        return first, first + 1
    return None, first


def _colour(b: Build, call: ir.ExternCall, position: int | None) -> Callable[[Frame], int]:
    expr = None if position is None else call.args[position].expr
    if expr is None:
        return lambda f: 0
    value = b.expr(expr)
    return lambda f: {0: 0, 1: 1, 3: 2}.get(int(value(f)), 0)
