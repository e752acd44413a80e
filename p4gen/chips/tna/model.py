"""The runners of TNA's and T2NA's programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from p4gen.chips.tna.machine import TofinoModel
from p4gen.chips.tna.memory import TofinoState
from p4gen.model.behaviour import Behaviour
from p4gen.model.state import Clock
from p4gen.p4 import ir

if TYPE_CHECKING:
    from p4gen.model.jit import Engine


def _native(program: ir.Program, clock: Clock | None, seed: int, cache: Path | None) -> Engine:
    # llvmlite takes a while to load, and only this engine needs it.
    from p4gen.chips.tna.jit.engine import TofinoEngine  # noqa: PLC0415

    return TofinoEngine(program, clock, seed, cache)


FACET = Behaviour(TofinoModel, _native, TofinoState)
