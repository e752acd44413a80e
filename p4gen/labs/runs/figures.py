"""What a paper's testbed measured: the figures that ``--measure`` has beside it."""

from __future__ import annotations

from p4gen.errors import InputError
from p4gen.families import family_of
from p4gen.labs.calls import members_of, size_text
from p4gen.labs.job import Wanted
from p4gen.net.study import Studies
from p4gen.vocabulary import ProgramSpec


def figures_of(spec: ProgramSpec, wanted: Wanted, ranks: int) -> tuple[str, dict[tuple[str, int], float]]:
    """The testbed's name, and throughputs there in Mb/s by collective and size in bytes, up to the wanted size; of a
    Barrier calls a second at the size 0. Of all collectives that the program serves, unless one is wanted.

    Raises ``InputError`` if there is none.
    """
    name, figures = family_of(spec).facet(Studies).lab(spec)
    served = [asked[0] for asked in members_of(spec).samples(spec, ranks, 0)]
    found: dict[tuple[str, int], float] = {}
    for collective, by_size in figures.items():
        if collective in ([wanted.collective] if wanted.collective else served):
            if min(by_size) > wanted.size:
                raise InputError(f"--size: {name} has measured from {size_text(min(by_size))} on")
            found |= {(str(collective), size): figure for size, figure in by_size.items() if size <= wanted.size}
    if not found:
        raise InputError(f"--measure: {name} has no figures of {wanted.collective}")
    return name, found
