"""The inner loop of the search, in machine code (Numba).

A row is a state of the system. ``expand`` computes the successors of rows from what is known about the parts, kept in
``Known``: it runs no P4. A question that ``Known`` does not answer is put on a list; Python answers it, and the row is
expanded again.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from p4gen.compiled.cached import compiled_with
from p4gen.verification.search.events import (
    CORRUPT,
    DELAY,
    DELIVER,
    DUPLICATE,
    END,
    EXPIRE,
    FORGED,
    HELD,
    LATE,
    LOSE,
    MOST_HELD,
    TICK,
)
from p4gen.verification.search.turning import Turns, orbit, turn

Words = npt.NDArray[np.uint32]
Longs = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]

ARRIVE, ARRIVE_CORRUPT, EXPIRES, TICKS, APPEND, TAKE, PUT_BY = range(1, 8)
"""Kinds of questions about parts. A question is kind << 60 | who << 52 | position << 48 | state << 24 | frame."""
MOST_SENT: Final = 12
"""The most links on which one event may send."""
MOST_TIMERS: Final = 32
"""The most timers of one host that run at the same time."""

LOSSY, WRONG = 1, 2
"""Flags of effects: a packet was dropped for a reason that is a loss; a property is violated."""


class Shape(NamedTuple):
    """The numbers of parts, and where links lead. A row is: switches, hosts, links, and the budget's six numbers."""

    switches: int
    hosts: int
    links: int
    to_host: Ints
    part: Ints
    tick_switch: Ints
    most: Ints
    """The whole budget: losses, duplicates, delays, corruptions, timeouts, forgeries."""
    forged: Ints
    """The numbers of frames that a host may send in another's name."""
    forging: int
    """The link on which it sends them."""
    reduce: int
    prompt: int
    """1: a loss that a later packet reveals must be repaired without a timer; 2: nothing is lost, and no timer may be
    needed."""
    strict: int
    """Whether no packet may be dropped while there was no fault."""


class Known(NamedTuple):
    """The knowledge about the parts. ``keys`` and ``answers`` are a hash table from questions to answers: the number of
    an effect or, for contents of links, of another content."""

    keys: Longs
    answers: Ints
    effect_state: Ints
    effect_flags: Ints
    effect_count: Ints
    effect_link: Ints
    effect_list: Ints
    """Effects by number; the frames that they send as the numbers of lists of frames, by link (effect, position)."""
    taken_frame: Ints
    """For ``TAKE``, whose answers are numbers of pairs: the frame, and the content without it."""
    taken_rest: Ints
    lengths: Ints
    """Numbers of packets of contents that are in order."""
    held: Ints
    """Numbers of packets of contents that are delayed."""
    done: npt.NDArray[np.uint8]
    timers: npt.NDArray[np.uint8]
    """By host and state: whether all calls have ended; number of timers that may expire."""
    host_waits: npt.NDArray[np.uint8]
    switch_waits: npt.NDArray[np.uint8]
    """By part and state: whether it needs a retransmission, and can know that it does."""
    switch_holds: npt.NDArray[np.uint8]
    """By switch and state: whether it holds what no call may leave behind."""
    turns: Turns
    """The first one is the identity."""


class Found(NamedTuple):
    """Arrays with room for the results of ``expand``."""

    rows: Words
    events: Words
    parents: Words
    """Positions of the rows that were expanded."""
    high: Longs
    low: Longs
    """The fingerprints of the rows."""
    unknown: Longs
    """Questions without an answer."""
    again: Words
    """Positions of rows to be expanded again."""
    wrong: Words
    """Position, event, effect, kind of problem, for each violation."""


@compiled_with(inline="always")
def _mix(x: Any) -> Any:
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xFF51AFD7ED558CCD)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))


@compiled_with(nogil=True)
def ask(keys: Any, answers: Any, question: Any) -> int:
    """The answer to a question; -1 if it is unknown."""
    mask = np.uint64(len(keys) - 1)
    at = _mix(question) & mask
    while keys[at] != 0:
        if keys[at] == question:
            return int(answers[at])
        at = (at + np.uint64(1)) & mask
    return -1


@compiled_with(nogil=True)
def learn(keys: Any, answers: Any, question: Any, answer: int) -> None:
    """Add an answer. There must be room."""
    mask = np.uint64(len(keys) - 1)
    at = _mix(question) & mask
    while keys[at] != 0 and keys[at] != question:
        at = (at + np.uint64(1)) & mask
    keys[at] = question
    answers[at] = answer


@compiled_with(inline="always")
def question(kind: Any, who: Any, position: Any, state: Any, frame: Any) -> Any:
    """Encode a question in 64 bits: kind, part, position, state, frame."""
    return (
        (np.uint64(kind) << np.uint64(60))
        | (np.uint64(who) << np.uint64(52))
        | (np.uint64(position) << np.uint64(48))
        | (np.uint64(state) << np.uint64(24))
        | np.uint64(frame)
    )


@compiled_with(nogil=True)
def fingerprint(rows: Any, at: int, high: Any, low: Any) -> None:
    """Compute the fingerprint of a row: 128 bits."""
    one, two = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
    for word in rows[at]:
        one = (one ^ np.uint64(word)) * np.uint64(0xFF51AFD7ED558CCD)
        one ^= one >> np.uint64(32)
        two = (two ^ np.uint64(word)) * np.uint64(0xA0761D6478BD642F)
        two ^= two >> np.uint64(29)
    high[at], low[at] = _mix(one), _mix(two)


@compiled_with(nogil=True)
def _apply(shape: Any, known: Any, found: Any, at: int, effect: int, part: int, unknown: int) -> int:
    """Write the successor that an effect leads to into row ``at``. Returns the number of open questions."""
    out = found.rows[at]
    out[part] = known.effect_state[effect]
    base = shape.switches + shape.hosts
    for i in range(known.effect_count[effect]):
        link = base + known.effect_link[effect, i]
        asked = question(APPEND, 0, 0, out[link], known.effect_list[effect, i])
        content = ask(known.keys, known.answers, asked)
        if content < 0:
            if unknown < len(found.unknown):
                found.unknown[unknown] = asked
            unknown += 1
            content = 0
        out[link] = content
    return unknown


@compiled_with(inline="always")
def _note(found: Any, wrong: int, position: Any, event: Any, effect: Any, kind: int) -> int:
    """Note a violation. Returns the number of notes."""
    found.wrong[wrong, 0] = position
    found.wrong[wrong, 1] = event
    found.wrong[wrong, 2] = effect
    found.wrong[wrong, 3] = kind
    return wrong + 1


@compiled_with(nogil=True)
def expand(shape: Any, known: Any, frontier: Any, which: Any, found: Any) -> Any:
    """Expand the rows of ``frontier`` at the positions ``which``, as long as there is room.

    Returns the numbers of expanded rows, new rows, questions, rows to expand again, and problems; then the numbers of
    states and transitions for which the expanded rows stand, because turns map states onto each other.
    """
    ns, nh, nl = shape.switches, shape.hosts, shape.links
    base = ns + nh
    budget = base + nl
    most = nl * (5 + MOST_HELD) + MOST_TIMERS * nh + len(shape.tick_switch) + len(shape.forged)  # successors of a row
    turning = len(known.turns.place) > 1
    spare = np.zeros(frontier.shape[1], np.uint32)
    count = unknown = again = wrong = stood = stood_steps = 0
    for done in range(len(which)):
        full = count + most > len(found.rows) or unknown + most * (3 + MOST_SENT) > len(found.unknown)
        if full or wrong + most + nh + ns > len(found.wrong):
            return done, count, unknown, again, wrong, stood, stood_steps
        position = which[done]
        row = frontier[position]
        before, asked_before, wrong_before = count, unknown, wrong
        quiet = True
        ample = -1
        for link in range(nl):
            content = row[base + link]
            if known.lengths[content]:
                quiet = False
                if shape.reduce and shape.to_host[link] and known.held[content] == 0 and row[budget + 4] == 0:
                    ample = link
                    break
        untouched = True
        for i in range(5):
            untouched = untouched and row[budget + i] == shape.most[i]
        # packets on links
        for link in range(ample if ample >= 0 else 0, ample + 1 if ample >= 0 else nl):
            content = row[base + link]
            first = 0 if known.lengths[content] else HELD
            last = HELD + known.held[content]
            part = shape.part[link] + (ns if shape.to_host[link] else 0)
            for place in range(first, last if last > HELD else first + (first == 0)):
                if 0 < place < HELD:
                    continue
                asked = question(TAKE, 0, place, content, 0)
                pair = ask(known.keys, known.answers, asked)
                if pair < 0:
                    found.unknown[unknown] = asked
                    unknown += 1
                    continue
                frame, rest = known.taken_frame[pair], known.taken_rest[pair]
                asked = question(ARRIVE, link, 0, row[part], frame)
                effect = ask(known.keys, known.answers, asked)
                if effect < 0:
                    found.unknown[unknown] = asked
                    unknown += 1
                else:
                    event = np.uint32((LATE if place else DELIVER) << 24 | link << 8 | (place - HELD if place else 0))
                    flags = known.effect_flags[effect]
                    if flags & WRONG or (flags & LOSSY and untouched and place == 0 and shape.strict):
                        wrong = _note(found, wrong, position, event, effect, 0)
                    found.rows[count] = row
                    found.rows[count, base + link] = rest
                    unknown = _apply(shape, known, found, count, effect, part, unknown)
                    found.events[count] = event
                    count += 1
                if place:
                    continue
                if row[budget]:
                    found.rows[count] = row
                    found.rows[count, base + link] = rest
                    found.rows[count, budget] -= 1
                    found.events[count] = np.uint32(LOSE << 24 | link << 8)
                    count += 1
                if (row[budget + 1] or row[budget + 2]) and known.held[content] < MOST_HELD:
                    asked = question(PUT_BY, 0, 0, rest, frame)
                    later = ask(known.keys, known.answers, asked)
                    if later < 0:
                        found.unknown[unknown] = asked
                        unknown += 1
                    else:
                        if row[budget + 1] and effect >= 0:
                            found.rows[count] = row
                            found.rows[count, base + link] = later
                            found.rows[count, budget + 1] -= 1
                            unknown = _apply(shape, known, found, count, effect, part, unknown)
                            found.events[count] = np.uint32(DUPLICATE << 24 | link << 8)
                            count += 1
                        if row[budget + 2]:
                            found.rows[count] = row
                            found.rows[count, base + link] = later
                            found.rows[count, budget + 2] -= 1
                            found.events[count] = np.uint32(DELAY << 24 | link << 8)
                            count += 1
                if row[budget + 3]:
                    asked = question(ARRIVE_CORRUPT, link, 0, row[part], frame)
                    effect = ask(known.keys, known.answers, asked)
                    if effect < 0:
                        found.unknown[unknown] = asked
                        unknown += 1
                    else:
                        if known.effect_flags[effect] & WRONG:
                            wrong = _note(found, wrong, position, np.uint32(CORRUPT << 24 | link << 8), effect, 0)
                        found.rows[count] = row
                        found.rows[count, base + link] = rest
                        found.rows[count, budget + 3] -= 1
                        unknown = _apply(shape, known, found, count, effect, part, unknown)
                        found.events[count] = np.uint32(CORRUPT << 24 | link << 8)
                        count += 1
        # packets in another host's name
        if ample < 0 and row[budget + 5]:
            part = shape.part[shape.forging]
            for forged in range(len(shape.forged)):
                asked = question(ARRIVE, shape.forging, 0, row[part], shape.forged[forged])
                effect = ask(known.keys, known.answers, asked)
                if effect < 0:
                    found.unknown[unknown] = asked
                    unknown += 1
                    continue
                event = np.uint32(LATE << 24 | shape.forging << 8 | (FORGED + forged))
                if known.effect_flags[effect] & WRONG:
                    wrong = _note(found, wrong, position, event, effect, 0)
                found.rows[count] = row
                found.rows[count, budget + 5] -= 1
                unknown = _apply(shape, known, found, count, effect, part, unknown)
                found.events[count] = event
                count += 1
        # timers
        ended = True
        for host in range(nh):
            ended = ended and known.done[host, row[ns + host]] != 0
        if quiet and shape.prompt == 2 and not ended:
            wrong = _note(found, wrong, position, np.uint32(0), 0, 3)
        if quiet and shape.prompt == 1:
            for host in range(nh):
                if known.host_waits[host, row[ns + host]]:
                    wrong = _note(found, wrong, position, np.uint32(ns + host), 0, 2)
            for switch in range(ns):
                if known.switch_waits[switch, row[switch]]:
                    wrong = _note(found, wrong, position, np.uint32(switch), 0, 2)
        if quiet or row[budget + 4]:
            for host in range(nh):
                for timer in range(known.timers[host, row[ns + host]]):
                    asked = question(EXPIRES, host, 0, row[ns + host], timer)
                    effect = ask(known.keys, known.answers, asked)
                    if effect < 0:
                        found.unknown[unknown] = asked
                        unknown += 1
                        continue
                    event = np.uint32(EXPIRE << 24 | host << 8 | timer)
                    if known.effect_flags[effect] & WRONG:
                        wrong = _note(found, wrong, position, event, effect, 0)
                    found.rows[count] = row
                    if not quiet:
                        found.rows[count, budget + 4] -= 1
                    unknown = _apply(shape, known, found, count, effect, ns + host, unknown)
                    found.events[count] = event
                    count += 1
            for tick in range(len(shape.tick_switch)):
                part = shape.tick_switch[tick]
                asked = question(TICKS, tick, 0, row[part], 0)
                effect = ask(known.keys, known.answers, asked)
                if effect < 0:
                    found.unknown[unknown] = asked
                    unknown += 1
                    continue
                if known.effect_state[effect] == row[part] and known.effect_count[effect] == 0:
                    continue
                event = np.uint32(TICK << 24 | tick << 8)
                if known.effect_flags[effect] & WRONG:
                    wrong = _note(found, wrong, position, event, effect, 0)
                found.rows[count] = row
                if not quiet:
                    found.rows[count, budget + 4] -= 1
                unknown = _apply(shape, known, found, count, effect, part, unknown)
                found.events[count] = event
                count += 1
        if unknown > asked_before:
            count, wrong = before, wrong_before
            found.again[again] = position
            again += 1
            continue
        if quiet and count == before and not ended:
            wrong = _note(found, wrong, position, np.uint32(0), 0, 1)
        if quiet and count == before and ended:
            for switch in range(ns):
                if known.switch_holds[switch, row[switch]]:
                    wrong = _note(found, wrong, position, np.uint32(switch), 0, 4)
            # A state that nothing leaves: it leads to itself, which marks it as an end.
            found.rows[count] = row
            found.events[count] = np.uint32(END)
            count += 1
        like = orbit(known.turns, row, base, nl) if turning else 1
        stood += like
        stood_steps += like * (count - before)
        for i in range(before, count):
            found.parents[i] = position
            if turning and found.events[i] != END:
                turn(known.turns, found, i, base, nl, spare)
            fingerprint(found.rows, i, found.high, found.low)
    return len(which), count, unknown, again, wrong, stood, stood_steps
