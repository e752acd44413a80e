"""What a paper says of its program on a real switch, for a family's programs to stand beside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic

from p4gen.families.family import OwnSpec
from p4gen.plugins import Facet


@dataclass(frozen=True)
class Hardware(Facet, Generic[OwnSpec]):
    """A paper's table of a switch's resources, by the size of the program's memory."""

    module: ClassVar[str] = "hardware"

    paper: str
    table: int
    target: str
    """The switch of the paper."""
    rows: Mapping[str, tuple[float, ...]]
    """By resource, as reports name it (``p4gen.p4.resources``): percent of the switch, a value for each size."""
    sizes: Mapping[str, int]
    """The sizes by name, and the slots of a pipe in a program of that size."""
    sized: Callable[[OwnSpec, int], OwnSpec]
    """The family's own spec with so many slots. Raises ``InputError`` if it cannot have them."""
    smaller: Callable[[OwnSpec], Iterable[Iterable[tuple[str, OwnSpec]]]]
    """For each option that makes a program smaller, or its switch larger, its values one after the other: as on a
    command line, and the spec that has it."""
