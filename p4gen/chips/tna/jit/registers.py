"""Registers and the actions on them, as ``p4gen.chips.tna.externs.registers`` runs them.

A cell is one number in the block, the first field in the highest bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from p4gen.chips.tna.externs.registers import check_word
from p4gen.chips.tna.jit.module import MEMORY
from p4gen.chips.tna.jit.state import PARAMETER, executions, table_of
from p4gen.chips.tna.memory import ACTIONS
from p4gen.model.jit.blocks import Item
from p4gen.model.jit.build import STATE, Compiler, Gen, is_memory, unsupported
from p4gen.model.jit.emit import FALSE, Address, Value, const
from p4gen.model.jit.externs import cell, in_range, out_of_range
from p4gen.model.jit.layout import scalar_width
from p4gen.model.jit.outputs import Out, argument, expression
from p4gen.model.jit.places import locate, store_from
from p4gen.model.jit.tables import entry_number
from p4gen.model.jit.wire import flatten
from p4gen.p4 import ir
from p4gen.p4 import types as t

Result = Value | Address | None


def instance_of(call: ir.ExternCall) -> ir.ExternInstance:
    """The instance whose method is called."""
    assert call.instance is not None
    return call.instance


def register_of(call: ir.ExternCall) -> ir.ExternInstance:
    """The register of an action."""
    register = instance_of(call).arguments["reg"]
    assert isinstance(register, ir.ExternInstance)
    return register


# --- cells ---


def _unpack(g: Gen, number: Value, at: Address, of: t.Type) -> None:
    """Store a cell's number as a value of its type."""
    if not is_memory(of):
        g.store(g.fn.resize(number, scalar_width(of)), at, of)
        return
    left = number.width
    g.clear(at, of)
    for piece in flatten(g, of, at):
        left -= piece.width
        assert piece.at is not None
        shifted = g.fn.op("lshr", number, const(left, number.width)) if left else number
        g.store(g.fn.resize(shifted, scalar_width(piece.type)), piece.at, piece.type)


def _pack(g: Gen, at: Address, of: t.Type, width: int) -> Value:
    """A value as a cell's number."""
    if not is_memory(of):
        return g.fn.resize(g.load(at, of), width)
    number, left = const(0, width), width
    for piece in flatten(g, of, at):
        left -= piece.width
        part = g.fn.resize(g.fn.resize(piece.load(g), piece.width), width)
        part = g.fn.op("shl", part, const(left, width)) if left else part
        number = part if number.ref == "0" else g.fn.op("or", number, part)
    return number


Access = Callable[[str], None]


def _indexed(g: Gen, call: ir.ExternCall, item: Item, index: Value, access: Access) -> None:
    """Access the cell of an index; none where it is out of range, which is a trap."""
    fn = g.fn
    inside, outside, after = fn.label(), fn.label(), fn.label()
    fn.branch(in_range(g, index, item.count), inside, outside, rare=False)
    fn.begin(inside)
    if item.count:
        access(cell(g, item, index))
    fn.br(after)
    fn.begin(outside)
    out_of_range(g, call, item.outside(":"), index)
    fn.begin(after)


def _next(g: Gen, register: ir.ExternInstance, item: Item, access: Access) -> None:
    """Cells one after the other, from the first again after the last."""
    fn, counter = g.fn, Address(MEMORY, g.module.state.private[executions(register.name)].offset)
    count = fn.load(counter, 64, 8)
    fn.store(fn.op("add", count, const(1, 64)), counter, 8)
    access(cell(g, item, fn.op("urem", count, const(item.count, 64))))


def _direct(g: Gen, call: ir.ExternCall, register: ir.ExternInstance, access: Access) -> None:
    """The cell of the entry whose action is running."""
    fn, item = g.fn, g.module.state.private[register.name]
    table = table_of(g.module.program, register)
    if g.entry is None:
        access(fn.pointer(Address(MEMORY, item.offset + (item.count - 1) * item.step)))
        return
    place, entry = g.entry
    if place.table is not table:
        raise unsupported(call.pos, f"register {register.name} in an action of the table {place.table.name}")
    default = fn.pointer(Address(STATE, place.default))
    alone = Value(fn.ins(f"icmp eq ptr {entry}, {default}"), 1)
    number = fn.select(alone, const(place.capacity, 64), entry_number(g, place, entry))
    access(fn.offset(fn.pointer(Address(MEMORY, item.offset)), number, item.step))


def _located(g: Gen, call: ir.ExternCall, register: ir.ExternInstance) -> tuple[Item, Callable[[Access], None]]:
    """A register's array, and how to access the cell that a call means. Evaluates the index, if there is one."""
    if register.extern.startswith("Direct"):
        item = g.module.state.private[register.name]
        return item, lambda access: _direct(g, call, register, access)
    item = g.module.state.registers[register.name]
    if call.method == "execute_log":
        return item, lambda access: _next(g, register, item, access)
    index = argument(g, call, 0)
    return item, lambda access: _indexed(g, call, item, index, access)


# --- methods ---


def _read(g: Gen, call: ir.ExternCall) -> Result:
    register = instance_of(call)
    of, at = call.type, g.storage(call.type)
    g.clear(at, of)
    item, reach = _located(g, call, register)
    reach(lambda pointer: _unpack(g, g.load_container(pointer, item.width), at, of))
    return at if is_memory(of) else g.load(at, of)


def _write(g: Gen, call: ir.ExternCall) -> Result:
    register = instance_of(call)
    item, reach = _located(g, call, register)
    value = expression(call, 0 if register.extern.startswith("Direct") else 1)
    of, at = value.type, g.storage(value.type)
    g.assign(at, value)
    reach(lambda pointer: g.store_container(_pack(g, at, of, item.width), pointer, item.width))
    return at if is_memory(of) else g.load(at, of)


def _parameter(g: Gen, call: ir.ExternCall) -> Result:
    at = Address(STATE, g.module.state.settings[PARAMETER + instance_of(call).name])
    return g.fn.resize(g.fn.load(at, 64, 8), scalar_width(call.type))


def _execute(g: Gen, call: ir.ExternCall) -> Result:
    """``execute``: the register's word is the first parameter of ``apply``, results are the others."""
    fn, register = g.fn, register_of(call)
    apply, of = instance_of(call).methods["apply"], register.type_args[0]
    check_word(apply, of)
    item, reach = _located(g, call, register)
    results = call.args if register.extern.startswith("Direct") or call.method == "execute_log" else call.args[1:]
    targets = [None if arg.expr is None else locate(g, arg.expr) for arg in results]
    word, *outs = (param.variable for param in apply.params)
    for variable in outs:
        g.env[variable] = at = g.storage(variable.type)
        g.clear(at, variable.type)

    def access(pointer: str) -> None:
        g.env[word] = at = g.storage(word.type)
        _unpack(g, g.load_container(pointer, item.width), at, word.type)
        after = fn.label()
        with g.jumping(returns=after, breaks=None, continues=None, result=None):
            g.stmt(apply.body)
        fn.begin(after)
        g.store_container(_pack(g, at, word.type, item.width), pointer, item.width)

    reach(access)
    for i, target in enumerate(targets, 1):
        if target is None:
            continue
        if i < len(outs):
            store_from(g, target, g.env[outs[i]])
        else:
            nothing = g.storage(target.type)
            g.clear(nothing, target.type)
            store_from(g, target, nothing)
    if isinstance(t.strip(call.type), t.Void):
        return None
    if outs:
        found = g.env[outs[0]]
        return found if is_memory(call.type) else g.load(found, call.type)
    if is_memory(call.type):
        at = g.temporary(call.type)
        g.clear(at, call.type)
        return at
    return const(0, scalar_width(call.type))


def _predicate(g: Gen, call: ir.ExternCall) -> Value:
    """One bit set: its number has a bit for each comparison, the first one in bit 0; what is left out is false."""
    fn, width = g.fn, max(scalar_width(call.type), 1 << len(call.args))
    number = const(0, width)
    for at, arg in enumerate(call.args):
        if arg.expr is not None:
            bit = fn.op("shl", fn.resize(g.value(arg.expr), width), const(at, width))
            number = fn.op("or", number, bit)
    return fn.resize(fn.op("shl", const(1, width), number), scalar_width(call.type))


def _extreme(size: int, predicate: str, g: Gen, call: ir.ExternCall) -> Value:
    """``min8`` and its like: the smallest or largest of the parts that the mask selects, and where it is."""
    fn, whole = g.fn, expression(call, 0)
    if any(arg.expr is not None for arg in call.args[3:]):
        raise unsupported(call.pos, f"{call.method} with a modification of its result")
    if is_memory(whole.type):
        raise unsupported(whole.pos, f"{call.method} of {whole.type}")
    bits, mask = g.value(whole), argument(g, call, 1)
    out = Out(g, call.args[2]) if len(call.args) > 2 else None
    width = t.width_of(whole.type)
    mask = fn.resize(mask, max(mask.width, -(-width // size)))
    found, place, any_yet = const(0, size), const(0, 8), FALSE
    for i, low in enumerate(range(0, width, size)):
        part = fn.resize(fn.op("lshr", bits, const(low, bits.width)) if low else bits, size)
        chosen = fn.resize(fn.op("lshr", mask, const(i, mask.width)) if i else mask, 1)
        better = fn.op("or", fn.op("xor", any_yet, const(1, 1)), fn.compare(predicate, part, found))
        taken = fn.op("and", chosen, better)
        found, place = fn.select(taken, part, found), fn.select(taken, const(i, 8), place)
        any_yet = fn.op("or", any_yet, chosen)
    if out is not None:
        out.store(place)
    return fn.resize(found, scalar_width(call.type))


def _methods() -> dict[tuple[str, str], Compiler]:
    found: dict[tuple[str, str], Compiler] = {("RegisterParam", "read"): _parameter}
    for kind in ("Register", "DirectRegister"):
        found[kind, "read"], found[kind, "write"] = _read, _write
    for kind in ACTIONS:
        for extern in (kind, *(f"{kind}{number}" for number in (2, 3, 4))):
            found[extern, "execute"], found[extern, "predicate"] = _execute, _predicate
            for size in (8, 16):
                found[extern, f"min{size}"] = partial(_extreme, size, "ult")
                found[extern, f"max{size}"] = partial(_extreme, size, "ugt")
            if kind == "RegisterAction":
                found[extern, "execute_log"] = _execute
    return found


METHODS: Mapping[tuple[str, str], Compiler] = _methods()
