"""The interface of whatever carries a rank's collectives: a tree, several trees, or a ring of the hosts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable

from p4gen.host.collectives.arrays import Array
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.transport.rc import VerbsPair
from p4gen.vocabulary import Op
from p4gen.vocabulary.message import Collective


def counted(pairs: Iterable[VerbsPair]) -> Counter[str]:
    """The counters of queue pairs together."""
    found: Counter[str] = Counter()
    for pair in list(pairs):
        found.update(pair.counts())
    return found


class Collectives(ABC):
    """One rank of a group, which calls collectives.

    All ranks of the group make the same calls in the same order. A call returns at once; calls run one after the other.
    It raises ``InputError``, before any packet is sent, when the group cannot make it. Without ``op``, the group's own
    is meant. Values must stay as they are until the call has ended.
    """

    @property
    @abstractmethod
    def pairs(self) -> list[VerbsPair]:
        """The queue pairs of this rank, in the order of the configuration; they carry all calls."""
        ...

    def counts(self) -> Counter[str]:
        """What it has counted: packets ``sent`` and ``resent``, ``timeouts``, ``naks``, ``cnps``."""
        return counted(self.pairs)

    @abstractmethod
    def all_reduce(self, values: Array, op: Op | None = None) -> Invocation:
        """Every rank gets the reduction of all ranks' values."""
        ...

    @abstractmethod
    def reduce(self, values: Array, root: int, op: Op | None = None) -> Invocation:
        """The root gets the reduction of all ranks' values."""
        ...

    @abstractmethod
    def broadcast(self, values: Array, root: int) -> Invocation:
        """Every rank gets the root's values; at other ranks ``values`` gives only the shape."""
        ...

    @abstractmethod
    def reduce_scatter(self, values: Array, op: Op | None = None) -> Invocation:
        """Rank r gets the reduction of all ranks' r-th parts."""
        ...

    @abstractmethod
    def all_gather(self, values: Array) -> Invocation:
        """Every rank gets all ranks' values, in order of rank."""
        ...

    @abstractmethod
    def barrier(self) -> Invocation:
        """Ends at no rank before it has begun at all ranks."""
        ...

    @abstractmethod
    def destroy(self) -> None:
        """Destroy the queue pairs. Invocations that have not ended fail."""

    def invoke(self, collective: Collective, values: Array, root: int = 0, op: Op | None = None) -> Invocation:
        """Call the collective of this name. ``root`` and ``op`` are ignored where it has none."""
        match collective:
            case Collective.ALLREDUCE:
                return self.all_reduce(values, op)
            case Collective.REDUCE:
                return self.reduce(values, root, op)
            case Collective.BROADCAST:
                return self.broadcast(values, root)
            case Collective.REDUCE_SCATTER:
                return self.reduce_scatter(values, op)
            case Collective.ALLGATHER:
                return self.all_gather(values)
            case Collective.BARRIER:
                return self.barrier()
