"""How much of a switch's resources programs take: reports, and the facet by which an architecture makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from p4gen.arch import ArchitectureFacet, of_package
from p4gen.p4 import ir
from p4gen.plugins import answers


@dataclass(frozen=True)
class Amount:
    """How much of a resource is taken, and how much there is."""

    used: int
    available: int

    @property
    def share(self) -> float:
        """The taken part of the resource, in percent of what there is."""
        return 100 * self.used / self.available if self.available else 0.0


@dataclass(frozen=True)
class Report:
    """The resources of one pipe."""

    source: str
    """What found this out: the model, or the compiler with its version."""
    target: str
    pipe: str
    rows: Mapping[str, Amount]
    """By resource, in the order in which they are shown."""
    modules: Mapping[str, Mapping[str, int]]
    """By the control that declares what takes them, then by resource."""
    excess: tuple[str, ...] = ()
    """What cannot fit whatever the compiler does, a line each."""
    doubts: tuple[str, ...] = ()
    """What does not fit by the estimate, a line each."""

    @property
    def plain(self) -> dict[str, Any]:
        """The report as a dictionary that ``json`` can write."""
        return {
            "source": self.source,
            "target": self.target,
            "pipe": self.pipe,
            "rows": {row: {"used": a.used, "available": a.available} for row, a in self.rows.items()},
            "modules": {module: dict(found) for module, found in self.modules.items()},
            "excess": list(self.excess),
            "doubts": list(self.doubts),
        }


@dataclass(frozen=True)
class Resources(ArchitectureFacet):
    """How the resources of an architecture's targets are determined."""

    module: ClassVar[str] = "resources"

    estimate: Callable[[ir.Program], tuple[Report, ...]]
    """A report for each pipe of a program, from a model."""
    compiled: Callable[[ir.Program, Path], tuple[Report, ...]]
    """The same from the real compiler's output folder. Raises ``InputError`` if its reports are not there."""


def resources_of(program: ir.Program) -> Resources | None:
    """The resources of ``program``'s architecture; None if p4gen does not know them."""
    arch = of_package(program.package, program.arch, program.blocks)
    return arch.facet(Resources) if arch is not None and answers(arch, Resources) else None
