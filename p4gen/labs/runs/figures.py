"""What a paper's testbed measured: the figures that ``--measure`` has beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from p4gen.errors import InputError
from p4gen.families import family_of
from p4gen.labs.calls import CallOrder, members_of, size_text
from p4gen.labs.job import Wanted
from p4gen.net.study import Studies
from p4gen.vocabulary import ProgramSpec

_MOST: Final = 64 << 20
"""Bytes of the calls of a size together, if that is more than one call."""
LARGEST: Final = 256 << 20
"""Bytes of a call: hosts hold several arrays for each, and all hosts are on one machine."""


@dataclass(frozen=True)
class Figure:
    """A collective and a size, what the testbed measured, and how it is measured here."""

    collective: str
    size: int
    testbed: float
    """Mb/s; of a Barrier, whose size is 0, calls a second."""
    call: CallOrder
    """Of the size, or of a part of it."""
    calls: int
    """How many of the size are made."""

    @property
    def parts(self) -> int:
        """How many of ``call``, each after the other, are one of the size."""
        return parts_of(self.size)


def calls_of(size: int, repeat: int) -> int:
    """How many calls of a size are made, if ``repeat`` of a small one are."""
    return max(1, min(repeat, _MOST // max(size, 1)))


def parts_of(size: int) -> int:
    """How many calls, each after the other, are one of the size."""
    return -(-size // LARGEST) or 1


def figures_of(spec: ProgramSpec, wanted: Wanted, ranks: int) -> tuple[str, Sequence[Figure]]:
    """The testbed's name, and its figures up to the wanted size. Of all collectives that the program serves, unless one
    is wanted.

    Raises ``InputError`` if there is none, or a call cannot be made.
    """
    name, figures = family_of(spec).facet(Studies).lab(spec)
    served = [asked[0] for asked in members_of(spec).samples(spec, ranks, 0)]
    found: list[Figure] = []
    for collective, by_size in figures.items():
        if collective in ([wanted.collective] if wanted.collective else served):
            if min(by_size) > wanted.size:
                raise InputError(f"--size: {name} has measured from {size_text(min(by_size))} on")
            for size in (each for each in by_size if each <= wanted.size):
                part = replace(wanted, collective=str(collective), size=min(size, LARGEST))
                call, calls = CallOrder.wanted(spec, part, ranks), calls_of(size, wanted.repeat)
                found.append(Figure(part.collective, size, by_size[size], call, calls))
    if not found:
        raise InputError(f"--measure: {name} has no figures of {wanted.collective}")
    return name, found
