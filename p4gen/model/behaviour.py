"""The facet of architectures that the behavioural model runs: the behaviour around and between a program's blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from p4gen.arch import Architecture, ArchitectureFacet, architectures, of_package
from p4gen.choices import EngineName
from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.model.runner import Runner
from p4gen.model.state import Clock, ModelState
from p4gen.p4 import ir
from p4gen.plugins import answers

if TYPE_CHECKING:
    from p4gen.model.jit import Engine


class Native(Protocol):
    """A function that makes native engines for programs."""

    def __call__(self, program: ir.Program, clock: Clock | None, seed: int, cache: Path | None) -> Engine:
        """Make an engine with a new state. ``cache`` is the folder of compiled programs, None for none."""


@dataclass(frozen=True)
class Behaviour(ArchitectureFacet):
    """The runners of an architecture's programs, one for each engine. Both raise ``InputError`` for constructs that
    they do not support."""

    module: ClassVar[str] = "model"

    interpreter: Callable[[ir.Program, Any], Runner]
    """Makes an interpreter, with a state that ``state`` has made."""
    native: Native | None = None
    """Makes the native engine; None: only the interpreter runs the programs."""
    state: type[ModelState] = ModelState
    """The class of the state that outlives a packet, for the interpreter."""
    holds: bool = False
    """Whether both can hold back packets that recirculate (``Model.hold_recirculated``); they have ``hold`` then."""


def packages() -> tuple[str, ...]:
    """The names of packages whose architectures have a model."""
    modelled = (arch for arch in architectures().values() if answers(arch, Behaviour))
    return tuple(dict.fromkeys(name for arch in modelled for name in (arch.main, *arch.mains)))


def _modelled(program: ir.Program) -> Architecture | None:
    arch = of_package(program.package, program.arch, program.blocks)
    return arch if arch is not None and answers(arch, Behaviour) else None


def is_modelled(program: ir.Program) -> bool:
    """Whether the architecture of ``program`` has a model."""
    return _modelled(program) is not None


def behaviour_of(program: ir.Program) -> Behaviour:
    """The behaviour of the architecture whose package ``program`` instantiates. Raises ``InputError`` if no model runs
    it."""
    arch = _modelled(program)
    if arch is not None:
        return arch.facet(Behaviour)
    what = "a package of that name with other blocks" if program.package in packages() else program.package
    runs, what = " and ".join(packages()), what or "programs without a main"
    raise InputError(Diagnostic(Pos(program.source, 1, 1), f"the behavioural model runs {runs}, not {what}"))


def engines(program: ir.Program) -> tuple[EngineName, ...]:
    """The engines that run programs with ``program``'s package."""
    return ("interp",) if behaviour_of(program).native is None else ("interp", "jit")


def native_of(program: ir.Program) -> Native:
    """The native engine of ``program``. Raises ``InputError`` if its architecture has only the interpreter."""
    native = behaviour_of(program).native
    if native is None:
        where = Pos(program.source, 1, 1)
        raise InputError(Diagnostic(where, f"the engine jit does not run {program.package}; interp does"))
    return native
