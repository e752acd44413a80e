"""Numbers for values, so that a state of the whole system is a short row of numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Interned(Generic[T]):
    """Values in the order in which they were first seen; equal values have the same number."""

    def __init__(self, *first: T) -> None:
        self._numbers: dict[T, int] = {}
        self._values: list[T] = []
        for value in first:
            self.number(value)

    def number(self, value: T) -> int:
        """The number of a value; a new value gets a new number."""
        known = self._numbers.get(value)
        if known is None:
            known = self._numbers[value] = len(self._values)
            self._values.append(value)
        return known

    def __getitem__(self, number: int) -> T:
        return self._values[number]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[T]:
        return iter(self._values)
