"""What a paper's testbed measured: the figures that ``--measure`` has beside it."""

from __future__ import annotations

from p4gen.errors import InputError
from p4gen.families import family_of
from p4gen.labs.calls import size_text
from p4gen.net.study import Studies
from p4gen.vocabulary import ProgramSpec


def figures_of(spec: ProgramSpec, largest: int) -> tuple[str, dict[int, float]]:
    """The testbed's name, and AllReduce's throughput there in Mb/s, by sizes up to the largest, in bytes.

    Raises ``InputError`` if there is no size.
    """
    name, figures = family_of(spec).facet(Studies).lab(spec)
    found = {size: figure for size, figure in figures.items() if size <= largest}
    if not found:
        raise InputError(f"--size: {name} has measured from {size_text(min(figures))} on")
    return name, found
