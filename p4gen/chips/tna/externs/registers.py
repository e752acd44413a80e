"""Registers, and the actions on them (``RegisterAction`` and its relatives).

An action reads a word, runs its ``apply`` on it and writes it back, in one step; its results are 0 unless ``apply``
assigns them, as in p4c's back end a result that nothing drives is 0. Arithmetic in ``apply`` is that of P4: what the
chip does with operands wider than its ALUs is not modelled, and neither are the limits that p4c checks.

An index beyond the register's size is undefined; it is counted as a trap, changes nothing and gives 0. Registers of
Tofino 2 are queues for ``enqueue`` and ``dequeue`` and stacks for ``push`` and ``pop``: their action runs on the
element, or ``overflow`` and ``underflow``, where the program has them, on no element. ``sweep`` and ``clear``, which
take the chip some time, are done at once. Not modelled, and refused: ``address``, learning, and the change of an
element by ``min8`` and its like.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p4gen.chips.tna.memory import ACTIONS, Memory
from p4gen.chips.tna.words import Array, Entries, Word
from p4gen.errors import Diagnostic, InputError
from p4gen.model.interp.build import Build, fresh, unsupported
from p4gen.model.interp.calls import function_body
from p4gen.model.interp.context import Eval, Exec, Frame
from p4gen.model.interp.extern_args import Compiler, Out, argument, trap
from p4gen.model.trace import show
from p4gen.model.values import copy_value
from p4gen.p4 import ir
from p4gen.p4 import types as t

Methods = dict[tuple[str, str], Compiler]
Locate = Callable[[Frame], tuple[Any, Any] | None]
"""The container of a word and its key there; None for an index that does not exist."""


def methods(memory: Memory) -> Methods:
    """The compilers of registers' methods, for the memory of one pipe."""
    found: Methods = {
        ("Register", "read"): lambda b, call: _read(b, call, _cell(b, call, memory)),
        ("Register", "write"): lambda b, call: _write(b, call, _cell(b, call, memory), 1),
        ("DirectRegister", "read"): lambda b, call: _read(b, call, _entry(memory.entries[_own(call).name])),
        ("DirectRegister", "write"): lambda b, call: _write(b, call, _entry(memory.entries[_own(call).name]), 0),
        ("Register", "clear"): lambda b, call: _clear(b, call, memory),
        ("DirectRegister", "clear"): lambda b, call: _clear(b, call, memory),
        ("RegisterParam", "read"): lambda b, call: _parameter(call, memory),
    }
    for kind in ACTIONS:
        for extern in (kind, *(f"{kind}{number}" for number in (2, 3, 4))):
            found[extern, "execute"] = lambda b, call: _execute(b, call, memory)
            found[extern, "predicate"] = _predicate
            for name in ("min8", "max8", "min16", "max16"):
                found[extern, name] = _extreme
            if kind == "RegisterAction":
                for name in ("execute_log", *ORDERED, "sweep"):
                    found[extern, name] = lambda b, call: _execute(b, call, memory)
    return found


ORDERED = {"enqueue": "overflow", "push": "overflow", "dequeue": "underflow", "pop": "underflow"}
"""Methods of queues and stacks, and the function that runs in place of ``apply`` where there is no room, or no
element."""


def _own(call: ir.ExternCall) -> ir.ExternInstance:
    assert call.instance is not None
    return call.instance


# --- places ---


def _cell(b: Build, call: ir.ExternCall, memory: Memory) -> Locate:
    return _at(b, call, memory.arrays[_own(call).name], _own(call), argument(b, call, 0))


def _at(b: Build, call: ir.ExternCall, array: Array, register: ir.ExternInstance, index: Eval) -> Locate:
    cells, name, pos, state = array.cells, register.name, call.pos, b.state

    def locate(f: Frame) -> tuple[Any, Any] | None:
        i = index(f)
        if 0 <= i < len(cells):
            return cells, i
        trap(f, state.trap, pos, f"register {name}: index {i}, it has {len(cells)} elements")
        return None

    return locate


def _next(array: Array) -> Locate:
    """Cells one after the other, from the first again after the last."""

    def locate(f: Frame) -> tuple[Any, Any] | None:
        at = array.executions % len(array.cells)
        array.executions += 1
        return array.cells, at

    return locate


def _entry(register: Entries) -> Locate:
    """The cell of the entry whose action is running; outside of one, the register has one cell."""

    return lambda f: register.place(f[0].matched)


def _ordered(array: Array, method: str) -> Locate:
    """A queue's place behind the last element, or its first one; a stack's place on top, or its top."""

    def locate(f: Frame) -> tuple[Any, Any] | None:
        size = len(array.cells)
        puts = method in ("enqueue", "push")
        if array.held == (size if puts else 0):
            return None
        at = array.first if method == "dequeue" else array.first + array.held - (0 if puts else 1)
        array.held += 1 if puts else -1
        array.first = (array.first + (method == "dequeue")) % size
        return array.cells, at % size

    return locate


# --- methods ---


def _read(b: Build, call: ir.ExternCall, locate: Locate) -> Eval:
    make, name, pos, traced = fresh(call.type), _own(call).name, call.pos, b.traced

    def read(f: Frame) -> Any:
        place = locate(f)
        value = make() if place is None else copy_value(place[0][place[1]])
        if traced and place is not None:
            shown = show(value, call.type)
            f[0].trace.add("read", f"{_cell_name(name, place)} is {shown}", pos, register=name, value=value)
        return value

    return read


def _write(b: Build, call: ir.ExternCall, locate: Locate, position: int) -> Eval:
    value, name, pos, traced = argument(b, call, position), _own(call).name, call.pos, b.traced

    def write(f: Frame) -> Any:
        place, new = locate(f), copy_value(value(f))
        if place is None:
            return new
        if traced:
            what = f"{_cell_name(name, place)} becomes {show(new)} (was {show(place[0][place[1]])})"
            f[0].trace.add("write", what, pos, register=name, value=new)
        place[0][place[1]] = new
        return copy_value(new)

    return write


def _cell_name(name: str, place: tuple[Any, Any]) -> str:
    return f"{name}[{place[1]}]" if isinstance(place[1], int) else name


def _parameter(call: ir.ExternCall, memory: Memory) -> Eval:
    name, params = _own(call).name, memory.params
    return lambda f: params[name]


def _execute(b: Build, call: ir.ExternCall, memory: Memory) -> Eval:
    """``execute``: the register's word is the first parameter of ``apply``, results are the others."""
    instance = _own(call)
    register = instance.arguments["reg"]
    assert isinstance(register, ir.ExternInstance)
    direct = instance.extern.startswith("Direct")
    results = call.args
    if direct:
        locate = _entry(memory.entries[register.name])
    elif call.method == "execute_log":
        locate = _next(memory.arrays[register.name])
    elif call.method in ORDERED:
        locate = _ordered(memory.arrays[register.name], call.method)
    elif call.method == "sweep":
        return _sweep(b, instance, memory.arrays[register.name], register)
    else:
        if call.args[0].expr is None:
            raise unsupported(call.pos, f"{instance.extern}.execute without an index")
        locate = _at(b, call, memory.arrays[register.name], register, b.expr(call.args[0].expr))
        results = call.args[1:]
    apply = instance.methods["apply"]
    body, word = function_body(b, apply), b.slot(apply.params[0].variable)
    outs = [(b.slot(p.variable), fresh(p.variable.type)) for p in apply.params[1:]]
    targets = [(slot, Out(b, arg)) for (slot, _), arg in zip(outs[1:], results, strict=False)]
    spare = [(Out(b, arg), fresh(arg.expr.type)) for arg in results[max(len(outs) - 1, 0) :] if arg.expr is not None]
    make = fresh(call.type) if not isinstance(call.type, t.Void) else lambda: None
    of = register.type_args[0]
    name, pos, traced = register.name, call.pos, b.traced
    sees, stores = _conversions(apply, of)
    otherwise = _otherwise(b, instance, ORDERED.get(call.method), [slot for slot, _ in outs])

    def execute(f: Frame) -> Any:
        place, places = locate(f), [target.locate(f) for _, target in targets]
        for slot, zero in outs:
            f[slot] = zero()
        if place is not None:
            container, key = place
            before = copy_value(container[key])
            f[word] = sees(copy_value(before))
            body(f)
            container[key] = stores(f[word])
            if traced:
                new = container[key]
                what = f"{_cell_name(name, place)}: {show(before, of)} becomes {show(new, of)}"
                index = key if isinstance(key, int) else None
                f[0].trace.add("write", what, pos, register=name, index=index, value=copy_value(new), old=before)
        elif otherwise is not None:
            otherwise(f)
        for (slot, target), at in zip(targets, places, strict=True):
            target.store(f, at, f[slot])
        for target, zero in spare:
            target.store(f, target.locate(f), zero())
        return f[outs[0][0]] if outs else make()

    return execute


def check_word(apply: ir.Function, of: t.Type) -> None:
    """``apply`` may see the register's elements as another type of the same width, which the model does not do."""
    seen = apply.params[0].variable.type
    if t.strip(seen) != t.strip(of):
        what = f"an action that sees elements of type {of} as {seen} is not supported by the engine jit"
        raise InputError(Diagnostic(apply.pos, what))


def _conversions(apply: ir.Function, of: t.Type) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Functions from an element to the value that ``apply`` takes, which may be another type of the same width, and
    back."""
    seen = apply.params[0].variable.type
    if t.strip(seen) == t.strip(of):
        return lambda value: value, lambda value: value
    there, back = Word(of), Word(seen)
    if there.width != back.width:
        what = f"an action that sees elements of type {of} as {seen} is not supported by the behavioural model"
        raise InputError(Diagnostic(apply.pos, what))
    return lambda value: back.value(there.number(value)[0]), lambda value: there.value(back.number(value)[0])


def _otherwise(b: Build, instance: ir.ExternInstance, name: str | None, results: list[int]) -> Exec | None:
    """``overflow`` or ``underflow``, if the instance has it: its results are those of ``apply``, by position."""
    function = instance.methods.get(name) if name is not None else None
    if function is None:
        return None
    body = function_body(b, function)
    apply = instance.methods["apply"]
    named = [p for p in function.params if p.direction == "out"]
    values = [(b.slot(p.variable), fresh(p.variable.type)) for p in function.params]
    moved = list(zip((b.slot(p.variable) for p in named), results, strict=False))
    assert len(named) <= len(apply.params) - 1

    def run(f: Frame) -> None:
        for slot, zero in values:
            f[slot] = zero()
        body(f)
        for own, theirs in moved:
            f[theirs] = f[own]

    return run


def _sweep(b: Build, instance: ir.ExternInstance, array: Array, register: ir.ExternInstance) -> Eval:
    """The action on all elements of a register."""
    apply = instance.methods["apply"]
    body, word = function_body(b, apply), b.slot(apply.params[0].variable)
    outs = [(b.slot(p.variable), fresh(p.variable.type)) for p in apply.params[1:]]
    sees, stores = _conversions(apply, register.type_args[0])

    def sweep(f: Frame) -> None:
        for at, value in enumerate(array.cells):
            for slot, zero in outs:
                f[slot] = zero()
            f[word] = sees(value)
            body(f)
            array.cells[at] = stores(f[word])

    return sweep


def _clear(b: Build, call: ir.ExternCall, memory: Memory) -> Eval:
    """All elements of a register become a value."""
    value, register = argument(b, call, 0), _own(call)
    if register.extern == "Register":
        cells = memory.arrays[register.name].cells

        def clear(f: Frame) -> None:
            new = value(f)
            cells[:] = [copy_value(new) for _ in cells]

        return clear
    entries = memory.entries[register.name]

    def clear_entries(f: Frame) -> None:
        new = value(f)
        entries.alone = copy_value(new)
        for entry in list(entries.of):
            entries.of[entry] = copy_value(new)

    return clear_entries


def _predicate(b: Build, call: ir.ExternCall) -> Eval:
    """One bit set: its number has a bit for each comparison, the first one in bit 0; what is left out is false."""
    conditions = [None if arg.expr is None else b.expr(arg.expr) for arg in call.args]

    def predicate(f: Frame) -> int:
        number = 0
        for at, condition in enumerate(conditions):
            if condition is not None and condition(f):
                number |= 1 << at
        return 1 << number

    return predicate


def _extreme(b: Build, call: ir.ExternCall) -> Eval:
    """``min8`` and its like: the smallest or largest of the parts that the mask selects, and where it is. The lowest
    part has number 0, and of equal ones the lowest counts; without a part the value and the index are 0."""
    whole, mask = call.args[0].expr, argument(b, call, 1)
    if whole is None or any(arg.expr is not None for arg in call.args[3:]):
        raise unsupported(call.pos, f"{call.method} with a modification of its result")
    value, out = b.expr(whole), Out(b, call.args[2]) if len(call.args) > 2 else None
    size, pick = (8 if call.method.endswith("8") else 16), (min if call.method.startswith("min") else max)
    try:
        width = t.width_of(whole.type)
    except TypeError:
        raise unsupported(whole.pos, f"{call.method} of {whole.type}") from None
    if isinstance(t.strip(whole.type), t.Struct):
        raise unsupported(whole.pos, f"{call.method} of a struct")

    def extreme(f: Frame) -> int:
        bits, chosen = value(f) & (1 << width) - 1, mask(f)
        parts = [(bits >> at & (1 << size) - 1, at // size) for at in range(0, width, size) if chosen >> at // size & 1]
        found, at = pick(parts, key=lambda part: part[0]) if parts else (0, 0)
        if out is not None:
            out.store(f, out.locate(f), at)
        return found

    return extreme
