"""Collectives of a group that shares the slots of its tree with others (EPIC §6.2): contention, and fall back.

Before each call all ranks acquire the slots of the whole tree, in one round trip, as all other calls over the tree.
Every rank gets the same answer. If it is granted, the call goes over the tree, and then all ranks release the slots. If
not, the call goes over ``other``, such as a ring, which needs nothing of switches; nobody waits for slots.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from p4gen.host.collectives.arrays import Array, check_root, dtype_of
from p4gen.host.collectives.collectives import Collectives
from p4gen.host.collectives.commlib import Communicator, GroupConfig, Invocation
from p4gen.host.collectives.steps import StepCollectives
from p4gen.host.transport.nic import VerbsNic
from p4gen.host.transport.rc import VerbsPair
from p4gen.host.transport.verbs import Status
from p4gen.vocabulary import Op
from p4gen.vocabulary.message import Collective

REFUSED = "refused: another group has the slots"
"""The error of a call that is refused, and that nothing else carries."""


@dataclass
class LeasedInvocation(Invocation):
    """A call that is carried by the tree if its group gets the slots."""

    granted: bool | None = None
    """None until the answer is there."""
    answered: int | None = None
    """The time of the answer, in ps."""


@dataclass(eq=False)
class _Call:
    """A call that has not ended."""

    invocation: LeasedInvocation
    values: Array
    root: int
    op: Op | None
    asked: Invocation | None = None
    made: Invocation | None = None
    released: Invocation | None = None


class LeasedCommunicator(Collectives):
    """One rank. ``other`` carries refused calls; without it they fail."""

    STATE: ClassVar = ("_queue", "_broken")

    def __init__(
        self,
        nic: VerbsNic,
        config: GroupConfig,
        other: StepCollectives | None = None,
        on_done: Callable[[Invocation], None] | None = None,
    ) -> None:
        self.config = config
        self.tree = Communicator(nic, config, self._ended)
        self.other = other
        if other is not None:
            other.on_done = self._ended
        self._nic, self._on_done = nic, on_done
        self._queue: deque[_Call] = deque()
        self._broken: Status | str | None = None

    @property
    @override
    def pairs(self) -> list[VerbsPair]:
        return [*self.tree.pairs, *(self.other.pairs if self.other is not None else ())]

    @property
    def current(self) -> Invocation | None:
        """The invocation that is sending or receiving; None if no call is under way."""
        return self._queue[0].invocation if self._queue else None

    def under_way(self) -> list[Invocation]:
        """The invocations that have not ended, and those that carry them."""
        parts = (each for call in self._queue for each in (call.asked, call.made, call.released))
        return [*(call.invocation for call in self._queue), *(each for each in parts if each is not None)]

    def arriving(self) -> list[tuple[Invocation, tuple[memoryview | None, ...]]]:
        """Those of the tree, with the buffers for what they receive."""
        return self.tree.arriving()

    def parts(self) -> dict[str, object]:
        """The parts that have state, by name, without the queue pairs, which belong to the NIC."""
        return {"leases": self, **self.tree.parts(), **(self.other.parts() if self.other is not None else {})}

    @override
    def all_reduce(self, values: Array, op: Op | None = None) -> Invocation:
        return self._start(Collective.ALLREDUCE, values, 0, op)

    @override
    def reduce(self, values: Array, root: int, op: Op | None = None) -> Invocation:
        return self._start(Collective.REDUCE, values, root, op)

    @override
    def broadcast(self, values: Array, root: int) -> Invocation:
        return self._start(Collective.BROADCAST, values, root)

    @override
    def reduce_scatter(self, values: Array, op: Op | None = None) -> Invocation:
        return self._start(Collective.REDUCE_SCATTER, values, 0, op)

    @override
    def all_gather(self, values: Array) -> Invocation:
        return self._start(Collective.ALLGATHER, values)

    @override
    def barrier(self) -> Invocation:
        return self._start(Collective.BARRIER, np.zeros(0))

    @override
    def destroy(self) -> None:
        self._fail(Status.FLUSHED)
        for each in (self.tree, self.other):
            if each is not None:
                each.destroy()

    def _start(self, collective: Collective, values: Array, root: int = 0, op: Op | None = None) -> Invocation:
        """Queue a call. Raises ``InputError``, before any packet is sent, when the group cannot make it."""
        if collective is not Collective.BARRIER:
            self.config.kind(dtype_of(values), op)
        check_root(root, self.config.size, self.config.roots)
        self.config.check_served(collective, root)
        call = _Call(LeasedInvocation(collective), values, root, op)
        self._queue.append(call)
        if len(self._queue) == 1:
            self._next()
        return call.invocation

    def _next(self) -> None:
        """Go on with the first call, as far as it goes without waiting."""
        while self._queue:
            call = self._queue[0]
            made = call.invocation
            if self._broken is not None:
                self._end(call, self._broken)
                continue
            if call.asked is None:
                made.started = self._nic.clock.now
                call.asked = self.tree.acquire()
            if not call.asked.done:
                return
            if made.granted is None:
                if call.asked.error is not None:
                    self._fail(call.asked.error)
                    continue
                verdict = call.asked.result()
                assert verdict is not None
                made.granted = bool(verdict[0] == self.tree.granted)
                made.answered = self._nic.clock.now
            carrier = self.tree if made.granted else self.other
            if carrier is None:
                self._end(call, REFUSED)
                continue
            if call.made is None:
                call.made = carrier.invoke(made.collective, call.values, call.root, call.op)
            if not call.made.done:
                return
            if call.made.error is not None:
                self._fail(call.made.error)
                continue
            if not made.done:
                made.last_result = call.made.last_result
                made.messages = call.made.messages
                made.messages_sent, made.messages_received = call.made.messages_sent, call.made.messages_received
                made.end(self._nic.clock.now, call.made.result())
                if self._on_done is not None:
                    self._on_done(made)
            if made.granted and call.released is None:
                call.released = self.tree.release()
            if call.released is not None and not call.released.done:
                return
            self._queue.popleft()

    def _ended(self, _: Invocation) -> None:
        self._next()

    def _fail(self, error: Status | str) -> None:
        """A queue pair has failed: no call can end any more."""
        if self._broken is None:
            self._broken = error
            self.tree.channel_failed(Status.FLUSHED)
        self._next()

    def _end(self, call: _Call, error: Status | str) -> None:
        self._queue.popleft()
        if not call.invocation.done:
            call.invocation.end(self._nic.clock.now, None, error)
            if self._on_done is not None:
                self._on_done(call.invocation)
