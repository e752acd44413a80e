"""Switches: packets are given to a program in batches, in order of arrival (``p4gen.net.world.nodes``)."""

from __future__ import annotations

from p4gen.compiled.cached import compiled
from p4gen.compiled.events import at
from p4gen.compiled.frames import address, ask, give, take
from p4gen.compiled.links import bytes_of, drop_first, enter, transmit
from p4gen.compiled.machine import copy, load64, store_little
from p4gen.compiled.memory import ARRIVED, INBOX, NONE, Ask, Event
from p4gen.compiled.pausing import charge_for, offer
from p4gen.compiled.programs import run_batch
from p4gen.compiled.records import (
    arrived_address,
    arrived_at,
    direction_at,
    end_at,
    every,
    length_at,
    offset_at,
    output_at,
    port_at,
    queue_at,
    switch_at,
    work_address,
    work_at,
)
from p4gen.host.transport.clock import US
from p4gen.model.jit import exchange as x
from p4gen.model.passes import HELD

_WAKE = int(Event.WAKE)
_BATCH, _EVENTS = int(Ask.BATCH), int(Ask.EVENTS)
_SIZE = ARRIVED.itemsize
_LOW = 0xFFFFFFFF


@compiled
def _take_first(world: int, number: int, to: int) -> None:
    """Move the first packet of an inbox to a place of ``World.work``."""
    switch, inbox = switch_at(world, number), arrived_address(world, number * INBOX)
    copy(work_address(world, to), inbox, _SIZE)
    drop_first(inbox, switch.waiting)
    switch.waiting -= 1


@compiled
def wake(world: int, number: int) -> None:
    """Give a switch the packets that have arrived by now, ``latency`` ago at the most, and send what it sends. No batch
    reaches beyond the time at which its first packet may arrive again."""
    switch = switch_at(world, number)
    now = every(world).now
    if switch.wake_at != now:
        return  # an earlier event has handled it
    switch.wake_at = NONE
    count, until = 0, now
    if switch.recirculation and switch.waiting:
        until = min(now, arrived_at(world, number * INBOX).time + switch.recirculation)
    while switch.waiting and arrived_at(world, number * INBOX).time <= until:
        _take_first(world, number, count)
        switch.received += work_at(world, count).port != HELD
        count += 1
    if switch.by_python:
        ask(world, _BATCH, number, count, 0)
    elif switch.queues_used:
        # A packet's way depends on the queues that those before it have joined.
        for i in range(count):
            _measure(world, number, work_at(world, i).time + switch.latency)
            _process(world, number, i, 1)
    else:
        _process(world, number, 0, count)
    for i in range(count):
        give(world, work_at(world, i).frame)
    if switch.waiting and switch.wake_at == NONE:
        switch.wake_at = max(arrived_at(world, number * INBOX).time + switch.latency, now)
        at(world, switch.wake_at, _WAKE, number, 0)


@compiled
def _measure(world: int, number: int, when: int) -> None:
    """Write the lengths that queues will have at the time ``when`` to the program's registers."""
    switch = switch_at(world, number)
    for i in range(switch.queues, switch.queues + switch.queues_used):
        queue = queue_at(world, i)
        direction = direction_at(world, queue.direction)
        length = direction.waiting
        if direction.busy_until > when:
            length += bytes_of(direction.busy_until - when, direction.bandwidth)
        store_little(switch.state + queue.offset, length & ((1 << queue.bits) - 1))


@compiled
def _process(world: int, number: int, first: int, count: int) -> None:
    """Run the program on ``count`` packets of ``World.work``, and send what it sends."""
    of = every(world)
    switch = switch_at(world, number)
    for i in range(count):
        entry = work_at(world, first + i)
        start = entry.frame * of.slot
        offset_at(world, i).value = start
        end_at(world, i).value = start + length_at(world, entry.frame).value
        port_at(world, i).value = entry.port
    exchange = switch.exchange
    run_batch(
        switch.batch, switch.state, exchange, switch.temporary, of.pool, of.offsets, of.ends, of.ports, count,
        of.now // US,
    )  # fmt: skip
    if load64(exchange + x.EVENTS_USED):
        ask(world, _EVENTS, number, 0, 0)
    source = charge = NONE
    sent = load64(exchange + x.OUT_DATA)
    record = load64(exchange + x.RECORDS)
    for _ in range(load64(exchange + x.RECORDS_COUNT)):
        size = load64(record + 8)
        both = load64(record + 16)
        port = both & _LOW
        direction = output_at(world, switch.outputs + port).value if port < switch.ports else NONE
        if direction == NONE and port != HELD:
            switch.lost_ports += 1
        else:
            frame = take(world, size)
            copy(address(world, frame), sent + load64(record), length_at(world, frame).value)
            arrival = work_at(world, first + (both >> 32)).time
            if port == HELD:
                enter(world, number, HELD, frame, arrival + switch.recirculation)
            elif not direction_at(world, direction).controlled:
                transmit(world, direction, frame, arrival + switch.latency)
            else:
                if both >> 32 != source:
                    source = both >> 32
                    entry = work_at(world, first + source)
                    charge = charge_for(world, number, entry.port, entry.frame)
                offer(world, direction, frame, charge, arrival + switch.latency)
        record += x.RECORD
