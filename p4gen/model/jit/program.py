"""From a program to LLVM IR: the parts that the compilers of all architectures share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from p4gen.model.jit import calls, expressions, externs, parsers, statements, tables
from p4gen.model.jit.blocks import StateLayout
from p4gen.model.jit.build import FRAME, Gen, Handlers, Module, Site
from p4gen.model.jit.driver import COMMON
from p4gen.model.jit.emit import Address, Function, const
from p4gen.model.jit.layout import ERROR, Types, members
from p4gen.model.jit.runtime import runtime
from p4gen.model.jit.wire import varbit_of
from p4gen.p4 import ir
from p4gen.p4 import types as t
from p4gen.p4.walk import Used, walk

HANDLERS = Handlers(
    {**expressions.VALUES, **calls.VALUES, **tables.VALUES, **externs.VALUES, **parsers.VALUES},
    {**expressions.ADDRESSES, **calls.ADDRESSES, **externs.ADDRESSES, **parsers.ADDRESSES},
    {**statements.HANDLERS, **calls.STATEMENTS, **parsers.STATEMENTS},
)


KEPT = 4
"""The number of programs of an architecture whose IR a process keeps."""


@dataclass(frozen=True)
class Generated:
    """A program as LLVM IR, with the data that the host needs to run it. Sizes are in bytes."""

    text: str
    types: Types
    state: StateLayout
    sites: tuple[Site, ...]
    temporary: int
    frame: int
    frames: int = 0
    """The most packets inside the switch at a time, beside the one to work on; 0: queues grow."""
    arrival: int = 0
    arena: int = 0


def assemble(module: Module, parts: list[str], *, carryless: bool) -> str:
    """The whole IR: ``parts``, and the functions that they need."""
    return "\n".join([runtime(module.helpers, carryless=carryless), *module.functions, *parts])


def block_function(
    module: Module,
    name: str,
    phase: str,
    block: ir.Parser | ir.Control,
    places: Mapping[ir.Variable, int],
    more: tuple[tuple[str, str], ...] = (),
) -> str:
    """The function of one block of the package, whose parameters are at these offsets in the frame; ``more`` are
    parameters of the function besides those that all blocks have. A parser returns its error (0: accepted)."""
    parser = isinstance(block, ir.Parser)
    params = [*COMMON, ("ptr noalias", "frame"), *more]
    fn = Function(name, params, "i32" if parser else "void", "noinline")
    g = Gen(module, fn, phase)
    g.env.update((variable, Address(FRAME, offset)) for variable, offset in places.items())
    end, rejected = fn.label(), fn.label()
    with g.jumping(exit=end, reject=rejected, returns=end):
        if isinstance(block, ir.Parser):
            parsers.parser_body(g, block)
        else:
            calls.control_body(g, block)
    fn.begin(end)
    g.finish()
    fn.ret(const(0, 32) if parser else None)
    if fn.is_target(rejected):
        fn.begin(rejected)
        g.finish()
        fn.ret(fn.load(Address(FRAME, ERROR), 32, 8) if parser else None)
    return fn.text()


# --- alignment of packet operations ---


def _nodes(used: Used) -> list[ir.Expr | ir.Stmt]:
    found: list[ir.Expr | ir.Stmt] = []
    for block in used.blocks:
        found += walk(block.locals)
        if isinstance(block, ir.Control):
            found += walk(block.body)
        else:
            for state in block.states.values():
                found += walk((state.body, state.transition))
    for function in used.functions:
        found += walk(function.body)
    return found


def _whole_bytes(of: t.Type) -> bool:
    """Whether every header in a value is whole bytes, before and after a varbit too."""
    of = t.strip(of)
    if isinstance(of, t.Header):
        parts = members(of)
        at = varbit_of(of)
        if at is None:
            return t.width_of(of) % 8 == 0
        before = sum(map(t.width_of, parts[:at]))
        return before % 8 == 0 and sum(map(t.width_of, parts[at + 1 :])) % 8 == 0
    return all(map(_whole_bytes, members(of)))


def byte_aligned(used: Used) -> bool:
    """Whether the parser's position is always byte-aligned."""
    for node in _nodes(used):
        match node:
            case ir.Extract(header=None, skip_type=of):
                if of is None or t.width_of(of) % 8:
                    return False
            case ir.Extract(header=header):
                if header is not None and not _whole_bytes(header.type):
                    return False
    return True


def byte_emits(used: Used) -> bool:
    """Whether a deparser only emits whole bytes."""
    return all(_whole_bytes(n.value.type) for n in _nodes(used) if isinstance(n, ir.Emit))
