"""The directions of links: a queue, a transmitter and a wire each (``p4gen.net.world.link``)."""

from __future__ import annotations

from p4gen.compiled.cached import compiled
from p4gen.compiled.events import at
from p4gen.compiled.frames import ask, give
from p4gen.compiled.machine import copy
from p4gen.compiled.memory import ARRIVED, INBOX, NONE, WAITING, Ask, Event
from p4gen.compiled.records import arrived_address, arrived_at, direction_at, length_at, switch_at
from p4gen.host.transport.clock import SECOND
from p4gen.host.transport.wire import MIN_FRAME, OVERHEAD

_SIZE = ARRIVED.itemsize
_RECEIVE, _WAKE = int(Event.RECEIVE), int(Event.WAKE)
_FATE, _LOST, _MARK, _ROOM, _WATCH, _PROBLEM = (
    int(each) for each in (Ask.FATE, Ask.LOST, Ask.MARK, Ask.ROOM, Ask.WATCH, Ask.PROBLEM)
)


@compiled
def transmit(world: int, number: int, frame: int, when: int) -> int:
    """Queue a frame at the time ``when``, which is not before now. Returns when the line is free again."""
    direction = direction_at(world, number)
    size = length_at(world, frame).value
    duration = (max(size, MIN_FRAME) + OVERHEAD) * (8 * SECOND) // direction.bandwidth
    start = when
    if direction.busy_until > when:
        start = direction.busy_until
        waits = start - when
        if waits > direction.room or (direction.shared and not ask(world, _ROOM, number, when, 0)):
            ask(world, _LOST, number, frame, when)
            give(world, frame)
            return start
        if waits >= direction.marks_from:
            ask(world, _MARK, number, frame, waits)
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
    """A frame arrives at a port of a switch: it waits in the switch's inbox, a heap by time of arrival."""
    switch = switch_at(world, number)
    if switch.waiting == INBOX:
        ask(world, _PROBLEM, WAITING, 0, 0)
        return
    switch.number += 1
    base = number * INBOX
    place = switch.waiting
    switch.waiting += 1
    while place > 0:
        above = (place - 1) >> 1
        if arrived_at(world, base + above).time <= arrival:
            break
        copy(arrived_address(world, base + place), arrived_address(world, base + above), _SIZE)
        place = above
    entry = arrived_at(world, base + place)
    entry.time = arrival
    entry.number = switch.number
    entry.port = port
    entry.frame = frame
    due = arrival + switch.latency
    if switch.wake_at == NONE or due < switch.wake_at:
        switch.wake_at = due
        at(world, due, _WAKE, number, 0)
