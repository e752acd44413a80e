"""From a program with the blocks of ``V1Switch`` to LLVM IR."""

from __future__ import annotations

from functools import lru_cache

from p4gen.chips.v1model.jit.calculations import selector_hash
from p4gen.chips.v1model.jit.externs import FUNCTIONS, METHODS, hit
from p4gen.chips.v1model.jit.frame import FrameShape
from p4gen.chips.v1model.jit.traffic import Traffic
from p4gen.model.jit.blocks import lay_out
from p4gen.model.jit.build import Machine, Module
from p4gen.model.jit.driver import deparser_bytes
from p4gen.model.jit.layout import Types
from p4gen.model.jit.program import HANDLERS, KEPT, Generated, assemble, block_function, byte_aligned, byte_emits
from p4gen.model.passes import MAX_PASSES
from p4gen.model.state import ModelState
from p4gen.p4 import ir
from p4gen.p4.walk import used_by

MACHINE = Machine(METHODS, FUNCTIONS, hit, selector_hash)

FRAMES = MAX_PASSES + 10
"""The most packets inside the switch at a time: each pass creates at most one more, ingress two."""

_BLOCKS = ("p", "vr", "ig", "eg", "ck", "dep")
_ARITY = {"p": 3, "vr": 2, "ig": 3, "eg": 3, "ck": 2, "dep": 1}


@lru_cache(maxsize=KEPT)
def generate(program: ir.Program, *, carryless: bool) -> Generated:
    """Compile a program; ``carryless``: the machine has a carry-less multiplication. The last results are kept.

    Raises ``InputError`` with a position for what is not supported.
    """
    types = Types(program)
    headers, meta, standard = (p.variable.type for p in program.blocks["ig"].params[-3:])
    frame = FrameShape.of(types, headers, meta, standard)
    used = {name: used_by(block) for name, block in program.blocks.items()}
    with_random = any(c.method == "random" for u in used.values() for c in u.calls)
    module = Module(program, types, lay_out(ModelState(program), types, with_random=with_random), MACHINE, HANDLERS)
    module.byte_aligned = byte_aligned(used["p"])
    module.byte_emits = byte_emits(used["dep"])
    blocks = [_block(module, frame, name) for name in _BLOCKS]
    traffic = Traffic(module, frame)
    rest = traffic.functions(deparser_bytes(program.blocks["dep"]))
    text = assemble(module, [*blocks, *rest], carryless=carryless)
    return Generated(
        text, types, module.state, tuple(module.sites), module.temporary + 64, frame.size, FRAMES, traffic.arrival_size
    )  # fmt: skip


def _block(module: Module, frame: FrameShape, name: str) -> str:
    block = module.program.blocks[name]
    params = block.params[-_ARITY[name] :]
    places = zip((p.variable for p in params), (frame.headers, frame.meta, frame.standard), strict=False)
    return block_function(module, f"block_{name}", name, block, dict(places))
