"""Folds: how a switch reduces the lanes that it has stored, one of each source, in the order of their ranks.

A program that adds contributions as they arrive has one lane at a time; ``Reduction`` describes that. A program that
stores them first has all lanes of a slot at once: it moves the first lane into accumulators, combines every other lane
with them, and sends the result at the end. Every number format does it in these steps:

- integers, and numbers of binary32: the accumulator is a lane (``held``), as in a program that does not store;
- formats with several elements in a lane: an accumulator for each of them. Sums are in the wider format
  (``NumberFormat.wide``) and are rounded at the end, once; minima and maxima are of the elements themselves.

A single lane leaves as it is, bit for bit, so a Broadcast does not change a NaN.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from p4gen.vocabulary.formats import LANE, DType
from p4gen.vocabulary.reductions import Numbers

_PARTS = {1: ("held",), 2: ("high", "low")}
"""The accumulators of a lane's elements, by the number of elements."""


@dataclass(frozen=True)
class Fold:
    """How lanes of one op and dtype are folded, as P4 text. Variables are ``lane_t``, but ``full`` is a bit."""

    numbers: Numbers
    saturating: bool = False
    """Whether sums of integers saturate."""
    counts: bool = False
    """Whether ``full`` becomes 1 where a result leaves the range of the dtype."""

    @property
    def functions(self) -> tuple[str, ...]:
        """The P4 functions that it calls, of ``shared/floats.p4.j2`` and ``shared/halves.p4.j2``."""
        name, form = self.numbers.op.reduction.function, self._dtype.number_format
        if form.integer or name is None:
            return ()
        own, adding = self._dtype, self._adding
        called = [adding.function(name)]
        if self._wide:
            called += [own.function("unpack"), own.function("pack")]
        if self._counts_floats:
            leaving = [adding] if form.leaves_wide or not self._wide else []
            called += [one.function("overflowed") for one in (*leaving, *([own] if self._wide else []))]
        return tuple(called)

    @property
    def accumulators(self) -> tuple[tuple[str, str], ...]:
        """Type and name of each accumulator."""
        form = self._dtype.number_format
        kind = LANE if form.per_lane == 1 or self._wide else f"bit<{form.bits}>"
        return tuple((kind, name) for name in _PARTS[form.per_lane])

    def take(self, lane: str) -> tuple[str, ...]:
        """Statements that declare the elements of the variable ``lane`` in the format of the accumulators, if that is
        not the lane's format. They need a block of their own, together with those of ``first`` and ``other``."""
        if not self._wide:
            return ()
        unpack = self._dtype.function("unpack")
        return tuple(f"{LANE} {name}_{lane} = {unpack}({part});" for name, part in self._parts(lane))

    def first(self, lane: str) -> tuple[str, ...]:
        """Statements that set the accumulators to the elements of the variable ``lane``."""
        return tuple(f"{name} = {element};" for name, element in self._elements(lane))

    def other(self, lane: str) -> tuple[str, ...]:
        """Statements that combine the variable ``lane`` with the accumulators."""
        if self._dtype.number_format.per_lane == 1:
            return self._other_lane(lane)
        name, own, kind = str(self.numbers.op.reduction.function), self._dtype, self._adding
        found: list[str] = []
        for held, element in self._elements(lane):
            combined = f"{kind.function(name)}({held}, {element})"
            if not self._counts_floats or not own.number_format.leaves_wide:
                found.append(f"{held} = {combined};")
                continue
            overflowed = f"{kind.function('overflowed')}({held}, {element}, {held}_sum)"
            found += [
                f"{LANE} {held}_sum = {combined};",
                f"if ({overflowed}) {{ full = 1; }}",
                f"{held} = {held}_sum;",
            ]
        return tuple(found)

    def last(self, lane: str) -> tuple[str, ...]:
        """Statements that set the variable ``lane`` to the result of the accumulators."""
        names, own = [name for _, name in self.accumulators], self._dtype
        pack = own.function("pack")
        if not self._wide:
            return (f"{lane} = {' ++ '.join(names)};",)
        counted = [f"{own.function('overflowed')}({name})" for name in names]
        return (
            *([f"if ({' || '.join(counted)}) {{ full = 1; }}"] if self._counts_floats else []),
            f"{lane} = {' ++ '.join(f'{pack}({name})' for name in names)};",
        )

    def lines(
        self, lane: str, edges: Sequence[int], *, stored: str = "stored_%d", sources: str = "sources"
    ) -> list[str]:
        """The whole fold: ``lane`` becomes the reduction of the stored lanes of all sources, in the order of ``edges``.

        ``stored`` is the name of an edge's stored lane, with ``%d`` for the edge, ``sources`` a bitmap with bit e for
        edge e. ``lane`` is 0 if there are no sources.
        """
        lines = [f"{kind} {name} = 0;" for kind, name in self.accumulators]
        for at, edge in enumerate(edges):
            name, before = stored.replace("%d", str(edge)), edges[:at]
            lines += [f"if ({sources}[{edge}:{edge}] == 1) {{", *_indented(self.take(name), 1)]
            if before:
                none = " && ".join(f"{sources}[{high}:{low}] == 0" for high, low in _ranges(before))
                lines += [f"    if ({none}) {{", *_indented(self.first(name), 2)]
                lines += ["    } else {", *_indented(self.other(name), 2), "    }"]
            else:
                lines += _indented(self.first(name), 1)
            lines.append("}")
        return [*lines, *self.last(lane)]

    @property
    def _dtype(self) -> DType:
        return self.numbers.dtype

    @property
    def _wide(self) -> bool:
        """Whether accumulators are of a wider format than elements."""
        return self._dtype.number_format.wide is not None and not self.numbers.op.reduction.selects

    @property
    def _adding(self) -> DType:
        """The dtype of accumulators."""
        wide = self._dtype.number_format.wide
        return DType(wide) if self._wide and wide is not None else self._dtype

    @property
    def _counts_floats(self) -> bool:
        return self.counts and self.numbers.op.overflows and not self._dtype.number_format.integer

    def _parts(self, lane: str) -> Iterator[tuple[str, str]]:
        """Each accumulator and the part of a lane that belongs to it."""
        form = self._dtype.number_format
        for at, (_, name) in enumerate(self.accumulators):
            high = form.lane_bits - at * form.bits - 1
            yield name, lane if form.per_lane == 1 else f"{lane}[{high}:{high - form.bits + 1}]"

    def _elements(self, lane: str) -> Iterator[tuple[str, str]]:
        """Each accumulator and its element of a lane, after ``take``."""
        return ((name, f"{name}_{lane}" if self._wide else part) for name, part in self._parts(lane))

    def _other_lane(self, lane: str) -> tuple[str, ...]:
        reduction, dtype = self.numbers.op.reduction, self._dtype
        combined = _of(lane, reduction.combined(dtype))
        if self.saturating and reduction.saturating is not None and dtype.number_format.integer:
            saturated = _of(lane, reduction.saturating(dtype))
            if not self.counts:
                return (f"held = {saturated};",)
            return (
                f"{LANE} wrapped = {combined};",
                f"held = {saturated};",
                "if (held != wrapped) { full = 1; }",
            )
        if self._counts_floats:
            overflowed = f"{dtype.function('overflowed')}(held, {lane}, result)"
            return (f"{LANE} result = {combined};", f"if ({overflowed}) {{ full = 1; }}", "held = result;")
        return (f"held = {combined};",)


def _of(lane: str, text: str) -> str:
    """A reduction's expression with the name of a lane in the place of ``element``."""
    return re.sub(r"\belement\b", lane, text)


def _indented(lines: Sequence[str], levels: int) -> list[str]:
    return [levels * "    " + line for line in lines]


def _ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The last and the first of each series of consecutive numbers."""
    start = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
            yield numbers[at - 1], numbers[start]
            start = at
