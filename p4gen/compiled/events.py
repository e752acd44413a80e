"""Events in the order of their times; those of the same time in the order in which they were requested."""

from __future__ import annotations

from typing import Any, Final

from p4gen.compiled.cached import compiled
from p4gen.compiled.machine import ask_python, copy
from p4gen.compiled.memory import EVENT, FULL, MANY, Ask
from p4gen.compiled.records import event_address, event_at, every

_SIZE: Final = EVENT.itemsize
_PROBLEM = int(Ask.PROBLEM)


@compiled
def at(world: int, time: int, kind: int, who: int, arg: int) -> None:
    """Add an event to the heap, of which each node has four children."""
    of = every(world)
    if of.events == MANY:
        ask_python(of.ask, _PROBLEM, FULL, 0, 0)  # ends the run after this event
        return
    of.number += 1
    place = of.events
    of.events += 1
    while place > 0:
        above = (place - 1) >> 2
        if event_at(world, above).time <= time:  # an event of the same time has an earlier number
            break
        copy(event_address(world, place), event_address(world, above), _SIZE)
        place = above
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
    of.events -= 1
    count = of.events
    last = event_at(world, count)
    place = 0
    while True:
        below = 4 * place + 1
        if below >= count:
            break
        first = below
        for other in range(below + 1, min(below + 4, count)):
            if before(event_at(world, other), event_at(world, first)):
                first = other
        if before(last, event_at(world, first)):
            break
        copy(event_address(world, place), event_address(world, first), _SIZE)
        place = first
    copy(event_address(world, place), event_address(world, count), _SIZE)


@compiled
def before(one: Any, other: Any) -> bool:
    """Whether a record with time and number comes before another one."""
    return one.time < other.time or (one.time == other.time and one.number < other.number)
