"""From a program to LLVM IR: its blocks, the traffic manager around them, and the runtime functions that they need."""

from __future__ import annotations

from dataclasses import dataclass

from p4gen.model.jit import calls, expressions, externs, parsers, statements, tables
from p4gen.model.jit.blocks import StateLayout, lay_out
from p4gen.model.jit.build import FRAME, Gen, Handlers, Module, Site
from p4gen.model.jit.emit import Address, Function, const
from p4gen.model.jit.layout import ERROR, FrameShape, Types, members
from p4gen.model.jit.pieces import COMMON
from p4gen.model.jit.runtime import runtime
from p4gen.model.jit.traffic import Traffic, deparser_bytes
from p4gen.model.jit.wire import varbit_of
from p4gen.model.state import ModelState
from p4gen.p4 import ir
from p4gen.p4 import types as t
from p4gen.p4.walk import Used, used_by, walk

HANDLERS = Handlers(
    {**expressions.VALUES, **calls.VALUES, **tables.VALUES, **externs.VALUES, **parsers.VALUES},
    {**expressions.ADDRESSES, **calls.ADDRESSES, **parsers.ADDRESSES},
    {**statements.HANDLERS, **calls.STATEMENTS, **parsers.STATEMENTS},
)

_BLOCKS = ("p", "vr", "ig", "eg", "ck", "dep")
_ARITY = {"p": 3, "vr": 2, "ig": 3, "eg": 3, "ck": 2, "dep": 1}


@dataclass(frozen=True)
class Generated:
    """A program as LLVM IR, with what the host needs to run it. Sizes are in bytes."""

    text: str
    types: Types
    state: StateLayout
    frame: FrameShape
    sites: tuple[Site, ...]
    temporary: int
    arrival: int


def generate(program: ir.Program, state: ModelState, *, carryless: bool) -> Generated:
    """Compile a program with the blocks of ``V1Switch``; ``carryless``: the machine has a carry-less multiplication.

    Raises ``InputError`` with a position for what is not supported.
    """
    types = Types(program)
    headers, meta, standard = (p.variable.type for p in program.blocks["ig"].params[-3:])
    frame = FrameShape.of(types, headers, meta, standard)
    used = {name: used_by(block) for name, block in program.blocks.items()}
    with_random = any(c.method == "random" for u in used.values() for c in u.calls)
    module = Module(program, types, lay_out(state, types, with_random=with_random), frame, HANDLERS)
    module.byte_aligned = _byte_aligned(used["p"])
    module.byte_emits = _byte_emits(used["dep"])
    blocks = [_block(module, name) for name in _BLOCKS]
    traffic = Traffic(module)
    rest = traffic.functions(deparser_bytes(module))
    text = "\n".join([runtime(module.helpers, carryless=carryless), *module.functions, *blocks, *rest])
    return Generated(
        text, types, module.state, frame, tuple(module.sites), module.temporary + 64, traffic.arrival_size
    )  # fmt: skip


def _block(module: Module, name: str) -> str:
    """Generate one block of the package. The parser returns its error (0: accepted)."""
    block = module.program.blocks[name]
    parser = isinstance(block, ir.Parser)
    fn = Function(f"block_{name}", [*COMMON, ("ptr noalias", "frame")], "i32" if parser else "void", "noinline")
    g = Gen(module, fn, name)
    offsets = {"headers": module.frame.headers, "meta": module.frame.meta, "standard": module.frame.standard}
    arity = _ARITY[name]
    for param, offset in zip(block.params[-arity:], offsets.values(), strict=False):
        g.env[param.variable] = Address(FRAME, offset)
    end, rejected = fn.label(), fn.label()
    with g.jumping(exit=end, reject=rejected, returns=end):
        if isinstance(block, ir.Parser):
            parsers.parser_body(g, block)
        else:
            calls.control_body(g, block)
    fn.begin(end)
    fn.ret(const(0, 32) if parser else None)
    if fn.is_target(rejected):
        fn.begin(rejected)
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


def _byte_aligned(used: Used) -> bool:
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


def _byte_emits(used: Used) -> bool:
    return all(_whole_bytes(n.value.type) for n in _nodes(used) if isinstance(n, ir.Emit))
