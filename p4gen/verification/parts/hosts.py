"""Hosts as automata: the NIC of simulations with its tasks, whose states are frozen and numbered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from p4gen.host.transport.nic import Nic
from p4gen.net.job import Task, parts_of
from p4gen.net.world.freezing import Frozen, freeze, restore
from p4gen.verification.parts.clock import StillClock
from p4gen.verification.search.interning import Interned


class SearchedTask(Task, Protocol):
    """A task whose states are compared."""

    def forget_times(self) -> None:
        """Forget times that nothing depends on, as ``Requester.forget_times`` does."""
        ...


@dataclass(frozen=True)
class HostStep:
    """The step of a host at an event: its new state, the frames that it sends, and what is wrong with them."""

    state: int
    sent: tuple[bytes, ...]
    problem: str = ""


class _Line:
    """A line that is always free, and keeps the frames that are sent."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def transmit(self, frame: bytes, at: int) -> int:
        self.frames.append(frame)
        return at


class HostPart:
    """A host with its tasks. States are numbers; ``deliver`` and ``expire`` are functions of a state and an event."""

    def __init__(
        self, name: str, mac: int, ip: int, tasks: Callable[[Nic], Sequence[SearchedTask]], checks_icrc: bool = True
    ) -> None:
        self.name = name
        self._clock = StillClock()
        self._nic = Nic(mac, ip, self._clock)
        self._nic.checks_icrc = checks_icrc
        self._line = self._nic.line = _Line()
        self._tasks = tasks(self._nic)
        self._parts: dict[str, object] = {"clock": self._clock, **self._nic.parts()}
        self._parts |= parts_of(self._tasks)
        self._names = {id(part): part_name for part_name, part in self._parts.items()}
        self._states: Interned[Frozen] = Interned()
        self._done: list[bool] = []
        self._timers: list[tuple[str, ...]] = []

    def begin(self) -> HostStep:
        """Begin all tasks. Returns the first state, and the first frames."""
        for task in self._tasks:
            task.start()
        self._clock.settle()
        return self._result()

    def deliver(self, state: int, frame: bytes) -> HostStep:
        """The step of a host that receives a frame in a state."""
        return self._step(state, lambda: self._nic.receive(frame))

    def expire(self, state: int, timer: int) -> HostStep:
        """Let the timer with this number expire (see ``timers``)."""
        return self._step(state, lambda: self._clock.expire(self._clock.timers()[timer]))

    def done(self, state: int) -> bool:
        """Whether all tasks have ended."""
        return self._done[state]

    def frozen(self, state: int) -> Frozen:
        """The frozen parts that a state's number stands for."""
        return self._states[state]

    def timers(self, state: int) -> tuple[str, ...]:
        """The timers that may expire next, by name."""
        return self._timers[state]

    def __len__(self) -> int:
        return len(self._states)

    def _step(self, state: int, event: Callable[[], None]) -> HostStep:
        restore(self._parts, self._states[state])
        self._clock.now = 0
        event()
        self._clock.settle()
        return self._result()

    def _result(self) -> HostStep:
        sent = tuple(self._line.frames)
        self._line.frames.clear()
        self._nic.forget_times()
        self._clock.now = 0
        problem = ""
        for task in self._tasks:
            problem = problem or task.problem
            task.forget_times()
        state = self._states.number(freeze(self._parts))
        if state == len(self._done):
            self._done.append(all(task.done for task in self._tasks))
            self._timers.append(tuple(f"{self._names[whose]}, {what}" for whose, what in self._clock.names()))
        return HostStep(state, sent, problem)
