"""Pools of records (``memory.Pool``)."""

from __future__ import annotations

from p4gen.compiled.cached import compiled
from p4gen.compiled.frames import ask
from p4gen.compiled.machine import load64, store64
from p4gen.compiled.memory import FULL, NONE, Ask
from p4gen.compiled.records import pool_at

_PROBLEM = int(Ask.PROBLEM)
_WORD = 8


@compiled
def take_record(world: int, which: int) -> int:
    """The number of a record that nobody uses."""
    pool = pool_at(world, which)
    place = pool.free
    if place != NONE:
        pool.free = load64(pool.base + (place + 1) * pool.size - _WORD)
        return place
    if pool.used == pool.room:
        ask(world, _PROBLEM, FULL, 0, 0)  # ends the run after this event
        return 0
    pool.used += 1
    return pool.used - 1


@compiled
def give_record(world: int, which: int, place: int) -> None:
    """Nobody uses a record any more."""
    pool = pool_at(world, which)
    store64(pool.base + (place + 1) * pool.size - _WORD, pool.free)
    pool.free = place
