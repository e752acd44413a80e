"""Collectives of which only AllReduce is the program's: the others are sums to which some ranks add zeros.

Reduce, Broadcast, ReduceScatter and AllGather cost an AllReduce of all elements.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Protocol

import numpy as np
from typing_extensions import override

from p4gen.host.collectives.arrays import Array, array_type, check_root, divide, dtype_of
from p4gen.host.collectives.collectives import Collectives
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import GroupConfig
from p4gen.host.transport.clock import Clock
from p4gen.host.transport.rc import VerbsPair
from p4gen.vocabulary import Op
from p4gen.vocabulary.message import Collective


class Adder(Protocol):
    """A rank's part in one sum after the other."""

    on_sum: Callable[[Array], None]
    """Called with the sum of all ranks' vectors, once all of it has come."""

    def add(self, vector: Array) -> None:
        """Begin with a vector of whole packets, of which there is one at least. The one before has its sum."""
        ...

    @property
    def progress(self) -> float:
        """The fraction of the vector whose sums have come, from 0 to 1."""
        ...

    def counts(self) -> Counter[str]:
        """What it has counted, as ``Collectives.counts`` has it."""
        ...

    def close(self) -> None:
        """Send nothing any more, and take no frames."""


class _Call(Invocation):
    """The vector that is added for a call, and this rank's result, of the sum."""

    def __init__(self, collective: Collective, adder: Adder, vector: Array, value: Callable[[Array], Array | None]):
        super().__init__(collective)
        self.vector, self.value, self._adder = vector, value, adder

    @property
    @override
    def progress(self) -> float:
        return 0.0 if self.started is None or self.done else self._adder.progress


class SummedCollectives(Collectives):
    """A rank of a group whose program adds, with ``adder``; it gives ``on_end`` every call that has ended, and calls
    ``on_destroy`` at its own end."""

    def __init__(
        self,
        config: GroupConfig,
        clock: Clock,
        adder: Adder,
        on_end: Callable[[Invocation], None],
        on_destroy: Callable[[], None],
    ) -> None:
        self._config, self._clock, self._adder, self._on_end = config, clock, adder, on_end
        self._on_destroy = on_destroy
        self._type = array_type(config.dtype)
        self._calls: deque[_Call] = deque()
        """Calls that have not ended, in order; the first one is under way."""
        adder.on_sum = self._end

    @property
    @override
    def pairs(self) -> list[VerbsPair]:
        return []

    @override
    def counts(self) -> Counter[str]:
        return self._adder.counts()

    @override
    def all_reduce(self, values: Array, op: Op | None = None) -> Invocation:
        return self._add(Collective.ALLREDUCE, values, lambda total: total.reshape(values.shape), op)

    @override
    def reduce(self, values: Array, root: int, op: Op | None = None) -> Invocation:
        check_root(root, self._config.size)
        mine = self._config.rank == root
        return self._add(Collective.REDUCE, values, lambda total: total.reshape(values.shape) if mine else None, op)

    @override
    def broadcast(self, values: Array, root: int) -> Invocation:
        check_root(root, self._config.size)
        given = values if self._config.rank == root else np.zeros_like(values)
        return self._add(Collective.BROADCAST, given, lambda total: total.reshape(values.shape))

    @override
    def reduce_scatter(self, values: Array, op: Op | None = None) -> Invocation:
        size, rank = self._config.size, self._config.rank
        divide(values, size)
        return self._add(Collective.REDUCE_SCATTER, values, lambda total: divide(total, size)[rank], op)

    @override
    def all_gather(self, values: Array) -> Invocation:
        every = np.zeros((self._config.size, values.size), values.dtype)
        every[self._config.rank] = values.reshape(-1)
        return self._add(Collective.ALLGATHER, every, lambda total: total)

    @override
    def barrier(self) -> Invocation:
        return self._add(Collective.BARRIER, np.zeros(0, self._type), lambda _: None)

    @override
    def destroy(self) -> None:
        self._adder.close()
        self._on_destroy()
        for call in self._calls:
            call.end(self._clock.now, error="the rank has left")

    def _add(
        self, collective: Collective, values: Array, value: Callable[[Array], Array | None], op: Op | None = None
    ) -> Invocation:
        """A call that adds values, filled up with zeros to whole packets, one at least."""
        self._config.kind(dtype_of(values), op)
        size, packet = values.size, self._config.packet // self._type.itemsize
        vector = np.zeros(max(1, -(-size // packet)) * packet, self._type)
        vector[:size] = values.reshape(-1)
        call = _Call(collective, self._adder, vector, lambda total: value(total[:size]))
        self._calls.append(call)
        if len(self._calls) == 1:
            self._begin()
        return call

    def _begin(self) -> None:
        call = self._calls[0]
        call.started = self._clock.now
        self._adder.add(call.vector)

    def _end(self, total: Array) -> None:
        call, now = self._calls.popleft(), self._clock.now
        call.last_result = now
        call.end(now, call.value(total))
        if self._calls:
            self._begin()
        self._on_end(call)
