"""Lists of numbers. Two adjacent columns of a record hold a list: its first link and its last one. ``head`` is the
address of the first of them."""

from __future__ import annotations

from typing import Final

from p4gen.compiled.cached import compiled
from p4gen.compiled.machine import load64, store64
from p4gen.compiled.memory import NONE, Pool
from p4gen.compiled.pools import give_record, take_record
from p4gen.compiled.records import link_at

_LINKS = int(Pool.LINKS)
_LAST: Final = 8
"""From the address of the first link to that of the last one."""


@compiled
def add(world: int, head: int, value: int, due: int) -> None:
    """Put a number behind the others. ``due`` is a time that belongs to it, if its list has times."""
    place = take_record(world, _LINKS)
    link = link_at(world, place)
    link.value = value
    link.due = due
    link.following = NONE
    if load64(head) == NONE:
        store64(head, place)
    else:
        link_at(world, load64(head + _LAST)).following = place
    store64(head + _LAST, place)


@compiled
def take_first(world: int, head: int) -> int:
    """Take the first number from a list that is not empty."""
    place = load64(head)
    link = link_at(world, place)
    value = link.value
    following = link.following
    store64(head, following)
    if following == NONE:
        store64(head + _LAST, NONE)
    give_record(world, _LINKS, place)
    return value


@compiled
def holds(world: int, head: int, value: int) -> bool:
    """Whether a list has a number."""
    place = load64(head)
    while place != NONE:
        if link_at(world, place).value == value:
            return True
        place = link_at(world, place).following
    return False


@compiled
def drop_before(world: int, head: int, upto: int) -> None:
    """Remove the numbers that are less than ``upto``."""
    place, before = load64(head), NONE
    while place != NONE:
        link = link_at(world, place)
        following = link.following
        if link.value >= upto:
            before = place
        else:
            if before == NONE:
                store64(head, following)
            else:
                link_at(world, before).following = following
            give_record(world, _LINKS, place)
        place = following
    store64(head + _LAST, before)
