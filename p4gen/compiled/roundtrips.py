"""The retransmission timeout of hosts in real time, adapted to measured round trips.

Hosts in real time share processors with switches and other processes. What takes a millisecond on an idle machine may
take a tenth of a second on a busy one, and a timer that is too short retransmits everything, which increases the load.
As in RFC 6298, round trips are measured, except those of retransmitted packets, and a timeout makes the next one
longer; how long at most depends on how late the host's own timers are. Unlike there, the shortest of several round
trips counts, not their mean. In Mode II an acknowledgement waits for all ranks, so a loss at one rank and its timeout
are part of the others' round trips. With a mean, all timeouts would grow longer and longer.
"""

from __future__ import annotations

from typing import Final

from p4gen.compiled.cached import compiled
from p4gen.compiled.machine import load64, store64
from p4gen.compiled.memory import NONE, REMEMBERED, TRIPS, column_at
from p4gen.compiled.records import every, pair_at, trips_address, trips_at

MOST: Final = 4
"""The longest timeout on an idle machine, as a multiple of the shortest; also the initial one. If a bad link causes the
loss, waiting longer is of no use."""
_DELAYS: Final = 16
"""The longest timeout on a busy machine, in delays of a timer: four processes wait for a processor on a packet's way to
the next switches and back, and each packet for those before it."""
_LONGEST: Final = 64
"""The longest timeout of all, as a multiple of the shortest."""
_TIMES: Final = 4
"""The timeout, as a multiple of the round trip."""
CALM: Final = 8
"""After this many acknowledgements without a timeout the increased timeout ends. Under heavy loss hardly any packet can
be timed, because each waits for an earlier one that is missing."""
_TOOK: Final = column_at(TRIPS, "took_0")


@compiled
def acknowledged(world: int, number: int, upto: int) -> None:
    """All packets before ``upto`` are acknowledged, some of them just now. One packet at a time is timed, and none that
    was sent again: it is unknown which transmission is acknowledged (Karn's algorithm)."""
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
        trips.estimate = min(max(_TIMES * least, pair.least_timeout), _most(of.late, pair.least_timeout))
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
    return min(max(MOST * least, _DELAYS * late), _LONGEST * least)
