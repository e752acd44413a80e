"""AllReduce between hosts by the algorithms of NCCL and MPI: what in-network collectives are measured against.

- The **double binary tree** of NCCL (Sanders, Speck, Träff: Two-tree algorithms for full bandwidth broadcast, reduction
  and scan, Parallel Computing 35, 2009): each half of the array is reduced to the root of a tree and sent down again,
  in chunks. The ranks between root and leaves of one tree are leaves of the other one.
- **Recursive doubling**, MPI's AllReduce of small arrays: ranks r and r xor 2^i exchange all that they have, for all i.
- **Recursive halving and doubling**, MPI's of large arrays (Thakur, Rabenseifner, Gropp: Optimization of collective
  communication operations in MPICH, IJHPCA 19, 2005): a ReduceScatter in which ranks exchange halves of halves, and an
  AllGather that goes the same way back.

If the number of ranks is no power of 2, doubling and halving leave out as many of the last ranks as are too many. Each
sends its array to one of the others first, and gets the result from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

import numpy as np
from typing_extensions import override

from p4gen.errors import InputError
from p4gen.host.collectives.arrays import Array
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import Connection
from p4gen.host.collectives.ring import CHUNK, Ring, RingConfig, chunks
from p4gen.host.collectives.steps import BEGIN, Arrival, Plan, Send, Span, Step, StepCollectives
from p4gen.host.transport.nic import VerbsNic
from p4gen.vocabulary import DType, Op, Overflow
from p4gen.vocabulary.message import Collective


class Algorithm(StrEnum):
    """How hosts make an AllReduce of their own."""

    RING = "ring"
    TREE = "tree"
    DOUBLING = "doubling"
    HALVING = "halving"


@dataclass(frozen=True, order=True)
class Link:
    """A connection that an algorithm needs, of the ranks ``a`` and ``b``. Two ranks may have several, in different
    channels."""

    channel: int
    a: int
    b: int

    def to(self, rank: int) -> int:
        """The rank at the other end."""
        return self.a + self.b - rank


def links(algorithm: Algorithm, size: int) -> tuple[Link, ...]:
    """The connections of a group of ``size`` ranks."""
    if algorithm is Algorithm.RING:
        return tuple(Link(i, i, (i + 1) % size) for i in range(size)) + tuple(Link(size, 0, i) for i in range(1, size))
    if algorithm is Algorithm.TREE:
        nodes = ((tree, rank, _parent(tree, rank, size)) for tree in range(_TREES) for rank in range(size))
        return tuple(Link(tree, rank, parent) for tree, rank, parent in nodes if parent is not None)
    core = _core(size)
    exchanged = (Link(0, rank, rank ^ distance) for distance in _distances(core) for rank in range(core))
    return tuple(each for each in exchanged if each.a < each.b) + tuple(Link(0, n - core, n) for n in range(core, size))


def member(
    algorithm: Algorithm,
    nic: VerbsNic,
    rank: int,
    size: int,
    ends: Mapping[Link, Connection],
    *,
    op: Op = Op.SUM,
    overflow: Overflow | None = None,
    chunk: int = CHUNK,
) -> StepCollectives:
    """A rank of a group. ``ends`` are its ends of those of the ``links`` that are its own; ``chunk`` is in bytes. The
    ring makes all collectives, the others AllReduce and Barrier."""
    by_peer = {(link.channel, link.to(rank)): index for index, link in enumerate(ends)}
    plan: Planner
    match algorithm:
        case Algorithm.RING:
            before = (rank - 1) % size
            left, right = ends[Link(before, before, rank)], ends[Link(rank, rank, (rank + 1) % size)]
            star = {link.to(rank): end for link, end in ends.items() if link.channel == size}
            return Ring(nic, RingConfig(rank, size, left, right, star, op, overflow, chunk))
        case Algorithm.TREE:
            plan = partial(_tree, rank, size, by_peer, chunk // DType.INT32.number_format.bytes)
        case Algorithm.DOUBLING:
            plan = partial(_doubling, rank, size, by_peer)
        case Algorithm.HALVING:
            plan = partial(_halving, rank, size, by_peer)
    return _AllReduce(nic, algorithm, plan, list(ends.values()), op, overflow)


_TREES: Final = 2
Pairs = Mapping[tuple[int, int], int]
"""By channel and rank at the other end: the index of a queue pair."""
Planner = Callable[[int], Plan]
"""Makes a rank's plan of an AllReduce of a number of elements."""


class _AllReduce(StepCollectives):
    """A rank of a group that only makes AllReduces, and Barriers, which are AllReduces of nothing."""

    def __init__(
        self,
        nic: VerbsNic,
        name: Algorithm,
        plan: Planner,
        ends: Sequence[Connection],
        op: Op,
        overflow: Overflow | None,
    ) -> None:
        super().__init__(nic, ends, op, overflow)
        self._name, self._plan = name, plan

    @override
    def all_reduce(self, values: Array, op: Op | None = None) -> Invocation:
        return self._start(Collective.ALLREDUCE, values, self._op(values, op), self._plan(values.size))

    @override
    def barrier(self) -> Invocation:
        return self._start(Collective.BARRIER, np.empty(0, np.int32), Op.SUM, self._plan(0))

    def _refused(self, collective: Collective) -> InputError:
        return InputError(f"{self._name} makes AllReduce and Barrier, no {collective}; the ring makes all collectives")

    @override
    def reduce(self, values: Array, root: int, op: Op | None = None) -> Invocation:
        raise self._refused(Collective.REDUCE)

    @override
    def broadcast(self, values: Array, root: int) -> Invocation:
        raise self._refused(Collective.BROADCAST)

    @override
    def reduce_scatter(self, values: Array, op: Op | None = None) -> Invocation:
        raise self._refused(Collective.REDUCE_SCATTER)

    @override
    def all_gather(self, values: Array) -> Invocation:
        raise self._refused(Collective.ALLGATHER)


# --- the double binary tree ---


def _parent(tree: int, rank: int, size: int) -> int | None:
    """The parent of a rank in one of the two trees; None at its root.

    In the first tree, ranks that are odd multiples of 2^i are at height i, below rank 0. The second one is the first
    one with the ranks in reverse order, or, if there is an odd number of them, each moved on by one.
    """
    if tree:
        there = _parent(0, _moved(rank, size), size)
        return None if there is None else _moved_back(there, size)
    if not rank:
        return None
    height = rank & -rank
    up = rank - height | height << 1
    return up if up < size else rank - height


def _moved(rank: int, size: int) -> int:
    return (rank - 1) % size if size % 2 else size - 1 - rank


def _moved_back(rank: int, size: int) -> int:
    return (rank + 1) % size if size % 2 else size - 1 - rank


def _tree(rank: int, size: int, pairs: Pairs, chunk: int, elements: int) -> Plan:
    half = elements // _TREES
    begin: list[Send] = []
    ups: list[Step] = []
    downs: list[Step] = []
    for tree, span in enumerate(((0, half), (half, elements))):
        parent = _parent(tree, rank, size)
        children = [pairs[tree, peer] for peer in range(size) if _parent(tree, peer, size) == rank]
        for part in chunks(span, chunk):
            above = [(pairs[tree, parent], part)] if parent is not None else []
            below = [(child, part) for child in children]
            if children:
                ups.append(Step(tuple(Arrival(child, part, part) for child in children), tuple(above or below)))
            else:
                begin += above
            if parent is not None:
                downs.append(Step((Arrival(pairs[tree, parent], part),), tuple(below)))
    return Plan((*ups, *downs), tuple(begin), (0, elements))


# --- recursive doubling and halving ---


def _core(size: int) -> int:
    """The largest power of 2 that is not greater."""
    return 1 << size.bit_length() - 1


def _distances(core: int) -> list[int]:
    return [1 << i for i in range(core.bit_length() - 1)]


def _left_out(rank: int, core: int, pairs: Pairs, whole: Span) -> Plan:
    """The plan of a rank that is one too many for a power of 2."""
    pair = pairs[0, rank - core]
    return Plan((Step((Arrival(pair, whole),)),), ((pair, whole),), whole)


class _Chain:
    """Steps one after the other, of which each sends what follows from the one before."""

    def __init__(self, first: Step | None) -> None:
        self.steps = [first] if first is not None else []
        self.begin: tuple[Send, ...] = ()

    def send(self, *sends: Send) -> None:
        """Send when the last step has ended."""
        if self.steps:
            last = self.steps[-1]
            self.steps[-1] = Step(last.arrivals, (*last.sends, *sends), last.after)
        else:
            self.begin += sends

    def receive(self, arrival: Arrival) -> None:
        """A step that follows the last one."""
        self.steps.append(Step((arrival,), (), len(self.steps) - 1 if self.steps else BEGIN))

    def plan(self, result: Span) -> Plan:
        """The whole."""
        return Plan(tuple(self.steps), self.begin, result)


def _chain(rank: int, size: int, pairs: Pairs, whole: Span) -> _Chain:
    """The begin of a rank that is not left out, with the rank that it stands for."""
    there = pairs.get((0, rank + _core(size)))
    return _Chain(None if there is None else Step((Arrival(there, whole, whole),)))


def _doubling(rank: int, size: int, pairs: Pairs, elements: int) -> Plan:
    core, mine = _core(size), (0, elements)
    if rank >= core:
        return _left_out(rank, core, pairs, mine)
    chain, room = _chain(rank, size, pairs, mine), elements
    for distance in _distances(core):
        # What has been sent stays as it is until it is acknowledged: each sum has a place of its own.
        pair, place = pairs[0, rank ^ distance], (room, room + elements)
        chain.send((pair, mine))
        chain.receive(Arrival(pair, place, mine))
        mine, room = place, room + elements
    return _answered(chain, rank, core, pairs, mine)


def _halving(rank: int, size: int, pairs: Pairs, elements: int) -> Plan:
    core, mine = _core(size), (0, elements)
    if rank >= core:
        return _left_out(rank, core, pairs, mine)
    chain = _chain(rank, size, pairs, mine)
    gathered: list[tuple[int, Span, Span]] = []
    for distance in reversed(_distances(core)):
        pair, middle = pairs[0, rank ^ distance], sum(mine) // 2
        halves = (mine[0], middle), (middle, mine[1])
        kept, given = halves[::-1] if rank & distance else halves
        chain.send((pair, given))
        chain.receive(Arrival(pair, kept, kept))
        gathered.append((pair, kept, given))
        mine = kept
    for pair, kept, given in reversed(gathered):
        chain.send((pair, kept))
        chain.receive(Arrival(pair, given))
    return _answered(chain, rank, core, pairs, (0, elements))


def _answered(chain: _Chain, rank: int, core: int, pairs: Pairs, result: Span) -> Plan:
    """The whole, with the result for the rank that is left out."""
    if (0, rank + core) in pairs:
        chain.send((pairs[0, rank + core], result))
    return chain.plan(result)
