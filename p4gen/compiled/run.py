"""The event loop."""

from __future__ import annotations

from p4gen.compiled.cached import compiled
from p4gen.compiled.events import drop_first
from p4gen.compiled.frames import ask
from p4gen.compiled.memory import Ask, Event
from p4gen.compiled.missing import rest_overdue, still_missing
from p4gen.compiled.nics import pump, receive
from p4gen.compiled.pairs import kick
from p4gen.compiled.pausing import be_free, be_paused, join
from p4gen.compiled.records import event_at, every
from p4gen.compiled.requester import timer
from p4gen.compiled.switches import wake
from p4gen.host.transport.clock import TURNS

_ACTION, _PUMP, _RECEIVE, _TIMER, _QUIET, _HOLES, _REST, _WAKE, _JOIN, _FREE, _PAUSE = map(int, Event)
_ASK = int(Ask.ACTION)


@compiled
def run(world: int, until: int, count: int) -> int:
    """Handle events that are not later than ``until``, at most ``count`` of them (negative: any number). Returns how
    many were handled. An error of Python's ends the run after the event in which it happened."""
    of = every(world)
    handled = 0
    while of.events and handled != count and not of.error:
        event = event_at(world, 0)
        if event.time > until:
            break
        of.now = event.time
        kind, who, arg = event.kind, event.who, event.arg
        drop_first(world)
        _handle(world, kind, who, arg)
        handled += 1
    of.handled += handled
    return handled


@compiled
def run_due(world: int, present: int) -> None:
    """Handle the events that are due in real time. Those that are requested meanwhile wait for the next call, so that
    a long burst of sending does not keep hosts from receiving. An error of Python's ends the run."""
    of = every(world)
    of.now = present
    last = of.number
    if of.events and event_at(world, 0).time <= present:
        of.late = max(present - event_at(world, 0).time, of.late - of.late // TURNS)
    while of.events and not of.error:
        event = event_at(world, 0)
        if event.time > present or event.number > last:
            break
        kind, who, arg = event.kind, event.who, event.arg
        drop_first(world)
        _handle(world, kind, who, arg)
        of.handled += 1


@compiled
def _handle(world: int, kind: int, who: int, arg: int) -> None:
    if kind == _RECEIVE:
        receive(world, who, arg)
    elif kind == _PUMP:
        pump(world, who)
    elif kind == _TIMER:
        timer(world, who)
    elif kind == _QUIET:
        kick(world, who)
    elif kind == _ACTION:
        ask(world, _ASK, who, 0, 0)
    elif kind == _HOLES:
        still_missing(world, who)
    elif kind == _REST:
        rest_overdue(world, who)
    elif kind == _WAKE:
        wake(world, who)
    elif kind == _JOIN:
        join(world, who, arg)
    elif kind == _FREE:
        be_free(world, who)
    else:
        be_paused(world, who, arg)
