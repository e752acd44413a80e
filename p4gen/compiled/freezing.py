"""The state of a world as bytes, which can be compared, and read again.

Equal states have equal bytes, whatever records, frames and numbers their histories have used: records are written in
the order of the lists that they are in, with new numbers, and events in the order in which they were requested. What is
remembered only to save time, such as the starts of frames, is no state. Neither are addresses of Python's memory, which
has others when it is made again.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from p4gen.compiled.cached import compiled
from p4gen.compiled.events import at
from p4gen.compiled.frames import address, take
from p4gen.compiled.machine import copy, load64, store64
from p4gen.compiled.memory import (
    ARRIVED,
    CELL,
    DIRECTION,
    EVENT,
    GLOBALS,
    HOST,
    INBOX,
    KEPT,
    LEFT,
    MESSAGE,
    NONE,
    PAIR,
    RATE,
    RECEIVE,
    RUN,
    SWITCH,
    TRIPS,
    Event,
    Pool,
    World,
    column_at,
)
from p4gen.compiled.records import (
    arrived_address,
    buffer_at,
    cell_address,
    direction_address,
    event_address,
    every,
    flag_at,
    host_address,
    left_address,
    length_at,
    link_at,
    moment_address,
    pair_address,
    pair_at,
    pool_at,
    rate_address,
    run_at,
    switch_address,
    switch_at,
    trips_address,
)

_WORD: Final = 8


def _span(record: np.dtype[Any], first: str, last: str) -> tuple[int, int]:
    """Where columns from ``first`` to ``last`` begin, and how many bytes they have."""
    return column_at(record, first), column_at(record, last) + _WORD - column_at(record, first)


_LISTS: Final = np.array(
    [
        (pool, column_at(PAIR, first), column_at(PAIR, last))
        for pool, first, last in (
            (Pool.MESSAGES, "oldest", "newest"),
            (Pool.LINKS, "again", "last_again"),
            (Pool.LINKS, "named", "last_named"),
            (Pool.LINKS, "hole", "last_hole"),
            (Pool.RECEIVES, "receive", "last_receive"),
            (Pool.ANSWERS, "answer", "last_answer"),
            (Pool.KEPT, "kept", "last_kept"),
            (Pool.RUNS, "run", "last_run"),
        )
    ]
)
"""The lists of a pair, those of a pool one after the other: the pool, and where the numbers of the first and the last
record are."""
_ADDRESSES: Final = np.array(
    [
        (Pool.MESSAGES, column_at(MESSAGE, "data")),
        (Pool.RECEIVES, column_at(RECEIVE, "room")),
        (Pool.RUNS, column_at(RUN, "send")),
        (Pool.RUNS, column_at(RUN, "receive")),
    ]
)
"""Columns with addresses of Python's memory, or ``NONE``, by pool."""
_SENDING, _RECEIVING, _LAST_RECEIVING, _ROOMING, _LAST_ROOMING = (
    column_at(PAIR, name) for name in ("sending", "receiving", "last_receiving", "rooming", "last_rooming")
)
_RUNS_OF_PAIR = _SENDING, _RECEIVING, _LAST_RECEIVING, _ROOMING, _LAST_ROOMING
"""Columns with numbers of runs beside those of ``_LISTS``."""
_RUNS, _KEPT = int(Pool.RUNS), int(Pool.KEPT)
_GLOBALS: Final = column_at(GLOBALS, "error")
"""Bytes of the first array that are state."""
_NUMBER, _FRAMES_USED, _FRAMES_FREE = (column_at(GLOBALS, name) for name in ("number", "frames_used", "frames_free"))
_OF_DIRECTION, _DIRECTION_SIZE = _span(DIRECTION, "busy_until", "drawn")
_OF_SWITCH, _SWITCH_SIZE = _span(SWITCH, "waiting", "lost_ports")
_SWITCH_NUMBER: Final = column_at(SWITCH, "number") - _OF_SWITCH
_TURN, _LAST_TURN, _ANSWERING, _LAST_ANSWERING = (
    column_at(HOST, name) for name in ("turn", "last_turn", "answering", "last_answering")
)
_CURRENT, _NEXT_TURN, _NEXT_ANSWERING, _ROOM, _SIZE, _WIDTH, _FILLED, _TAKEN_ROOM, _TAKEN_SIZE, _TAKEN_WIDTH = (
    column_at(PAIR, name)
    for name in (
        "current",
        "next_turn",
        "next_answering",
        "room",
        "size",
        "width",
        "filled",
        "taken_room",
        "taken_size",
        "taken_width",
    )
)
_EVENT_NUMBER, _KIND, _WHO, _ARG = (column_at(EVENT, name) for name in ("number", "kind", "who", "arg"))
_ARRIVED_NUMBER, _ARRIVED_FRAME = (column_at(ARRIVED, name) for name in ("number", "frame"))
_BEFORE, _KEPT_FRAME = (column_at(KEPT, name) for name in ("before", "frame"))
_NEXT_RECEIVING, _NEXT_ROOM = (column_at(RUN, name) for name in ("next_receiving", "next_room"))
_LEFT_FRAME: Final = column_at(LEFT, "frame")
_HOST_BYTES, _PAIR_BYTES, _CELL_BYTES, _RATE_BYTES, _TRIPS_BYTES, _EVENT_BYTES, _ARRIVED_BYTES, _LEFT_BYTES = (
    record.itemsize for record in (HOST, PAIR, CELL, RATE, TRIPS, EVENT, ARRIVED, LEFT)
)
_ACTION, _ARRIVES = int(Event.ACTION), int(Event.RECEIVE)


class State:
    """The state of a world as a part of a run (``p4gen.net.world.freezing.Freezable``)."""

    def __init__(self, of: World, hosts: int, switches: int, directions: int) -> None:
        self._world = of
        self._counts = hosts, switches, directions

    def freeze(self) -> bytes:
        """The present state."""
        of, every = self._world, self._world.all[0]
        if of.directions["controlled"].any():
            raise TypeError("queues with priority flow control cannot be frozen")
        for i in np.flatnonzero(of.switches["waiting"] > 1):
            waiting = of.inboxes[i * INBOX : i * INBOX + int(of.switches["waiting"][i])]
            waiting[:] = waiting[np.lexsort((waiting["number"], waiting["time"]))]  # what is sorted is a heap
        order = np.argsort(of.heap["number"][: int(every["events"])])
        room = np.empty(self._most(), np.uint8)
        size = write(of.place, room.ctypes.data, order.ctypes.data, *self._counts)
        return room[:size].tobytes()

    def restore(self, frozen: bytes) -> None:
        """Return to a state of this world, or of one with the same arrays. The addresses of Python's memory have to be
        set again."""
        source = np.frombuffer(frozen, np.uint8)
        read(self._world.place, source.ctypes.data, *self._counts)

    def _most(self) -> int:
        """The most bytes of the present state."""
        of, every = self._world, self._world.all[0]
        records = int((of.pools["used"] * of.pools["size"]).sum()) + _WORD * len(_LISTS)
        records += int(of.switches["waiting"].sum()) * _ARRIVED_BYTES
        records += int(every["events"]) * _EVENT_BYTES + int(every["left_used"]) * _LEFT_BYTES
        records += int(every["pairs_used"]) * (_PAIR_BYTES + _CELL_BYTES + _RATE_BYTES)
        records += int(every["moments_used"]) * _WORD
        hosts, switches, directions = self._counts
        whole = _GLOBALS + hosts * _HOST_BYTES + switches * (_SWITCH_SIZE + _WORD) + directions * _DIRECTION_SIZE
        return whole + records + int(every["frames_used"]) * (_WORD + int(every["slot"]))


# --- writing ---


@compiled
def write(world: int, to: int, order: int, hosts: int, switches: int, directions: int) -> int:
    """Write the state of a world to memory, from the address ``to`` on. At ``order`` are the numbers of events as they
    were requested. Returns the number of bytes."""
    of, begin = every(world), to
    to = _put(to, world, _GLOBALS)
    store64(begin + _NUMBER, of.events)
    store64(begin + _FRAMES_USED, 0)
    store64(begin + _FRAMES_FREE, 0)
    for i in range(hosts):
        host, to = to, _put(to, host_address(world, i), _HOST_BYTES)
        _end_list(host, _TURN, _LAST_TURN)
        _end_list(host, _ANSWERING, _LAST_ANSWERING)
    for i in range(directions):
        to = _put(to, direction_address(world, i) + _OF_DIRECTION, _DIRECTION_SIZE)
    pairs = to
    for i in range(of.pairs_used):
        to = _write_pair(world, to, i)
    for i in range(of.pairs_used):
        pair = pair_at(world, i)
        if pair.rated:
            to = _put(to, rate_address(world, i), _RATE_BYTES)
        if pair.moments != NONE:
            to = _put(to, moment_address(world, pair.moments), (pair.mask + 1) * _WORD)
        if pair.trips != NONE:
            to = _put(to, trips_address(world, pair.trips), _TRIPS_BYTES)
    to = _write_events(world, to, order)
    for i in range(switches):
        to = _write_switch(world, to, i)
    for i in range(of.left_used):
        left = left_address(world, i)
        to = _put_with_frame(world, to, left, _LEFT_BYTES, _LEFT_FRAME)
    used = 0
    for i in range(len(_LISTS)):
        if _LISTS[i, 0] != _LISTS[i - 1, 0]:
            used = 0
        count = to
        to = _write_list(world, to, pairs, i, used)
        used += load64(count)
    return to - begin


@compiled
def _put(to: int, source: int, size: int) -> int:
    copy(to, source, size)
    return to + size


@compiled
def _put_with_frame(world: int, to: int, source: int, size: int, column: int) -> int:
    """Write a record, of which a column is the number of a frame, and behind it the frame."""
    frame = load64(source + column)
    length = length_at(world, frame).value
    record, to = to, _put(to, source, size)
    store64(record + column, 0)
    store64(to, length)
    return _put(to + _WORD, address(world, frame), length)


@compiled
def _end_list(record: int, first: int, last: int) -> None:
    """An empty list has no last one."""
    if load64(record + first) == NONE:
        store64(record + last, NONE)


@compiled
def _write_pair(world: int, to: int, number: int) -> int:
    """Write a pair, and its cell of the table. Columns that nobody reads before they are set again are empty."""
    pair, record = pair_at(world, number), to
    to = _put(to, pair_address(world, number), _PAIR_BYTES)
    store64(record + _CURRENT, NONE)
    store64(record + _ROOM, 0)
    store64(record + _TAKEN_ROOM, 0)
    if not pair.in_turn:
        store64(record + _NEXT_TURN, NONE)
    if not pair.listed:
        store64(record + _NEXT_ANSWERING, NONE)
    if pair.inside == NONE:
        store64(record + _SIZE, 0)
        store64(record + _WIDTH, 0)
        store64(record + _FILLED, 0)
    if not pair.has_receive:
        store64(record + _TAKEN_SIZE, 0)
        store64(record + _TAKEN_WIDTH, 0)
    return _put(to, cell_address(world, pair.cell), _CELL_BYTES)


@compiled
def _write_events(world: int, to: int, order: int) -> int:
    actions = 0
    for i in range(every(world).events):
        place = event_address(world, load64(order + i * _WORD))
        event, kind = to, load64(place + _KIND)
        if kind == _ARRIVES:
            to = _put_with_frame(world, to, place, _EVENT_BYTES, _ARG)
        else:
            to = _put(to, place, _EVENT_BYTES)
        store64(event + _EVENT_NUMBER, 0)
        if kind == _ACTION:
            store64(event + _WHO, actions)
            actions += 1
    return to


@compiled
def _write_switch(world: int, to: int, number: int) -> int:
    """Write a switch, its buffer, and the packets that wait there, which are sorted."""
    waiting, switch = switch_at(world, number).waiting, to
    to = _put(to, switch_address(world, number) + _OF_SWITCH, _SWITCH_SIZE)
    store64(switch + _SWITCH_NUMBER, waiting)
    store64(to, buffer_at(world, number).latest)
    to += _WORD
    for i in range(waiting):
        arrived = to
        to = _put_with_frame(world, to, arrived_address(world, number * INBOX + i), _ARRIVED_BYTES, _ARRIVED_FRAME)
        store64(arrived + _ARRIVED_NUMBER, i + 1)
    return to


@compiled
def _write_list(world: int, to: int, pairs: int, number: int, used: int) -> int:
    """Write a list of all pairs, one pair after the other: how many records there are, and the records. The pairs
    themselves have been written from ``pairs`` on; ``used`` records of the pool, too."""
    which, first, last = _LISTS[number, 0], _LISTS[number, 1], _LISTS[number, 2]
    pool, count, before = pool_at(world, which), to, used
    following = pool.size - _WORD
    to += _WORD
    for i in range(every(world).pairs_used):
        pair = pairs + i * (_PAIR_BYTES + _CELL_BYTES)
        place = load64(pair + first)
        if which == _RUNS:
            _number_runs(world, place, used)
            _write_numbers_of_runs(world, pair)
        begin = used
        while place != NONE:
            record, source = to, pool.base + place * pool.size
            if which == _KEPT:
                to = _put_with_frame(world, to, source, pool.size, _KEPT_FRAME)
                store64(record + _BEFORE, NONE if used == begin else used - 1)
            else:
                to = _put(to, source, pool.size)
            for k in range(len(_ADDRESSES)):
                if _ADDRESSES[k, 0] == which:
                    column = record + _ADDRESSES[k, 1]
                    store64(column, min(load64(column), 0))
            if which == _RUNS:
                _write_next_runs(world, record, run_at(world, place))
            place = load64(source + following)
            used += 1
            store64(record + following, NONE if place == NONE else used)
        store64(pair + first, NONE if used == begin else begin)
        store64(pair + last, NONE if used == begin else used - 1)
    store64(count, used - before)
    return to


@compiled
def _number_runs(world: int, place: int, number: int) -> None:
    """Give new numbers to the runs of a pair, from the run at ``place`` on."""
    while place != NONE:
        run = run_at(world, place)
        run.moved = number
        number += 1
        place = run.following


@compiled
def _moved(world: int, place: int) -> int:
    """The new number of a run."""
    return NONE if place == NONE else run_at(world, place).moved


@compiled
def _write_numbers_of_runs(world: int, pair: int) -> None:
    """Write the new numbers of runs into a pair's record."""
    for column in _RUNS_OF_PAIR:
        store64(pair + column, _moved(world, load64(pair + column)))
    _end_list(pair, _RECEIVING, _LAST_RECEIVING)
    _end_list(pair, _ROOMING, _LAST_ROOMING)


@compiled
def _write_next_runs(world: int, record: int, run: Any) -> None:
    """Write the new numbers of the next runs into a run's record: none once it has left the list."""
    receiving = NONE if run.received == run.messages else run.next_receiving
    store64(record + _NEXT_RECEIVING, _moved(world, receiving))
    store64(record + _NEXT_ROOM, _moved(world, NONE if run.rooms == run.messages else run.next_room))


# --- reading ---


@compiled
def read(world: int, source: int, hosts: int, switches: int, directions: int) -> None:
    """Set a world to the state that has been written to memory, from the address ``source`` on."""
    of = every(world)
    _mark_again(world, -1)
    copy(world, source, _GLOBALS)
    source += _GLOBALS
    events, left = of.number, of.left_used
    for i in range(hosts):
        source = _get(host_address(world, i), source, _HOST_BYTES)
    for i in range(directions):
        source = _get(direction_address(world, i) + _OF_DIRECTION, source, _DIRECTION_SIZE)
    for i in range(of.pairs_used):
        source = _get(pair_address(world, i), source, _PAIR_BYTES)
        source = _get(cell_address(world, pair_at(world, i).cell), source, _CELL_BYTES)
    for i in range(of.pairs_used):
        pair = pair_at(world, i)
        if pair.rated:
            source = _get(rate_address(world, i), source, _RATE_BYTES)
        if pair.moments != NONE:
            source = _get(moment_address(world, pair.moments), source, (pair.mask + 1) * _WORD)
        if pair.trips != NONE:
            source = _get(trips_address(world, pair.trips), source, _TRIPS_BYTES)
    of.number = 0
    of.events = 0
    for _ in range(events):
        event, source = source, source + _EVENT_BYTES
        frame = load64(event + _ARG)
        if load64(event + _KIND) == _ARRIVES:
            frame = _take_frame(world, source)
            source += _WORD + load64(source)
        at(world, load64(event), load64(event + _KIND), load64(event + _WHO), frame)
    for i in range(switches):
        source = _get(switch_address(world, i) + _OF_SWITCH, source, _SWITCH_SIZE)
        buffer_at(world, i).latest = load64(source)
        source += _WORD
        for k in range(switch_at(world, i).waiting):
            source = _get_with_frame(
                world, arrived_address(world, i * INBOX + k), source, _ARRIVED_BYTES, _ARRIVED_FRAME
            )
    for i in range(left):
        source = _get_with_frame(world, left_address(world, i), source, _LEFT_BYTES, _LEFT_FRAME)
    for i in range(len(_LISTS)):
        pool = pool_at(world, _LISTS[i, 0])
        pool.free = NONE
        pool.used = 0
    for i in range(len(_LISTS)):
        source = _read_list(world, source, _LISTS[i, 0])
    _mark_again(world, 1)


@compiled
def _get(to: int, source: int, size: int) -> int:
    copy(to, source, size)
    return source + size


@compiled
def _take_frame(world: int, source: int) -> int:
    """A new frame, as it has been written."""
    frame = take(world, load64(source))
    copy(address(world, frame), source + _WORD, load64(source))
    return frame


@compiled
def _get_with_frame(world: int, to: int, source: int, size: int, column: int) -> int:
    """Read a record, of which a column is the number of a frame, and the frame behind it."""
    source = _get(to, source, size)
    store64(to + column, _take_frame(world, source))
    return source + _WORD + load64(source)


@compiled
def _read_list(world: int, source: int, which: int) -> int:
    """Read a list of all pairs."""
    pool, count = pool_at(world, which), load64(source)
    source += _WORD
    to = pool.base + pool.used * pool.size
    pool.used += count
    if which != _KEPT:
        return _get(to, source, count * pool.size)
    for i in range(count):
        source = _get_with_frame(world, to + i * pool.size, source, pool.size, _KEPT_FRAME)
    return source


@compiled
def _mark_again(world: int, step: int) -> None:
    """Add to the counts of all packets that wait to be sent again."""
    for i in range(every(world).pairs_used):
        pair = pair_at(world, i)
        place = pair.again
        while place != NONE:
            flag_at(world, pair.flags + (link_at(world, place).value & pair.mask)).value += step
            place = link_at(world, place).following
