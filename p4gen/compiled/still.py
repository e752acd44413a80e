"""Worlds in which time stands still: what is due is handled at once, and a timer expires when somebody decides so.

The time is 0 except while a timer expires, and what waits is later than any time that a world reaches. For searches of
states: what they do not compare is forgotten, so that states become equal.
"""

from __future__ import annotations

from typing import Final

from p4gen.compiled.cached import compiled
from p4gen.compiled.events import at
from p4gen.compiled.machine import copy, store64
from p4gen.compiled.memory import EVENT, NONE, PAIR, column_at
from p4gen.compiled.missing import arrived
from p4gen.compiled.records import (
    event_address,
    event_at,
    every,
    host_at,
    link_at,
    moment_at,
    pair_address,
    pair_at,
    run_at,
)

WAITS: Final = 1 << 61
"""A timer that waits has the time at which it expires, counted from now, and this in addition."""
_SIZE: Final = EVENT.itemsize
_OTHERS: Final = -2
"""As ``PAIR.waits_since``: other packets have arrived since."""
_COUNTS: Final = tuple(
    column_at(PAIR, name)
    for name in (
        "sent", "resent", "timeouts", "naks", "rnr_naks", "ghosts", "cnps", "bytes",
        "received", "duplicates", "out_of_order", "naks_sent", "rnr_naks_sent", "cnps_sent",
    )
)  # fmt: skip
"""Columns of a pair's record that only count."""


@compiled
def expire(world: int, kind: int, who: int) -> int:
    """Make a timer that waits due. Returns the time at which it expires: the world is then to run until that time."""
    place = 0
    while event_at(world, place).kind != kind or event_at(world, place).who != who:
        place += 1
    due = event_at(world, place).time - WAITS
    number, arg = event_at(world, place).number, event_at(world, place).arg
    while place > 0:
        above = (place - 1) >> 2
        copy(event_address(world, place), event_address(world, above), _SIZE)
        place = above
    event = event_at(world, 0)
    event.time = due
    event.number = number
    event.kind = kind
    event.who = who
    event.arg = arg
    return due


@compiled
def forget_times(world: int) -> None:
    """Set the time to 0, and let every timer wait: of two that are the same, the one that was set later. Forget times
    and counts that nothing depends on, and set every deadline as if it were counted from now."""
    of = every(world)
    _let_wait(world)
    for i in range(of.pairs_used):
        _forget_times_of(world, i)
        host = host_at(world, pair_at(world, i).host)
        host.free_at = 0
        host.pump_at = NONE
    of.now = 0
    of.handled = 0


@compiled
def _let_wait(world: int) -> None:
    of = every(world)
    _sort(world)
    count, now = of.events, of.now
    of.events = 0
    of.number = 0
    for i in range(count):
        event = event_at(world, i)
        time, kind, who, arg = event.time, event.kind, event.who, event.arg
        later = False
        for k in range(i + 1, count):
            later = later or (event_at(world, k).kind == kind and event_at(world, k).who == who)
        if not later:
            # The heap has at most i events: those that are still to be read stay where they are.
            at(world, time if time >= WAITS else time - now + WAITS, kind, who, arg)


@compiled
def _sort(world: int) -> None:
    """Sort the events by their numbers. There are few of them; the one behind them is a place to put one by."""
    count = every(world).events
    spare = event_address(world, count)
    for i in range(1, count):
        copy(spare, event_address(world, i), _SIZE)
        place = i
        while place > 0 and event_at(world, place - 1).number > event_at(world, count).number:
            copy(event_address(world, place), event_address(world, place - 1), _SIZE)
            place -= 1
        copy(event_address(world, place), spare, _SIZE)


@compiled
def _forget_times_of(world: int, number: int) -> None:
    """``forget_times`` for a pair and its runs."""
    pair, now = pair_at(world, number), every(world).now
    if pair.waits_since != NONE:
        pair.waits_since = 0 if pair.waits_since == arrived(world, number) else _OTHERS
    for column in _COUNTS:
        store64(pair_address(world, number) + column, 0)
    pair.deadline = pair.timeout if pair.timer_set else 0
    pair.quiet_until = max(0, pair.quiet_until - now)
    if pair.retry_count == NONE:
        pair.retries = 0
    if pair.rnr_retry == NONE:
        pair.rnr_retries = 0
    if pair.moments != NONE:
        for i in range(pair.mask + 1):
            moment_at(world, pair.moments + i).value = 0
    place = pair.hole
    while place != NONE:
        link = link_at(world, place)
        link.due = pair.least_timeout
        place = link.following
    place = pair.run
    while place != NONE:
        run = run_at(world, place)
        run.last_result = min(run.last_result, 0)
        place = run.following
