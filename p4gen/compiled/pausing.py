"""Directions with priority flow control (IEEE 802.1Qbb): a queue for each priority, which the receiver may pause.

A switch counts what it holds of a lossless priority by the port it came in by (``GATE``), from the time at which it
joins a queue until all frames that are sent for it have left. The line takes pause frames first, then priorities in
turn, a frame each. Pause frames name the state of all priorities, last until the next one, and are never lost. Hosts
pause nobody.
"""

from __future__ import annotations

from typing import Final

from p4gen.compiled.cached import compiled
from p4gen.compiled.events import at
from p4gen.compiled.frames import address, ask, give
from p4gen.compiled.links import mark, put_on_line
from p4gen.compiled.machine import load32
from p4gen.compiled.memory import NEVER, NONE, PRIORITIES, Ask, Event, Pool
from p4gen.compiled.pools import give_record, take_record
from p4gen.compiled.records import (
    charge_at,
    direction_at,
    every,
    gate_at,
    host_at,
    length_at,
    output_at,
    priority_at,
    queued_at,
    switch_at,
)
from p4gen.host.transport.clock import SECOND
from p4gen.host.transport.wire import MIN_FRAME, OVERHEAD, PRIORITY_SHIFT
from p4gen.rocev2.codes import ETHERTYPE_IPV4, ETHERTYPE_IPV6
from p4gen.rocev2.layouts import ROCE
from p4gen.rocev2.places import IPV6

PAUSE_BITS: Final = 8 * (MIN_FRAME + OVERHEAD)
"""A pause frame on the wire."""
_QUEUED, _CHARGES = int(Pool.QUEUED), int(Pool.CHARGES)
_JOIN, _FREE, _PAUSE, _PUMP = int(Event.JOIN), int(Event.FREE), int(Event.PAUSE), int(Event.PUMP)
_LOST, _OVERRAN = int(Ask.LOST), int(Ask.OVERRAN)
_NEW, _HELD, _REFUSED = 0, 1, 2
"""States of a charge."""
_ETHER_TYPE, _TOS = ROCE.bytes("ethernet.ether_type").start, ROCE.at("ipv4.ecn")
_SHIFT: Final = 24 + PRIORITY_SHIFT
_IP_HEADER, _VERSION_BITS = IPV6.ip, 4


@compiled
def priority_of(world: int, frame: int) -> int:
    """The priority of a frame; 0 if it is not IP."""
    start = address(world, frame)
    ether_type = load32(start + _ETHER_TYPE) >> 16
    if ether_type == ETHERTYPE_IPV4:
        return load32(start + _TOS) >> _SHIFT
    return load32(start + _IP_HEADER) >> _SHIFT - _VERSION_BITS & PRIORITIES - 1 if ether_type == ETHERTYPE_IPV6 else 0


# --- the memory of switches ---


@compiled
def charge_for(world: int, number: int, port: int, frame: int) -> int:
    """The charge of a packet that has come in by a port of a switch, for the frames that are sent for it; ``NONE`` if
    it came from no link or is of a priority that may be lost."""
    switch = switch_at(world, number)
    if port >= switch.ports or output_at(world, switch.outputs + port).value == NONE:
        return NONE
    gate = (switch.outputs + port) * PRIORITIES + priority_of(world, frame)
    if not gate_at(world, gate).limit:
        return NONE
    place = take_record(world, _CHARGES)
    charge = charge_at(world, place)
    charge.gate = gate
    charge.bytes = length_at(world, frame).value
    charge.copies = 0
    charge.state = _NEW
    return place


@compiled
def _admit(world: int, place: int) -> bool:
    """Whether the memory of its port holds a packet. A packet is admitted or refused with its first frame."""
    charge = charge_at(world, place)
    if charge.state == _NEW:
        gate = gate_at(world, charge.gate)
        charge.state = _REFUSED
        if gate.used + charge.bytes <= gate.limit:
            charge.state = _HELD
            gate.used += charge.bytes
            if gate.used > gate.xoff and not gate.shut:
                gate.shut = True
                _announce(world, charge.gate)
    return bool(charge.state == _HELD)


@compiled
def _release(world: int, place: int) -> None:
    """A frame of a packet has left or is lost."""
    if place == NONE:
        return
    charge = charge_at(world, place)
    charge.copies -= 1
    if charge.copies:
        return
    if charge.state == _HELD:
        gate = gate_at(world, charge.gate)
        gate.used -= charge.bytes
        if gate.shut and gate.used <= gate.xon:
            gate.shut = False
            _announce(world, charge.gate)
    give_record(world, _CHARGES, place)


@compiled
def _announce(world: int, gate: int) -> None:
    """Tell the sender at the other end of a port's link which priorities are paused."""
    number = output_at(world, gate // PRIORITIES).value
    direction_at(world, number).announces = True
    _serve(world, number)


# --- queues ---


@compiled
def offer(world: int, number: int, frame: int, charge: int, when: int) -> None:
    """A switch sends a frame, which joins a queue of a direction at the time ``when``."""
    if charge != NONE:
        charge_at(world, charge).copies += 1
    place = take_record(world, _QUEUED)
    entry = queued_at(world, place)
    entry.frame = frame
    entry.charge = charge
    at(world, when, _JOIN, number, place)


@compiled
def join(world: int, number: int, place: int) -> None:
    """A switch's frame joins a queue, if there is room."""
    entry = queued_at(world, place)
    frame, charge = entry.frame, entry.charge
    give_record(world, _QUEUED, place)
    direction, now = direction_at(world, number), every(world).now
    queue = priority_at(world, number * PRIORITIES + priority_of(world, frame))
    if charge == NONE:
        if queue.bytes + length_at(world, frame).value <= direction.queue:
            append(world, number, frame, charge)
            return
        ask(world, _LOST, number, frame, now)
    else:
        if _admit(world, charge):
            append(world, number, frame, charge)
            return
        ask(world, _OVERRAN, output_at(world, charge_at(world, charge).gate // PRIORITIES).value ^ 1, frame, now)
        _release(world, charge)
    give(world, frame)


@compiled
def append(world: int, number: int, frame: int, charge: int) -> None:
    """Put a frame at the end of the queue of its priority."""
    direction = direction_at(world, number)
    queue = priority_at(world, number * PRIORITIES + priority_of(world, frame))
    if queue.first != NONE and direction.marks_from != NEVER:
        mark(world, number, frame, queue.bytes)
    place = take_record(world, _QUEUED)
    entry = queued_at(world, place)
    entry.frame = frame
    entry.charge = charge
    entry.following = NONE
    if queue.first == NONE:
        queue.first = place
    else:
        queued_at(world, queue.last).following = place
    queue.last = place
    size = length_at(world, frame).value
    queue.bytes += size
    direction.waiting += size
    _serve(world, number)


@compiled
def waiting_priorities(world: int, number: int) -> int:
    """The priorities of which frames wait, a bit each."""
    found = 0
    for priority in range(PRIORITIES):
        found |= (priority_at(world, number * PRIORITIES + priority).first != NONE) << priority
    return found


@compiled
def be_free(world: int, number: int) -> None:
    """The line has sent its frame."""
    direction = direction_at(world, number)
    direction.sending = False
    charge = direction.leaving
    direction.leaving = NONE
    _release(world, charge)
    _serve(world, number)


@compiled
def be_paused(world: int, number: int, priorities: int) -> None:
    """The receiver pauses these priorities, and no others. A frame that is being sent is sent whole."""
    direction, now = direction_at(world, number), every(world).now
    started = priorities & ~direction.paused
    while started:
        direction.pauses += started & 1
        started >>= 1
    if priorities and not direction.paused:
        direction.paused_since = now
    elif direction.paused and not priorities:
        direction.paused_for += now - direction.paused_since
    direction.paused = priorities
    _serve(world, number)


@compiled
def _serve(world: int, number: int) -> None:
    """Let a free line send what is next: a pause frame, or a frame of the next priority that is not paused."""
    direction = direction_at(world, number)
    if direction.sending:
        return
    if direction.announces:
        _send_pause(world, number)
        return
    for i in range(PRIORITIES):
        priority = (direction.turn + 1 + i) % PRIORITIES
        queue = priority_at(world, number * PRIORITIES + priority)
        if queue.first != NONE and not direction.paused >> priority & 1:
            direction.turn = priority
            _send_first(world, number, priority)
            return
    host, now = direction.host, every(world).now
    if host != NONE and (host_at(world, host).pump_at == NONE or host_at(world, host).pump_at > now):
        host_at(world, host).pump_at = now
        at(world, now, _PUMP, host, 0)


@compiled
def _send_pause(world: int, number: int) -> None:
    direction, now = direction_at(world, number), every(world).now
    direction.announces = False
    priorities = 0
    for priority in range(PRIORITIES):
        priorities |= gate_at(world, direction.output * PRIORITIES + priority).shut << priority
    duration = PAUSE_BITS * SECOND // direction.bandwidth
    direction.sending = True
    direction.busy += duration
    direction.busy_until = now + duration
    at(world, direction.busy_until, _FREE, number, 0)
    at(world, direction.busy_until + direction.delay, _PAUSE, number ^ 1, priorities)


@compiled
def _send_first(world: int, number: int, priority: int) -> None:
    direction = direction_at(world, number)
    queue = priority_at(world, number * PRIORITIES + priority)
    place = queue.first
    entry = queued_at(world, place)
    frame = entry.frame
    direction.leaving = entry.charge
    queue.first = entry.following
    give_record(world, _QUEUED, place)
    size = length_at(world, frame).value
    queue.bytes -= size
    direction.waiting -= size
    direction.sending = True
    end = put_on_line(world, number, frame, every(world).now)
    at(world, end, _FREE, number, 0)
