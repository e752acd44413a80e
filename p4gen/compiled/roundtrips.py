"""Timers that adapt to round trips (``p4gen.host.transport.roundtrips``, which says why)."""

from __future__ import annotations

from typing import Final

from p4gen.compiled.cached import compiled
from p4gen.compiled.machine import load64, store64
from p4gen.compiled.memory import NONE, TRIPS, column_at
from p4gen.compiled.records import every, pair_at, trips_address, trips_at
from p4gen.host.transport.roundtrips import CALM, DELAYS, LONGEST, MOST, REMEMBERED, TIMES

_TOOK: Final = column_at(TRIPS, "took_0")


@compiled
def acknowledged(world: int, number: int, upto: int) -> None:
    """All packets before ``upto`` are acknowledged, some of them just now."""
    of, pair = every(world), pair_at(world, number)
    trips = trips_at(world, pair.trips)
    if 0 <= trips.seq < upto:
        took = trips_address(world, pair.trips) + _TOOK
        store64(took + 8 * trips.next_took, of.now - trips.since)
        trips.next_took = (trips.next_took + 1) % REMEMBERED
        least = load64(took)
        for i in range(1, REMEMBERED):
            least = min(least, load64(took + 8 * i))
        trips.seq = NONE
        trips.estimate = min(max(TIMES * least, pair.least_timeout), _most(of.late, pair.least_timeout))
        trips.patient = 0
        pair.timeout = trips.estimate
    elif trips.patient:
        trips.patient -= 1
        if not trips.patient:
            pair.timeout = trips.estimate


@compiled
def expired(world: int, number: int) -> None:
    """The timeout has expired: increase it until a packet has been timed again, or for some acknowledgements."""
    pair = pair_at(world, number)
    trips = trips_at(world, pair.trips)
    trips.seq = NONE
    trips.patient = CALM
    pair.timeout = max(pair.timeout, min(2 * pair.timeout, _most(every(world).late, pair.least_timeout)))


@compiled
def _most(late: int, least: int) -> int:
    """The longest timeout, ps, if timers have been ``late``."""
    return min(max(MOST * least, DELAYS * late), LONGEST * least)
