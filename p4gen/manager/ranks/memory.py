"""A rank of a group whose switches address the ranks' memory, in real time.

The memory exists before the group does: the host offers it (``Host.offer``), InitGroup gets its address, and every
generation of the group has it. The family knows which calls a rank makes, and what arrives in its memory
(``MemoryRank``).
"""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from typing_extensions import override

from p4gen.errors import FailedError
from p4gen.groups.group import Memory
from p4gen.host.collectives.collectives import counted
from p4gen.host.transport.clock import SECOND
from p4gen.host.transport.nic import VerbsNic
from p4gen.host.transport.rc import VerbsPair
from p4gen.host.transport.realtime import Station
from p4gen.manager.api import HostManager, RankConfig, RankReport
from p4gen.manager.ranks.calls import CallResult
from p4gen.manager.ranks.follower import KEPT, Follower
from p4gen.vocabulary import ProgramSpec


class MemoryRank(Protocol):
    """A family's rank on a NIC. ``problems`` are errors, after which no call ends."""

    @property
    def memory(self) -> Memory:
        """The memory that the host offers; registered as long as the rank exists."""
        ...

    @property
    def pairs(self) -> Iterable[VerbsPair]:
        """The queue pairs, if it is connected."""
        ...

    @property
    def problems(self) -> list[str]:
        """Errors of connections, and of the data that others have sent."""
        ...

    @property
    def done(self) -> bool:
        """Whether the last call that was started is completed."""
        ...

    def progress(self) -> float:
        """The fraction of that call that is done, from 0 to 1."""
        ...

    @property
    def place(self) -> tuple[int, int, ProgramSpec]:
        """The rank that the memory is laid out for, of how many, and the program."""
        ...

    def connect(self, config: RankConfig, timeout_ps: int) -> None:
        """Create the queue pairs of a generation, with a retransmission timer of ``timeout_ps`` or more."""

    def disconnect(self) -> None:
        """Destroy the queue pairs, and forget all calls and the memory's contents."""

    def close(self) -> None:
        """Deregister the memory: no switch can read or write it afterwards."""


Make = Callable[[VerbsNic, Callable[[], None]], MemoryRank]
"""Creates a rank on a NIC; it calls the function whenever a call may have ended."""


@dataclass(eq=False)
class _Call:
    start: Callable[[Any], None]
    finish: Callable[[Any], Any]
    size: int
    future: Future[CallResult] = field(default_factory=Future)
    begun: int = 0
    started: int = 0

    def fail(self, reason: str) -> None:
        if not self.future.done():
            self.future.set_exception(FailedError(reason))


class MemoryMember(Follower):
    """A rank of a group, created by ``Host.offer``. Methods may be called from all threads but the loop's.

    All ranks make the same calls in the same order. A call waits as long as the group is broken; when it is placed
    again, ranks repeat the call that some of them have not completed.
    """

    offered = True

    def __init__(
        self,
        group: str,
        nic: Station,
        manager: HostManager,
        submit: Callable[[RankReport], None],
        make: Make,
        timeout_ps: int,
    ) -> None:
        super().__init__(group, nic, manager, submit)
        self._timeout_ps = timeout_ps
        self._queue: deque[_Call] = deque()
        """Calls that are not completed, in order."""
        self._kept: deque[_Call] = deque(maxlen=KEPT)
        self._line: deque[_Call] = deque()
        """Calls to make in this generation; the first one is under way."""
        self._failure = ""
        """Why calls cannot complete in this generation."""
        self._mine = make(nic.nic, self._changed)
        self.memory = self._mine.memory
        """The memory that InitGroup needs to know."""

    def begin(
        self,
        start: Callable[[Any], None],
        finish: Callable[[Any], Any],
        size: int = 0,
        deadline: float | None = None,
    ) -> Future[CallResult]:
        """Make a call without waiting for it. ``start`` begins it on the family's rank, and ``finish`` returns its
        result once it is done; both run on the loop, in each generation in which the call is made. ``size`` is the
        call's size in counters, in bytes.

        The future raises ``FailedError``, also ``deadline`` seconds from now; the rank keeps its place in the calls.
        """
        call = _Call(start, finish, size)
        call.future.set_running_or_notify_cancel()  # other ranks count on the call: it cannot be cancelled
        self._loop.call_soon_threadsafe(self._add, call)
        if deadline is not None:
            self._loop.call_soon_threadsafe(self._limit, (weakref.ref(call), deadline))
        return call.future

    @override
    def progress(self) -> float:
        return self._mine.progress() if self._line else 0.0

    # --- on the loop: calls ---

    def _add(self, call: _Call) -> None:
        if self._ended or self._failure:
            call.fail(f"group {self.group}: {self._ended or self._failure}")
            return
        self._queue.append(call)
        self._watch_counters()
        if self._running:
            self._line.append(call)
            if len(self._line) == 1:
                self._make()

    def _limit(self, which: tuple[weakref.ref[_Call], float]) -> None:
        self._loop.at(self._loop.now + int(which[1] * SECOND), self._overdue, which)

    def _overdue(self, which: tuple[weakref.ref[_Call], float]) -> None:
        reference, seconds = which
        call = reference()
        if call is not None:
            call.fail(f"a call of group {self.group} has not ended in {seconds:g} s: {self._why()}")

    def _make(self) -> None:
        """Start the first of the calls that wait."""
        call = self._line[0]
        call.begun += 1
        call.started = call.started or self._loop.now
        try:
            call.start(self._mine)
        except ValueError as error:  # the family refuses it, at every rank alike
            self._fail(str(error))
        self._changed()  # problems may have been found before

    def _changed(self) -> None:
        """Handle a completion, from within a queue pair's handler."""
        self._loop.at(self._loop.now, self._look, self._joined)

    def _look(self, when: RankConfig | None) -> None:
        if not self._running or when is not self._joined or not self._line or self._failure:
            return
        if self._mine.problems:
            self._fail("; ".join(self._mine.problems))
        elif self._mine.done:
            self._complete(self._line.popleft())
            if self._line:
                self._make()

    def _complete(self, call: _Call) -> None:
        value = call.finish(self._mine)
        if not self._queue or call is not self._queue[0]:
            return  # repeated for other ranks
        self._kept.append(self._queue.popleft())
        self.completed += 1
        self._data_bytes += call.size
        if not call.future.done():
            call.future.set_result(CallResult(value, call.started, self._loop.now, begun=call.begun))

    def _fail(self, reason: str) -> None:
        """No call ends in this generation any more: fail those that wait."""
        self._failure = reason
        for call in self._queue:
            call.fail(f"group {self.group}: {reason}")

    # --- on the loop: generations ---

    @override
    def _unfit(self, config: RankConfig) -> str:
        if not config.spec.uses_memory:
            return f"group {self.group} is of {config.spec.family}, whose switches know no memory of ranks"
        rank, size, spec = self._mine.place
        if (config.rank, config.size, config.spec) == (rank, size, spec):
            return ""
        return (
            f"rank {config.rank} of {config.size} in group {config.group} of {config.spec.program}; memory was offered "
            f"for rank {rank} of {size} with {spec.program}"
        )

    @override
    def _create(self, config: RankConfig) -> None:
        self._mine.connect(config, self._timeout_ps)

    @override
    def _destroy(self) -> None:
        self._failure = ""
        self._line.clear()
        self._mine.disconnect()

    @override
    def _go_on(self, again: int) -> None:
        if again > len(self._kept):
            self._fail(f"call {self.completed - again} must be repeated, but its input is no longer kept")
            return
        kept = [*self._kept]
        self._line.extend((*kept[len(kept) - again :], *self._queue))
        if self._line:
            self._make()

    @override
    def _fail_waiting(self, reason: str) -> None:
        while self._queue:
            self._queue.popleft().fail(reason)
        self._kept.clear()
        self._mine.close()

    @override
    def _counts(self) -> Counter[str]:
        return counted(self._mine.pairs)

    @override
    def _waits(self) -> bool:
        return bool(self._queue)
