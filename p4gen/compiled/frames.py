"""Frames: a slot of the pool each. A slot is free again when its frame has arrived or is lost."""

from __future__ import annotations

from p4gen.compiled.cached import compiled
from p4gen.compiled.machine import ask_python
from p4gen.compiled.memory import FULL, MANY, TOO_LONG, Ask
from p4gen.compiled.records import every, free_at, length_at

_PROBLEM = int(Ask.PROBLEM)


@compiled
def ask(world: int, what: int, one: int, two: int, three: int) -> int:
    """Ask Python; the answer is a number."""
    return ask_python(every(world).ask, what, one, two, three)


@compiled
def take(world: int, size: int) -> int:
    """A slot for a frame of ``size`` bytes."""
    of = every(world)
    if size > of.slot:
        ask(world, _PROBLEM, TOO_LONG, 0, 0)
        size = of.slot
    if of.frames_free > 0:
        of.frames_free -= 1
        frame = free_at(world, of.frames_free).value
    else:
        frame = of.frames_used
        if frame == MANY:
            ask(world, _PROBLEM, FULL, 0, 0)  # ends the run after this event
            return 0
        of.frames_used += 1
    length_at(world, frame).value = size
    return frame


@compiled
def give(world: int, frame: int) -> None:
    """The slot of ``frame`` is free."""
    of = every(world)
    free_at(world, of.frames_free).value = frame
    of.frames_free += 1


@compiled
def address(world: int, frame: int) -> int:
    """Where a frame begins in memory."""
    of = every(world)
    return of.pool + frame * of.slot
