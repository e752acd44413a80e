"""What builds and checks need from an architecture: rules for its programs, its limits, and its compiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from p4gen.arch import ArchitectureFacet, of_package
from p4gen.errors import Diagnostic, Pos
from p4gen.p4 import ir
from p4gen.p4.p4c import CompilerCall, P4cOutput
from p4gen.plugins import answers


@dataclass(frozen=True)
class Toolchain(ArchitectureFacet):
    """The tools for an architecture's programs."""

    module: ClassVar[str] = "toolchain"

    lint: Callable[[ir.Program, int], Sequence[Diagnostic]]
    """Violations of the rules for generated programs. The second argument is the number of pipelines."""
    limits: Callable[[ir.Program, Mapping[str, Pos]], Sequence[Diagnostic]] | None = None
    """Errors for what the language allows and the architecture's targets cannot do. The second argument gives the
    positions of declarations, by name."""
    compile: Callable[[CompilerCall], tuple[str, P4cOutput] | None] | None = None
    """The version of the real compiler, and its output for a program; None if the compiler is not installed. Raises
    ``FailedError`` if it refuses the program, does not end in time or, for BMv2, warns."""
    version: Callable[[], str | None] | None = None
    """The version of the real compiler; None if it is not installed."""
    output: str = ""
    """The folder of the compiler's output in a program's folder, if it has many files of its own."""
    absent: str = ""
    """The line for a machine without the compiler."""
    accepted: str = ""
    """The meaning of a success of the compiler for a program that p4gen has built."""


def tools_of(program: ir.Program) -> Toolchain | None:
    """The tools for programs with ``program``'s package; None if p4gen knows none."""
    arch = of_package(program.package, program.arch, program.blocks)
    return arch.facet(Toolchain) if arch is not None and answers(arch, Toolchain) else None
