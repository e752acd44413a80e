"""What a build asks of an architecture: rules for its programs, and its compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from p4gen.arch import ArchitectureFacet
from p4gen.errors import Diagnostic
from p4gen.p4 import ir
from p4gen.p4.p4c import P4cOutput


@dataclass(frozen=True)
class Toolchain(ArchitectureFacet):
    """The tools for an architecture's programs."""

    module: ClassVar[str] = "toolchain"

    lint: Callable[[ir.Program, int], Sequence[Diagnostic]]
    """What breaks the rules for generated programs with this number of pipelines."""
    compile: Callable[[Path], tuple[str, P4cOutput] | None] | None = None
    """The version of the real compiler, and what it has made of a program, next to it; None if it is not installed.
    Raises ``FailedError`` if it refuses the program, or warns."""
