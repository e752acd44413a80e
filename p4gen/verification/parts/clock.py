"""A clock that stands still: events that are due now are handled at once, and a timer expires when the search decides
so."""

from __future__ import annotations

from itertools import count
from typing import Final, NamedTuple

from p4gen.compiled import events, still
from p4gen.compiled.memory import Event
from p4gen.host.compiled.hosts import CompiledHosts
from p4gen.host.compiled.nics import CompiledNic

_TIMERS: Final = {
    Event.TIMER: ("requester", "timer"),
    Event.QUIET: ("requester", "after_quiet"),
    Event.HOLES: ("responder", "still_missing"),
    Event.REST: ("responder", "rest_overdue"),
    Event.ACTION: ("application", "timer"),
}
"""Kinds of events that may wait: the half of a queue pair, or the application, whose timer it is, and its purpose."""


class Timer(NamedTuple):
    """A timer: the kind of its event, and the number of the pair's record, or of the application's action."""

    kind: Event
    of: int


class StillClock:
    """The time of compiled hosts in a search of states: 0, except while a timer expires."""

    def __init__(self, hosts: CompiledHosts) -> None:
        self._hosts = hosts

    def settle(self) -> None:
        """Handle all events that are due now, and those that they request for now. Time has not passed then: what is
        later waits, and times that nothing depends on are forgotten."""
        loop = self._hosts.loop
        loop.run(until=loop.now)
        still.forget_times(self._hosts.world.place)

    def deliver(self, nic: CompiledNic, frame: bytes) -> None:
        """Let a frame arrive at a NIC now, and handle what is then due."""
        events.at(self._hosts.world.place, self._hosts.loop.now, int(Event.RECEIVE), nic.number, nic.frames.put(frame))
        self.settle()

    def timers(self) -> list[Timer]:
        """The timers that may expire next, in the order in which they were set: of several of one half of a queue pair,
        the one with the shortest delay. Actions are numbered as in the world's frozen state. Raises ``TypeError`` if
        anything else waits."""
        of = self._hosts.world
        first: dict[tuple[str, int], tuple[int, Timer]] = {}
        actions = count()
        for time, _, kind, who, _ in sorted(of.heap[: int(of.all[0]["events"])].tolist(), key=lambda event: event[1]):
            if kind not in _TIMERS:
                raise TypeError(f"an event of the kind {Event(kind).name} waits, which is no timer")
            timer = Timer(Event(kind), next(actions) if kind == Event.ACTION else who)
            half = _TIMERS[kind][0], timer.of
            if half not in first or time < first[half][0]:
                first[half] = time, timer
        return [timer for _, timer in first.values()]

    def name(self, timer: Timer) -> str:
        """Whose timer it is, and its purpose."""
        if timer.kind is Event.ACTION:
            return "its application"
        half, purpose = _TIMERS[timer.kind]
        return f"qp {self._hosts.pairs[timer.of].number:#x} {half}, {purpose}"

    def expire(self, timer: Timer) -> None:
        """Let a timer expire, and handle what is then due."""
        due = still.expire(self._hosts.world.place, int(timer.kind), timer.of)
        self._hosts.loop.run(until=due)
        self.settle()
