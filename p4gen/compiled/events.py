"""Events in the order of their times; those of the same time in the order in which they were requested."""

from __future__ import annotations

from p4gen.compiled.cached import compiled
from p4gen.compiled.heaps import heap
from p4gen.compiled.machine import ask_python
from p4gen.compiled.memory import EVENT, FULL, MANY, Ask
from p4gen.compiled.records import event_address, event_at, every

_make_room, _drop_first = heap(EVENT)
_PROBLEM = int(Ask.PROBLEM)


@compiled
def at(world: int, time: int, kind: int, who: int, arg: int) -> None:
    """Add an event."""
    of = every(world)
    if of.events == MANY:
        ask_python(of.ask, _PROBLEM, FULL, 0, 0)  # ends the run after this event
        return
    of.number += 1
    place = _make_room(event_address(world, 0), of.events, time)
    of.events += 1
    event = event_at(world, place)
    event.time = time
    event.number = of.number
    event.kind = kind
    event.who = who
    event.arg = arg


@compiled
def drop_first(world: int) -> None:
    """Remove the first event."""
    of = every(world)
    _drop_first(event_address(world, 0), of.events)
    of.events -= 1
