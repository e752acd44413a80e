"""Collectives between hosts as steps: what arrives from whom, and what is sent once it has. Switches only forward.

The data of a call is in one array, its *room*, which begins as the rank's values. A step ends when all of its messages
have arrived and are processed; then its own messages are sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np
from typing_extensions import override

from p4gen.errors import InputError
from p4gen.host.collectives.arrays import Array, combine, dtype_of
from p4gen.host.collectives.collectives import Collectives
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import Connection
from p4gen.host.transport.nic import VerbsNic
from p4gen.host.transport.rc import VerbsPair
from p4gen.host.transport.verbs import Completion, RecvWr, SendWr, Status
from p4gen.vocabulary import Op, Overflow
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.reductions import single_ops

Span = tuple[int, int]
"""A range of a room's elements: the first, and one past the last."""
Send = tuple[int, Span]
"""A message: the index of the queue pair in ``pairs``, and the range that it carries."""
NOTHING: Final = (0, 0)
BEGIN: Final = -1
"""The step that has no arrivals, and ends when the call begins."""


@dataclass(frozen=True)
class Arrival:
    """A message to be received, and how it is processed."""

    pair: int
    at: Span
    """Where it stands when it is processed."""
    addend: Span | None = None
    """What it is reduced with; None: with nothing."""

    @property
    def apart(self) -> bool:
        """Whether it is received in an array of its own, because what stands where it goes to is its addend."""
        return self.addend == self.at


@dataclass(frozen=True)
class Step:
    """Messages that arrive, in any order, and those that are sent once all of them are processed."""

    arrivals: tuple[Arrival, ...]
    sends: tuple[Send, ...] = ()
    after: int = BEGIN
    """The step that must have ended before arrivals of this one are processed."""


@dataclass(frozen=True)
class Plan:
    """A rank's part in a collective."""

    steps: tuple[Step, ...] = ()
    """In an order in which each connection's messages arrive."""
    begin: tuple[Send, ...] = ()
    """Messages sent at the beginning."""
    result: Span | None = None
    """Where the result is; None if this rank gets none."""

    @property
    def size(self) -> int:
        """The elements of the room that it needs."""
        spans = [each.at for step in self.steps for each in step.arrivals]
        return max((end for _, end in (*spans, self.result or NOTHING)), default=0)


@dataclass(eq=False)
class StepRun:
    """A call that has not ended."""

    invocation: Invocation
    op: Op
    plan: Plan
    room: Array
    shape: tuple[int, ...]
    """Of the result."""
    awaited: list[int]
    """By step: the number of messages that it waits for."""
    begun: bool = False
    early: dict[int, list[Expected]] = field(default_factory=dict)
    """By the step that must end first: messages that have come before."""

    @property
    def done(self) -> bool:
        """Whether everything has been received and sent."""
        mine = self.invocation
        return self.begun and mine.messages_sent + mine.messages_received == mine.messages

    def ended(self, step: int) -> bool:
        """Whether a step has ended."""
        return self.begun and (step == BEGIN or not self.awaited[step])

    def value(self) -> Array | None:
        """The result; None if this rank gets none."""
        return None if self.plan.result is None else self.room[slice(*self.plan.result)].reshape(self.shape)


@dataclass(frozen=True, eq=False)
class Expected:
    """A message that a call expects."""

    run: StepRun
    step: int
    arrival: Arrival
    landing: Array
    """Where it is received: a part of the room, or an array of its own, which lives until it is reduced."""


class StepCollectives(Collectives):
    """One rank of a group whose collectives are steps between hosts."""

    STATE: ClassVar = ("_queue", "_expected", "_numbers", "_broken")

    def __init__(
        self,
        nic: VerbsNic,
        connections: Sequence[Connection],
        op: Op,
        overflow: Overflow | None,
        on_done: Callable[[Invocation], None] | None = None,
    ) -> None:
        self._nic = nic
        self._own_op, self._overflow = op, overflow
        self.on_done = on_done
        """Called at the end of each call."""
        self._pairs = [nic.create_pair(each.qp, each.peer, each.qp_config, self._completed) for each in connections]
        self._queue: deque[StepRun] = deque()
        self._expected: dict[int, Expected] = {}
        self._numbers = 0
        self._broken: Status | None = None

    @property
    @override
    def pairs(self) -> list[VerbsPair]:
        return self._pairs

    @property
    def current(self) -> Invocation | None:
        """The invocation that is sending or receiving; None if no call is under way."""
        return self._queue[0].invocation if self._queue else None

    def parts(self) -> dict[str, object]:
        """The parts that have state, by name, without the queue pairs, which belong to the NIC."""
        return {"steps": self}

    @override
    def destroy(self) -> None:
        self._fail(Status.FLUSHED)
        for pair in self.pairs:
            self._nic.destroy_pair(pair)

    def _op(self, values: Array, op: Op | None) -> Op:
        dtype_of(values)  # raises the errors that a switch's program would cause
        op = self._own_op if op is None else op
        if op is Op.DYNAMIC:
            raise InputError(f"op dynamic: each call must name one of {', '.join(single_ops())}")
        return op

    def _start(
        self,
        collective: Collective,
        values: Array,
        op: Op,
        plan: Plan,
        shape: tuple[int, ...] | None = None,
        place: int = 0,
    ) -> Invocation:
        """Queue a call on a copy of ``values``, which is placed at element ``place`` of the room; ``shape`` is the
        result's, by default that of ``values``. All receives are posted at once, because a neighbour may be ahead of
        this rank."""
        invocation = Invocation(collective)
        arrivals = [len(step.arrivals) for step in plan.steps]
        invocation.messages = len(plan.begin) + sum(arrivals) + sum(len(step.sends) for step in plan.steps)
        room = np.zeros(max(place + values.size, plan.size), values.dtype)
        room[place : place + values.size] = values.reshape(-1)
        run = StepRun(invocation, op, plan, room, values.shape if shape is None else shape, arrivals)
        if self._broken is not None:
            invocation.started = self._nic.clock.now
            self._end(run, self._broken)
            return invocation
        self._queue.append(run)
        for number, step in enumerate(plan.steps):
            for arrival in step.arrivals:
                self._numbers += 1
                landing = room[slice(*arrival.at)]
                landing = np.zeros(landing.size, landing.dtype) if arrival.apart else landing
                self._expected[self._numbers] = Expected(run, number, arrival, landing)
                self.pairs[arrival.pair].post_recv(RecvWr(self._numbers, _bytes(landing)))
        if len(self._queue) == 1:
            self._next()
        return invocation

    def _next(self) -> None:
        """Begin the first run in the queue; end runs that are done."""
        while self._queue and self._broken is None:
            run = self._queue[0]
            if not run.begun:
                run.begun = True
                run.invocation.started = self._nic.clock.now
                self._go_on(run, BEGIN, run.plan.begin)
            if not run.done:
                return
            self._queue.popleft()
            self._end(run)

    def _go_on(self, run: StepRun, ended: int, sends: Sequence[Send]) -> None:
        """Send what follows a step that has ended, and process what has waited for it."""
        for pair, span in sends:
            self.pairs[pair].post_send(SendWr(0, _bytes(run.room[slice(*span)])))
        for message in run.early.pop(ended, ()):
            self._process(message)

    def _process(self, message: Expected) -> None:
        """Process a message that has arrived, if it is its step's turn."""
        run, number, arrival = message.run, message.step, message.arrival
        step = run.plan.steps[number]
        if not run.ended(step.after):
            run.early.setdefault(step.after, []).append(message)
            return
        if arrival.addend is not None:
            addend = run.room[slice(*arrival.addend)]
            run.room[slice(*arrival.at)] = combine(run.op, self._overflow, message.landing, addend)
        run.awaited[number] -= 1
        if not run.awaited[number]:
            self._go_on(run, number, step.sends)

    def _completed(self, completion: Completion) -> None:
        if completion.status is not Status.SUCCESS:
            # A flush says only that a pair is in error. This is the first flush, so at most one pair knows the cause.
            causes = (pair.broken for pair in self.pairs if pair.broken is not None)
            self._fail(next(causes, completion.status))
            return
        if completion.receive:
            message = self._expected.pop(completion.wr_id)
            run = message.run
            run.invocation.messages_received += 1
            if run.plan.result is not None or run.invocation.collective is Collective.BARRIER:
                run.invocation.last_result = self._nic.clock.now
            self._process(message)
        else:
            self._queue[0].invocation.messages_sent += 1
        self._next()

    def _fail(self, error: Status) -> None:
        if self._broken is not None:
            return
        self._broken = error
        for pair in self.pairs:
            pair.fail(Status.FLUSHED)
        while self._queue:
            self._end(self._queue.popleft(), error)

    def _end(self, run: StepRun, error: Status | None = None) -> None:
        run.invocation.end(self._nic.clock.now, run.value() if error is None else None, error)
        if self.on_done is not None:
            self.on_done(run.invocation)


def _bytes(elements: Array) -> memoryview:
    """A contiguous array, as bytes."""
    return elements.view(np.uint8).data
