"""The elements of registers, and their memory in a pipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast
from weakref import WeakKeyDictionary

from p4gen.model.codec import decoder, flattener
from p4gen.model.tables import Installed
from p4gen.model.values import StructValue, copy_value, zero
from p4gen.p4 import types as t


class Word:
    """The values of a register: their initial value, and their form as numbers, the first field in the highest bits."""

    def __init__(self, of: t.Type, initial: Any = None) -> None:
        self.width = t.width_of(of)
        self.number = flattener(of, valid_only=False)
        self.value = decoder(of)
        self.fields = _places(of)
        self._initial = zero(of) if initial is None else _value(of, initial)

    def fresh(self) -> Any:
        """The initial value, to be kept."""
        return copy_value(self._initial)


def _places(of: t.Type) -> dict[str, tuple[int, int]]:
    """The lowest bit and the width of each field of a struct."""
    kind, found = t.strip(of), {}
    rest = t.width_of(of)
    for field in kind.fields if isinstance(kind, t.Fields) else ():
        rest -= t.width_of(field.type)
        found[field.name] = rest, t.width_of(field.type)
    return found


def _value(of: t.Type, given: Any) -> Any:
    """A constructor's argument as a value of type ``of``."""
    kind = t.strip(of)
    if isinstance(given, tuple):
        parts = [f.type for f in kind.fields] if isinstance(kind, t.Fields) else list(cast("t.Tuple", kind).elements)
        return StructValue([_value(part, each) for part, each in zip(parts, given, strict=True)])
    return given


@dataclass
class Array:
    """An indexed register in one pipe."""

    word: Word
    cells: list[Any]
    executions: int = 0
    """How often ``execute_log`` was called, which is the next index."""
    first: int = 0
    """The oldest element of a queue; a stack begins at 0."""
    held: int = 0
    """Elements of a queue or stack."""

    def reset(self) -> None:
        """Return all cells to their initial values."""
        self.cells[:] = [self.word.fresh() for _ in self.cells]
        self.executions = self.first = self.held = 0


class Entries:
    """A register with a cell for each entry of a table, in one pipe; None stands for no entry."""

    def __init__(self, word: Word) -> None:
        self.word = word
        self.alone = word.fresh()
        self.of: WeakKeyDictionary[Installed, Any] = WeakKeyDictionary()

    def reset(self) -> None:
        """Return all cells to their initial values."""
        self.alone = self.word.fresh()
        self.of.clear()

    def place(self, entry: Installed | None) -> tuple[Any, Any]:
        """The container of an entry's cell, and its key there."""
        if entry is None:
            return self.__dict__, "alone"
        if entry not in self.of:
            self.of[entry] = self.word.fresh()
        return self.of, entry
