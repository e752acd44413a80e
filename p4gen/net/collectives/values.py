"""Input of ranks to collectives, and the expected results by NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from p4gen.host.collectives.arrays import Array, array_type, reduced
from p4gen.host.collectives.collectives import Collectives
from p4gen.host.collectives.commlib import Communicator, Invocation
from p4gen.host.collectives.leased import LeasedCommunicator
from p4gen.host.collectives.steps import StepCollectives
from p4gen.net.collectives.config import MAX_DATA, Call
from p4gen.vocabulary import CollectiveSpec, DType, Op
from p4gen.vocabulary.message import Collective

_APART: Final = 1009
"""Elements between the beginnings of two ranks' data in one array: no multiple of a packet's."""

Member = Communicator | StepCollectives | LeasedCommunicator
"""One rank of a collective algorithm."""


def draw(
    call: Call, spec: CollectiveSpec, ranks: int, chance: np.random.Generator, *, overflowing: bool
) -> list[Array]:
    """Random input for each rank. Sums stay in range unless overflow is asked for: then all elements of one position
    have the same sign, so their order does not matter. Floating-point numbers to sum all have one sign, so that the
    order of additions, each of which is rounded, changes little. Arrays of more than ``MAX_DATA`` together are parts
    of one, each a little further on, unless overflow is asked for."""
    op, kind = call.kind(spec)
    form = kind.number_format
    elements = call.size // form.bytes // (ranks if call.collective is Collective.ALLGATHER else 1)
    if overflowing or elements * form.bytes * ranks <= MAX_DATA:
        return _drawn(op, kind, (ranks, elements), ranks, chance, overflowing=overflowing)
    (shared,) = _drawn(op, kind, (1, elements + _APART * ranks), ranks, chance, overflowing=False)
    return [shared[_APART * rank :][:elements] for rank in range(ranks)]


def _drawn(
    op: Op, kind: DType, shape: tuple[int, int], ranks: int, chance: np.random.Generator, *, overflowing: bool
) -> list[Array]:
    """Arrays of this number and size, whose elements any ``ranks`` may have."""
    form, (arrays, elements) = kind.number_format, shape
    if not form.integer:
        signs = 1 if op.overflows else chance.integers(0, 2, shape) * 2 - 1
        drawn = np.ldexp(chance.uniform(1, 2, shape), chance.integers(-8, 9, shape))
        return list((drawn * signs).astype(array_type(kind)))
    dtype, low, high = array_type(kind), int(form.least), int(form.greatest)
    if overflowing:
        signs = chance.integers(0, 2, elements) * 2 - 1 if low < 0 else 1
        return [(chance.integers(0, high // 2, elements) * signs).astype(dtype) for _ in range(arrays)]
    if op.overflows:
        low, high = -(-low // ranks), high // ranks
    return [chance.integers(low, high, elements, dtype, endpoint=True) for _ in range(arrays)]


def invoke(communicator: Collectives, call: Call, values: Array) -> Invocation:
    """Make the call for one rank."""
    return communicator.invoke(call.collective, values, call.root, call.op)


def expected(call: Call, spec: CollectiveSpec, values: Sequence[Array]) -> list[Array | None]:
    """Every rank's result by NumPy; None for ranks that get no result."""
    ranks = len(values)
    match call.collective:
        case Collective.BARRIER:
            return [None] * ranks
        case Collective.BROADCAST:
            return [values[call.root]] * ranks
        case Collective.ALLGATHER:
            return [np.concatenate(list(values))] * ranks
    total = reduced(call.kind(spec)[0], values, saturating=spec.saturating)
    match call.collective:
        case Collective.REDUCE:
            return [total if rank == call.root else None for rank in range(ranks)]
        case Collective.REDUCE_SCATTER:
            return list(np.split(total, ranks))
    return [total] * ranks
