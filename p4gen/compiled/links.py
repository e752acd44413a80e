"""The directions of links: a queue, a transmitter and a wire each (``p4gen.net.world.link``)."""

from __future__ import annotations

from typing import Final

from p4gen.compiled.cached import compiled
from p4gen.compiled.draws import uniform
from p4gen.compiled.events import at
from p4gen.compiled.frames import address, ask, give
from p4gen.compiled.heaps import heap
from p4gen.compiled.machine import load32, store8
from p4gen.compiled.memory import ARRIVED, INBOX, NONE, WAITING, Ask, Event
from p4gen.compiled.records import arrived_address, arrived_at, buffer_at, direction_at, length_at, switch_at
from p4gen.host.transport.clock import SECOND, US
from p4gen.host.transport.wire import MIN_FRAME, OVERHEAD
from p4gen.rocev2.codes import ETHERTYPE_IPV4, ETHERTYPE_IPV6
from p4gen.rocev2.layouts import ROCE
from p4gen.rocev2.places import IPV4, IPV6

_make_room, drop_first = heap(ARRIVED)
_ETHER_TYPE, _CHECKSUM = (ROCE.bytes(name).start for name in ("ethernet.ether_type", "ipv4.checksum"))
_CE_OF_IPV4, _CE_OF_IPV6 = IPV4.ce, IPV6.ce
_RECEIVE, _WAKE = int(Event.RECEIVE), int(Event.WAKE)
_FATE, _LOST, _WATCH, _PROBLEM = int(Ask.FATE), int(Ask.LOST), int(Ask.WATCH), int(Ask.PROBLEM)
_BIT: Final = SECOND
_LEAST: Final = US
"""Bit/s times ps that make a bit; and a part of that, by which products of times and rates stay below 2^63."""
_WORD: Final = IPV4.ip
"""The two bytes that begin with the IP header's version; ECN is in the second one."""


@compiled
def bytes_of(time: int, bandwidth: int) -> int:
    """Whole bytes that are sent in ``time``, in ps, at a rate in bit/s. ``time`` is less than 20 s."""
    whole, rest = time // _LEAST, time % _LEAST
    return (whole * bandwidth + rest * bandwidth // _LEAST) // (8 * (_BIT // _LEAST))


@compiled
def _has_room(world: int, number: int, when: int) -> bool:
    """Whether the memory that a queue shares takes one more frame: the queue may have ``alpha`` times what is free."""
    direction = direction_at(world, number)
    buffer = buffer_at(world, direction.buffer)
    own = bytes_of(direction.busy_until - when, direction.bandwidth)
    # No queue is busy longer than the last one; if even that leaves room, no other needs to be looked at.
    bound = (buffer.latest - when) * buffer.bandwidth / (8 * _BIT) + 1
    if own < buffer.alpha * (buffer.size - bound):
        return True
    # The sum is divided, not its terms: parts of a bit are added beside it.
    bits, rest, each = 0, 0, buffer.first
    while each != NONE:
        queue = direction_at(world, each)
        if queue.busy_until > when:
            time = queue.busy_until - when
            bits += time // _LEAST * queue.bandwidth + time % _LEAST * queue.bandwidth // _LEAST
            rest += time % _LEAST * queue.bandwidth % _LEAST
        each = queue.next_of_buffer
    used = (bits + rest // _LEAST) // (8 * (_BIT // _LEAST))
    return bool(own < buffer.alpha * (buffer.size - used))


@compiled
def mark(world: int, number: int, frame: int, backlog: int) -> None:
    """Mark a frame "congestion experienced" if its queue is long and its sender supports ECN (RFC 3168), in the place
    of chance between two lengths of the queue. ``backlog`` is in bytes."""
    direction = direction_at(world, number)
    start = address(world, frame)
    word = load32(start + _WORD) >> 16
    kind = load32(start + _ETHER_TYPE) >> 16
    if backlog <= direction.low or kind not in (ETHERTYPE_IPV4, ETHERTYPE_IPV6):
        return
    mark = _CE_OF_IPV4 if kind == ETHERTYPE_IPV4 else _CE_OF_IPV6
    if word & mark == 0 or word & mark == mark:
        return
    if backlog < direction.high:
        drawn = uniform(direction.key, direction.drawn)
        direction.drawn += 1
        if drawn >= direction.share * (backlog - direction.low) / (direction.high - direction.low):
            return
    direction.marked += 1
    marked = word | mark
    store8(start + _WORD + 1, marked & 0xFF)
    if kind != ETHERTYPE_IPV4:
        return
    # The checksum is updated as in a router (RFC 1624, equation 3).
    total = (load32(start + _CHECKSUM) >> 16 ^ 0xFFFF) + (word ^ 0xFFFF) + marked
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16) ^ 0xFFFF
    store8(start + _CHECKSUM, total >> 8)
    store8(start + _CHECKSUM + 1, total & 0xFF)


@compiled
def transmit(world: int, number: int, frame: int, when: int) -> int:
    """Queue a frame at the time ``when``, which is not before now. Returns when the line is free again."""
    direction = direction_at(world, number)
    start = when
    if direction.busy_until > when:
        start = direction.busy_until
        waits = start - when
        if waits > direction.room or (direction.buffer != NONE and not _has_room(world, number, when)):
            ask(world, _LOST, number, frame, when)
            give(world, frame)
            return start
        if waits >= direction.marks_from:
            mark(world, number, frame, bytes_of(waits, direction.bandwidth))
    end = put_on_line(world, number, frame, start)
    if direction.buffer != NONE:
        buffer = buffer_at(world, direction.buffer)
        buffer.latest = max(buffer.latest, end)
    return end


@compiled
def put_on_line(world: int, number: int, frame: int, start: int) -> int:
    """Send a frame, from ``start`` on. Returns when the line is free again."""
    direction = direction_at(world, number)
    size = length_at(world, frame).value
    duration = (max(size, MIN_FRAME) + OVERHEAD) * (8 * SECOND) // direction.bandwidth
    end = start + duration
    direction.busy_until = end
    direction.busy += duration
    direction.packets += 1
    direction.bytes += size + OVERHEAD
    if direction.faults:
        ask(world, _FATE, number, frame, start)
        give(world, frame)
        return end
    if direction.watched:
        ask(world, _WATCH, number, frame, start)
    deliver(world, number, frame, end + direction.delay)
    return end


@compiled
def deliver(world: int, number: int, frame: int, arrival: int) -> None:
    """A frame arrives at the direction's end at the time ``arrival``."""
    direction = direction_at(world, number)
    if direction.to_switch:
        arrive(world, direction.to, direction.port, frame, arrival)
    else:
        at(world, arrival, _RECEIVE, direction.to, frame)


@compiled
def arrive(world: int, number: int, port: int, frame: int, arrival: int) -> None:
    """A frame arrives at a port of a switch, which will handle it after its latency."""
    switch = switch_at(world, number)
    enter(world, number, port, frame, arrival)
    due = arrival + switch.latency
    if switch.wake_at == NONE or due < switch.wake_at:
        switch.wake_at = due
        at(world, due, _WAKE, number, 0)


@compiled
def enter(world: int, number: int, port: int, frame: int, arrival: int) -> None:
    """Put a frame into the inbox of a switch, a heap by time of arrival."""
    switch = switch_at(world, number)
    if switch.waiting == INBOX:
        ask(world, _PROBLEM, WAITING, 0, 0)
        return
    switch.number += 1
    base = number * INBOX
    entry = arrived_at(world, base + _make_room(arrived_address(world, base), switch.waiting, arrival))
    switch.waiting += 1
    entry.time = arrival
    entry.number = switch.number
    entry.port = port
    entry.frame = frame
