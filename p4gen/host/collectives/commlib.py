"""CommLib: collectives over NumPy arrays, on queue pairs whose other end is an IncTree (EPIC §3.3, §4.2, §A).

A call returns an ``Invocation``, which completes later. A communicator runs its invocations one after the other, in the
steps into which ``plan`` divides them, on its channels. Each phase begins with a control message, which is pipelined
with the data (§3.3.2). All ranks call the same collectives in the same order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from typing_extensions import override

from p4gen.errors import InputError
from p4gen.host.collectives.arrays import (
    Array,
    array_in,
    array_type,
    check_root,
    combine,
    data_of,
    divide,
    dtype_of,
    room_for,
)
from p4gen.host.collectives.channel import PhaseRun
from p4gen.host.collectives.collectives import Collectives
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import (
    SYMMETRIC,
    ChannelKey,
    Connection,
    Flow,
    GroupConfig,
    Part,
    Planner,
    PsnSync,
    Step,
)
from p4gen.host.collectives.verbs import VerbsChannel
from p4gen.host.transport.memory import WRITTEN, MemoryRegion
from p4gen.host.transport.nic import VerbsNic
from p4gen.host.transport.rc import QueuePair, VerbsPair
from p4gen.host.transport.verbs import Status
from p4gen.vocabulary import DType, Op, Overflow
from p4gen.vocabulary.message import Collective, Lease

if TYPE_CHECKING:
    from p4gen.host.collectives.compiled import Channel

__all__ = [
    "SYMMETRIC",
    "Array",
    "ChannelKey",
    "Communicator",
    "Connection",
    "Flow",
    "GroupConfig",
    "Invocation",
    "PsnSync",
]


@dataclass(frozen=True)
class Assembly:
    """How a rank's result is made from its received buffers; ``rooms`` is None if the rank gets no result.

    Among several rooms, None stands for this rank's ``own`` values. A single room is reduced with ``own``.
    """

    rooms: tuple[memoryview | None, ...]
    dtype: DType
    shape: tuple[int, ...]
    own: Array | None = None
    op: Op | None = None
    """None if nothing is reduced at this rank."""

    def value(self, overflow: Overflow | None) -> Array | None:
        """The result; None if the rank gets none."""
        parts = [self.own if room is None else array_in(room, self.dtype, self.shape) for room in self.rooms]
        whole = [part for part in parts if part is not None]
        if len(whole) > 1:
            return np.concatenate(whole)
        if self.op is not None and self.own is not None:
            return combine(self.op, overflow, whole[0], self.own)
        return whole[0] if whole else None


@dataclass(eq=False)
class Job:
    """An invocation and its remaining steps."""

    invocation: Invocation
    outcome: Assembly
    steps: deque[tuple[Step, list[PhaseRun]]]


class Communicator(Collectives):
    """One rank of a group whose switches reduce: calls run one after the other, in the order in which they are made."""

    STATE: ClassVar = ("_queue", "_step", "_left", "_broken")

    def __init__(
        self,
        nic: VerbsNic,
        config: GroupConfig,
        on_done: Callable[[Invocation], None] | None = None,
        memory: MemoryRegion | None = None,
    ) -> None:
        """``memory`` is what switches write results to, if they do; by default memory that is registered now."""
        if config.sync is PsnSync.REFINED and config.ring:
            raise InputError("results are written to a ring for each collective and root: sync subgroups would do")
        if config.sync is PsnSync.REFINED and not nic.compiled:
            raise InputError("refined synchronisation sets PSNs of connections, which verbs cannot do")
        self.config = config
        self._own_memory = None
        if config.ring and memory is None:
            memory = self._own_memory = nic.domain.register(bytearray(config.memory), **WRITTEN)
        self.memory = memory
        self.channels = _channels(nic, config, self, memory)
        self._nic = nic
        self._on_done = on_done
        self._planner = Planner(config)
        self._queue: deque[Job] = deque()
        self._step: Step | None = None
        self._left = 0
        """Number of phases of the current step that have not ended."""
        self._broken: Status | str | None = None

    @property
    def pair(self) -> QueuePair:
        """The queue pair of AllReduce and Barrier, of our NIC; the only one with refined synchronisation."""
        return cast("QueuePair", self.channels[SYMMETRIC].pair)

    @property
    @override
    def pairs(self) -> list[VerbsPair]:
        return [channel.pair for channel in self.channels.values()]

    def parts(self) -> dict[str, object]:
        """The parts that have state, by name, without the queue pairs, which belong to the NIC."""
        channels = {f"channel {pattern} {root}": channel for (pattern, root), channel in self.channels.items()}
        return {"communicator": self, "planner": self._planner, **channels}

    # --- the six collectives ---

    @override
    def all_reduce(self, values: Array, op: Op | None = None) -> Invocation:
        op, dtype = self._kind(values, op)
        out = self._room(values)
        part = Part(0, self._data(values), out)
        return self._start(Collective.ALLREDUCE, [part], op, dtype, Assembly((out,), dtype, values.shape))

    @override
    def barrier(self) -> Invocation:
        """An AllReduce without data (§A)."""
        return self._empty(0)

    def _empty(self, root: int) -> Invocation:
        empty = memoryview(b"")
        op = Op.SUM if self.config.op is Op.DYNAMIC else self.config.op
        dtype = self.config.dtype
        return self._start(Collective.BARRIER, [Part(root, empty, empty)], op, dtype, Assembly((), dtype, ()))

    def acquire(self) -> Invocation:
        """Ask all switches of the tree for the slots that the group shares with others (EPIC §6.2). If they grant them,
        the first element of the result is ``granted``, and the group has them until it calls ``release``."""
        op, dtype = (Op.SUM, DType.INT32) if self.config.op is Op.DYNAMIC else (self.config.op, self.config.dtype)
        values = np.full(self.config.packet // dtype.number_format.bytes, self.granted, array_type(dtype))
        out = self._room(values)
        part = Part(Lease.ACQUIRE, self._data(values), out)
        return self._start(Collective.BARRIER, [part], op, dtype, Assembly((out,), dtype, values.shape))

    @property
    def granted(self) -> int:
        """The first element of what ``acquire`` brings, if no switch refuses."""
        return int(self.config.op is Op.MIN)

    def release(self) -> Invocation:
        """Give back what ``acquire`` has got. All ranks call it when the calls are over that needed it."""
        return self._empty(Lease.RELEASE)

    @override
    def reduce(self, values: Array, root: int, op: Op | None = None) -> Invocation:
        """The tree reduces the values of all ranks but the root, which adds its own (§A)."""
        op, dtype = self._kind(values, op)
        check_root(root, self.config.size, self.config.roots)
        if self.config.rank != root:
            part = Part(root, self._data(values), None)
            return self._start(Collective.REDUCE, [part], op, dtype, Assembly((), dtype, ()))
        out = self._room(values)
        outcome = Assembly((out,), dtype, values.shape, values.copy(), op)
        return self._start(Collective.REDUCE, [Part(root, None, out)], op, dtype, outcome)

    @override
    def broadcast(self, values: Array, root: int) -> Invocation:
        op, dtype = self._kind(values, None)
        check_root(root, self.config.size, self.config.roots)
        if self.config.rank == root:
            outcome = Assembly((None,), dtype, values.shape, values.copy())
            return self._start(Collective.BROADCAST, [Part(root, self._data(values), None)], op, dtype, outcome)
        out = self._room(values)
        outcome = Assembly((out,), dtype, values.shape)
        return self._start(Collective.BROADCAST, [Part(root, None, out)], op, dtype, outcome)

    @override
    def reduce_scatter(self, values: Array, op: Op | None = None) -> Invocation:
        """One Reduce for each rank (§A)."""
        op, dtype = self._kind(values, op)
        parts = divide(values, self.config.size)
        own = parts[self.config.rank]
        out = self._room(own)
        plan = [
            Part(root, None, out) if root == self.config.rank else Part(root, self._data(part), None)
            for root, part in enumerate(parts)
        ]
        outcome = Assembly((out,), dtype, own.shape, own.copy(), op)
        return self._start(Collective.REDUCE_SCATTER, plan, op, dtype, outcome)

    @override
    def all_gather(self, values: Array) -> Invocation:
        """One Broadcast for each rank (§A)."""
        op, dtype = self._kind(values, None)
        mine = self.config.rank
        rooms = tuple(None if root == mine else self._room(values) for root in range(self.config.size))
        plan = [Part(root, self._data(values) if room is None else None, room) for root, room in enumerate(rooms)]
        return self._start(
            Collective.ALLGATHER, plan, op, dtype, Assembly(rooms, dtype, (values.size,), values.reshape(-1).copy())
        )

    @override
    def destroy(self) -> None:
        self.channel_failed(Status.FLUSHED)
        for pair in self.pairs:
            self._nic.destroy_pair(pair)
        if self._own_memory is not None:
            self._nic.domain.deregister(self._own_memory)

    @property
    def current(self) -> Invocation | None:
        """The invocation that is sending or receiving; None if no call is under way."""
        return self._queue[0].invocation if self._queue else None

    def under_way(self) -> list[Invocation]:
        """The invocations that have not ended."""
        return [job.invocation for job in self._queue]

    def arriving(self) -> list[tuple[Invocation, tuple[memoryview | None, ...]]]:
        """The invocations that have not ended, with the buffers for what they receive."""
        return [(job.invocation, job.outcome.rooms) for job in self._queue]

    # --- planning ---

    def _kind(self, values: Array, op: Op | None) -> tuple[Op, DType]:
        """Op and dtype of a call. Raises ``InputError`` when the program on the tree does not support them."""
        return self.config.kind(dtype_of(values), op)

    def _data(self, values: Array) -> memoryview:
        return data_of(values, self.config.packet)

    def _room(self, like: Array) -> memoryview:
        return room_for(like, self.config.packet)

    def _start(
        self,
        collective: Collective,
        parts: Sequence[Part],
        op: Op,
        dtype: DType,
        outcome: Assembly,
    ) -> Invocation:
        """Queue an invocation. Raises ``InputError``, before any packet is sent, when the program cannot serve it."""
        steps = self._planner.plan(collective, parts, op, dtype)
        invocation = Invocation(collective)
        job = Job(invocation, outcome, deque())
        if self._broken is not None:
            invocation.started = self._nic.clock.now
            self._end(job, self._broken)
            return invocation
        self._queue.append(job)
        for step in steps:
            mine = [self.channels[phase.channel].prepare(phase, invocation) for phase in step.phases]
            job.steps.append((step, mine))
            for run in mine:
                invocation.messages += run.messages * (2 - (run.phase.send, run.phase.receive).count(None))
        if len(self._queue) == 1:
            self._next_step()
        return invocation

    # --- running invocations ---

    def _next_step(self) -> None:
        """Begin the next step of the current invocation, or the next invocation if there is one."""
        while self._queue and self._step is None:  # the callback of an end may have made another call
            job = self._queue[0]
            if job.invocation.started is None:
                job.invocation.started = self._nic.clock.now
            if job.steps:
                step, runs = job.steps.popleft()
                self._step, self._left = step, len(runs)
                for run in runs:
                    if self._broken is not None:
                        return
                    self.channels[run.phase.channel].begin(run)
                return
            self._queue.popleft()
            self._end(job)

    def run_ended(self, run: PhaseRun) -> None:
        """A phase has ended (``channel.Owner``)."""
        step = self._step
        if self._broken is not None or step is None:
            return
        self._left -= 1
        if step.move_idle:
            pair = self.pair
            if run.phase.send is None:
                pair.set_sq_psn(pair.responder.psn(pair.responder.expected))
            else:
                pair.set_rq_psn(pair.requester.psn(pair.requester.end))
        if not self._left:
            self._step = None
            self._next_step()

    def channel_failed(self, error: Status | str) -> None:
        """A queue pair has failed (``channel.Owner``): destroy the others, and end all queued invocations."""
        if self._broken is not None:
            return
        self._broken = error
        self._step = None
        for pair in self.pairs:
            pair.fail(Status.FLUSHED)
        while self._queue:
            self._end(self._queue.popleft(), error)

    def _end(self, job: Job, error: Status | str | None = None) -> None:
        value = job.outcome.value(self.config.overflow) if error is None else None
        job.invocation.end(self._nic.clock.now, value, error)
        if self._on_done is not None:
            self._on_done(job.invocation)


def _channels(
    nic: VerbsNic, config: GroupConfig, owner: Communicator, memory: MemoryRegion | None
) -> Mapping[ChannelKey, Channel | VerbsChannel]:
    """The channels of a group, in machine code if the NIC has it, and results are not written to memory."""
    if memory is not None and config.ring:
        parts = (memory.buffer[i * config.channel_memory :] for i in range(len(config.channels)))
        return {
            key: VerbsChannel(nic, config, key, owner, part) for key, part in zip(config.channels, parts, strict=True)
        }
    if not nic.compiled:
        return {key: VerbsChannel(nic, config, key, owner) for key in config.channels}
    # Numba takes a while to load, and whoever only describes a group does not need it.
    from p4gen.host.collectives.compiled import Channel  # noqa: PLC0415

    return {key: Channel(nic, config, key, owner) for key in config.channels}
