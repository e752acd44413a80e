"""A host in real time: it waits for frames at a packet socket, receives them, runs what is due, and sends.

Whoever calls ``serve`` does the rest: what other threads ask for, timers of Python's, frames that an interface does not
take.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Any, Final

from p4gen.compiled.cached import compiled, compiled_with
from p4gen.compiled.frames import address, give, take
from p4gen.compiled.machine import call_c, copy, load64, load_little, record_there, store64, store_little
from p4gen.compiled.memory import LEFT, NEVER, NONE, record
from p4gen.compiled.nics import receive
from p4gen.compiled.records import event_at, every, left_address, left_at, length_at
from p4gen.compiled.run import run_due
from p4gen.compiled.sockets import EVENT_SIZE, FUNCTIONS, MOST_EVENTS, PAUSE_US, milliseconds, now
from p4gen.host.transport.clock import NS
from p4gen.packetio.mmsg import AT_ONCE, CONTROL, DONT_WAIT, IOVEC, MMSGHDR, MSG_TRUNC, VLAN_VALID
from p4gen.rocev2.codes import ETHERTYPE_VLAN
from p4gen.rocev2.layouts import ROCE


class Why(IntFlag):
    """Why a host stops serving; nothing if its time is up."""

    OTHERS = 1
    """Another descriptor is ready."""
    NOT_SENT = 2
    """The interface does not take the first of the frames in ``World.left``."""


PORT: Final = record(
    "world", "host", "poll", "file",
    *FUNCTIONS,
    "events", "time", "slots", "headers", "pieces", "controls", "frames", "out_headers", "out_pieces",
    "until", "truncated",
)  # fmt: skip
"""The address of the world and the number of the host; descriptors; addresses of functions of the C library, and of
arrays; ``frames`` are the slots into which messages are received. ``until`` is when Python has something to do, ps of
CLOCK_MONOTONIC. How many frames were longer than a slot."""

_port_at, _header_at, _control_at = (record_there(each) for each in (PORT, MMSGHDR, CONTROL))
_HEADER, _CONTROL, _PIECE, _LEFT = (each.itemsize for each in (MMSGHDR, CONTROL, IOVEC, LEFT))
_WORD, _SHORT = 8, 4
_ETHER_TYPE: Final = ROCE.bytes("ethernet.ether_type").start
_VLAN: Final = int.from_bytes(ETHERTYPE_VLAN.to_bytes(2), "little")
_OTHERS, _NOT_SENT = int(Why.OTHERS), int(Why.NOT_SENT)


@compiled_with(nogil=True)
def serve(port: int) -> int:
    """Be a host until it is time, or something else is to be done (``Why``). An error of Python's ends it, too."""
    of = _port_at(port)
    world = of.world
    while True:
        due = event_at(world, 0).time if every(world).events else NEVER
        left = min(due, of.until) // NS - now(of.clock, of.time)
        ready = call_c(of.wait, of.poll, of.events, MOST_EVENTS, milliseconds(left), 0)
        why = 0
        count = 0
        for number in range(ready):
            if load_little(of.events + number * EVENT_SIZE + _SHORT) == of.file:
                count = _receive(of)
            else:
                why = _OTHERS
        present = now(of.clock, of.time) * NS
        run_due(world, present)
        if not _send(of):
            why |= _NOT_SENT
        if why or ready < 0 or every(world).error or present >= of.until:
            return why
        if count > 0:
            call_c(of.pause, PAUSE_US, 0, 0, 0, 0)


@compiled
def _receive(of: Any) -> int:
    """Receive the frames that wait, as many as there are slots for. Returns their number."""
    world = of.world
    for place in range(of.slots):
        if load64(of.frames + place * _WORD) != NONE:
            break  # all behind it are still there
        frame = take(world, 0)
        store64(of.frames + place * _WORD, frame)
        store64(of.pieces + place * _PIECE, address(world, frame))
    count = call_c(of.receive, of.file, of.headers, of.slots, DONT_WAIT, 0)
    every(world).now = now(of.clock, of.time) * NS
    for place in range(count):
        header = _header_at(of.headers + place * _HEADER)
        control = _control_at(of.controls + place * _CONTROL)
        frame = load64(of.frames + place * _WORD)
        start = address(world, frame)
        store64(of.frames + place * _WORD, NONE)
        header.control_size = _CONTROL
        # Broadcasts and multicasts are handled by the kernel; reliable connections do not use them.
        if header.flags & MSG_TRUNC or header.size == 0 or load_little(start) & 1:
            of.truncated += (header.flags & MSG_TRUNC) != 0
            give(world, frame)
            continue
        if control.status & VLAN_VALID:  # its tag, which the kernel has removed, makes it none of a RoCE packet
            rest = load_little(start + _ETHER_TYPE) & ~0xFFFF
            store_little(start + _ETHER_TYPE, rest | _VLAN)
        length_at(world, frame).value = header.size
        receive(world, of.host, frame)
    return count


@compiled
def _send(of: Any) -> bool:
    """Send the frames that have left, up to the first one that the interface does not take. Returns False if there is
    one."""
    world = of.world
    done = 0
    while done < every(world).left_used:
        count = min(every(world).left_used - done, AT_ONCE)
        for i in range(count):
            frame = left_at(world, done + i).frame
            store64(of.out_pieces + i * _PIECE, address(world, frame))
            store64(of.out_pieces + i * _PIECE + _WORD, length_at(world, frame).value)
        sent = call_c(of.send, of.file, of.out_headers, count, DONT_WAIT, 0)
        for i in range(sent):
            give(world, left_at(world, done + i).frame)
        if sent < 0:
            break
        done += sent
    rest = every(world).left_used - done
    for i in range(rest if done else 0):
        copy(left_address(world, i), left_address(world, done + i), _LEFT)
    every(world).left_used = rest
    return rest == 0
