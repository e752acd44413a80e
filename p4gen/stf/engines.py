"""The engines that can run a test, by name."""

from __future__ import annotations

from collections.abc import Mapping

from p4gen.model import Model
from p4gen.model.state import Clock
from p4gen.p4 import ir
from p4gen.stf.bench import Engine
from p4gen.stf.runner import reference


def native(program: ir.Program, clock: Clock) -> Model:
    """The native engine; the machine code is not kept."""
    return Model(program, clock=clock, engine="jit", cache="")


def poisoned(program: ir.Program, clock: Clock) -> Model:
    """The reference interpreter, with garbage in variables that the program has not initialised."""
    return Model(program, clock=clock, poison=True)


ENGINES: Mapping[str, Engine] = {"interp": reference, "jit": native}
"""``interp`` is the reference interpreter, ``jit`` the native engine."""
