"""Hosts as automata: the NIC of simulations with its tasks, whose states are frozen and numbered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from p4gen.host.compiled.hosts import CompiledHosts
from p4gen.host.transport.nic import Nic
from p4gen.net.job import Task, parts_of
from p4gen.net.world.freezing import Frozen, freeze, restore
from p4gen.verification.parts.clock import StillClock, Timer
from p4gen.verification.search.interning import Interned

_LONGEST: Final = 4096 + 128
"""Bytes of a frame, with the largest MTU."""


class SearchedTask(Task, Protocol):
    """A task whose states are compared."""

    def forget_times(self) -> None:
        """Forget times that nothing depends on, as ``p4gen.compiled.still.forget_times`` does."""
        ...


@dataclass(frozen=True)
class HostStep:
    """The step of a host at an event: its new state, the frames that it sends, and what is wrong with them."""

    state: int
    sent: tuple[bytes, ...]
    problem: str = ""


class HostPart:
    """A host with its tasks. States are numbers; ``deliver`` and ``expire`` are functions of a state and an event."""

    def __init__(
        self, name: str, mac: int, ip: int, tasks: Callable[[Nic], Sequence[SearchedTask]], checks_icrc: bool = True
    ) -> None:
        self.name = name
        self._hosts = CompiledHosts(_LONGEST, 1)
        self._clock = StillClock(self._hosts)
        self._nic = self._hosts.add(mac, ip)
        self._nic.collect()
        self._nic.checks_icrc = checks_icrc
        self._tasks = tasks(self._nic)
        self._parts: dict[str, object] = {"loop": self._hosts.loop, **self._nic.parts()}
        self._parts |= {**parts_of(self._tasks), "world": self._hosts.state()}
        self._states: Interned[Frozen] = Interned()
        self._done: list[bool] = []
        self._timers: list[tuple[Timer, ...]] = []

    def begin(self) -> HostStep:
        """Begin all tasks. Returns the first state, and the first frames."""
        for task in self._tasks:
            task.start()
        self._clock.settle()
        return self._result()

    def deliver(self, state: int, frame: bytes) -> HostStep:
        """The step of a host that receives a frame in a state."""
        self._restore(state)
        self._clock.deliver(self._nic, frame)
        return self._result()

    def expire(self, state: int, timer: int) -> HostStep:
        """Let the timer with this number expire (see ``timers``)."""
        self._restore(state)
        self._clock.expire(self._timers[state][timer])
        return self._result()

    def done(self, state: int) -> bool:
        """Whether all tasks have ended."""
        return self._done[state]

    def frozen(self, state: int) -> Frozen:
        """The frozen parts that a state's number stands for."""
        return self._states[state]

    def timers(self, state: int) -> tuple[str, ...]:
        """The timers that may expire next, by name."""
        return tuple(map(self._clock.name, self._timers[state]))

    def __len__(self) -> int:
        return len(self._states)

    def _restore(self, state: int) -> None:
        restore(self._parts, self._states[state])
        self._hosts.restored()

    def _result(self) -> HostStep:
        sent = tuple(frame for _, frame in self._hosts.take_left())
        self._nic.dropped.clear()
        problem = ""
        for task in self._tasks:
            problem = problem or task.problem
            task.forget_times()
        state = self._states.number(freeze(self._parts))
        if state == len(self._done):
            self._done.append(all(task.done for task in self._tasks))
            self._timers.append(tuple(self._clock.timers()))
        return HostStep(state, sent, problem)
