"""A rank of a group in real time: collectives as blocking calls, even if the group's tree changes meanwhile.

The manager may place a group again at any time (a *generation*). A rank then creates new queue pairs, reports to the
manager how many calls it has completed, and gets the least number of all ranks: from that call on everything is
repeated, with the inputs that were kept. A rank that has completed such a call has its result; the others need its
contribution.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

import numpy as np

from p4gen.errors import FailedError, InputError
from p4gen.groups.ranks import ACK_EVERY
from p4gen.host.collectives.arrays import Array
from p4gen.host.collectives.commlib import Communicator, GroupConfig, Invocation
from p4gen.host.collectives.control import Collective
from p4gen.host.transport.clock import MS, SECOND
from p4gen.host.transport.raw import RawNic
from p4gen.manager.api import Code, GroupState, HostManager, ManagerError, Membership, RankConfig, RankReport
from p4gen.manager.calls import Call, CallResult, check_call
from p4gen.manager.ranks import TIMEOUT, group_config
from p4gen.spec import CollectiveSpec, Op

KEPT: Final = 8
"""Number of completed calls whose inputs a rank keeps; no rank is further ahead of another."""
REPORT_EVERY: Final = SECOND // 2
_RETRY_S: Final = 0.5
_RETRY: Final = 100 * MS
_NOT_OURS: Final = frozenset({"not_udp_over_ipv4", "not_rocev2", "truncated"})
"""Reasons of frames that the NIC refuses because they belong to the kernel."""


class Member:
    """A rank of a group; created by ``Host.member``. Methods may be called from all threads but the loop's.

    All ranks make the same calls in the same order. A call waits as long as the group is broken. With a ``deadline``
    (seconds) it fails with the reason but keeps its position: other ranks may have completed it, so it is executed when
    the group comes back, and its result is dropped. When the group is destroyed all calls fail.
    """

    def __init__(
        self,
        group: str,
        nic: RawNic,
        manager: HostManager,
        submit: Callable[[RankReport], None],
        *,
        timeout_ps: int = TIMEOUT,
        ack_every: int = ACK_EVERY,
    ) -> None:
        self.group = group
        self.state = GroupState.INSTALLING
        self.reason = ""
        """The manager's reason why the group is broken."""
        self.generation = 0
        """The generation of the newest queue pairs; 0 before there are any."""
        self.completed = 0
        """Number of calls that this rank has completed."""
        self._nic, self._loop, self._manager, self._submit = nic, nic.loop, manager, submit
        self._timeout_ps, self._ack_every = timeout_ps, ack_every
        self._wanted: RankConfig | None = None
        self._last: RankConfig | None = None
        """The newest configuration of an active generation."""
        self._config: GroupConfig | None = None
        self._communicator: Communicator | None = None
        self._running = False
        """Whether all ranks are ready, so that calls are given to the communicator."""
        self._queue: deque[Call] = deque()
        """Calls that are not completed, in order."""
        self._kept: deque[Call] = deque(maxlen=KEPT)
        self._under_way: deque[Call] = deque()
        """Calls that the communicator is executing, in order."""
        self._failure = ""
        """Why calls cannot complete in this generation."""
        self._ended = ""
        """Why no more calls are possible."""
        self._past: Counter[str] = Counter()
        """Counters of queue pairs that were destroyed."""
        self._data_bytes = 0
        self._reported: RankReport | None = None
        self._report_set = False

    # --- collectives ---

    @property
    def rank(self) -> int | None:
        """This host's rank; None before the group was active."""
        return None if self._config is None else self._config.rank

    @property
    def size(self) -> int | None:
        """The number of ranks; None before the group was active."""
        return None if self._config is None else self._config.size

    def all_reduce(self, values: Array, op: Op | None = None, deadline: float | None = None) -> Array:
        """The reduction of all ranks' values."""
        return self._array(self.begin(Collective.ALLREDUCE, values, 0, op, deadline))

    def reduce(self, values: Array, root: int, op: Op | None = None, deadline: float | None = None) -> Array | None:
        """The reduction at the root, None elsewhere."""
        return self._wait(self.begin(Collective.REDUCE, values, root, op, deadline)).value

    def broadcast(self, values: Array, root: int, deadline: float | None = None) -> Array:
        """The root's values; at other ranks ``values`` gives only the shape."""
        return self._array(self.begin(Collective.BROADCAST, values, root, None, deadline))

    def reduce_scatter(self, values: Array, op: Op | None = None, deadline: float | None = None) -> Array:
        """Of the reduction, this rank's part."""
        return self._array(self.begin(Collective.REDUCE_SCATTER, values, 0, op, deadline))

    def all_gather(self, values: Array, deadline: float | None = None) -> Array:
        """All ranks' values, in order of rank."""
        return self._array(self.begin(Collective.ALLGATHER, values, 0, None, deadline))

    def barrier(self, deadline: float | None = None) -> None:
        """Ends at no rank before all have called it."""
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
        if self._config is not None:
            check_call(self._config, collective, copy, root, op)
        call = Call(collective, copy, root, op)
        call.future.set_running_or_notify_cancel()  # others count on it: it cannot be taken back
        self._loop.call_soon_threadsafe(self._add, call)
        if deadline is not None:
            self._loop.call_soon_threadsafe(self._limit, (weakref.ref(call), deadline))
        return call.future

    def progress(self) -> float:
        """The fraction of the running call that is done, from 0 to 1. May be called from any thread."""
        with contextlib.suppress(IndexError):  # the call has just ended
            invocation = self._under_way[0].invocation
            if invocation is not None and invocation.messages:
                return min(1.0, (invocation.messages_sent + invocation.messages_received) / invocation.messages)
        return 0.0

    def _wait(self, future: Future[CallResult]) -> CallResult:
        if self._loop.inside:
            raise RuntimeError("a blocking call was made on the loop on which it depends")
        return future.result()

    def _array(self, future: Future[CallResult]) -> Array:
        value = self._wait(future).value
        assert value is not None
        return value

    def report(self) -> RankReport:
        """The counters of this rank and of its host's NIC."""
        counts = Counter(self._past)
        communicator = self._communicator
        if communicator is not None:
            counts += _counted(communicator)
        dropped = {reason: count for reason, count in self._nic.nic.dropped.items() if reason not in _NOT_OURS}
        return RankReport(self.group, self.rank or 0, self.completed, self._data_bytes, **counts, dropped=dropped)

    # --- on the loop: calls ---

    def _add(self, call: Call) -> None:
        if self._ended:
            call.fail(f"{call.collective} of group {self.group}: {self._ended}")
            return
        self._queue.append(call)
        self._watch_counters()
        if self._failure:
            call.fail(f"{call.collective} of group {self.group}: {self._failure}")
        elif self._running:
            self._make(call)

    def _limit(self, which: tuple[weakref.ref[Call], float]) -> None:
        seconds = which[1]
        self._loop.at(self._loop.now + int(seconds * SECOND), self._overdue, which)

    def _overdue(self, which: tuple[weakref.ref[Call], float]) -> None:
        reference, seconds = which
        call = reference()
        if call is not None:
            call.fail(f"{call.collective} of group {self.group} has not ended in {seconds:g} s: {self._why()}")

    def _why(self) -> str:
        if self.state is GroupState.BROKEN:
            return f"the group is broken: {self.reason}" if self.reason else "the group is broken"
        if self._communicator is None:
            return "the group is not active"
        if not self._running:
            return f"not all ranks have joined generation {self.generation}"
        return "other ranks have not called it, or packets are lost"

    def _make(self, call: Call) -> None:
        assert self._communicator is not None
        call.begun += 1
        if call.started is None and call.invocation is not None:
            call.started = call.invocation.started
        self._under_way.append(call)
        try:
            call.invocation = call.make(self._communicator)
        except InputError as error:
            self._under_way.pop()
            self._queue.remove(call)
            if not call.future.done():
                call.future.set_exception(error)

    def _done(self, invocation: Invocation) -> None:
        call = self._under_way.popleft()
        if not self._running or self._failure:
            return  # it ends because the queue pairs are being destroyed
        if invocation.error is not None:
            self._failure = f"a queue pair failed: {invocation.error}"
            for waiting in self._queue:
                waiting.fail(f"{waiting.collective} of group {self.group}: {self._failure}")
            return
        if not self._queue or call is not self._queue[0]:
            return  # repeated for other ranks
        self._kept.append(self._queue.popleft())
        self.completed += 1
        assert self._config is not None
        ranks = self._config.size if call.collective is Collective.ALLGATHER else 1
        self._data_bytes += call.values.nbytes * ranks
        if not call.future.done():
            assert invocation.started is not None
            assert invocation.finished is not None
            started = invocation.started if call.started is None else call.started
            times = started, invocation.finished, invocation.last_result
            call.future.set_result(CallResult(invocation.result(), *times, call.begun))

    # --- on the loop: generations ---

    def continues(self, news: Membership) -> bool:
        """Whether a membership belongs to the same group, not to another one of the same name."""
        last, config = self._last, news.config
        return last is None or config is None or config == last or config.generation > last.generation

    def follow(self, news: Membership) -> None:
        """Handle a change of the group's membership."""
        self.state, self.reason = news.state, news.reason
        if news.gone:
            self.end(f"group {self.group} was destroyed")
        elif news.config is not None and not isinstance(news.config.spec, CollectiveSpec):
            self.end(f"group {self.group} is of {news.config.spec.family}, whose writes this CommLib does not make")
        elif news.state is GroupState.ACTIVE and news.config is not None:
            self._wanted = self._last = news.config
            if self._communicator is None or news.config.generation != self.generation:
                self._leave()
                self._join(news.config)
        elif news.state in (GroupState.BROKEN, GroupState.REMOVING):
            self._wanted = None
            self._leave()

    def end(self, reason: str) -> None:
        """End the rank: waiting calls fail, and so do later ones."""
        if self._ended:
            return
        self._ended = reason
        self._wanted = None
        self._leave()
        while self._queue:
            call = self._queue.popleft()
            call.fail(f"{call.collective} of group {self.group}: {reason}")
        self._kept.clear()

    def _join(self, config: RankConfig) -> None:
        if config is not self._wanted:
            return
        self.generation = config.generation
        self._config = group_config(config, timeout_ps=self._timeout_ps, ack_every=self._ack_every)
        if not config.spec.icrc.right:
            self._nic.nic.checks_icrc = False
        numbers = {connection.qp for connection in self._config.channels.values()}
        if not numbers.isdisjoint(self._nic.nic.pairs):
            # Also for a group that is being destroyed, of which the manager has not notified this rank yet.
            self._loop.at(self._loop.now + _RETRY, self._join, config)
            return
        self._communicator = Communicator(self._nic.nic, self._config, self._done)
        arguments = self._communicator, config, self.completed
        threading.Thread(target=self._get_ready, args=arguments, name=f"{self.group} ready", daemon=True).start()

    def _get_ready(self, communicator: Communicator, config: RankConfig, completed: int) -> None:
        """Wait for the other ranks, on a separate thread."""
        pause = threading.Event()
        while communicator is self._communicator:
            try:
                first = self._manager.ready(config.group, config.generation, config.rank, completed)
                self._loop.call_soon_threadsafe(self._begin, (communicator, first))
                return
            except ManagerError as error:
                if error.code in (Code.REFUSED, Code.NOT_FOUND):
                    return  # this generation is over; another membership will arrive
                pause.wait(_RETRY_S)
            except FailedError:
                return  # the loop has ended

    def _begin(self, ready: tuple[Communicator, int]) -> None:
        communicator, first = ready
        if communicator is not self._communicator:
            return
        self._running = True
        again = self.completed - first
        if again > len(self._kept):
            self._failure = f"call {first} must be repeated, but its input is no longer kept"
            for call in self._queue:
                call.fail(f"{call.collective} of group {self.group}: {self._failure}")
            return
        kept = [*self._kept]
        for call in (*kept[len(kept) - again :], *self._queue):
            self._make(call)
        self._watch_counters()

    def _leave(self) -> None:
        self._running = False
        self._failure = ""
        if self._communicator is not None:
            self._past += _counted(self._communicator)
            self._communicator.destroy()
            self._communicator = None
        self._under_way.clear()

    # --- on the loop: counters ---

    def _watch_counters(self) -> None:
        if not self._report_set:
            self._report_set = True
            self._loop.at(self._loop.now + REPORT_EVERY, self._report)

    def _report(self, _: object) -> None:
        self._report_set = False
        report = self.report()
        if self._config is not None and not self._ended and (self._queue or report != self._reported):
            self._reported = report
            self._submit(report)
            self._watch_counters()


def _counted(communicator: Communicator) -> Counter[str]:
    found: Counter[str] = Counter()
    for pair in communicator.pairs:
        stats = pair.requester.stats
        for name in ("sent", "resent", "timeouts", "naks", "cnps"):
            found[name] += getattr(stats, name)
    return found
