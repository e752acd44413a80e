"""The memory layout of values of P4 types, of a packet's frame, and of integer containers.

Everything is little-endian. An integer is zero-extended in a container of 1, 2, 4 or a multiple of 8 bytes; negative
numbers are two's complement of their width. The zero value of every type is all zero bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p4gen.model.values import HeaderValue, StackValue, StructValue, UnionValue, Varbit
from p4gen.p4 import ir
from p4gen.p4 import types as t

SYMBOL_BITS = 32
"""Enum members, error constants and strings are numbers of this width."""

_ERRORS = (
    "NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort", "ParserTimeout",
    "ParserInvalidArgument",
)  # fmt: skip


def container(width: int) -> int:
    """Bytes that hold ``width`` bits."""
    for size in (1, 2, 4, 8):
        if width <= 8 * size:
            return size
    return 8 * -(-width // 64)


def align(offset: int, to: int) -> int:
    """``offset`` rounded up to a multiple of ``to``."""
    return -(-offset // to) * to


@dataclass(frozen=True)
class Shape:
    """Size and alignment of a type's values in bytes; ``parts`` are the offsets of its members.

    ``marks``: where a byte stands for each member that is 1 until something is assigned to the member; None for
    structs without these."""

    size: int
    align: int
    parts: tuple[int, ...] = ()
    marks: int | None = None


class NoValuesError(TypeError):
    """A type has no run-time values, or none of the kind that is needed."""


def bits_of(of: t.Type) -> t.Bits | None:
    """The integer type that represents ``of``, if it is one or a serialisable enum."""
    of = t.strip(of)
    if isinstance(of, t.SerEnum):
        of = of.base
    return of if isinstance(of, t.Bits) else None


def is_signed(of: t.Type) -> bool:
    """Whether numbers of that type can be negative."""
    bits = bits_of(of)
    return isinstance(t.strip(of), t.Int) if bits is None else bits.signed


def scalar_width(of: t.Type) -> int:
    """Bits of the LLVM integer that stands for a scalar (at least 1)."""
    of = t.strip(of)
    bits = bits_of(of)
    if bits is not None:
        return max(bits.width, 1)
    if isinstance(of, t.Bool):
        return 1
    if isinstance(of, (t.Enum, t.Error, t.String)):
        return SYMBOL_BITS
    raise NoValuesError(f"a value of type {of} is not a number")


def is_memory(of: t.Type) -> bool:
    """Whether values of that type live in memory (all but integers, booleans and symbols)."""
    return isinstance(t.strip(of), (t.Fields, t.Stack, t.Tuple, t.Varbits))


def members(of: t.Type) -> list[t.Type]:
    """The types that a composite value is made of."""
    of = t.strip(of)
    if isinstance(of, t.Fields):
        return [f.type for f in of.fields]
    if isinstance(of, t.Stack):
        return [of.element] * of.size
    assert isinstance(of, t.Tuple)
    return list(of.elements)


class Types:
    """Shapes of a program's types, and its symbols as numbers."""

    def __init__(self, program: ir.Program, marked: tuple[str, ...] = ()) -> None:
        """``marked``: ends of the names of structs of which it counts whether their members are assigned."""
        self._marked = marked
        self._shapes: dict[t.Type, Shape] = {}
        self.errors = list(dict.fromkeys(_ERRORS + program.errors))
        self._strings: dict[str, int] = {"": 0}

    # --- symbols ---

    def symbol(self, name: str, of: t.Type) -> int:
        """The number of an enum member, error constant or string."""
        of = t.strip(of)
        if isinstance(of, t.Error):
            return self.errors.index(name)
        if isinstance(of, t.Enum) and name in of.members:
            return of.members.index(name)
        return self._strings.setdefault(name, len(self._strings))

    def name(self, number: int, of: t.Type) -> str:
        """The symbol of that number."""
        of = t.strip(of)
        if isinstance(of, t.Error):
            return self.errors[number]
        if isinstance(of, t.Enum):
            return of.members[number] if of.members else ""
        return list(self._strings)[number]

    def number(self, value: int | bool | str, of: t.Type) -> int:
        """A scalar as the unsigned number that stands for it."""
        return self.symbol(value, of) if isinstance(value, str) else int(value) & (1 << scalar_width(of)) - 1

    # --- shapes ---

    def shape(self, of: t.Type) -> Shape:
        """Raises ``NoValuesError`` for types without run-time values."""
        of = t.strip(of)
        found = self._shapes.get(of)
        if found is None:
            found = self._shapes[of] = self._shape(of)
        return found

    def _shape(self, of: t.Type) -> Shape:
        if isinstance(of, t.Varbits):
            return Shape(align(4 + -(-of.max_width // 8), 4), 4)
        if isinstance(of, t.Header):
            return self._sequence(members(of), 1, 8)
        if isinstance(of, t.Stack):
            return self._sequence(members(of), 4, 4)
        if isinstance(of, (t.Fields, t.Tuple)):
            found = self._sequence(members(of), 0, 1)
            if isinstance(of, t.Struct) and of.name.endswith(self._marked):
                marks = found.size
                return Shape(align(marks + len(found.parts), found.align), found.align, found.parts, marks)
            return found
        size = container(scalar_width(of))
        return Shape(size, min(size, 8))

    def _sequence(self, parts: Sequence[t.Type], at: int, aligned: int) -> Shape:
        offsets = []
        for part in parts:
            shape = self.shape(part)
            at = align(at, shape.align)
            offsets.append(at)
            at += shape.size
            aligned = max(aligned, shape.align)
        return Shape(align(max(at, 1), aligned), aligned, tuple(offsets))

    # --- values ---

    def read(self, of: t.Type, data: bytes, at: int) -> object:
        """The value of type ``of`` at ``data[at:]``, as the interpreter represents it."""
        of = t.strip(of)
        shape = self.shape(of)
        if isinstance(of, t.Varbits):
            width = int.from_bytes(data[at : at + 4], "little")
            return Varbit(width, int.from_bytes(data[at + 4 : at + 4 + -(-width // 8)]) >> (-width % 8))
        if isinstance(of, (t.Fields, t.Tuple, t.Stack)):
            parts = [self.read(m, data, at + o) for m, o in zip(members(of), shape.parts, strict=True)]
            if isinstance(of, t.Header):
                return HeaderValue(parts, bool(data[at]))
            if isinstance(of, t.Stack):
                return StackValue(parts, int.from_bytes(data[at : at + 4], "little"))
            return UnionValue(parts) if isinstance(of, t.HeaderUnion) else StructValue(parts)
        number = int.from_bytes(data[at : at + shape.size], "little")
        if isinstance(of, t.Bool):
            return bool(number)
        bits = bits_of(of)
        if bits is None:
            return self.name(number, of)
        return number - (1 << bits.width) if bits.signed and number >> (bits.width - 1) else number


# --- the frame of a packet ---

DATA, SIZE, AT, LENGTH, NOW = 0, 8, 16, 32, 40
OWN, ERROR = 48, 152
BEHIND = 192
"""Byte offsets in a frame, 8 bytes each: the packet's data, its size in bytes, the parser's position in bits, the
length that follows ``setValid`` and ``setInvalid``, the time, and the parser's error. Those from ``OWN`` on, and at 24,
are the architecture's; so is what follows ``BEHIND``: headers and metadata."""
