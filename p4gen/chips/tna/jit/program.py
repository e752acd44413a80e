"""From a program for Tofino to LLVM IR."""

from __future__ import annotations

from functools import lru_cache

from p4gen.chips.tna.chip import chip_of
from p4gen.chips.tna.context import DECIDING
from p4gen.chips.tna.gress import parts, pipelines
from p4gen.chips.tna.jit import arithmetic, checksums, meters, registers, requests
from p4gen.chips.tna.jit.module import MEMORY, Gress, TofinoModule
from p4gen.chips.tna.jit.state import NativeTofino, own
from p4gen.chips.tna.jit.traffic import Traffic
from p4gen.chips.tna.memory import TofinoState
from p4gen.model.jit.blocks import lay_out
from p4gen.model.jit.build import Machine
from p4gen.model.jit.layout import Types, align
from p4gen.model.jit.program import HANDLERS, KEPT, Generated, assemble, block_function, byte_aligned, byte_emits
from p4gen.p4 import ir
from p4gen.p4.walk import used_by

MACHINE = Machine(
    {**registers.METHODS, **meters.METHODS, **checksums.METHODS, **requests.METHODS, **arithmetic.METHODS},
    {**requests.FUNCTIONS, **arithmetic.FUNCTIONS},
    meters.hit,
    arithmetic.selector_hash,
    MEMORY,
    pads=TofinoState.PADS_HEADERS,
)

ARENA = 1 << 18
"""Bytes for the packets that one received packet becomes; more are allocated where these are not enough."""


@lru_cache(maxsize=KEPT)
def generate(program: ir.Program, *, carryless: bool) -> Generated:
    """Compile a program; ``carryless``: the machine has a carry-less multiplication. The last results are kept.

    Raises ``InputError`` with a position for what is not supported.
    """
    types = Types(program, DECIDING)
    found = pipelines(program)
    used = [used_by(block) for blocks in found.values() for block in blocks.values()]
    calls = [call for each in used for call in each.calls]
    with_random = any(c.instance is not None and c.instance.extern == "Random" for c in calls)
    logged = dict.fromkeys(registers.register_of(c).name for c in calls if c.method == "execute_log")
    state = NativeTofino(program)
    layout = lay_out(state, types, with_random=with_random, own=own(state, logged))
    module = TofinoModule(program, types, layout, MACHINE, HANDLERS, chip_of(program))
    made: list[str] = []
    traffic = Traffic(module)
    for name, blocks in found.items():
        for direction in ("ingress", "egress"):
            gress = module.begin(name, parts(program, direction, blocks))
            made += _blocks(module, gress)
            traffic.add(gress)
    made += traffic.functions()
    text = assemble(module, made, carryless=carryless)
    return Generated(
        text, types, layout, tuple(module.sites), module.temporary + 64, align(module.frame, 64), arena=ARENA
    )  # fmt: skip


def _blocks(module: TofinoModule, gress: Gress) -> list[str]:
    """The functions of a gress's blocks."""
    made = []
    for name, block in gress.parts.blocks.items():
        used = used_by(block)
        module.byte_aligned, module.byte_emits = byte_aligned(used), byte_emits(used)
        places = {variable: gress.places[role] for variable, role in gress.parts.arguments[name]}
        label = f"{gress.pipeline}_{name}"
        more, before = (("ptr noalias", MEMORY.removeprefix("%")),), len(module.sites)
        made.append(block_function(module, f'"{label}"', gress.parts.name, block, places, more))
        if name == gress.parts.deparser:
            externs = {call.instance.extern if call.instance is not None else "" for call in used.calls}
            gress.quiet = not gress.requests and externs <= {"Checksum"} and len(module.sites) == before
    return made
