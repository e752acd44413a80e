"""CommLib: collectives over NumPy arrays, on queue pairs whose far end is an IncTree (EPIC §3.3, §4.2, §A).

Virtual time has no waiting: a call gives an ``Invocation``, which is done some time later. A communicator works its
invocations off one after the other. Each begins with a control message, pipelined with the data (§3.3.2); at most W
messages of M packets are outstanding (§4.2), and a message leaves only once there is room posted for its result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from p4gen.errors import FailedError, InputError
from p4gen.host.control import MAX_PACKETS, Collective, Control
from p4gen.host.nic import Nic
from p4gen.host.rc import QueuePair
from p4gen.host.verbs import Completion, Peer, QpConfig, RecvWr, SendWr, Status
from p4gen.spec import DType, Op, Overflow

Array = npt.NDArray[Any]
"""int32 or uint32, as the program works on; any shape."""


@dataclass(frozen=True)
class GroupConfig:
    """What InitGroup hands to one rank: its place in the group, its connection, and what the program can do."""

    rank: int
    size: int
    qp: int
    """This rank's QP number."""
    peer: Peer
    """The IncTree's endpoint of this rank's edge."""
    qp_config: QpConfig
    """Its MTU is the program's payload."""
    window: int
    """W, messages."""
    message: int
    """M, packets."""
    dtype: DType = DType.INT32
    op: Op = Op.SUM
    overflow: Overflow | None = None
    serves: frozenset[Collective] = frozenset({Collective.ALLREDUCE, Collective.BARRIER})
    """Collectives that the program on the tree can work out."""


@dataclass(frozen=True)
class _Phase:
    """One stretch of an invocation with one root: what this rank sends, and where it receives."""

    control: Control
    send: memoryview | None
    """None when this rank only receives."""
    receive: memoryview | None
    """None when it only sends."""


@dataclass
class Invocation:
    """A collective under way. ``result`` is there once it is ``done``, unless ``error`` says why it failed."""

    collective: Collective
    started: int | None = None
    finished: int | None = None
    """Virtual time, ps."""
    error: Status | str | None = None
    messages_sent: int = 0
    messages_received: int = 0
    _phases: deque[_Phase] = field(default_factory=deque, repr=False)
    _finish: Callable[[], Array | None] = field(default=lambda: None, repr=False)
    _value: Array | None = field(default=None, repr=False)

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self.finished is not None

    def result(self) -> Array | None:
        """This rank's result, None where the collective leaves it none. FailedError unless it ended well."""
        if self.finished is None:
            raise FailedError(f"{self.collective} has not ended")
        if self.error is not None:
            raise FailedError(f"{self.collective} failed: {self.error}")
        return self._value


class Communicator:
    """One rank's membership in a group."""

    def __init__(self, nic: Nic, config: GroupConfig, on_done: Callable[[Invocation], None] | None = None) -> None:
        self.config = config
        self.pair: QueuePair = nic.create_pair(config.qp, config.peer, config.qp_config, self._completed)
        self._nic = nic
        self._on_done = on_done
        self._queue: deque[Invocation] = deque()
        self._phase: _Phase | None = None
        self._posted = self._sent = self._received = self._messages = 0
        self._packet = config.qp_config.mtu
        self._size = self._packet * config.message

    # --- the six collectives ---

    def all_reduce(self, values: Array, op: Op | None = None) -> Invocation:
        """Every rank gets the reduction of all ranks' values."""
        data, out = self._outgoing(values), self._room(values.size)
        return self._start(Collective.ALLREDUCE, [(0, data, out)], op, lambda: self._incoming(out, values))

    def barrier(self) -> Invocation:
        """Ends at no rank before it has begun at all: an AllReduce of nothing (§A)."""
        empty = memoryview(b"")
        return self._start(Collective.BARRIER, [(0, empty, empty)], None, lambda: None)

    def reduce(self, values: Array, root: int, op: Op | None = None) -> Invocation:
        """The root gets the reduction; the tree reduces what the others send, the root adds its own (§A)."""
        self._check_root(root)
        if self.config.rank != root:
            return self._start(Collective.REDUCE, [(root, self._outgoing(values), None)], op, lambda: None)
        out = self._room(values.size)

        def finish() -> Array:
            return self.combine(self._incoming(out, values), values)

        return self._start(Collective.REDUCE, [(root, None, out)], op, finish)

    def broadcast(self, values: Array, root: int) -> Invocation:
        """Every rank gets the root's values; elsewhere ``values`` only tells the shape."""
        self._check_root(root)
        if self.config.rank == root:
            copy = values.copy()
            return self._start(Collective.BROADCAST, [(root, self._outgoing(values), None)], None, lambda: copy)
        out = self._room(values.size)
        return self._start(Collective.BROADCAST, [(root, None, out)], None, lambda: self._incoming(out, values))

    def reduce_scatter(self, values: Array, op: Op | None = None) -> Invocation:
        """Rank r gets the reduction of everybody's r-th part: as many Reduces as ranks (§A)."""
        parts = self._parts(values)
        own = parts[self.config.rank]
        out = self._room(own.size)
        plan = [
            (root, None, out) if root == self.config.rank else (root, self._outgoing(part), None)
            for root, part in enumerate(parts)
        ]
        return self._start(Collective.REDUCE_SCATTER, plan, op, lambda: self.combine(self._incoming(out, own), own))

    def all_gather(self, values: Array) -> Invocation:
        """Every rank gets all ranks' values, in order of rank: as many Broadcasts as ranks (§A)."""
        rooms = [self._room(values.size) for _ in range(self.config.size)]
        plan = [
            (root, self._outgoing(values), None) if root == self.config.rank else (root, None, rooms[root])
            for root in range(self.config.size)
        ]

        def finish() -> Array:
            mine = self.config.rank
            parts = [values if r == mine else self._incoming(room, values) for r, room in enumerate(rooms)]
            return np.concatenate([part.reshape(-1) for part in parts])

        return self._start(Collective.ALLGATHER, plan, None, finish)

    def destroy(self) -> None:
        """DestroyGroup: the queue pair goes; what is under way fails."""
        self.pair.fail(Status.FLUSHED)
        self._nic.destroy_pair(self.pair)

    @property
    def current(self) -> Invocation | None:
        """The invocation that is being worked on."""
        return self._queue[0] if self._queue else None

    def combine(self, left: Array, right: Array) -> Array:
        """The group's op on two arrays, as the switch does it: at the root, which adds its own contribution."""
        wide = (left.astype(np.int64), right.astype(np.int64))
        if self.config.op is not Op.SUM:
            return (np.minimum if self.config.op is Op.MIN else np.maximum)(*wide).astype(left.dtype)
        total = wide[0] + wide[1]
        if self.config.overflow is not Overflow.WRAP:
            info = np.iinfo(left.dtype)
            total = np.clip(total, info.min, info.max)
        return total.astype(left.dtype)

    # --- planning ---

    def _start(
        self,
        collective: Collective,
        plan: Sequence[tuple[int, memoryview | None, memoryview | None]],
        op: Op | None,
        finish: Callable[[], Array | None],
    ) -> Invocation:
        """Refuse what the program cannot serve, before a packet is sent; cut the rest into phases and queue it."""
        if collective not in self.config.serves:
            served = ", ".join(sorted(self.config.serves))
            raise InputError(f"{collective}: the program on the tree serves {served}")
        if op is not None and op is not self.config.op:
            raise InputError(f"op {op}: the program on the tree does {self.config.op}")
        invocation = Invocation(collective, _finish=finish)
        for root, send, receive in plan:
            whole = send if send is not None else receive
            assert whole is not None
            step = MAX_PACKETS // self.config.message * self._size
            for start in range(0, max(1, len(whole)), step):
                part = slice(start, start + step)
                packets = len(whole[part]) // self._packet
                control = Control(collective, packets, root, self.config.op, self.config.dtype)
                invocation._phases.append(
                    _Phase(control, None if send is None else send[part], None if receive is None else receive[part])
                )
        self._queue.append(invocation)
        if len(self._queue) == 1:
            self._next_phase()
        return invocation

    def _outgoing(self, values: Array) -> memoryview:
        """Elements as on the wire, big-endian, padded with zeros to whole packets."""
        self._check(values)
        wire = np.zeros(self._padded(values.size), np.dtype(values.dtype).newbyteorder(">"))
        wire[: values.size] = values.reshape(-1)
        return wire.view(np.uint8).data

    def _incoming(self, room: memoryview, like: Array) -> Array:
        wire = np.frombuffer(room, np.dtype(like.dtype).newbyteorder(">"))[: like.size]
        return wire.astype(like.dtype).reshape(like.shape)

    def _room(self, elements: int) -> memoryview:
        return memoryview(bytearray(4 * self._padded(elements)))

    def _padded(self, elements: int) -> int:
        lanes = self._packet // 4
        return -(-elements // lanes) * lanes

    def _parts(self, values: Array) -> list[Array]:
        self._check(values)
        flat = values.reshape(-1)
        if flat.size % self.config.size:
            raise InputError(f"{flat.size} elements do not divide among {self.config.size} ranks")
        each = flat.size // self.config.size
        return [flat[i * each : (i + 1) * each] for i in range(self.config.size)]

    def _check(self, values: Array) -> None:
        if values.dtype != np.dtype(str(self.config.dtype)):
            raise InputError(f"elements are {values.dtype}; the program on the tree works on {self.config.dtype}")

    def _check_root(self, root: int) -> None:
        if not 0 <= root < self.config.size:
            raise InputError(f"root {root} is not a rank of this group of {self.config.size}")

    # --- working it off ---

    def _next_phase(self) -> None:
        """Begin the next phase, or the next invocation, or wait for one."""
        while self._queue:
            invocation = self._queue[0]
            if invocation.started is None:
                invocation.started = self._nic.clock.now
            if invocation._phases:
                self._phase = phase = invocation._phases.popleft()
                # Message 0 is the control message.
                self._messages = 1 + -(-phase.control.packets // self.config.message)
                self._posted = self._sent = self._received = 0
                self._post()
                return
            self._end(invocation)
        self._phase = None

    def _end(self, invocation: Invocation, error: Status | str | None = None) -> None:
        self._queue.popleft()
        invocation.finished = self._nic.clock.now
        invocation.error = error
        if error is None:
            invocation._value = invocation._finish()
        if self._on_done is not None:
            self._on_done(invocation)

    def _post(self) -> None:
        """Keep W messages outstanding."""
        phase = self._phase
        if phase is None:
            return
        waits_for = self._sent if phase.send is not None else self._received
        while self._posted < self._messages and self._posted - waits_for < self.config.window:
            number = self._posted
            self._posted += 1
            part = slice((number - 1) * self._size, number * self._size) if number else slice(0)
            if phase.receive is not None:
                self.pair.post_recv(RecvWr(number, phase.receive[part]))
            if phase.send is not None:
                announced = phase.control.encode() if number == 0 else None
                self.pair.post_send(SendWr(number, phase.send[part], announced))

    def _completed(self, completion: Completion) -> None:
        phase = self._phase
        if phase is None:
            return
        invocation = self._queue[0]
        if completion.status is not Status.SUCCESS:
            # The queue pair is broken for good; invocations to come would only be flushed.
            self._phase = None
            while self._queue:
                self._end(self._queue[0], completion.status)
            return
        if completion.receive:
            self._received += 1
            invocation.messages_received += 1
            problem = self._unexpected(phase, completion)
            if problem is not None:
                self._phase = None
                self._end(invocation, problem)
                self.pair.fail(Status.FLUSHED)
                return
        else:
            self._sent += 1
            invocation.messages_sent += 1
        sent = phase.send is None or self._sent == self._messages
        received = phase.receive is None or self._received == self._messages
        if sent and received:
            self._next_phase()
        else:
            self._post()

    @staticmethod
    def _unexpected(phase: _Phase, completion: Completion) -> str | None:
        """Why a received message is not the one that was to come."""
        if completion.wr_id == 0 and completion.immediate != phase.control.encode():
            return f"a control message announces {completion.immediate}, not {phase.control}"
        if completion.wr_id != 0 and completion.immediate is not None:
            return "a control message came where data was to come"
        return None
