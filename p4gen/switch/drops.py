"""Drop counters by name: packets that a program dropped, by module and reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from p4gen.model.entries import CounterValue
from p4gen.program import compose
from p4gen.vocabulary import ProgramSpec


def losses(spec: ProgramSpec, counters: Callable[[str], Sequence[CounterValue]]) -> Counter[str]:
    """Number of packets lost in a switch that runs a program of ``spec``, by ``module.reason``; only those above 0.

    ``counters`` returns all cells of an indexed counter. Contributions that stay in their slots are not losses.
    """
    return _counted(_reasons(spec, losses=True), counters)


def dropped(spec: ProgramSpec, counters: Callable[[str], Sequence[CounterValue]]) -> Counter[str]:
    """Number of packets dropped but not lost, by ``module.reason``; otherwise as ``losses``."""
    return _counted(_reasons(spec, losses=False), counters)


def _counted(
    names: dict[str, tuple[tuple[int, str], ...]], counters: Callable[[str], Sequence[CounterValue]]
) -> Counter[str]:
    found: Counter[str] = Counter()
    for gress, reasons in names.items():
        cells = counters(f"Inc{gress.capitalize()}.drops")
        for index, name in reasons:
            if cells[index].packets:
                found[name] += cells[index].packets
    return found


@lru_cache(maxsize=64)
def _reasons(spec: ProgramSpec, *, losses: bool) -> dict[str, tuple[tuple[int, str], ...]]:
    """By gress: the cell and the name of each reason, or of those of losses alone."""
    drops = compose(spec).drops
    return {
        gress: tuple(
            (drop.index, f"{drop.module.name}.{drop.drop.reason}")
            for drop in drops
            if drop.module.gress == gress and (drop.drop.loss or not losses)
        )
        for gress in ("ingress", "egress")
    }
