"""Real time: the event loop of hosts whose frames cross real interfaces.

One thread runs the loop and everything on it: NICs, queue pairs, communicators. A turn waits for a descriptor or the
next timer. Then it handles calls from other threads, lets readers read, runs the timers that are due, and ends with the
actions that are done once per turn, such as sending the collected frames. A timer that is set while timers run waits
for the next turn, so that a long burst of sending does not keep the host from receiving.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from heapq import heappop, heappush
from typing import Any, Final, Protocol, TypeVar

from p4gen.errors import FailedError
from p4gen.host.transport.clock import MS, NS, SECOND, TURNS, Action
from p4gen.host.transport.nic import VerbsNic

T = TypeVar("T")
_POLLED: Final = select.EPOLLIN
_LONGEST_WAIT_MS: Final = 60_000


class Hosts(Protocol):
    """Compiled hosts, which have events of their own; ``p4gen.host.raw.RawNic`` is one."""

    def due(self) -> int:
        """When something has to be done next."""
        ...

    def set_time(self, now: int) -> None:
        """Time has passed."""

    def run(self, now: int) -> None:
        """Do what is due, and send."""

    def wait(self, until: int) -> bool:
        """Wait in machine code until a time, or until another descriptor is ready, and do meanwhile what is due.
        Returns False, at once, if Python has to see the frames."""
        ...


class RealTimeLoop:
    """A ``p4gen.host.transport.clock.Clock`` based on CLOCK_MONOTONIC, so that times of several processes are
    comparable.

    ``now`` is updated once per turn and by ``refresh``. Timers are late by up to a millisecond plus the length of a
    turn. Only ``call``, ``call_soon_threadsafe`` and ``stop`` may be called from other threads.
    """

    def __init__(self) -> None:
        self.now = 0
        self.late = 0
        self.problem: BaseException | None = None
        """The error that ended the loop, if any."""
        self._hosts: Hosts | None = None
        self.refresh()
        self._timers: list[tuple[int, int, Action, Any]] = []
        self._number = 0
        self._readers: dict[int, Callable[[], None]] = {}
        self._at_end: list[Callable[[], None]] = []
        self._at_stop: list[Callable[[], None]] = []
        self._calls: deque[tuple[Action, Any]] = deque()
        self._calls_lock = threading.Lock()
        self._woken = self._stopping = self._ended = False
        self._poll = select.epoll()
        self._wakes, self._waker = socket.socketpair()
        self._wakes.setblocking(False)
        self._waker.setblocking(False)
        self._poll.register(self._wakes, _POLLED)
        self._thread: threading.Thread | None = None
        self._runner: int | None = None

    def __enter__(self) -> RealTimeLoop:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def inside(self) -> bool:
        """Whether the caller is on the loop's thread, where it must not wait for the loop."""
        return self._runner == threading.get_ident()

    # --- scheduling ---

    def refresh(self) -> None:
        """Set ``now`` to the present time, within a turn."""
        self.now = time.monotonic_ns() * NS
        if self._hosts is not None:
            self._hosts.set_time(self.now)

    def at(self, time: int, action: Action, arg: Any = None) -> None:
        """Call ``action(arg)`` at ``time`` or soon after, but never from within this call."""
        self._number += 1
        heappush(self._timers, (time, self._number, action, arg))

    def call_soon_threadsafe(self, action: Action, arg: Any = None) -> None:
        """Call ``action(arg)`` on the loop, in the order of the requests, from any thread. Raises ``FailedError`` when
        the loop has ended."""
        with self._calls_lock:
            if self._ended:
                raise FailedError("the host's loop has ended")
            self._calls.append((action, arg))
            if self._woken:
                return
            self._woken = True
        self._wake()

    def call(self, action: Action, arg: Any = None) -> None:
        """Call ``action(arg)`` on the loop: at once if the caller is there, otherwise as ``call_soon_threadsafe``."""
        if self.inside:
            action(arg)
        else:
            self.call_soon_threadsafe(action, arg)

    def run_there(self, action: Callable[[], T]) -> T:
        """Run ``action`` on the loop, from another thread, and wait for its result. Raises what it raises, and
        ``FailedError`` when the loop has ended."""
        done: Future[T] = Future()

        def act(_: object) -> None:
            try:
                done.set_result(action())
            except Exception as error:
                done.set_exception(error)

        self.call_soon_threadsafe(act)
        return done.result()

    def add_reader(self, descriptor: int, action: Callable[[], None]) -> None:
        """Call ``action`` once per turn while the descriptor is readable. It must read a bounded amount."""
        self._readers[descriptor] = action
        self._poll.register(descriptor, _POLLED)

    def remove_reader(self, descriptor: int) -> None:
        """Remove the reader of a descriptor."""
        if self._readers.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    @property
    def descriptor(self) -> int:
        """A descriptor of epoll(7) that is readable while any other one is."""
        return self._poll.fileno()

    def run_hosts(self, hosts: Hosts | None) -> None:
        """Run compiled hosts, too, or no longer."""
        self._hosts = hosts
        self.refresh()

    def add_end(self, action: Callable[[], None]) -> None:
        """Call ``action`` at the end of every turn."""
        self._at_end.append(action)

    def remove_end(self, action: Callable[[], None]) -> None:
        """Remove an action that ``add_end`` added."""
        self._at_end.remove(action)

    def add_stop(self, action: Callable[[], None]) -> None:
        """Call ``action`` once when the loop ends for any reason; ``problem`` holds the error, if any."""
        self._at_stop.append(action)

    # --- running ---

    def start(self) -> None:
        """Run in a thread of its own."""
        self._thread = threading.Thread(target=self._run_quietly, name="p4gen host loop", daemon=True)
        self._thread.start()

    def run(self) -> None:
        """Run until ``stop``. An exception in an action ends the loop, too, and is raised."""
        self._runner = threading.get_ident()
        try:
            while not self._stopping:
                self.turn()
        except BaseException as error:
            self.problem = error
            raise
        finally:
            with contextlib.ExitStack() as stack:
                for action in reversed(self._at_stop):
                    stack.callback(action)
                with self._calls_lock:
                    self._ended = True
                self._take_calls()  # other threads may wait for these calls

    def stop(self) -> None:
        """Make ``run`` return soon; from any thread or a signal handler."""
        self._stopping = True
        self._wake()

    def close(self) -> None:
        """Stop, wait for the thread, and release all resources."""
        self.stop()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._wakes.close()
        self._waker.close()

    def turn(self) -> None:
        """Run one turn (see the module's docstring)."""
        hosts = self._hosts
        if hosts is not None and not self._at_end and hosts.wait(self._due()):
            hosts = None  # all that was due has been done
            ready = self._poll.poll(0)
        else:
            ready = self._poll.poll(self._patience())
        self.refresh()
        readers = self._readers
        for descriptor, _ in ready:
            if descriptor == self._wakes.fileno():
                self._take_calls()
            elif (reader := readers.get(descriptor)) is not None:
                reader()
        self._run_timers()
        if hosts is not None:
            hosts.run(self.now)
        for action in self._at_end:
            action()

    def _due(self) -> int:
        """When Python's next timer is due, at most the longest wait from now."""
        longest = self.now + _LONGEST_WAIT_MS * MS
        return min(self._timers[0][0], longest) if self._timers else longest

    def _patience(self) -> float:
        """Seconds to the next event, which epoll rounds up to milliseconds: a loop that wakes too early would have to
        wait again."""
        due = self._due() if self._hosts is None else min(self._due(), self._hosts.due())
        return max(0, due - time.monotonic_ns() * NS) / SECOND

    def _take_calls(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wakes.recv(4096)
        with self._calls_lock:
            self._woken = False
            calls, self._calls = self._calls, deque()
        for action, arg in calls:
            action(arg)

    def _run_timers(self) -> None:
        timers, now, last = self._timers, self.now, self._number
        if timers and timers[0][0] <= now:
            self.late = max(now - timers[0][0], self.late - self.late // TURNS)
        again = []
        while timers and timers[0][0] <= now:
            timer = heappop(timers)
            if timer[1] > last:
                again.append(timer)
            else:
                timer[2](timer[3])
        for timer in again:
            heappush(timers, timer)

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full: the loop wakes up anyway; closed: the loop has ended
            self._waker.send(b"x")

    def _run_quietly(self) -> None:
        with contextlib.suppress(Exception):
            self.run()  # threads that wait for the loop are notified through ``add_stop`` and read ``problem``


class Station(Protocol):
    """A NIC in real time: ``p4gen.host.raw.RawNic`` is one."""

    loop: RealTimeLoop

    @property
    def nic(self) -> VerbsNic:
        """The NIC; everything on it happens on the loop."""
        ...

    def close(self) -> None:
        """Remove the NIC from the loop. Call it on the loop, or after the loop has ended."""
