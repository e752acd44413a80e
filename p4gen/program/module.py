"""IncEngine modules: a template, and what it needs, provides, keeps and drops (EPIC 4.1)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal

from p4gen.arch import Feature
from p4gen.layout import Word
from p4gen.vocabulary import ProgramSpec

Gress = Literal["ingress", "egress"]


@dataclass(frozen=True)
class Size:
    """A size as a formula: the product of its factors, each a number or a field of the spec, or of the one beside it.

    >>> str(Size("groups", "slots_per_group"))
    'groups x slots_per_group'
    """

    factors: tuple[str | int, ...]

    def __init__(self, *factors: str | int) -> None:
        object.__setattr__(self, "factors", factors)

    def of(self, spec: ProgramSpec) -> int:
        """The size for a spec."""
        return math.prod(f if isinstance(f, int) else int(attrgetter(f)(spec)) for f in self.factors)

    def __str__(self) -> str:
        return " x ".join(map(str, self.factors))


@dataclass(frozen=True)
class Register:
    """State that a module keeps from packet to packet: ``instances`` arrays of ``entries`` words."""

    name: str
    word: int | Word | Callable[[Any], Word | int]
    """The bits of a plain number, or the layout of a word, which may depend on the spec."""
    entries: Size
    purpose: str
    instances: Size = Size(1)

    @property
    def short(self) -> str:
        """The name by which templates find the layout of its words: the last part of its own."""
        return self.name.rpartition(".")[2]

    def word_of(self, spec: ProgramSpec) -> Word | None:
        """What a word consists of in a program with this spec; None for a plain number."""
        found = self._kept(spec)
        return found if isinstance(found, Word) else None

    def width_of(self, spec: ProgramSpec) -> int:
        """Bits in a word of a program with this spec."""
        found = self._kept(spec)
        return found.bits if isinstance(found, Word) else found

    def _kept(self, spec: ProgramSpec) -> Word | int:
        return self.word if isinstance(self.word, Word | int) else self.word(spec)

    def bits(self, spec: ProgramSpec) -> int:
        """All instances together, in bits."""
        return self.instances.of(spec) * self.entries.of(spec) * self.width_of(spec)


@dataclass(frozen=True)
class Table:
    """A match-action table that the control plane fills."""

    name: str
    entries: Size
    purpose: str


@dataclass(frozen=True)
class Metadata:
    """A value that a module provides to later ones; a field of the program's metadata_t."""

    name: str
    type: str
    purpose: str
    kept: bool = False
    """Whether v1model's clones and recirculated packets keep it."""
    wanted: Callable[[Any], bool] = field(default=lambda _: True)
    """Whether a program with this spec has the field."""


@dataclass(frozen=True)
class Drop:
    """A reason for which a module takes a packet out of the switch."""

    reason: str
    meaning: str
    loss: bool = True
    """False if the packet has done its work."""
    wanted: Callable[[Any], bool] = field(default=lambda _: True)
    """Whether a program with this spec has the reason."""


@dataclass(frozen=True)
class Module:
    """An IncEngine module.

    ``needs`` are metadata that earlier modules must provide, or ``hdr.x`` headers that the parser must know.
    ``compose`` checks both; every build checks that a module reads and writes what it declares (``p4gen.dataflow``).
    """

    name: str
    """CamelCase, the name of its ``control`` in the program."""
    gress: Gress
    paper: str
    purpose: str
    part: str = ""
    """Its part of metadata_t, if it provides any."""
    within: str = ""
    """The module whose control applies it, if the flow does not."""
    needs: tuple[str, ...] = ()
    provides: tuple[Metadata, ...] = ()
    may_need: tuple[str, ...] = ()
    """The same, in programs that have it."""
    changes: tuple[str, ...] = ()
    """Metadata that others provide, and ``hdr.x`` headers, that it gives another value."""
    keeps: tuple[Register, ...] = ()
    tables: tuple[Table, ...] = ()
    drops: tuple[Drop, ...] = ()
    uses: tuple[Feature, ...] | Callable[[Any], tuple[Feature, ...]] = ()
    """The features of architectures without which it cannot work; they may depend on the spec."""
    wanted: Callable[[Any], bool] = field(default=lambda _: True)
    """Whether a program with this spec has the module at all."""
    folder: str = "shared"
    """The folder of its template: ``shared``, or a family's name."""
    guest: str = ""
    """The family that it belongs to, if that is beside the program's own."""

    @property
    def snake(self) -> str:
        """The name of its instance and of its template."""
        return "".join("_" + c.lower() if c.isupper() else c for c in self.name).lstrip("_")

    @property
    def template(self) -> str:
        """Its template, below ``templates``."""
        return f"{self.folder}/{self.snake}.p4.j2"

    def used(self, spec: ProgramSpec) -> tuple[Feature, ...]:
        """The features of architectures that it uses in a program with this spec."""
        return self.uses(spec) if callable(self.uses) else self.uses

    def state_bits(self, spec: ProgramSpec) -> int:
        """What its registers take, in bits."""
        return sum(register.bits(spec) for register in self.keeps)
