"""Sets of numbers that are taken, and the error when too few are left."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain

from p4gen.errors import Diagnostic, InputError


class Spans:
    """A set of integers as disjoint spans [first, end), in order."""

    def __init__(self, spans: Iterable[tuple[int, int]] = ()) -> None:
        self._first: list[int] = []
        self._end: list[int] = []
        for first, end in spans:
            self.add(first, end)

    def add(self, first: int, end: int) -> None:
        """Add the numbers from ``first`` to ``end`` - 1."""
        low = bisect_left(self._end, first)
        high = bisect_right(self._first, end)
        if low < high:
            first, end = min(first, self._first[low]), max(end, self._end[high - 1])
        self._first[low:high] = [first]
        self._end[low:high] = [end]

    def meets(self, first: int, end: int) -> bool:
        """Whether any of [first, end) is in it."""
        at = bisect_right(self._end, first)
        return at < len(self._first) and self._first[at] < end

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._first, self._end, strict=True)

    def __len__(self) -> int:
        return sum(self._end) - sum(self._first)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spans) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __str__(self) -> str:
        return ",".join(f"{first}-{end}" for first, end in self)

    @classmethod
    def parse(cls, text: str) -> Spans:
        """Parses the result of ``str``."""
        pairs = (part.split("-") for part in text.split(",") if part)
        return cls((int(first), int(end)) for first, end in pairs)


def gaps(first: int, end: int, *taken: Spans) -> Iterator[tuple[int, int]]:
    """The spans of [first, end) that have nothing in common with any of ``taken``."""
    for low, high in sorted(chain(*taken)):
        if low > first:
            yield first, min(low, end)
        first = max(first, high)
        if first >= end:
            return
    if first < end:
        yield first, end


class NoRoomError(InputError):
    """Switches or hosts lack resources. ``epochs``: switches that lack only epochs; loading their programs again would
    free them."""

    def __init__(self, *reasons: Diagnostic | str, epochs: Iterable[str] = ()) -> None:
        super().__init__(*reasons)
        self.epochs = frozenset(epochs)
