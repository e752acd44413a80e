"""``Lpf``, ``Wred`` and their direct forms (``p4gen.chips.tna.filters``), and ``MathUnit``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p4gen.chips.tna.filters import Detection, Filter
from p4gen.chips.tna.mathunit import unit_of
from p4gen.chips.tna.memory import Memory
from p4gen.model.interp.build import Build
from p4gen.model.interp.context import Eval, Frame
from p4gen.model.interp.expressions import bits_of
from p4gen.model.interp.extern_args import Compiler, argument, trap
from p4gen.p4 import ir

NO_FILTER, NO_DETECTION = Filter(), Detection()


def methods(memory: Memory) -> dict[tuple[str, str], Compiler]:
    """The compilers of filters' methods, for the memory of one pipe."""
    return {
        ("Lpf", "execute"): lambda b, call: _filter(b, call, memory),
        ("DirectLpf", "execute"): lambda b, call: _filter(b, call, memory),
        ("Wred", "execute"): lambda b, call: _detect(b, call, memory),
        ("DirectWred", "execute"): lambda b, call: _detect(b, call, memory),
        ("MathUnit", "execute"): _power,
    }


def _place(b: Build, call: ir.ExternCall) -> Callable[[Frame], Any]:
    """The index, or the entry whose action is running; -1 for an index that does not exist."""
    assert call.instance is not None
    if call.instance.extern.startswith("Direct"):
        return lambda f: f[0].matched
    name, index, size = call.instance.name, argument(b, call, 1), call.instance.arguments["size"]
    assert isinstance(size, int)
    pos, state = call.pos, b.state

    def place(f: Frame) -> int:
        at: int = index(f)
        if 0 <= at < size:
            return at
        trap(f, state.trap, pos, f"filter {name}: index {at}, it has {size} elements")
        return -1

    return place


def _filter(b: Build, call: ir.ExternCall, memory: Memory) -> Eval:
    assert call.instance is not None
    value, place, state, bits = argument(b, call, 0), _place(b, call), b.state, bits_of(call.type)
    levels, configs = memory.levels[call.instance.name], memory.filters[call.instance.name]
    most = (1 << (bits.width if bits is not None else 32)) - 1

    def execute(f: Frame) -> int:
        at = place(f)
        config = configs.get(at if isinstance(at, int) else None, configs.get(None, NO_FILTER))
        assert isinstance(config, Filter)
        found = levels.filtered(at, value(f), config, state.clock() * 1000)
        return min(round(found) >> config.scale, most)

    return execute


def _detect(b: Build, call: ir.ExternCall, memory: Memory) -> Eval:
    assert call.instance is not None
    value, place, state, given = argument(b, call, 0), _place(b, call), b.state, call.instance.arguments
    levels, configs = memory.levels[call.instance.name], memory.filters[call.instance.name]
    drop, keep = given["drop_value"], given["no_drop_value"]

    def execute(f: Frame) -> Any:
        at = place(f)
        config = configs.get(at if isinstance(at, int) else None, configs.get(None, NO_DETECTION))
        assert isinstance(config, Detection)
        follows = Filter("sample", config.time, config.time)
        depth = levels.filtered(at, value(f), follows, state.clock() * 1000)
        return drop if config.drops(depth, state.random) else keep

    return execute


def _power(b: Build, call: ir.ExternCall) -> Eval:
    assert call.instance is not None
    value, unit, bits = argument(b, call, 0), unit_of(call.instance), bits_of(call.type)
    mask = (1 << (bits.width if bits is not None else 32)) - 1
    return lambda f: unit.power(int(value(f)) & mask) & mask
