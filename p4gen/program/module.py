"""IncEngine modules (EPIC 4.1): what their templates declare, which ``p4gen.program.declared`` reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from p4gen.arch import Feature
from p4gen.layout import Word

Gress = Literal["ingress", "egress"]


@dataclass(frozen=True)
class Size:
    """A number of things as a formula: the product of its factors, each a number or a field of a spec.

    >>> str(Size(("groups", "2"), (4, 2))), int(Size(("groups", "2"), (4, 2)))
    ('groups x 2', 8)
    """

    factors: tuple[str, ...] = ()
    values: tuple[int, ...] = ()
    """The factors' values in the program."""

    @classmethod
    def of(cls, formula: str, spec: Any) -> Size:
        """The size that a formula such as ``groups x 2`` gives for a spec. Raises ``AttributeError`` for a factor that
        is neither a number nor a field of the spec."""
        factors = tuple(formula.split(" x "))
        return cls(factors, tuple(int(f) if f.isdecimal() else int(attrgetter(f)(spec)) for f in factors))

    def __int__(self) -> int:
        return math.prod(self.values)

    def __str__(self) -> str:
        return " x ".join(self.factors) or "1"


@dataclass(frozen=True)
class Register:
    """State that a module keeps from packet to packet: ``instances`` arrays of ``entries`` words of ``width`` bits."""

    name: str
    width: int
    word: Word | None
    """The layout of a word; None for a plain number."""
    entries: Size
    instances: Size
    purpose: str

    @property
    def short(self) -> str:
        """The name by which the layout of its words is found: the last part of its own."""
        return self.name.rpartition(".")[2]

    @property
    def bits(self) -> int:
        """All instances together, in bits."""
        return int(self.instances) * int(self.entries) * self.width


@dataclass(frozen=True)
class Table:
    """A match-action table that the control plane fills."""

    name: str
    entries: Size
    purpose: str


@dataclass(frozen=True)
class Metadata:
    """A value that a module tells later ones; a field of the program's metadata_t."""

    part: str
    """The struct in metadata_t that it is in."""
    name: str
    type: str
    purpose: str
    kept: bool = False
    """Whether v1model's clones and recirculated packets keep it."""


@dataclass(frozen=True)
class Drop:
    """A reason for which a module takes a packet out of the switch."""

    reason: str
    meaning: str
    loss: bool = True
    """False if the packet has done its work."""


@dataclass(frozen=True)
class Module:
    """An IncEngine module of one program. What it reads and writes is found in its P4 (``p4gen.program.dataflow``)."""

    name: str
    """CamelCase, the name of its ``control`` in the program."""
    gress: Gress
    template: str
    """Its template, below ``templates``."""
    paper: str
    purpose: str
    within: str = ""
    """The module whose control applies it, if the flow does not."""
    tells: tuple[Metadata, ...] = ()
    keeps: tuple[Register, ...] = ()
    tables: tuple[Table, ...] = ()
    drops: tuple[Drop, ...] = ()
    uses: frozenset[Feature] = frozenset()
    """The features of architectures without which it cannot work."""
    guest: str = ""
    """The family that it belongs to, if that is beside the program's own."""

    @property
    def snake(self) -> str:
        """The name of its instance."""
        return snake(self.name)

    @property
    def state_bits(self) -> int:
        """What its registers take, in bits."""
        return sum(register.bits for register in self.keeps)


@dataclass(frozen=True)
class DropReason:
    """A counted drop: ``index`` is its place in the program's drop counters (0 is unused)."""

    index: int
    module: Module
    drop: Drop

    @property
    def symbol(self) -> str:
        """The reason's name in the program's ``drop_t``."""
        return f"{self.module.name}_{self.drop.reason}"


@dataclass(frozen=True)
class Part:
    """A struct in metadata_t: what one module, or modules that work as one, tell the others about a packet."""

    name: str
    modules: tuple[Module, ...]
    fields: tuple[Metadata, ...]

    @property
    def type(self) -> str:
        """The struct's name in the program."""
        return f"{self.name}_info_t"

    @property
    def purpose(self) -> str:
        """A line that says whose it is."""
        names = " and ".join(module.name for module in self.modules)
        return f"What {names} {'tells' if len(self.modules) == 1 else 'tell'} later modules."


def snake(name: str) -> str:
    """The name of a control's instance, and of its template: ``check_order`` of CheckOrder."""
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


def camel(name: str) -> str:
    """The name of an instance's control: CheckOrder of ``check_order``."""
    return "".join(part.capitalize() for part in name.split("_"))
