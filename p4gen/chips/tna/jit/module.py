"""A program for Tofino being compiled: its gresses, the frame of a packet in each, and deparsers' requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from p4gen.chips.tna.chip import Chip
from p4gen.chips.tna.gress import Parts, fields_of, members_of
from p4gen.errors import Pos
from p4gen.model.jit.blocks import StateLayout
from p4gen.model.jit.build import FRAME, TEMPORARY, Gen, Handlers, Machine, Module, part_at
from p4gen.model.jit.emit import FALSE, Address, Value, const
from p4gen.model.jit.layout import BEHIND, Types, align, scalar_width
from p4gen.p4 import ir
from p4gen.p4 import types as t

MEMORY = "%pipe"
"""The parameter of the blocks' functions from which offsets of the pipe's own memory count."""


@dataclass(frozen=True)
class Request:
    """A call in a deparser that requests a copy. ``asked`` (8 bytes in the frame) is 1 if it was made; ``session`` is
    the address of its session, and ``size`` bytes at ``front`` precede the packet in the copy."""

    kind: Literal["mirror", "resubmit"]
    asked: Address
    session: Address
    front: Address
    size: int


@dataclass
class Gress:
    """A gress of a pipeline. ``places`` are the offsets of its arguments in the frame, by their roles."""

    pipeline: str
    parts: Parts
    places: Mapping[str, int]
    requests: list[Request] = field(default_factory=list)
    quiet: bool = False
    """Whether running the deparser has no effect but the packet that it makes."""

    @property
    def label(self) -> str:
        """A name for its functions."""
        return f"{self.pipeline}_{self.parts.name}"

    def has(self, role: str, name: str) -> bool:
        """Whether the program has a field of an argument."""
        return role in self.places and name in fields_of(self.parts.types[role])

    def _at(self, g: Gen, role: str, name: str) -> tuple[Address, t.Type]:
        of = self.parts.types[role]
        i = fields_of(of)[name]
        return part_at(g, Address(FRAME, self.places[role]), of, i), members_of(of)[i].type

    def put(self, g: Gen, role: str, name: str, value: Value) -> None:
        """Set a field of an argument, where the program has it."""
        if self.has(role, name):
            at, of = self._at(g, role, name)
            g.store(g.fn.resize(value, scalar_width(of)), at, of)

    def get(self, g: Gen, role: str, name: str) -> Value:
        """A field of an argument, 64 bits; 0 where the program has not got it."""
        if not self.has(role, name):
            return const(0, 64)
        at, of = self._at(g, role, name)
        return g.fn.resize(g.load(at, of), 64)

    def assigned(self, g: Gen, role: str, name: str) -> Value:
        """Whether the program has assigned a field of a marked argument."""
        if not self.has(role, name):
            return FALSE
        of = self.parts.types[role]
        marks = g.types.shape(of).marks
        assert marks is not None
        mark = g.fn.load(Address(FRAME, self.places[role] + marks + fields_of(of)[name]), 8)
        return g.fn.compare("eq", mark, const(0, 8))


class TofinoModule(Module):
    """A program for Tofino being compiled."""

    def __init__(
        self, program: ir.Program, types: Types, state: StateLayout, machine: Machine, handlers: Handlers, chip: Chip
    ) -> None:
        super().__init__(program, types, state, machine, handlers)
        self.chip = chip
        self.gress: Gress
        """The one that is being compiled."""
        self.frame = BEHIND
        """Bytes of the largest frame."""
        self._rooms: dict[object, Address] = {}
        self._values: dict[object, Address] = {}

    @property
    def position(self) -> Pos:
        """The place that traps of the traffic manager name."""
        return next(iter(self.program.blocks.values())).pos

    def begin(self, pipeline: str, made: Parts) -> Gress:
        """Begin a gress: lay out its arguments."""
        at, places = BEHIND, {}
        for role, of in made.types.items():
            shape = self.types.shape(of)
            at = align(at, 16)
            places[role] = at
            at += shape.size
        self._rooms.clear()
        self._at = align(at, 16)
        self.frame = max(self.frame, self._at)
        self.gress = Gress(pipeline, made, places)
        return self.gress

    def slot(self, what: object, size: int = 8) -> Address:
        """A place in the frame, zero at the start of each pass, for one thing of the gress."""
        if what not in self._rooms:
            self._rooms[what] = Address(FRAME, self._at)
            self._at += align(size, 8)
            self.frame = max(self.frame, self._at)
        return self._rooms[what]

    def values(self, what: object, size: int) -> Address:
        """Temporary memory for one thing, wherever it is used; it starts with anything."""
        if what not in self._values:
            self.temporary = align(self.temporary, 8)
            self._values[what] = Address(TEMPORARY, self.temporary)
            self.temporary += size
        return self._values[what]


def tofino(g: Gen) -> TofinoModule:
    """The program being compiled."""
    assert isinstance(g.module, TofinoModule)
    return g.module
