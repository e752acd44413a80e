"""Layouts of headers: their fields, in the order in which they are on the wire.

A header is declared once. The shared template ``shared/headers`` writes its P4 declaration, templates take slices of
fields from it (``hdr.aeth.syndrome[{{ headers.aeth.syndrome.kind }}]``), Python code reads and writes frames with it,
and the manifest and docs/wire-format.md list it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from p4gen.layout.word import Field, Word


@dataclass(frozen=True)
class HeaderField(Field):
    """A field of a header. Where ``noted``, P4 has ``about`` as a comment beside it."""

    type: str = ""
    """Its P4 type, if that has a name: ``mac_addr_t``. The program declares it."""
    noted: bool = False
    """Whether P4 programs have its meaning as a comment."""
    variant: bool = False
    """Whether it may change on the way: RoCEv2's invariant CRC takes it as ones."""

    @property
    def ones(self) -> str:
        """P4's number with ones in all its bits."""
        value = (1 << self.bits) - 1
        return f"{value:#x}" if self.bits >= 4 else f"{value:#b}"

    @property
    def p4_type(self) -> str:
        """P4 type of the field: its own, or ``bit<N>``."""
        return self.type or f"bit<{self.bits}>"


@dataclass(frozen=True)
class Header:
    """A header: its fields, the first on the wire first.

    >>> udp = Header("udp", "UDP", (HeaderField("src_port", 16, ""), HeaderField("dst_port", 16, "")))
    >>> udp.bits, udp.word.unpack(0x00350035)
    (32, {'src_port': 53, 'dst_port': 53})
    """

    name: str
    """Its name in ``headers_t``; its P4 type is this name followed by ``_t``."""
    meaning: str
    fields: tuple[HeaderField, ...]
    noted: bool = False
    """Whether P4 programs have its meaning as a comment."""
    count: int | None = None
    """The number of elements of an array: the header has its only field this many times, with numbers from 0 after the
    name."""

    def __post_init__(self) -> None:
        taken = [field.name for field in self.fields if hasattr(Header, field.name)]
        if taken:  # templates would not get the field's layout
            raise ValueError(f"a field of the header {self.name} cannot be called {', '.join(taken)}")
        if self.count is not None and len(self.fields) != 1:
            raise ValueError(f"the header {self.name} has {len(self.fields)} fields, an array has one")
        if self.bits % 8:
            raise ValueError(f"the header {self.name} has {self.bits} bits, which are no whole bytes")

    @property
    def type(self) -> str:
        """The name of the P4 type: the header's name followed by ``_t``."""
        return f"{self.name}_t"

    @cached_property
    def bits(self) -> int:
        """Length in bits, of all elements if it is a stack."""
        return (1 if self.count is None else self.count) * sum(field.bits for field in self.fields)

    @cached_property
    def invariant(self) -> tuple[str, ...]:
        """The fields in P4 as RoCEv2's invariant CRC takes them: all bits of variant fields are ones."""
        return tuple(f"{f.bits}w{f.ones}" if f.variant else f"hdr.{self.name}.{f.name}" for f in self.fields)

    @cached_property
    def size(self) -> int:
        """Length in bytes, of all elements if it is a stack."""
        return self.bits // 8

    @cached_property
    def word(self) -> Word:
        """The whole header as one word; of an array, one element."""
        return Word(*self.fields)

    def __getitem__(self, name: str) -> Word:
        """The layout of a field that has one: its slices are those of the field. Raises ``KeyError``."""
        for field in self.fields:
            if field.name == name and field.parts is not None:
                return field.parts
        raise KeyError(name)

    @property
    def declared(self) -> tuple[str, ...]:
        """The declarations of its fields, as the P4 header has them."""
        types = max(len(field.p4_type) for field in self.fields)
        lines = [f"{field.p4_type:{types}} {field.name};" for field in self.fields]
        column = (max(map(len, lines)) // 4 + 1) * 4
        return tuple(
            f"{line:{column}}// {field.about}" if field.noted else line
            for line, field in zip(lines, self.fields, strict=True)
        )

    @property
    def table(self) -> str:
        """All fields as a table in Markdown: their widths, and the bits of their parts."""
        rows = []
        for field in self.fields:
            name = field.name if self.count is None else f"{field.name}_*"
            rows.append(f"| `{name}` | {field.bits} | {field.about} |")
            if field.parts is not None:
                rows += [f"| `{name}.{part.name}` | {bits} | {part.about} |" for part, bits in field.parts.places]
        return "\n".join(["| field | bits | meaning |", "|---|---|---|", *rows]) + "\n"


class Stack:
    """Headers that follow each other in a frame: which of its bytes hold a field.

    >>> udp = Header("udp", "UDP", (HeaderField("src_port", 16, ""), HeaderField("dst_port", 16, "")))
    >>> stack = Stack(Header("tag", "a tag", (HeaderField("number", 8, ""),)), udp)
    >>> stack.bytes("udp.dst_port"), stack.at("tag.number"), stack.size
    (slice(3, 5, None), 0, 5)
    """

    def __init__(self, *headers: Header) -> None:
        self.headers = headers
        self.size = sum(header.size for header in headers)
        """In bytes."""

    def start(self, name: str) -> int:
        """The first byte of a header. Raises ``KeyError``."""
        return self._find(name)[0]

    def bytes(self, field: str) -> slice:
        """The bytes of a field, ``bth.psn``. Raises ``KeyError``, and ``ValueError`` for a field of no whole bytes."""
        end, high, low = self._place(field)
        if low % 8 or (high + 1) % 8:
            raise ValueError(f"the field {field} is no whole bytes")
        return slice(end - (high + 1) // 8, end - low // 8)

    def at(self, field: str) -> int:
        """The byte that holds a field. Raises ``KeyError``, and ``ValueError`` for a field in several bytes."""
        end, high, low = self._place(field)
        if high // 8 != low // 8:
            raise ValueError(f"the field {field} is in more than one byte")
        return end - 1 - low // 8

    def _find(self, name: str) -> tuple[int, Header]:
        at = 0
        for header in self.headers:
            if header.name == name:
                return at, header
            at += header.size
        raise KeyError(name)

    def _place(self, field: str) -> tuple[int, int, int]:
        """The byte after its header, and its highest and lowest bit in that."""
        name, _, part = field.partition(".")
        start, header = self._find(name)
        return start + header.size, *header.word.ends(part)
