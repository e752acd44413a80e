"""A rank of a group in real time: collectives as blocking calls, even if the group's tree changes meanwhile."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

import numpy as np
from typing_extensions import override

from p4gen.errors import FailedError, InputError
from p4gen.groups.group import Memory
from p4gen.groups.ranks import ACK_EVERY
from p4gen.host.collectives.arrays import Array
from p4gen.host.collectives.collectives import Collectives
from p4gen.host.collectives.commlib import Communicator, GroupConfig, Invocation
from p4gen.host.collectives.leased import LeasedCommunicator, LeasedInvocation
from p4gen.host.collectives.ring import Ring
from p4gen.host.collectives.striped import StripedCommunicator
from p4gen.host.transport.clock import SECOND
from p4gen.host.transport.memory import WRITTEN, MemoryRegion
from p4gen.host.transport.realtime import Station
from p4gen.manager.api import Code, HostManager, ManagerError, RankConfig, RankReport
from p4gen.manager.ranks.calls import ROOTED, CallResult, RankCall
from p4gen.manager.ranks.follower import KEPT, Follower
from p4gen.manager.ranks.own import own_collectives
from p4gen.manager.ranks.ranks import TIMEOUT, group_config, ring_config, tree_configs
from p4gen.vocabulary import Op, ProgramSpec
from p4gen.vocabulary.message import Collective

AHEAD: Final = KEPT // 2
"""Reduces and Broadcasts in a row that a rank makes on a ring without a Barrier."""


class Member(Follower):
    """A rank of a group; created by ``Host.member``. Methods may be called from all threads; on the loop's, those that
    wait may not.

    All ranks make the same calls in the same order. A call waits as long as the group is broken. With a ``deadline``
    (seconds) it fails with the reason but keeps its position: other ranks may have completed it, so it is executed when
    the group comes back, and its result is dropped. When the group is destroyed all calls fail.
    """

    def __init__(
        self,
        group: str,
        nic: Station,
        manager: HostManager,
        submit: Callable[[RankReport], None],
        *,
        timeout_ps: int = TIMEOUT,
        ack_every: int = ACK_EVERY,
    ) -> None:
        super().__init__(group, nic, manager, submit)
        self._regions: list[MemoryRegion] = []
        """What this host has offered for results, if switches write them."""
        self.add_end(self._withdraw)
        self._timeout_ps, self._ack_every = timeout_ps, ack_every
        self._config: GroupConfig | None = None
        self._communicator: Collectives | None = None
        self._queue: deque[RankCall] = deque()
        """Calls that are not completed, in order."""
        self._kept: deque[RankCall] = deque(maxlen=KEPT)
        self._under_way: deque[RankCall | None] = deque()
        """Calls that the communicator is executing, in order; None is a Barrier that was added between them."""
        self.spec: ProgramSpec | None = None
        """The program on the tree; None before the group was active."""
        self._unconfirmed = 0
        """Calls on the ring that other ranks may not have begun."""
        self._looks_at: int | None = None
        """When it looks for calls that are overdue next; None without calls that have a deadline."""
        self._failure = ""
        """Why calls cannot complete in this generation."""
        self._asking = False
        """Whether rank 0 waits for the manager's answer about its next call."""

    # --- collectives ---

    def all_reduce(self, values: Array, op: Op | None = None, deadline: float | None = None) -> Array:
        """The reduction of all ranks' values."""
        return self._array(self.begin(Collective.ALLREDUCE, values, 0, op, deadline))

    def reduce(self, values: Array, root: int, op: Op | None = None, deadline: float | None = None) -> Array | None:
        """The reduction at the root, None elsewhere."""
        value: Array | None = self._wait(self.begin(Collective.REDUCE, values, root, op, deadline)).value
        return value

    def broadcast(self, values: Array, root: int, deadline: float | None = None) -> Array:
        """The root's values; at other ranks ``values`` gives only the shape."""
        return self._array(self.begin(Collective.BROADCAST, values, root, None, deadline))

    def reduce_scatter(self, values: Array, op: Op | None = None, deadline: float | None = None) -> Array:
        """This rank's part of the reduction."""
        return self._array(self.begin(Collective.REDUCE_SCATTER, values, 0, op, deadline))

    def all_gather(self, values: Array, deadline: float | None = None) -> Array:
        """All ranks' values, in order of rank."""
        return self._array(self.begin(Collective.ALLGATHER, values, 0, None, deadline))

    def barrier(self, deadline: float | None = None) -> None:
        """Return at no rank before all have called it."""
        self._wait(self.begin(Collective.BARRIER, None, 0, None, deadline))

    def begin(
        self,
        collective: Collective,
        values: Array | None = None,
        root: int = 0,
        op: Op | None = None,
        deadline: float | None = None,
    ) -> Future[CallResult]:
        """Call a collective without waiting for it. The values are copied.

        Raises ``InputError`` when the program does not support it, here or, while the program is unknown, from the
        future. The future raises ``FailedError`` for all other errors.
        """
        copy: Array = np.array(np.zeros(0) if values is None else values)
        call = RankCall(collective, copy, root, op, deadline)
        if self._config is not None:
            call.check(self._config)
        call.future.set_running_or_notify_cancel()  # other ranks count on the call: it cannot be cancelled
        self._loop.call(self._add, call)
        return call.future

    def offer(self, size: int) -> Memory:
        """Memory of ``size`` bytes for results, which stays registered until the rank ends. Call it on the loop."""
        found = next((each for each in self._regions if len(each.buffer) >= size), None)
        if found is None:
            found = self._nic.nic.domain.register(bytearray(size), **WRITTEN)
            self._regions.append(found)
        return Memory(found.address, found.rkey, len(found.buffer))

    def _withdraw(self, _: str) -> None:
        while self._regions:
            self._nic.nic.domain.deregister(self._regions.pop())

    def _region(self, config: RankConfig) -> MemoryRegion | None:
        """The memory that switches write to in a generation; None if this process has not offered it."""
        memory = config.memory
        same = (each for each in self._regions if memory and (each.address, each.rkey) == (memory.address, memory.rkey))
        return next(same, None)

    @property
    def program(self) -> GroupConfig | None:
        """What the program on the tree does, for this rank; None before the group was active."""
        return self._config

    def sent_by_tree(self) -> tuple[int, ...]:
        """The number of packets sent over each tree in this generation; empty, unless the group has several. May be
        called from any thread."""
        library = self._communicator
        trees = library.communicators if isinstance(library, StripedCommunicator) else ()
        return tuple(sum(pair.counts()["sent"] for pair in tree.pairs) for tree in trees)

    @override
    def progress(self) -> float:
        with contextlib.suppress(IndexError):  # the call has just ended
            call = self._under_way[0]
            invocation = call.invocation if call is not None else None
            if invocation is not None:
                return invocation.progress
        return 0.0

    def _wait(self, future: Future[CallResult]) -> CallResult:
        if self._loop.inside:
            raise RuntimeError("a blocking call was made on the loop on which it depends")
        return future.result()

    def _array(self, future: Future[CallResult]) -> Array:
        value: Array | None = self._wait(future).value
        assert value is not None
        return value

    # --- on the loop: calls ---

    def _add(self, call: RankCall) -> None:
        if self._ended or self._failed:
            call.fail(f"{call.collective} of group {self.group}: {self._ended or self._failed}")
            return
        self._queue.append(call)
        self._limit(call)
        self._watch_counters()
        if self._failure:
            call.fail(f"{call.collective} of group {self.group}: {self._failure}")
        elif self._running and self._asks:
            self._ask()
        elif self._running:
            self._make(call)

    def _limit(self, call: RankCall) -> None:
        """Have a call fail when it is overdue. It keeps its position."""
        if call.patience is not None:
            call.until = self._loop.now + int(call.patience * SECOND)
            if self._looks_at is None or call.until < self._looks_at:
                self._looks_at = call.until
                self._loop.at(call.until, self._look, call.until)

    def _look(self, at: int) -> None:
        """Fail the calls that are overdue."""
        if at != self._looks_at:
            return  # it has looked since, for a call with less patience
        for call in [*self._queue]:
            if call.until is not None and call.until <= self._loop.now:
                why = f"has not ended in {call.patience:g} s: {self._why()}"
                call.fail(f"{call.collective} of group {self.group} {why}")
        waiting = [call.until for call in self._queue if call.until is not None and not call.future.done()]
        self._looks_at = min(waiting, default=None)
        if self._looks_at is not None:
            self._loop.at(self._looks_at, self._look, self._looks_at)

    def _make(self, call: RankCall) -> None:
        assert self._communicator is not None
        self._confirm(call)
        call.begun += 1
        if call.started is None and call.invocation is not None:
            call.started = call.invocation.started
        self._under_way.append(call)
        try:
            assert self._config is not None
            call.check(self._config)
            call.invocation = call.make(self._communicator)
        except InputError as error:
            self._under_way.pop()
            self._queue.remove(call)
            if not call.future.done():
                call.future.set_exception(error)

    def _confirm(self, call: RankCall) -> None:
        """On a ring, pass a Barrier before a rank could get further ahead than calls are kept: it may complete Reduces
        and Broadcasts that others have not begun. All ranks pass it before the same calls."""
        if not isinstance(self._communicator, Ring):
            return
        if call.collective not in ROOTED:
            self._unconfirmed = 0
        elif self._unconfirmed == AHEAD:
            self._unconfirmed = 1
            self._under_way.append(None)
            self._communicator.barrier()
        else:
            self._unconfirmed += 1

    def _complete(self, invocation: Invocation) -> None:
        call = self._under_way.popleft()
        if not self._running or self._failure:
            return  # it ends because the queue pairs are being destroyed
        if invocation.error is not None:
            self._failure = f"a queue pair failed: {invocation.error}"
            for waiting in self._queue:
                waiting.fail(f"{waiting.collective} of group {self.group}: {self._failure}")
            return
        if not self._queue or call is not self._queue[0]:
            self._ended_call()
            if self._asks:
                self._ask()
            return  # repeated for other ranks
        self._kept.append(self._queue.popleft())
        self.completed += 1
        self._ended_call()
        assert self._config is not None
        ranks = self._config.size if call.collective is Collective.ALLGATHER else 1
        self._data_bytes += call.values.nbytes * ranks
        if not call.future.done():
            assert invocation.started is not None
            assert invocation.finished is not None
            started = invocation.started if call.started is None else call.started
            times = started, invocation.finished, invocation.last_result
            refused = isinstance(invocation, LeasedInvocation) and not invocation.granted
            ring = refused or isinstance(self._communicator, Ring)
            call.future.set_result(CallResult(invocation.result(), *times, call.begun, ring))
        if self._asks:
            self._ask()

    # --- on the loop: leases ---

    @property
    def _asks(self) -> bool:
        """Whether this rank asks the manager before each call."""
        return self._joined is not None and self._joined.leased and self._joined.rank == 0

    def _ask(self) -> None:
        """Make the next call, or ask the manager about it. No other call is under way."""
        config = self._joined
        while self._queue and self._queue[0].asked and self._running and not self._under_way and not self._failure:
            self._make(self._queue[0])  # which leaves the queue if it is invalid
        if config is None or not self._running or self._asking or self._failure or not self._queue or self._under_way:
            return
        self._asking = True
        arguments = config, self._queue[0], self.completed
        threading.Thread(target=self._begin_call, args=arguments, name=f"{self.group} lease", daemon=True).start()

    def _begin_call(self, config: RankConfig, call: RankCall, number: int) -> None:
        """Wait for the manager's answer, on a separate thread. Without a manager nothing changes, so the call is made
        in the present generation; if that is over, no call is made."""
        go: bool | None = True
        try:
            go = self._manager.begin_call(config.group, config.generation, number)
        except ManagerError as error:
            if error.code in (Code.REFUSED, Code.NOT_FOUND):
                go = None
        with contextlib.suppress(FailedError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._answered, (config, call, go))

    def _answered(self, answer: tuple[RankConfig, RankCall, bool | None]) -> None:
        config, call, go = answer
        self._asking = False
        call.asked |= go is not None
        if go or config is not self._joined:
            self._ask()  # otherwise another generation is about to be announced

    def _ended_call(self) -> None:
        config = self._joined
        if config is not None and config.leased:
            arguments = config, self.completed
            threading.Thread(target=self._end_call, args=arguments, name=f"{self.group} end", daemon=True).start()

    def _end_call(self, config: RankConfig, completed: int) -> None:
        with contextlib.suppress(ManagerError):  # the lease ends by itself, or has ended
            self._manager.end_call(config.group, config.generation, config.rank, completed)

    # --- on the loop: generations ---

    @override
    def _unfit(self, config: RankConfig) -> str:
        if not (config.spec.takes_part or own_collectives(config.spec) is not None):
            return f"group {self.group} is of {config.spec.family}, and this host has offered it no memory"
        if not config.spec.uses_memory or not config.channels or self._region(config) is not None:
            return ""
        return f"group {self.group}: this process of the host has not offered the memory for results"

    @override
    def _create(self, config: RankConfig) -> None:
        self.spec = config.spec
        self._unconfirmed = 0
        own = own_collectives(config.spec)
        if own is not None:
            self._config = own.program(config.spec, config)
            self._communicator = own.make(config.spec, self._nic.nic, config, self._timeout_ps, self._complete)
            return
        self._config = group_config(config, timeout_ps=self._timeout_ps, ack_every=self._ack_every)
        ring = None
        if config.ring:
            ring = ring_config(config, timeout_ps=self._timeout_ps, ack_every=self._ack_every)
        if ring is not None and config.channels:
            other = Ring(self._nic.nic, ring)
            self._communicator = LeasedCommunicator(self._nic.nic, self._config, other, self._complete)
        elif ring is not None:
            self._communicator = Ring(self._nic.nic, ring, self._complete)
        elif config.trees:
            trees = tree_configs(config, timeout_ps=self._timeout_ps, ack_every=self._ack_every)
            rates = [tree.rate for tree in config.trees]
            self._communicator = StripedCommunicator(self._nic.nic, trees, rates, self._complete)
        else:
            self._communicator = Communicator(self._nic.nic, self._config, self._complete, self._region(config))

    @override
    def _destroy(self) -> None:
        self._failure = ""
        assert self._communicator is not None
        self._communicator.destroy()
        self._communicator = None
        self._under_way.clear()

    @override
    def _go_on(self, again: int) -> None:
        if again > len(self._kept):
            self._failure = f"call {self.completed - again} must be repeated, but its input is no longer kept"
            for call in self._queue:
                call.fail(f"{call.collective} of group {self.group}: {self._failure}")
            return
        kept = [*self._kept]
        for call in (*kept[len(kept) - again :], *(() if self._asks else self._queue)):
            self._make(call)
        if self._asks:
            self._ask()

    @override
    def _fail_waiting(self, reason: str) -> None:
        while self._queue:
            call = self._queue.popleft()
            call.fail(f"{call.collective} of group {self.group}: {reason}")
        self._kept.clear()

    @override
    def _counts(self) -> Counter[str]:
        return Counter() if self._communicator is None else self._communicator.counts()

    @override
    def _waits(self) -> bool:
        return bool(self._queue)
