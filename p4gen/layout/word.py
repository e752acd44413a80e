"""Layouts of words: which bits of a register's word, or of a header's field, mean what.

A layout is declared once. Templates take P4 slices from it (``word[{{ words.slots.psn }}]``), Python code decodes the
words that a switch holds with it, and the manifest and docs/state.md list it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Field:
    """A named range of bits of a word, with its meaning."""

    name: str
    bits: int
    meaning: str
    """What it is, in a few words: comments of generated programs have it. A field that only groups others has none."""
    parts: Word | None = None
    """Its own layout, where it has one; slices find the fields of that, too."""

    def __post_init__(self) -> None:
        if self.bits < 1:
            raise ValueError(f"the field {self.name} has {self.bits} bits")
        if self.parts is not None and self.parts.bits != self.bits:
            raise ValueError(f"the field {self.name} has {self.bits} bits, its parts {self.parts.bits}")

    @property
    def about(self) -> str:
        """The meaning of the field, or the meanings of its parts."""
        return self.meaning or ", ".join(part.about for part in (self.parts.fields if self.parts else ()))


@dataclass(frozen=True)
class Word:
    """A word: its fields, the most significant one first.

    >>> word = Word(Field("epoch", 8, "epoch"), Field("psn", 24, "PSN"))
    >>> word.slice("epoch"), word["psn"], word.bits
    ('31:24', '23:0', 32)
    >>> print(word.note)
    {epoch 31..24, PSN 23..0}
    >>> word.unpack(0x01000002)
    {'epoch': 1, 'psn': 2}
    """

    fields: tuple[Field, ...]

    def __init__(self, *fields: Field) -> None:
        object.__setattr__(self, "fields", fields)
        names = [name for name, _, _ in _places(self, 0)]
        twice = {name for name in names if names.count(name) > 1}
        taken = {name for name in names if hasattr(Word, name)}  # templates would not get the field's slice
        if not names or twice or taken:
            raise ValueError(
                f"a word has fields of different names, none of them {', '.join(twice | taken) or 'empty'}"
            )

    @cached_property
    def bits(self) -> int:
        """Width of the word: the sum of its fields' bits."""
        return sum(field.bits for field in self.fields)

    @cached_property
    def _ends(self) -> dict[str, tuple[int, int]]:
        return {name: (high, low) for name, high, low in _places(self, 0)}

    def ends(self, name: str) -> tuple[int, int]:
        """The highest and the lowest bit of a field. Raises ``KeyError``."""
        return self._ends[name]

    def slice(self, name: str) -> str:
        """P4's slice of a field: ``31:24``. Raises ``KeyError``."""
        return "{}:{}".format(*self._ends[name])

    def __getitem__(self, name: str) -> str:
        """The slice, as templates write it."""
        return self.slice(name)

    def joined(self, **expressions: str) -> str:
        """The P4 expression that puts a word together from one for each field; those of other names are left out, as
        not every program has all fields. Raises ``ValueError`` for a field without one.

        >>> Word(Field("epoch", 8, "epoch"), Field("psn", 24, "PSN")).joined(psn="bth.psn", epoch="8w1")
        '8w1 ++ bth.psn'
        """
        missing = [field.name for field in self.fields if field.name not in expressions]
        if missing:
            raise ValueError(f"nothing is given for {', '.join(missing)}")
        return " ++ ".join(expressions[field.name] for field in self.fields)

    @property
    def type(self) -> str:
        """P4 type of the word, ``bit<N>``."""
        return f"bit<{self.bits}>"

    def place(self, name: str) -> str:
        """A field as a comment has it: its meaning, and its bits; its parts, where it has no meaning of its own."""
        field = next(field for field in _fields(self) if field.name == name)
        if not field.meaning and field.parts is not None:
            return ", ".join(self.place(part.name) for part in field.parts.fields)
        high, low = self._ends[name]
        return f"{field.meaning} {high}" if high == low else f"{field.meaning} {high}..{low}"

    @property
    def places(self) -> tuple[tuple[Field, str], ...]:
        """All fields, those of parts too, and their slices."""
        return tuple((field, self.slice(field.name)) for field in _fields(self))

    @property
    def note(self) -> str:
        """All fields as a comment has them."""
        return "{" + ", ".join(self.place(field.name) for field in self.fields) + "}"

    @property
    def table(self) -> str:
        """All fields, those of parts too, as a table in Markdown."""
        rows = [f"| `{field.name}` | {bits} | {field.about} |" for field, bits in self.places]
        return "\n".join(["| field | bits | meaning |", "|---|---|---|", *rows]) + "\n"

    def unpack(self, value: int) -> dict[str, int]:
        """The values of the fields. Raises ``ValueError`` for a number that is no such word."""
        if value < 0 or value >> self.bits:
            raise ValueError(f"{value:#x} does not fit {self.bits} bits")
        return {f.name: value >> self._ends[f.name][1] & (1 << f.bits) - 1 for f in self.fields}

    def pack(self, **values: int) -> int:
        """The word with these values, one for each field. Raises ``ValueError`` for other names, and for values that
        do not fit."""
        if values.keys() != {field.name for field in self.fields}:
            raise ValueError(
                f"the fields are {', '.join(field.name for field in self.fields)}, not {', '.join(values)}"
            )
        word = 0
        for field in self.fields:
            value = values[field.name]
            if value < 0 or value >> field.bits:
                raise ValueError(f"{field.name} = {value} does not fit {field.bits} bits")
            word |= value << self._ends[field.name][1]
        return word

    def replaced(self, value: int, **values: int) -> int:
        """The word ``value`` with other values in some fields. Raises ``ValueError`` as ``pack`` and ``unpack`` do."""
        return self.pack(**(self.unpack(value) | values))

    def mask(self, *names: str) -> int:
        """The word with ones in some fields, parts too, and zeros elsewhere. Raises ``KeyError``.

        >>> hex(Word(Field("epoch", 8, "epoch"), Field("psn", 24, "PSN")).mask("psn"))
        '0xffffff'
        """
        ends = [self._ends[name] for name in names]
        return sum({(1 << high + 1) - (1 << low) for high, low in ends})

    def describe(self, value: int) -> str:
        """The values of the fields in a line: ``epoch=1 psn=0x2a``."""
        return " ".join(f"{name}={v:#x}" if v > 9 else f"{name}={v}" for name, v in self.unpack(value).items())


def _fields(word: Word) -> Iterator[Field]:
    """All fields, those of parts too."""
    for field in word.fields:
        yield field
        if field.parts is not None:
            yield from _fields(field.parts)


def _places(word: Word, at: int) -> Iterator[tuple[str, int, int]]:
    """Name, highest and lowest bit of each field, where the word's lowest bit is ``at``."""
    end = at + sum(field.bits for field in word.fields)
    for field in word.fields:
        end -= field.bits
        yield field.name, end + field.bits - 1, end
        if field.parts is not None:
            yield from _places(field.parts, end)
