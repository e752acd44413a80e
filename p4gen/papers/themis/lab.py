"""Themis in labs: hosts have connections to each other, which leaves spray, and run collectives over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from p4gen.errors import InputError
from p4gen.labs.arrays import COLLECTIVES, SIZED, ArrayPlan, samples
from p4gen.labs.calls import ALLTOALL, ROOT, ROOTED, Asked, LabMembers
from p4gen.labs.hosts.ranks import ConnectionEnds
from p4gen.labs.steps import connection_steps
from p4gen.net.collectives.config import MAX_DATA, Call
from p4gen.papers.themis.spec import ThemisSpec
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.message import Collective


def _plan(_spec: ThemisSpec, ranks: int, collective: str, size: int | None, options: Mapping[str, Any]) -> ArrayPlan:
    """Sums are of int32, as switches do not compute."""
    if ranks < 2:
        raise InputError(f"{collective}: at least two hosts are needed")
    numbers = CollectiveSpec()
    if collective != ALLTOALL:
        call = Call(Collective(collective), size or 0, options[ROOT])
        call.check(numbers, ranks)
        return ArrayPlan(numbers, call, ranks)
    unit = numbers.dtype.number_format.bytes * ranks
    if not size or size % unit:
        raise InputError(f"{ALLTOALL} of {size} bytes: it has to be a positive multiple of {unit}")
    if size * ranks > MAX_DATA:
        raise InputError(f"{ALLTOALL} of {size} bytes: all ranks' data together have 1 GiB at most")
    return ArrayPlan(numbers, Call(size=size), ranks, alltoall=True)


def _samples(_spec: ThemisSpec, ranks: int, size: int) -> list[Asked]:
    unit = CollectiveSpec().dtype.number_format.bytes * ranks
    whole = max(size // unit, 1) * unit
    return [(ALLTOALL, whole, {}), *samples(ranks, whole)]


FACET: LabMembers[ThemisSpec] = LabMembers(
    collectives=COLLECTIVES | {ALLTOALL: ROOTED},
    sized=SIZED | {ALLTOALL},
    example="run alltoall 256K; connections; spray off",
    plan=_plan,
    samples=_samples,
    ranks=ConnectionEnds,
    steps=connection_steps,
)
