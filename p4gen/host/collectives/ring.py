"""Collectives without a switch's help: the ring that in-network collectives are measured against (EPIC §K).

Each rank has a connection to either neighbour, and for barriers to rank 0; switches only forward. AllReduce is a
ReduceScatter and an AllGather around the ring, K - 1 steps each; Reduce and Broadcast go from neighbour to neighbour in
chunks; a Barrier is what Table 30 calls ToRank0: all tell rank 0, which tells all. ``Ring`` has the methods of
``commlib.Communicator``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from p4gen.errors import InputError
from p4gen.host.collectives.arrays import Array, check_root, combine, divide, dtype_of
from p4gen.host.collectives.control import Collective
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import Connection
from p4gen.host.transport.nic import Nic
from p4gen.host.transport.rc import QueuePair
from p4gen.host.transport.verbs import Completion, RecvWr, SendWr, Status
from p4gen.spec import Op, Overflow
from p4gen.spec.reductions import OPS

CHUNK: Final = 128 << 10
"""Bytes of a chunk; with it Tables 26 and 28 come out."""


@dataclass(frozen=True)
class RingConfig:
    """One rank's place in a ring."""

    rank: int
    size: int
    left: Connection
    """To rank - 1, whose ``right`` it is."""
    right: Connection
    star: Mapping[int, Connection]
    """By rank: rank 0 has one to every other, the others one to rank 0."""
    op: Op = Op.SUM
    """Unless a call says another."""
    overflow: Overflow | None = None
    chunk: int = CHUNK
    """Bytes."""

    def __post_init__(self) -> None:
        if self.size < 2:
            raise ValueError("a ring has two ranks at least")
        if self.star.keys() != (set(range(1, self.size)) if self.rank == 0 else {0}):
            raise ValueError("rank 0 has connections to all, and all have one to rank 0")
        if self.chunk < 4 or self.chunk % 4:
            raise ValueError(f"chunks of {self.chunk} bytes: a positive multiple of 4 is needed")


_Send = tuple[QueuePair, Array]


@dataclass(eq=False)
class _Run:
    """A collective as an exchange of messages: what arrives where, and what leaves at first and upon each arrival."""

    invocation: Invocation
    rooms: Sequence[tuple[QueuePair, Array]]
    begin: Callable[[], Sequence[_Send]]
    arrived: Callable[[int], Sequence[_Send]]
    """With the arrival's number in ``rooms``."""
    sends: int
    gets_result: bool = True
    early: list[int] = field(default_factory=list)
    """Arrivals before its turn."""
    begun: bool = False

    @property
    def done(self) -> bool:
        """Nothing is to come or to leave."""
        mine = self.invocation
        return self.begun and mine.messages_sent == self.sends and mine.messages_received == len(self.rooms)


class Ring:
    """One rank of a ring. All ranks call the same collectives in the same order."""

    def __init__(self, nic: Nic, config: RingConfig, on_done: Callable[[Invocation], None] | None = None) -> None:
        self.config = config
        self._nic = nic
        self._on_done = on_done
        self._left = self._pair(config.left)
        self._right = self._pair(config.right)
        self._star = {rank: self._pair(connection) for rank, connection in config.star.items()}
        self._queue: deque[_Run] = deque()
        self._expected: dict[int, tuple[_Run, int]] = {}
        self._numbers = 0
        self._broken: Status | None = None

    def _pair(self, connection: Connection) -> QueuePair:
        return self._nic.create_pair(connection.qp, connection.peer, connection.qp_config, self._completed)

    @property
    def pair(self) -> QueuePair:
        """The connection that data leaves on."""
        return self._right

    @property
    def pairs(self) -> list[QueuePair]:
        """All queue pairs."""
        return [self._left, self._right, *self._star.values()]

    @property
    def current(self) -> Invocation | None:
        """The invocation that is being worked on."""
        return self._queue[0].invocation if self._queue else None

    # --- the six collectives ---

    def all_reduce(self, values: Array, op: Op | None = None) -> Invocation:
        """Every rank gets the reduction of all ranks' values: 2 (K - 1) steps, a K-th of the array in each."""
        op = self._op(values, op)
        total = values.copy()
        parts = np.array_split(total.reshape(-1), self.config.size)
        last = self.config.size - 2

        def arrived(step: int) -> list[_Send]:
            if step <= last:  # the last of these is this rank's own part, and the gathering begins
                return [(self._right, self._scatter_step(parts, step, rooms[step], op))]
            gathered = step - last - 1
            self._part(parts, -1 - gathered)[:] = rooms[step]
            return [(self._right, self._part(parts, -1 - gathered))] if gathered < last else []

        rooms = [np.empty_like(self._part(parts, -2 - step)) for step in range(last + 1)]
        rooms += [np.empty_like(self._part(parts, -1 - step)) for step in range(last + 1)]
        return self._start(
            Collective.ALLREDUCE,
            [(self._left, room) for room in rooms],
            lambda: [(self._right, self._part(parts, -1))],
            arrived,
            2 * (last + 1),
            lambda: total,
        )

    def reduce_scatter(self, values: Array, op: Op | None = None) -> Invocation:
        """Rank r gets the reduction of everybody's r-th part: K - 1 steps."""
        op = self._op(values, op)
        parts = divide(values.copy(), self.config.size)
        last = self.config.size - 2
        rooms = [np.empty_like(parts[0]) for _ in range(last + 1)]

        def arrived(step: int) -> list[_Send]:
            part = self._scatter_step(parts, step, rooms[step], op)
            return [(self._right, part)] if step < last else []

        return self._start(
            Collective.REDUCE_SCATTER,
            [(self._left, room) for room in rooms],
            lambda: [(self._right, self._part(parts, -1))],
            arrived,
            last + 1,
            lambda: self._part(parts, 0),
        )

    def all_gather(self, values: Array) -> Invocation:
        """Every rank gets all ranks' values, in order of rank: K - 1 steps."""
        self._op(values, None)
        size = self.config.size
        whole = np.zeros(size * values.size, values.dtype)
        parts = divide(whole, size)
        self._part(parts, 0)[:] = values.reshape(-1)
        # What arrives at step s is the part of the rank s + 1 before this one.
        rooms = [self._part(parts, -1 - step) for step in range(size - 1)]
        return self._start(
            Collective.ALLGATHER,
            [(self._left, room) for room in rooms],
            lambda: [(self._right, self._part(parts, 0))],
            lambda step: [(self._right, rooms[step])] if step < size - 2 else [],
            size - 1,
            lambda: whole,
        )

    def reduce(self, values: Array, root: int, op: Op | None = None) -> Invocation:
        """The root gets the reduction: chunks go around the ring to it, and each rank adds its own."""
        op = self._op(values, op)
        check_root(root, self.config.size)
        total = values.copy()
        chunks = self._chunks(total)
        place = (self.config.rank - root - 1) % self.config.size
        """0 is the root's right neighbour, where it begins; the root comes last."""
        is_root = self.config.rank == root
        rooms = [] if place == 0 else [np.empty_like(chunk) for chunk in chunks]

        def arrived(number: int) -> list[_Send]:
            chunks[number][:] = combine(op, self.config.overflow, rooms[number], chunks[number])
            return [] if is_root else [(self._right, chunks[number])]

        return self._start(
            Collective.REDUCE,
            [(self._left, room) for room in rooms],
            lambda: [(self._right, chunk) for chunk in chunks] if place == 0 else [],
            arrived,
            0 if is_root else len(chunks),
            lambda: total if is_root else None,
            gets_result=is_root,
        )

    def broadcast(self, values: Array, root: int) -> Invocation:
        """Every rank gets the root's values: chunks go around the ring from it."""
        self._op(values, None)
        check_root(root, self.config.size)
        whole = values.copy()
        chunks = self._chunks(whole)
        is_root = self.config.rank == root
        is_last = (self.config.rank + 1) % self.config.size == root
        return self._start(
            Collective.BROADCAST,
            [] if is_root else [(self._left, chunk) for chunk in chunks],
            lambda: [(self._right, chunk) for chunk in chunks] if is_root else [],
            lambda number: [] if is_last else [(self._right, chunks[number])],
            0 if is_last else len(chunks),
            lambda: whole,
        )

    def barrier(self) -> Invocation:
        """All tell rank 0, which then tells all (Table 30's ToRank0)."""
        nothing = np.empty(0, np.int32)
        pairs = list(self._star.values())
        if self.config.rank != 0:
            return self._start(
                Collective.BARRIER, [(pairs[0], nothing)], lambda: [(pairs[0], nothing)], lambda _: [], 1, lambda: None
            )
        here = 0

        def arrived(_: int) -> list[_Send]:
            nonlocal here
            here += 1
            return [(pair, nothing) for pair in pairs] if here == len(pairs) else []

        rooms = [(pair, nothing) for pair in pairs]
        return self._start(Collective.BARRIER, rooms, list, arrived, len(pairs), lambda: None)

    def destroy(self) -> None:
        """The queue pairs go; what is under way fails."""
        self._fail(Status.FLUSHED)
        for pair in self.pairs:
            self._nic.destroy_pair(pair)

    # --- the parts of an array ---

    def _part(self, parts: Sequence[Array], offset: int) -> Array:
        """The part of the rank that many places to the right of this one."""
        return parts[(self.config.rank + offset) % self.config.size]

    def _scatter_step(self, parts: Sequence[Array], step: int, came: Array, op: Op) -> Array:
        """What a step of a ReduceScatter does with the part that came; the next step sends it on."""
        part = self._part(parts, -2 - step)
        part[:] = combine(op, self.config.overflow, came, part)
        return part

    def _chunks(self, values: Array) -> list[Array]:
        flat = values.reshape(-1)
        step = self.config.chunk // 4
        return [flat[start : start + step] for start in range(0, max(1, flat.size), step)]

    def _op(self, values: Array, op: Op | None) -> Op:
        dtype_of(values)  # refuses what switches would
        op = self.config.op if op is None else op
        if op is Op.DYNAMIC:
            raise InputError(f"op dynamic: each call says one of {', '.join(OPS)}")
        return op

    # --- working it off ---

    def _start(
        self,
        collective: Collective,
        rooms: Sequence[tuple[QueuePair, Array]],
        begin: Callable[[], Sequence[_Send]],
        arrived: Callable[[int], Sequence[_Send]],
        sends: int,
        finish: Callable[[], Array | None],
        *,
        gets_result: bool = True,
    ) -> Invocation:
        """Post all room at once: a neighbour may be ahead of this rank. The rest waits for its turn."""
        invocation = Invocation(collective, messages=sends + len(rooms), _finish=finish)
        if self._broken is not None:
            invocation.started = self._nic.clock.now
            self._end(invocation, self._broken)
            return invocation
        run = _Run(invocation, rooms, begin, arrived, sends, gets_result)
        self._queue.append(run)
        for number, (pair, room) in enumerate(rooms):
            self._numbers += 1
            self._expected[self._numbers] = run, number
            pair.post_recv(RecvWr(self._numbers, _bytes(room)))
        if len(self._queue) == 1:
            self._next()
        return invocation

    def _next(self) -> None:
        """Begin what is first in the queue; end what is done."""
        while self._queue and self._broken is None:
            run = self._queue[0]
            if not run.begun:
                run.begun = True
                run.invocation.started = self._nic.clock.now
                self._send(run.begin())
                for number in run.early:
                    self._send(run.arrived(number))
            if not run.done:
                return
            self._queue.popleft()
            self._end(run.invocation)

    def _send(self, sends: Sequence[_Send]) -> None:
        for pair, data in sends:
            pair.post_send(SendWr(0, _bytes(data)))

    def _completed(self, completion: Completion) -> None:
        if completion.status is not Status.SUCCESS:
            # A flush says only that a pair is in error; this is the first, so one pair at most says why.
            causes = (pair.broken for pair in self.pairs if pair.broken is not None)
            self._fail(next(causes, completion.status))
            return
        if completion.receive:
            run, number = self._expected.pop(completion.wr_id)
            run.invocation.messages_received += 1
            if run.gets_result:
                run.invocation.last_result = self._nic.clock.now
            if run.begun:
                self._send(run.arrived(number))
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
            self._end(self._queue.popleft().invocation, error)

    def _end(self, invocation: Invocation, error: Status | None = None) -> None:
        invocation.end(self._nic.clock.now, error)
        if self._on_done is not None:
            self._on_done(invocation)


def _bytes(values: Array) -> memoryview:
    """The memory of contiguous elements."""
    return values.view(np.uint8).data
