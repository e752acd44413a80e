"""The runners of v1model's programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from p4gen.chips.v1model.switch import V1Model
from p4gen.model.behaviour import Behaviour
from p4gen.model.state import Clock
from p4gen.p4 import ir

if TYPE_CHECKING:
    from p4gen.model.jit import Engine


def _native(program: ir.Program, clock: Clock | None, seed: int, cache: Path | None) -> Engine:
    # llvmlite takes a while to load, and only this engine needs it.
    from p4gen.chips.v1model.jit.program import generate  # noqa: PLC0415
    from p4gen.model.jit import Engine, NativeState  # noqa: PLC0415

    return Engine(program, NativeState(program, clock, seed), cache, generate, V1Model)


FACET = Behaviour(V1Model, _native, holds=True)
