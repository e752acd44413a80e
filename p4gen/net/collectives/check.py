"""Checks of collectives: results equal NumPy's, and no rank leaves a barrier too early."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from p4gen.host.collectives.arrays import Array, wrong_elements
from p4gen.host.collectives.commlib import Invocation
from p4gen.net.collectives.config import Call
from p4gen.net.collectives.values import expected
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.message import Collective

_NEVER = 1 << 62


def problems(
    name: str,
    spec: CollectiveSpec,
    calls: Sequence[Call],
    values: Sequence[Sequence[Array]],
    invocations: Sequence[Sequence[Invocation]],
) -> Iterator[str]:
    """Every error in the results of a group, as one line for each rank and call.

    ``values`` are by call, then by rank. ``invocations`` are by rank, then by call; calls that were never made are
    missing. ``name`` is the group's name, "" when there is only one group.
    """
    for number, call in enumerate(calls):
        made = [mine[number] if number < len(mine) else None for mine in invocations]
        wanted: list[Array | None] | None = None
        for rank, invocation in enumerate(made):
            at = f"{name}rank {rank}, {call.collective} {number}"
            if invocation is None or not invocation.done:
                continue
            if invocation.error is not None:
                yield f"{at}: {invocation.error}"
                continue
            if wanted is None:
                wanted = expected(call, spec, values[number])
            wrong = difference(invocation.result(), wanted[rank])
            if wrong:
                yield f"{at}: {wrong}"
        if call.collective is Collective.BARRIER:
            yield from _released_too_soon(name, number, made)


def difference(got: Array | None, wanted: Array | None) -> str:
    """How a rank's result differs from the expected one; "" when it does not."""
    if got is None or wanted is None:
        return (
            ""
            if got is wanted
            else f"{'no' if got is None else 'a'} result, where NumPy has {'none' if got is not None else 'one'}"
        )
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{got.dtype} of shape {got.shape}, not {wanted.dtype} of shape {wanted.shape}"
    wrong = wrong_elements(got, wanted)
    if not len(wrong):
        return ""
    i = int(wrong[0])
    return f"element {i} is {got[i]}, not {wanted[i]}; {len(wrong)} are wrong"


def _released_too_soon(name: str, number: int, made: Sequence[Invocation | None]) -> Iterator[str]:
    """Ranks that left a barrier before all had reached it, a line each."""
    begun = max(_NEVER if i is None or i.started is None else i.started for i in made)
    for rank, invocation in enumerate(made):
        if invocation is None or invocation.finished is None or invocation.error is not None:
            continue
        if invocation.finished < begun:
            yield f"{name}rank {rank} left barrier {number} before all had reached it"
