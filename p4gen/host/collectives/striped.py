"""CommLib on several trees of one group, each of which carries a part of every call's data (ARO §III, SJMT).

The data is divided by whole messages, in proportion to the trees' rates; in a ReduceScatter and an AllGather each
rank's part is divided so. Every tree has a communicator of its own. A call begins when this rank has ended the call
before on all trees, and every call has a part on the first tree. So ranks stay as close together as on the first tree
alone, even if packets are late on another one.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np
from typing_extensions import override

from p4gen.host.collectives.arrays import Array, check_root, divide, dtype_of
from p4gen.host.collectives.collectives import Collectives
from p4gen.host.collectives.commlib import Communicator
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import GroupConfig
from p4gen.host.transport.nic import VerbsNic
from p4gen.host.transport.rc import VerbsPair
from p4gen.host.transport.verbs import Status
from p4gen.vocabulary import Op
from p4gen.vocabulary.message import Collective

Begin = Callable[[Communicator, Array], Invocation]
"""Makes a call on one tree."""


def divided(size: int, unit: int, rates: Sequence[float]) -> tuple[int, ...]:
    """The parts of ``size`` bytes for trees of these rates: whole units as a tree's rate is to that of all, the rest
    for the first tree. Other trees may have none."""
    whole, total = size // unit, sum(rates)
    counts = [math.floor(whole * rate / total) for rate in rates[1:]]
    return (size - unit * sum(counts), *(unit * count for count in counts))


@dataclass
class StripedInvocation(Invocation):
    """A call that is divided among trees."""

    slices: list[Invocation] = field(default_factory=list)
    """The invocations on the trees, once this one has begun."""

    @property
    @override
    def progress(self) -> float:
        """The mean of its parts, by messages."""
        messages = sum(each.messages for each in self.slices)
        return sum(each.progress * each.messages for each in self.slices) / messages if messages else 0.0


@dataclass(eq=False)
class _Whole:
    """A call that has not ended."""

    invocation: StripedInvocation
    slices: list[tuple[Communicator, Array]]
    begin: Begin
    join: Callable[[list[Array]], Array]
    """This rank's result, of those of the slices."""


class StripedCommunicator(Collectives):
    """One rank of a group with several trees; ``configs`` and ``rates`` are those of the trees."""

    def __init__(
        self,
        nic: VerbsNic,
        configs: Sequence[GroupConfig],
        rates: Sequence[float],
        on_done: Callable[[Invocation], None] | None = None,
    ) -> None:
        self.config = configs[0]
        self.communicators = tuple(Communicator(nic, config, self._ended) for config in configs)
        self._nic, self._rates, self._on_done = nic, tuple(rates), on_done
        self._queue: deque[_Whole] = deque()
        self._beginning = False
        self._broken: Status | str | None = None

    @property
    @override
    def pairs(self) -> list[VerbsPair]:
        return [pair for communicator in self.communicators for pair in communicator.pairs]

    # --- the six collectives ---

    @override
    def all_reduce(self, values: Array, op: Op | None = None) -> Invocation:
        self.config.kind(dtype_of(values), op)
        return self._start(Collective.ALLREDUCE, values, 0, lambda tree, part: tree.all_reduce(part, op))

    @override
    def barrier(self) -> Invocation:
        # Over the first tree only: a rank that is in the barrier has ended all calls before.
        return self._start(Collective.BARRIER, np.zeros(0), 0, lambda tree, _: tree.barrier())

    @override
    def reduce(self, values: Array, root: int, op: Op | None = None) -> Invocation:
        self.config.kind(dtype_of(values), op)
        return self._start(Collective.REDUCE, values, root, lambda tree, part: tree.reduce(part, root, op))

    @override
    def broadcast(self, values: Array, root: int) -> Invocation:
        self.config.kind(dtype_of(values), None)
        return self._start(Collective.BROADCAST, values, root, lambda tree, part: tree.broadcast(part, root))

    @override
    def reduce_scatter(self, values: Array, op: Op | None = None) -> Invocation:
        self.config.kind(dtype_of(values), op)
        rows = np.stack(divide(values, self.config.size))
        return self._start(Collective.REDUCE_SCATTER, rows, 0, lambda tree, part: tree.reduce_scatter(part, op))

    @override
    def all_gather(self, values: Array) -> Invocation:
        self.config.kind(dtype_of(values), None)
        return self._start(Collective.ALLGATHER, values, 0, lambda tree, part: tree.all_gather(part))

    @override
    def destroy(self) -> None:
        self._fail(Status.FLUSHED)
        for communicator in self.communicators:
            communicator.destroy()

    # --- running calls ---

    def _start(self, collective: Collective, values: Array, root: int, begin: Begin) -> Invocation:
        """Queue a call. Raises ``InputError``, before any packet is sent, when the group cannot make it."""
        check_root(root, self.config.size, self.config.roots)
        self.config.check_served(collective, root)
        invocation, slices = StripedInvocation(collective), self._slices(collective, values)
        self._queue.append(_Whole(invocation, slices, begin, _joined(collective, values)))
        self._next()
        return invocation

    def _slices(self, collective: Collective, values: Array) -> list[tuple[Communicator, Array]]:
        """The trees that carry a part of a call, with their values: each has columns of rows, of which a ReduceScatter
        has one for each rank."""
        rows = values if collective is Collective.REDUCE_SCATTER else values.reshape(1, -1)
        unit = self.config.message * self.config.packet
        sizes = divided(rows.shape[1] * rows.itemsize, unit, self._rates)
        ends = [0, *accumulate(size // rows.itemsize for size in sizes)]
        return [
            (communicator, np.array(rows[:, first:end]).reshape(-1))
            for number, (communicator, (first, end)) in enumerate(zip(self.communicators, pairwise(ends), strict=True))
            if end > first or not number
        ]

    def _next(self) -> None:
        """End calls whose parts have ended, and begin the next one."""
        while self._queue and not self._beginning:  # the callback of an end may make another call
            whole = self._queue[0]
            made = whole.invocation
            if not made.slices and self._broken is None:
                self._beginning = True
                for communicator, values in whole.slices:
                    made.slices.append(whole.begin(communicator, values))
                    made.messages += made.slices[-1].messages
                self._beginning = False
                whole.slices.clear()
            errors = [each.error for each in made.slices if each.error is not None]
            if errors and self._broken is None:
                self._fail(errors[0])
                continue
            if self._broken is None and not all(each.done for each in made.slices):
                return
            self._queue.popleft()
            self._end(whole)

    def _ended(self, _: Invocation) -> None:
        """A part of the first call has ended."""
        self._next()

    def _fail(self, error: Status | str) -> None:
        """A queue pair of one tree has failed: no call can end any more."""
        if self._broken is None:
            self._broken = error
            for communicator in self.communicators:
                communicator.channel_failed(Status.FLUSHED)
            self._next()

    def _end(self, whole: _Whole) -> None:
        made, now = whole.invocation, self._nic.clock.now
        made.started = min((each.started for each in made.slices if each.started is not None), default=now)
        made.messages_sent = sum(each.messages_sent for each in made.slices)
        made.messages_received = sum(each.messages_received for each in made.slices)
        made.last_result = max((each.last_result for each in made.slices if each.last_result is not None), default=None)
        value = None
        if self._broken is None:
            results = [each.result() for each in made.slices]
            parts = [result for result in results if result is not None]
            value = whole.join(parts) if parts else None
        made.end(now, value, self._broken)
        if self._on_done is not None:
            self._on_done(made)


def _joined(collective: Collective, values: Array) -> Callable[[list[Array]], Array]:
    """How the results of slices make that of the call."""
    if collective is Collective.REDUCE_SCATTER:
        return np.concatenate
    if collective is Collective.ALLGATHER:
        each = values.size

        def rows(parts: list[Array]) -> Array:
            ranks = sum(part.size for part in parts) // each if each else 1
            return np.concatenate([part.reshape(ranks, -1) for part in parts], axis=1).reshape(-1)

        return rows
    shape = values.shape
    return lambda parts: np.concatenate([part.reshape(-1) for part in parts]).reshape(shape)
