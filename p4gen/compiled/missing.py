"""How a responder with recovery ``ideal`` requests missing packets.

In Mode II a rank's own contribution makes the switch send its result again, and the contribution is not acknowledged
before that. A rank that has sent none requests the oldest packet, as NIC-SR does. In Mode III selective NAKs name all
missing packets, one NAK a run of them.
"""

from __future__ import annotations

from typing import Final

from p4gen.compiled.cached import compiled
from p4gen.compiled.events import at
from p4gen.compiled.lists import add, take_first
from p4gen.compiled.memory import NONE, PAIR, Event, column_at
from p4gen.compiled.pairs import MASK, answer
from p4gen.compiled.records import every, kept_at, link_at, pair_address, pair_at
from p4gen.compiled.resending import miss, outstanding
from p4gen.rocev2.opcodes import Nak, NakCode

SELECTIVE: Final = Nak(NakCode.SELECTIVE).syndrome
SEQUENCE: Final = Nak(NakCode.PSN_SEQUENCE_ERROR).syndrome
_HOLES, _REST = int(Event.HOLES), int(Event.REST)
_HOLE: Final = column_at(PAIR, "hole")


@compiled
def send_nak(world: int, number: int, seq: int) -> None:
    """Request packet ``seq`` and all after it."""
    pair = pair_at(world, number)
    pair.naks_sent += 1
    answer(world, number, (pair.received_psn + seq) & MASK, SEQUENCE, NONE)


@compiled
def ask_for_oldest(world: int, number: int) -> None:
    """Request the expected packet, unless this end's own packet of its number does so."""
    expected = pair_at(world, number).expected
    if not outstanding(world, number, expected):
        send_nak(world, number, expected)


@compiled
def ask_ahead(world: int, number: int, upto: int) -> None:
    """Request the packets before ``upto`` that nothing has shown to be missing yet, and watch them."""
    pair = pair_at(world, number)
    start = max(pair.seen, pair.expected)
    _ask_for(world, number, start, upto, False)
    for seq in range(start, upto):
        if pair.least_timeout:
            alone = pair.hole == NONE
            add(world, pair_address(world, number) + _HOLE, seq, every(world).now + pair.least_timeout)
            if alone:
                at(world, every(world).now + pair.least_timeout, _HOLES, number, 0)


@compiled
def _ask_for(world: int, number: int, start: int, end: int, again: bool) -> None:
    """Request the packets from ``start`` up to ``end``. With ``again``, they may have been lost on the way out,
    together with the switch's notification."""
    pair = pair_at(world, number)
    if start >= end:
        return
    if again or not pair.selective:
        for seq in range(start, end):
            miss(world, number, seq)
    if pair.selective:
        pair.naks_sent += 1
        answer(world, number, (pair.received_psn + start) & MASK, SELECTIVE, end - start)
    elif start <= pair.expected < end:
        ask_for_oldest(world, number)


@compiled
def still_missing(world: int, number: int) -> None:
    """The event of holes that are due: request those that have not been filled again."""
    pair, holes, now = pair_at(world, number), pair_address(world, number) + _HOLE, every(world).now
    start, end = 0, 0
    while pair.hole != NONE and link_at(world, pair.hole).due <= now:
        seq = take_first(world, holes)
        if pair.broken or seq < pair.expected or _is_kept(world, number, seq):
            continue
        add(world, holes, seq, now + pair.least_timeout)
        if seq != end:
            _ask_for(world, number, start, end, True)
            start = seq
        end = seq + 1
    _ask_for(world, number, start, end, True)
    if pair.hole != NONE:
        at(world, link_at(world, pair.hole).due, _HOLES, number, 0)


@compiled
def _is_kept(world: int, number: int, seq: int) -> bool:
    place = pair_at(world, number).last_kept
    while place != NONE and kept_at(world, place).seq > seq:
        place = kept_at(world, place).before
    return place != NONE and kept_at(world, place).seq == seq


@compiled
def misses(world: int, number: int) -> bool:
    """Whether this end requests a missing result by sending its own contribution again, so that no timer has to."""
    place = pair_at(world, number).hole
    while place != NONE:
        if outstanding(world, number, link_at(world, place).value):
            return True
        place = link_at(world, place).following
    return False


# --- the last results ---


@compiled
def await_rest(world: int, number: int) -> None:
    """Everything sent is acknowledged, so no later result will reveal which results are missing. If none arrives for a
    timeout, they are requested."""
    pair = pair_at(world, number)
    if pair.waits_since == NONE and pair.least_timeout and _lacks_rest(world, number):
        pair.waits_since = arrived(world, number)
        at(world, every(world).now + pair.least_timeout, _REST, number, 0)


@compiled
def rest_overdue(world: int, number: int) -> None:
    """The event a timeout after the last packet was acknowledged."""
    pair = pair_at(world, number)
    before = pair.waits_since
    pair.waits_since = NONE
    if pair.broken or not _lacks_rest(world, number):
        return
    if arrived(world, number) == before:
        ask_ahead(world, number, pair.high)
        pair.seen = pair.high
    else:
        await_rest(world, number)


@compiled
def _lacks_rest(world: int, number: int) -> bool:
    """Whether receives are posted for packets after the last one that has arrived."""
    pair = pair_at(world, number)
    return pair.posted > 0 and max(pair.seen, pair.expected) < pair.high


@compiled
def arrived(world: int, number: int) -> int:
    """Number of packets that have arrived, in their turn or not."""
    pair = pair_at(world, number)
    return pair.received + pair.out_of_order + pair.duplicates
