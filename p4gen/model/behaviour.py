"""What the behavioural model asks of an architecture: what happens around and between a program's blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from p4gen.arch import ArchitectureFacet, architectures, of_package
from p4gen.choices import EngineName
from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.model.state import ModelState
from p4gen.model.trace import Trace
from p4gen.p4 import ir
from p4gen.plugins import answers

if TYPE_CHECKING:
    from p4gen.model.jit import Engine, NativeState


class Runs(Protocol):
    """A program that runs on a switch's state."""

    def process(self, port: int, packet: bytes, trace: Trace | None = None) -> list[tuple[int, bytes]]:
        """Process a packet. Returns the output as (port, packet), in order of transmission."""


@dataclass(frozen=True)
class Behaviour(ArchitectureFacet):
    """What runs an architecture's programs, one for each engine. Both raise ``InputError`` for what they do not
    support."""

    module: ClassVar[str] = "model"

    interpreter: Callable[[ir.Program, Any], Runs]
    """With the state that ``state`` has made."""
    native: Callable[[ir.Program, NativeState, Path | None], Engine] | None = None
    """With the folder of compiled programs, None for none. Without it, only the interpreter runs the programs."""
    state: type[ModelState] = ModelState
    """What outlives a packet, for the interpreter."""


def packages() -> tuple[str, ...]:
    """The packages that some architecture has a model of."""
    modelled = (arch for arch in architectures().values() if answers(arch, Behaviour))
    return tuple(dict.fromkeys(name for arch in modelled for name in (arch.main, *arch.mains)))


def behaviour_of(program: ir.Program) -> Behaviour:
    """What runs ``program``: the architecture's whose package it instantiates. Raises ``InputError`` if there is
    none."""
    arch = of_package(program.package, program.arch)
    modelled = arch is not None and answers(arch, Behaviour)
    if arch is not None and modelled and arch.has_blocks(program.blocks):
        return arch.facet(Behaviour)
    what = program.package or "programs without a main"
    what = "a package of that name with other blocks" if modelled else what
    runs = " and ".join(packages())
    raise InputError(Diagnostic(Pos(program.source, 1, 1), f"the behavioural model runs {runs}, not {what}"))


def engines(program: ir.Program) -> tuple[EngineName, ...]:
    """The engines that run programs with ``program``'s package."""
    return ("interp",) if behaviour_of(program).native is None else ("interp", "jit")


def native_of(program: ir.Program) -> Callable[[ir.Program, NativeState, Path | None], Engine]:
    """The native engine of ``program``. Raises ``InputError`` if its architecture has only the interpreter."""
    native = behaviour_of(program).native
    if native is None:
        where = Pos(program.source, 1, 1)
        raise InputError(Diagnostic(where, f"the engine jit does not run {program.package}; interp does"))
    return native
