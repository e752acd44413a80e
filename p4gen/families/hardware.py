"""How programs are made to fit a real switch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Generic

from p4gen.families.family import OwnSpec
from p4gen.plugins import Facet


@dataclass(frozen=True)
class Hardware(Facet, Generic[OwnSpec]):
    """The smaller programs of a family."""

    module: ClassVar[str] = "hardware"

    smaller: Callable[[OwnSpec], Iterable[Iterable[tuple[str, OwnSpec]]]]
    """For each option that makes a program smaller, or its switch larger, its values one after the other: as on a
    command line, and the spec that has it."""
