"""Collectives without help from switches: the ring that in-network collectives are compared with (EPIC §K).

Each rank has a connection to each neighbour, and one with rank 0 for barriers; switches only forward. AllReduce is a
ReduceScatter and an AllGather around the ring, K - 1 steps each. Reduce and Broadcast go from neighbour to neighbour in
chunks. A Barrier is what Table 30 calls ToRank0: all ranks notify rank 0, which then notifies all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

import numpy as np
from typing_extensions import override

from p4gen.errors import InputError
from p4gen.host.collectives.arrays import Array, check_root, combine, divide, dtype_of
from p4gen.host.collectives.collectives import Collectives
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import Connection
from p4gen.host.transport.nic import VerbsNic
from p4gen.host.transport.rc import VerbsPair
from p4gen.host.transport.verbs import Completion, RecvWr, SendWr, Status
from p4gen.vocabulary import Op, Overflow
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.reductions import single_ops

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


Span = tuple[int, int]
"""A range of an array's elements: the first, and one past the last."""
Send = tuple[int, Span]
"""A message: the index of the queue pair in ``Ring.pairs``, and the range of the run's data that it carries."""

_LEFT: Final = 0
_RIGHT: Final = 1
_STAR: Final = 2
"""Indices of queue pairs; the last is that of the first star connection."""
_NOTHING: Final = (0, 0)


@dataclass(frozen=True)
class Arrival:
    """A message to be received, and how it is processed."""

    pair: int
    part: Span
    """The range of the run's data that it belongs to."""
    landing: Span | None = None
    """The range of the run's ``landing`` buffer where it waits for its turn; None if it is received in place."""
    combined: bool = False
    """Whether it is reduced into its part; otherwise it replaces it."""
    forwarded: bool = False
    """Whether its part is then sent to the right."""


@dataclass(eq=False)
class RingRun:
    """A collective as an exchange of messages: what arrives at which place, what is sent first, and after each
    arrival."""

    invocation: Invocation
    op: Op
    data: Array
    arrivals: tuple[Arrival, ...]
    landing: Array
    begin: tuple[Send, ...] = ()
    """Messages sent at the beginning."""
    finish: tuple[Send, ...] = ()
    """Messages sent when everything has arrived."""
    shape: tuple[int, ...] | None = None
    """The shape of the result; None if this rank gets none."""
    result: Span = _NOTHING
    """The range of the data that is the result."""
    sends: int = 0
    """Total number of messages to send."""
    begun: bool = False
    early: list[int] = field(default_factory=list)
    """Numbers of the messages that arrived before their turn."""
    handled: int = 0
    """Number of messages processed."""

    @property
    def done(self) -> bool:
        """Whether everything has been received and sent."""
        mine = self.invocation
        return self.begun and mine.messages_sent == self.sends and mine.messages_received == len(self.arrivals)

    def value(self) -> Array | None:
        """The result; None if this rank gets none."""
        if self.shape is None:
            return None
        return self.data[slice(*self.result)].reshape(self.shape)


class Ring(Collectives):
    """One rank of a ring: collectives without switches that reduce, in steps between neighbours."""

    STATE: ClassVar = ("_queue", "_expected", "_numbers", "_broken")

    def __init__(self, nic: VerbsNic, config: RingConfig, on_done: Callable[[Invocation], None] | None = None) -> None:
        self.config = config
        self._nic = nic
        self._on_done = on_done
        self._pairs = [self._pair(each) for each in (config.left, config.right, *config.star.values())]
        self._queue: deque[RingRun] = deque()
        self._expected: dict[int, tuple[RingRun, int]] = {}
        self._numbers = 0
        self._broken: Status | None = None

    def _pair(self, connection: Connection) -> VerbsPair:
        return self._nic.create_pair(connection.qp, connection.peer, connection.qp_config, self._completed)

    @property
    @override
    def pairs(self) -> list[VerbsPair]:
        """The queue pairs: to the left, to the right, those of the star."""
        return self._pairs

    @property
    def pair(self) -> VerbsPair:
        """The connection on which data is sent."""
        return self.pairs[_RIGHT]

    @property
    def current(self) -> Invocation | None:
        """The invocation that is sending or receiving; None if no call is under way."""
        return self._queue[0].invocation if self._queue else None

    def parts(self) -> dict[str, object]:
        """The parts that have state, by name, without the queue pairs, which belong to the NIC."""
        return {"ring": self}

    # --- the six collectives ---

    @override
    def all_reduce(self, values: Array, op: Op | None = None) -> Invocation:
        """2 (K - 1) steps with a K-th of the array each."""
        op = self._op(values, op)
        parts = self._parts(values.size)
        steps = self.config.size - 1
        # First each part is reduced on its way around. The last to arrive is this rank's own; then the gather begins.
        arrivals = [Arrival(_LEFT, parts(-2 - step), combined=True, forwarded=True) for step in range(steps)]
        arrivals += [Arrival(_LEFT, parts(-1 - step), forwarded=step < steps - 1) for step in range(steps)]
        run = self._run(Collective.ALLREDUCE, values, op, _landed(arrivals), values.shape)
        run.begin, run.result = ((_RIGHT, parts(-1)),), (0, values.size)
        return self._start(run)

    @override
    def reduce_scatter(self, values: Array, op: Op | None = None) -> Invocation:
        """K - 1 steps around the ring."""
        op = self._op(values, op)
        shape = divide(values, self.config.size)[0].shape
        parts = self._parts(values.size)
        last = self.config.size - 2
        arrivals = [Arrival(_LEFT, parts(-2 - n), combined=True, forwarded=n < last) for n in range(last + 1)]
        run = self._run(Collective.REDUCE_SCATTER, values, op, _landed(arrivals), shape)
        run.begin, run.result = ((_RIGHT, parts(-1)),), parts(0)
        return self._start(run)

    @override
    def all_gather(self, values: Array) -> Invocation:
        """K - 1 steps around the ring."""
        op = self._op(values, None)
        size = self.config.size
        whole = np.zeros(size * values.size, values.dtype)
        parts = self._parts(whole.size)
        whole[slice(*parts(0))] = values.reshape(-1)
        # The part that arrives in step s belongs to the rank s + 1 positions before this one.
        arrivals = [Arrival(_LEFT, parts(-1 - step), forwarded=step < size - 2) for step in range(size - 1)]
        run = self._run(Collective.ALLGATHER, whole, op, arrivals, whole.shape)
        run.begin, run.result = ((_RIGHT, parts(0)),), (0, whole.size)
        return self._start(run)

    @override
    def reduce(self, values: Array, root: int, op: Op | None = None) -> Invocation:
        """Chunks go around the ring to the root, and each rank adds its own values."""
        op = self._op(values, op)
        check_root(root, self.config.size)
        chunks = self._chunks(values)
        is_root = self.config.rank == root
        first = (self.config.rank - 1) % self.config.size == root
        """The chunks start at the root's right neighbour and end at the root."""
        arrivals = [] if first else [Arrival(_LEFT, chunk, combined=True, forwarded=not is_root) for chunk in chunks]
        run = self._run(Collective.REDUCE, values, op, _landed(arrivals), values.shape if is_root else None)
        run.begin, run.result = tuple((_RIGHT, chunk) for chunk in chunks if first), (0, values.size)
        return self._start(run)

    @override
    def broadcast(self, values: Array, root: int) -> Invocation:
        """Chunks go around the ring from the root."""
        op = self._op(values, None)
        check_root(root, self.config.size)
        chunks = self._chunks(values)
        is_root = self.config.rank == root
        is_last = (self.config.rank + 1) % self.config.size == root
        arrivals = [] if is_root else [Arrival(_LEFT, chunk, forwarded=not is_last) for chunk in chunks]
        run = self._run(Collective.BROADCAST, values, op, arrivals, values.shape)
        run.begin, run.result = tuple((_RIGHT, chunk) for chunk in chunks if is_root), (0, values.size)
        return self._start(run)

    @override
    def barrier(self) -> Invocation:
        """All ranks notify rank 0, which then notifies all (Table 30's ToRank0)."""
        star = range(_STAR, len(self.pairs))
        arrivals = [Arrival(pair, _NOTHING) for pair in star]
        run = self._run(Collective.BARRIER, np.empty(0), self.config.op, arrivals, None)
        sends = tuple((pair, _NOTHING) for pair in star)
        if self.config.rank == 0:
            run.finish = sends
        else:
            run.begin = sends
        return self._start(run)

    @override
    def destroy(self) -> None:
        self._fail(Status.FLUSHED)
        for pair in self.pairs:
            self._nic.destroy_pair(pair)

    # --- the parts of an array ---

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
        step = max(1, self.config.chunk // values.itemsize)
        return [(start, min(start + step, values.size)) for start in range(0, max(1, values.size), step)]

    def _op(self, values: Array, op: Op | None) -> Op:
        dtype_of(values)  # raises the errors that a switch's program would cause
        op = self.config.op if op is None else op
        if op is Op.DYNAMIC:
            raise InputError(f"op dynamic: each call must name one of {', '.join(single_ops())}")
        return op

    # --- running invocations ---

    def _run(
        self,
        collective: Collective,
        values: Array,
        op: Op,
        arrivals: Sequence[Arrival],
        shape: tuple[int, ...] | None,
    ) -> RingRun:
        """A run on a copy of ``values`` that has not sent anything; ``shape`` is the shape of the result."""
        landing = max((arrival.landing[1] for arrival in arrivals if arrival.landing is not None), default=0)
        return RingRun(
            Invocation(collective),
            op,
            values.flatten(),
            tuple(arrivals),
            np.zeros(landing, values.dtype),
            shape=shape,
        )

    def _start(self, run: RingRun) -> Invocation:
        """Queue a run. All receives are posted at once, because a neighbour may be ahead of this rank."""
        invocation = run.invocation
        run.sends = len(run.begin) + len(run.finish) + sum(arrival.forwarded for arrival in run.arrivals)
        invocation.messages = run.sends + len(run.arrivals)
        if self._broken is not None:
            invocation.started = self._nic.clock.now
            self._end(run, self._broken)
            return invocation
        self._queue.append(run)
        for number, arrival in enumerate(run.arrivals):
            self._numbers += 1
            self._expected[self._numbers] = run, number
            room = run.data[slice(*arrival.part)] if arrival.landing is None else run.landing[slice(*arrival.landing)]
            self.pairs[arrival.pair].post_recv(RecvWr(self._numbers, _bytes(room)))
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
                self._send(run, run.begin)
                for number in run.early:
                    self._handle(run, number)
            if not run.done:
                return
            self._queue.popleft()
            self._end(run)

    def _handle(self, run: RingRun, number: int) -> None:
        """Process a message that has arrived: store or reduce it, then send what depends on it."""
        arrival = run.arrivals[number]
        part = run.data[slice(*arrival.part)]
        if arrival.landing is not None:
            came = run.landing[slice(*arrival.landing)]
            part[:] = combine(run.op, self.config.overflow, came, part) if arrival.combined else came
        run.handled += 1
        if arrival.forwarded:
            self._send(run, ((_RIGHT, arrival.part),))
        if run.handled == len(run.arrivals):
            self._send(run, run.finish)

    def _send(self, run: RingRun, sends: Sequence[Send]) -> None:
        for pair, part in sends:
            self.pairs[pair].post_send(SendWr(0, _bytes(run.data[slice(*part)])))

    def _completed(self, completion: Completion) -> None:
        if completion.status is not Status.SUCCESS:
            # A flush says only that a pair is in error. This is the first flush, so at most one pair knows the cause.
            causes = (pair.broken for pair in self.pairs if pair.broken is not None)
            self._fail(next(causes, completion.status))
            return
        if completion.receive:
            run, number = self._expected.pop(completion.wr_id)
            run.invocation.messages_received += 1
            if run.shape is not None or run.invocation.collective is Collective.BARRIER:
                run.invocation.last_result = self._nic.clock.now
            if run.begun:
                self._handle(run, number)
            else:
                run.early.append(number)
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

    def _end(self, run: RingRun, error: Status | None = None) -> None:
        run.invocation.end(self._nic.clock.now, run.value() if error is None else None, error)
        if self._on_done is not None:
            self._on_done(run.invocation)


def _landed(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """The arrivals, each with its own range of the landing buffer."""
    landed, at = [], 0
    for arrival in arrivals:
        start, end = arrival.part
        landed.append(replace(arrival, landing=(at, at + end - start)))
        at += end - start
    return landed


def _bytes(values: Array) -> memoryview:
    """The memory of a contiguous array, as bytes."""
    return values.view(np.uint8).data
