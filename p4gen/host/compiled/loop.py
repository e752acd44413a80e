"""The loop of a compiled world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from p4gen.compiled import events, run
from p4gen.compiled.memory import NEVER, NONE, Event, World
from p4gen.host.transport.clock import Action


class CompiledLoop:
    """The loop of a compiled world (``p4gen.net.world.loop.Loop``). An exception of an action ends the run."""

    STATE: ClassVar[tuple[str, ...]] = ("actions",)

    def __init__(self, of: World) -> None:
        self.world = of
        self._all = of.all[0]
        self._actions: dict[int, tuple[Action, Any]] = {}
        self._next = 0
        self.before_run: list[Callable[[], None]] = []
        """What has to be done before events are handled: switches take over new entries."""
        self.after_run: list[Callable[[], None]] = []
        """What has to be done afterwards: channels count."""
        self._error: BaseException | None = None

    @property
    def now(self) -> int:
        """The time, ps."""
        return int(self._all["now"])

    @property
    def late(self) -> int:
        """How late timers are, ps: what is set in real time, 0 in virtual time."""
        return int(self._all["late"])

    @late.setter
    def late(self, value: int) -> None:
        self._all["late"] = value

    @property
    def actions(self) -> list[tuple[Action, Any]]:
        """The actions that are pending, each with its argument, in the order of the requests. A frozen world has them
        by their positions."""
        return list(self._actions.values())

    @actions.setter
    def actions(self, actions: list[tuple[Action, Any]]) -> None:
        self._actions, self._next = dict(enumerate(actions)), len(actions)

    @property
    def handled(self) -> int:
        """Number of events handled so far."""
        return int(self._all["handled"])

    def at(self, time: int, action: Action, arg: Any = None) -> None:
        """Call ``action(arg)`` at ``time``, which is not before now."""
        self._actions[self._next] = action, arg
        events.at(self.world.place, time, int(Event.ACTION), self._next, 0)
        self._next += 1

    def fail(self, error: BaseException) -> None:
        """End the run with ``error``, after the event in which it happened."""
        self._error = self._error or error
        self._all["error"] = 1

    def act(self, number: int) -> None:
        """Carry out an action."""
        action, arg = self._actions.pop(number)
        action(arg)

    @property
    def idle(self) -> bool:
        """Whether no event is pending."""
        return not self._all["events"]

    @property
    def latest(self) -> int:
        """The time of the last pending event; now if there is none."""
        count = int(self._all["events"])
        return int(self.world.heap["time"][:count].max()) if count else self.now

    def run(self, until: int | None = None, count: int | None = None) -> None:
        """Handle events until none is left, at most ``count`` of them. With ``until``, handle those that are not later,
        and advance the time to it."""
        for prepare in self.before_run:
            prepare()
        handled = run.run(self.world.place, NEVER if until is None else until, NONE if count is None else count)
        self.end_run()
        if until is not None and handled != count:
            self._all["now"] = max(self.now, until)

    def end_run(self) -> None:
        """Take over what a run has counted. Raises the error that ended it, if one did."""
        for note in self.after_run:
            note()
        if self._error is not None:
            error, self._error = self._error, None
            self._all["error"] = 0
            raise error
