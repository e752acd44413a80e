"""Collectives without help from switches: the ring that in-network collectives are compared with (EPIC §K).

Each rank has a connection to each neighbour, and one with rank 0 for barriers. AllReduce is a ReduceScatter and an
AllGather around the ring, K - 1 steps each. Reduce and Broadcast go from neighbour to neighbour in chunks. A Barrier is
what Table 30 calls ToRank0: all ranks notify rank 0, which then notifies all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from typing_extensions import override

from p4gen.host.collectives.arrays import Array, check_root, divide
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import Connection
from p4gen.host.collectives.steps import NOTHING, Arrival, Plan, Span, Step, StepCollectives
from p4gen.host.transport.nic import VerbsNic
from p4gen.vocabulary import Op, Overflow
from p4gen.vocabulary.message import Collective

CHUNK: Final = 128 << 10
"""Size of a chunk in bytes; it reproduces Tables 26 and 28."""


@dataclass(frozen=True)
class RingConfig:
    """One rank's place in a ring."""

    rank: int
    size: int
    left: Connection
    """The connection to rank - 1; there it is ``right``."""
    right: Connection
    star: Mapping[int, Connection]
    """Connections by rank: rank 0 has a connection to every other rank, the others have one to rank 0."""
    op: Op = Op.SUM
    """The operation of calls that do not name one."""
    overflow: Overflow | None = None
    chunk: int = CHUNK
    """In bytes."""

    def __post_init__(self) -> None:
        if self.size < 2:
            raise ValueError("a ring needs at least two ranks")
        if self.star.keys() != (set(range(1, self.size)) if self.rank == 0 else {0}):
            raise ValueError("rank 0 must have a connection to every other rank, and they must have one to rank 0")
        if self.chunk < 4 or self.chunk % 4:
            raise ValueError(f"chunks of {self.chunk} bytes: must be a positive multiple of 4")


_LEFT: Final = 0
_RIGHT: Final = 1
_STAR: Final = 2
"""Indices of queue pairs; the last is that of the first star connection."""


class Ring(StepCollectives):
    """One rank of a ring: collectives without switches that reduce, in steps between neighbours."""

    def __init__(self, nic: VerbsNic, config: RingConfig, on_done: Callable[[Invocation], None] | None = None) -> None:
        super().__init__(
            nic, (config.left, config.right, *config.star.values()), config.op, config.overflow, on_done
        )  # fmt: skip
        self.config = config

    @override
    def all_reduce(self, values: Array, op: Op | None = None) -> Invocation:
        """2 (K - 1) steps with a K-th of the array each."""
        op = self._op(values, op)
        parts = self._parts(values.size)
        steps = self.config.size - 1
        # First each part is reduced on its way around. The last to arrive is this rank's own; then the gather begins.
        arrivals = [_reduced(parts(-2 - step)) for step in range(steps)]
        arrivals += [Arrival(_LEFT, parts(-1 - step)) for step in range(steps)]
        plan = Plan(_forwarded(arrivals, len(arrivals) - 1), ((_RIGHT, parts(-1)),), (0, values.size))
        return self._start(Collective.ALLREDUCE, values, op, plan)

    @override
    def reduce_scatter(self, values: Array, op: Op | None = None) -> Invocation:
        """K - 1 steps around the ring."""
        op = self._op(values, op)
        shape = divide(values, self.config.size)[0].shape
        parts = self._parts(values.size)
        arrivals = [_reduced(parts(-2 - step)) for step in range(self.config.size - 1)]
        plan = Plan(_forwarded(arrivals, len(arrivals) - 1), ((_RIGHT, parts(-1)),), parts(0))
        return self._start(Collective.REDUCE_SCATTER, values, op, plan, shape)

    @override
    def all_gather(self, values: Array) -> Invocation:
        """K - 1 steps around the ring."""
        op = self._op(values, None)
        size = self.config.size
        whole = size * values.size
        parts = self._parts(whole)
        # The part that arrives in step s belongs to the rank s + 1 positions before this one.
        arrivals = [Arrival(_LEFT, parts(-1 - step)) for step in range(size - 1)]
        plan = Plan(_forwarded(arrivals, size - 2), ((_RIGHT, parts(0)),), (0, whole))
        return self._start(Collective.ALLGATHER, values, op, plan, (whole,), parts(0)[0])

    @override
    def reduce(self, values: Array, root: int, op: Op | None = None) -> Invocation:
        """Chunks go around the ring to the root, and each rank adds its own values."""
        op = self._op(values, op)
        check_root(root, self.config.size)
        chunks = self._chunks(values)
        is_root = self.config.rank == root
        first = (self.config.rank - 1) % self.config.size == root
        """The chunks start at the root's right neighbour and end at the root."""
        arrivals = [] if first else [_reduced(chunk) for chunk in chunks]
        begin = tuple((_RIGHT, chunk) for chunk in chunks if first)
        steps = _forwarded(arrivals, 0 if is_root else len(arrivals))
        return self._start(Collective.REDUCE, values, op, Plan(steps, begin, (0, values.size) if is_root else None))

    @override
    def broadcast(self, values: Array, root: int) -> Invocation:
        """Chunks go around the ring from the root."""
        op = self._op(values, None)
        check_root(root, self.config.size)
        chunks = self._chunks(values)
        is_root = self.config.rank == root
        is_last = (self.config.rank + 1) % self.config.size == root
        arrivals = [] if is_root else [Arrival(_LEFT, chunk) for chunk in chunks]
        begin = tuple((_RIGHT, chunk) for chunk in chunks if is_root)
        steps = _forwarded(arrivals, 0 if is_last else len(arrivals))
        return self._start(Collective.BROADCAST, values, op, Plan(steps, begin, (0, values.size)))

    @override
    def barrier(self) -> Invocation:
        """All ranks notify rank 0, which then notifies all (Table 30's ToRank0)."""
        star = range(_STAR, len(self.pairs))
        sends = tuple((pair, NOTHING) for pair in star)
        first = self.config.rank == 0
        steps = (Step(tuple(Arrival(pair, NOTHING) for pair in star), sends if first else ()),)
        plan = Plan(steps, () if first else sends)
        return self._start(Collective.BARRIER, np.empty(0), self.config.op, plan)

    def _parts(self, elements: int) -> Callable[[int], Span]:
        """A function from n to the part of the rank n places to the right of this one, of an array of ``elements``
        elements. If they do not divide evenly, the first parts have one element more."""
        ranks = self.config.size
        each, more = divmod(elements, ranks)

        def part(offset: int) -> Span:
            rank = (self.config.rank + offset) % ranks
            start = rank * each + min(rank, more)
            return start, start + each + (rank < more)

        return part

    def _chunks(self, values: Array) -> list[Span]:
        return chunks((0, values.size), self.config.chunk // values.itemsize)


def chunks(span: Span, step: int) -> list[Span]:
    """The range in ranges of at most ``step`` elements, at least one."""
    step, (first, last) = max(1, step), span
    return [(start, min(start + step, last)) for start in range(first, max(first + 1, last), step)]


def _reduced(span: Span) -> Arrival:
    """What comes from the left, and is reduced with what stands there."""
    return Arrival(_LEFT, span, span)


def _forwarded(arrivals: Sequence[Arrival], count: int) -> tuple[Step, ...]:
    """A step for each arrival; what the first ``count`` have become is sent to the right."""
    return tuple(Step((each,), ((_RIGHT, each.at),) if number < count else ()) for number, each in enumerate(arrivals))
