"""A worker of a search: it expands its own states, and keeps the set of them.

A state belongs to the worker that its fingerprint names. The findings of a worker reach the owners in three steps: the
owners get fingerprints, answer with the numbers of all and the positions of new ones, and get the rows of the new ones.
The n-th state of worker s of k has the number n * k + s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from p4gen.verification.search import kernel, transitions
from p4gen.verification.search.events import END, MOST_HELD
from p4gen.verification.search.frontier import Frontier
from p4gen.verification.search.kernel import Found, Known, Longs, Shape, Words
from p4gen.verification.search.log import Log
from p4gen.verification.search.states import States

Marks = npt.NDArray[np.uint8]

ROOM = 1 << 16
"""Rows that a worker may find before they are added to the sets."""
_NOTHING: Final = (0,) * 7
"""What ``kernel.expand`` returns for no rows."""


class Expanded(NamedTuple):
    """The result of an expansion."""

    found: int
    """Number of transitions."""
    questions: Longs
    wrong: npt.NDArray[np.int64]
    """Number of the state, event, effect, kind of problem, for each violation."""
    stood: int
    stood_steps: int
    """The numbers of states and transitions that the expanded ones stand for (see ``symmetry``)."""
    more: bool
    """Whether there are rows left of this level."""


class Parcel(NamedTuple):
    """Fingerprints of states that a worker has found and another one owns."""

    high: Longs
    low: Longs


class Numbered(NamedTuple):
    """The owner's answer to a parcel: the numbers of its states, and the positions of new ones."""

    numbers: Words
    fresh: Words


class Fresh(NamedTuple):
    """New states, and for each the state and the event that led to it first."""

    rows: Words
    parents: Words
    events: Words


class Worker:
    """Worker ``me`` of ``workers``, with room for ``most`` states. ``width`` is the width of a row; ``room`` rows may
    be found before they are added to the sets."""

    def __init__(
        self, me: int, workers: int, shape: Shape, width: int, most: int, *, liveness: bool, room: int = ROOM
    ) -> None:
        self._me, self._workers, self._shape, self._liveness = me, workers, shape, liveness
        self._room = _room(shape, width, room)
        self._piece = room // 4
        self._states = States(most + room * workers)
        self._level, self._next = Frontier(width), Frontier(width)
        self._rows = np.zeros((0, width), np.uint32)
        self._waiting = np.zeros(0, np.uint32)
        self._first = self._after = 0
        """The indices of the first of these rows, and of the row after them."""
        self._count = 0
        self._to_owner: list[npt.NDArray[np.intp] | slice] = []
        self._parents, self._events, self._ends = Log(), Log(), Log()
        self._packets, self._timers = Log(), Log()

    def advance(self) -> int:
        """Begin the next level. Returns the number of its rows."""
        self._level, self._next = self._next, Frontier(self._rows.shape[1])
        return self._level.count

    def learn(self, known: Known) -> None:
        """Take more knowledge about the parts."""
        self._known = known

    def expand(self) -> Expanded:
        """Expand rows of this level, as many as there is room for."""
        room = self._room
        if not len(self._waiting) and self._level.count:
            self._rows, self._first = self._level.take(self._piece), self._after
            self._after += len(self._rows)
            self._waiting = np.arange(len(self._rows), dtype=np.uint32)
        # Without rows nothing is called: one worker, not all of them, loads the machine code at the first level.
        rows = len(self._waiting)
        outcome = kernel.expand(self._shape, self._known, self._rows, self._waiting, room) if rows else _NOTHING
        done, count, unknown, again, wrong, stood, stood_steps = outcome
        self._waiting = np.concatenate([self._waiting[done:], room.again[:again]])
        self._count = count
        if self._workers == 1:
            self._to_owner = [slice(0, count)]
        else:
            owners = room.high[:count] % np.uint64(self._workers)
            self._to_owner = [np.flatnonzero(owners == owner) for owner in range(self._workers)]
        notes = room.wrong[:wrong].astype(np.int64)
        notes[:, 0] = self._numbers(notes[:, 0])
        more = bool(len(self._waiting) or self._level.count)
        return Expanded(count, np.unique(room.unknown[:unknown]), notes, stood, stood_steps, more)

    def _numbers(self, positions: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        return (positions.astype(np.int64) + self._first) * self._workers + self._me

    def parcel(self, owner: int) -> Parcel:
        """The fingerprints of the states found that an owner has."""
        which = self._to_owner[owner]
        return Parcel(self._room.high[: self._count][which], self._room.low[: self._count][which])

    def number(self, parcels: Sequence[Parcel]) -> list[Numbered]:
        """Add to the set the states of this worker that each worker has found."""
        found = [self._states.insert(*parcel) for parcel in parcels]
        return [Numbered(to * np.uint32(self._workers) + np.uint32(self._me), fresh) for to, fresh in found]

    def note(self, numbered: Sequence[Numbered]) -> list[Fresh]:
        """Note the transitions to states that their owners have numbered. Returns the new states for each owner."""
        room, count = self._room, self._count
        targets = np.zeros(count, np.uint32)
        parents = self._numbers(room.parents[:count]).astype(np.uint32)
        events = room.events[:count]
        fresh = []
        for which, (numbers, new) in zip(self._to_owner, numbered, strict=True):
            targets[which] = numbers
            chosen = np.arange(count)[which][new]
            fresh.append(Fresh(room.rows[chosen], parents[chosen], events[chosen]))
        self._ends.add(parents[events == END])
        if self._liveness and count:
            packets, timers = np.zeros(3 * count, np.uint32), np.zeros(3 * count, np.uint32)
            of_packets, of_timers = transitions.pack(parents, events, targets, packets, timers)
            self._packets.add(packets[:of_packets].copy())
            self._timers.add(timers[:of_timers].copy())
        return fresh

    def keep(self, fresh: Sequence[Fresh]) -> int:
        """Keep new states for the next level. Returns the number of all states of this worker."""
        for rows, parents, events in fresh:
            self._next.add(rows)
            self._parents.add(parents)
            self._events.add(events)
        return self._states.count

    def origin(self, index: int) -> tuple[int, int]:
        """The state and the event that led to the state with this index first."""
        return int(self._parents.all()[index]), int(self._events.all()[index])

    # --- which states reach an end ---

    def ends(self) -> int:
        """The number of this worker's states that nothing leaves."""
        return len(self._ends)

    def reaching(self) -> Marks:
        """Marks of this worker's ends."""
        marks = np.zeros(self._states.count, np.uint8)
        marks[self._ends.all() // np.uint32(self._workers)] = 1
        return marks

    def bounded(self) -> Marks:
        """Marks of those of this worker's states that no packet leaves."""
        marks = np.zeros(self._states.count * self._workers + self._me + 1, np.uint8)
        marks[self._me :: self._workers] = 1
        transitions.unmark(marks, self._packets.all())
        return marks[self._me :: self._workers][: self._states.count]

    def sweep(self, marks: Marks, *, every: bool) -> Marks | None:
        """Mark states of this worker that lead to marked ones: by some transition or, with ``every``, by every packet.
        Returns the marks of its states, None if there is no new one."""
        if every:
            changed = transitions.every(marks, self._packets.all())
        else:
            changed = transitions.some(marks, self._timers.all()) | transitions.some(marks, self._packets.all())
        return marks[self._me :: self._workers][: self._states.count] if changed else None


def first(row: Words, workers: int) -> tuple[int, Parcel, Fresh]:
    """The owner of a search's first state, and the parcel and the row for it."""
    parcel = Parcel(np.zeros(1, np.uint64), np.zeros(1, np.uint64))
    kernel.fingerprint(row[np.newaxis], 0, *parcel)
    fresh = Fresh(row[np.newaxis], np.zeros(1, np.uint32), np.array([END], np.uint32))
    return int(parcel.high[0] % np.uint64(workers)), parcel, fresh


def _room(shape: Shape, width: int, least: int) -> Found:
    """Arrays with room for the successors of many rows, and for the most questions and violations of a few."""
    most = shape.links * (5 + MOST_HELD) + kernel.MOST_TIMERS * shape.hosts
    most += len(shape.tick_switch) + len(shape.forged)
    rows = max(least, 4 * most)
    return Found(
        np.zeros((rows, width), np.uint32),
        np.zeros(rows, np.uint32),
        np.zeros(rows, np.uint32),
        np.zeros(rows, np.uint64),
        np.zeros(rows, np.uint64),
        np.zeros(4 * most * (3 + kernel.MOST_SENT), np.uint64),
        np.zeros(rows, np.uint32),
        np.zeros((4 * (most + shape.hosts + shape.switches), 4), np.uint32),
    )
