"""Frames that machine code carries between packet sockets and a program: it waits, receives, runs the program, sends.

All frames that wait at any port form a batch, in the order of the kernel's time stamps. Whoever calls ``carry`` does
the rest: digests, frames for controllers, interfaces that do not take a frame.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Any, Final

import numpy as np

from p4gen.compiled.cached import compiled, compiled_with
from p4gen.compiled.machine import (
    call_c,
    load64,
    load_little,
    record_there,
    store32,
    store64,
    store_little,
)
from p4gen.compiled.memory import record
from p4gen.compiled.programs import run_batch
from p4gen.compiled.sockets import EVENT_SIZE, FUNCTIONS, MOST_EVENTS, PAUSE_US, milliseconds, now
from p4gen.model.jit import exchange as x
from p4gen.packetio.mmsg import AT_ONCE, CONTROL, DONT_WAIT, IOVEC, MMSGHDR, MSG_TRUNC, TPID_VALID, VLAN_VALID

PORTS: Final = 1 << 16
"""Ports that have counters."""


class Why(IntFlag):
    """Why machine code stops carrying; nothing if its time is up."""

    WOKEN = 1
    """Somebody has something to do."""
    EVENTS = 2
    """The program has digests or messages."""
    CONTROLLER = 4
    """The last batch has frames for controllers."""
    NOT_SENT = 8
    """The frames of the last batch from ``unsent`` on have not been sent."""


CARRIER: Final = record(
    "poll", "woken", "out",
    *FUNCTIONS,
    "events", "ports_of", "slots", "headers", "controls", "places", "data", "runs", "used_runs",
    "starts", "ends", "ports", "time",
    "state", "exchange", "temporary", "program", "began", "cpu_port",
    "names", "named", "out_headers", "out_pieces", "out_numbers", "unsent",
    "counts", "until",
)  # fmt: skip
"""Descriptors; addresses of functions of the C library; addresses of arrays, and how many elements they have. ``began``
and ``until``: when the program's clock began, and until when to carry, in ns of CLOCK_MONOTONIC."""
COUNTS: Final = record("in_packets", "in_bytes", "out_packets", "out_bytes", "undelivered", "truncated")
RUN: Final = record("next", "end", "port", "time")
"""Received frames of one socket: the place of the next one, the place after the last one, the port, and the time stamp
of the next one, ns."""
SENT: Final = np.dtype([("start", np.int64), ("size", np.int64), ("port", np.uint32), ("source", np.uint32)])
"""A frame that the program sends (``exchange.RECORD``)."""

_carrier_at, _counts_at, _run_at, _header_at, _control_at, _sent_at = (
    record_there(each) for each in (CARRIER, COUNTS, RUN, MMSGHDR, CONTROL, SENT)
)
_COUNTS, _RUN, _HEADER, _CONTROL, _PIECE, _SENT = (
    each.itemsize for each in (COUNTS, RUN, MMSGHDR, CONTROL, IOVEC, SENT)
)
_WORD, _SHORT = 8, 4
_S, _US = 1_000_000_000, 1_000
_TAG, _TPID = 4, 0x8100
_NOTHING: Final = -1
_WOKEN, _EVENTS, _CONTROLLER, _NOT_SENT = (int(why) for why in Why)


@compiled_with(nogil=True)
def carry(carrier: int) -> int:
    """Carry frames until the time is up, or something else is to be done (``Why``)."""
    of = _carrier_at(carrier)
    present = now(of.clock, of.time)
    while True:
        ready = call_c(of.wait, of.poll, of.events, MOST_EVENTS, milliseconds(of.until - present), 0)
        why = _receive(of, ready)
        present = now(of.clock, of.time)
        count = _arrange(of)
        if count:
            why |= _process(of, count, present)
        if why or ready <= 0 or present >= of.until:  # a signal ends the wait, too
            return why
        if count:
            call_c(of.pause, PAUSE_US, 0, 0, 0, 0)


# --- frames in ---


@compiled
def _receive(of: Any, ready: int) -> int:
    """Receive from the sockets that are ready. They share the places; what is left waits for the next batch."""
    why = 0
    used = 0
    of.used_runs = 0
    for number in range(ready):
        file = load_little(of.events + number * EVENT_SIZE + _SHORT)
        if file == of.woken:
            why = _WOKEN
            continue
        most = min(of.slots - used, max(1, (of.slots - used) // (ready - number)))
        got = call_c(of.receive, file, of.headers + used * _HEADER, most, DONT_WAIT, 0)
        if got <= 0:  # the interface is down; it may come up again
            continue
        run = _run_at(of.runs + of.used_runs * _RUN)
        run.next = used
        run.port = load_little(of.ports_of + file * _SHORT)
        run.time = _time(of, used)
        used += got
        run.end = used
        of.used_runs += 1
    return why


@compiled
def _time(of: Any, place: int) -> int:
    """The time stamp of a received frame, ns."""
    control = _control_at(of.controls + place * _CONTROL)
    return control.seconds * _S + control.nanoseconds


@compiled
def _arrange(of: Any) -> int:
    """Make a batch of the received frames, in the order of their time stamps. Returns their number."""
    count = 0
    while True:
        first = _NOTHING
        for number in range(of.used_runs):
            run = _run_at(of.runs + number * _RUN)
            if run.next < run.end and (first == _NOTHING or run.time < _run_at(of.runs + first * _RUN).time):
                first = number
        if first == _NOTHING:
            return count
        run = _run_at(of.runs + first * _RUN)
        count += _put(of, run.next, run.port, count)
        run.next += 1
        if run.next < run.end:  # frames of one socket are never reordered, whatever their time stamps
            run.time = max(run.time, _time(of, run.next))


@compiled
def _put(of: Any, place: int, port: int, number: int) -> bool:
    """Make a received frame the batch's frame of this number. Returns False for one that was cut off."""
    header = _header_at(of.headers + place * _HEADER)
    control = _control_at(of.controls + place * _CONTROL)
    counts = _counts_at(of.counts + port * _COUNTS)
    status = control.status
    header.control_size = _CONTROL
    control.status = 0
    if header.flags & MSG_TRUNC:
        counts.truncated += 1
        return False
    start = load64(of.places + place * _WORD)
    end = start + header.size
    if status & VLAN_VALID:
        start -= _TAG
        tpid = control.tpid if status & TPID_VALID else _TPID
        _insert_tag(of.data + start, tpid << 16 | control.tci)
    store64(of.starts + number * _WORD, start)
    store64(of.ends + number * _WORD, end)
    store_little(of.ports + number * _SHORT, port)
    counts.in_packets += 1
    counts.in_bytes += end - start
    return True


@compiled
def _insert_tag(at: int, tag: int) -> None:
    """Insert the VLAN tag that the kernel removed: addresses go to ``at``, four bytes before where they are."""
    store64(at, load64(at + _TAG))
    store_little(at + _WORD, load_little(at + _TAG + _WORD))
    store32(at + _WORD + _SHORT, tag)


# --- the program, and frames out ---


@compiled
def _process(of: Any, count: int, present: int) -> int:
    """Run the program on the batch, and send what it sends. Returns what Python has to do (``Why``)."""
    exchange = of.exchange
    present_us = (present - of.began) // _US
    run_batch(of.program, of.state, exchange, of.temporary, of.data, of.starts, of.ends, of.ports, count, present_us)
    why = _EVENTS if load64(exchange + x.EVENTS_USED) else 0
    for number in range(load64(exchange + x.RECORDS_COUNT)):
        sent = _sent_at(load64(exchange + x.RECORDS) + number * _SENT)
        counts = _counts_at(of.counts + min(sent.port, PORTS - 1) * _COUNTS)
        counts.out_packets += 1
        counts.out_bytes += sent.size
        if sent.port == of.cpu_port:
            why |= _CONTROLLER
        elif not _name(of, sent.port):
            counts.undelivered += 1
    return why | _send(of)


@compiled
def _name(of: Any, port: int) -> int:
    """The place of an interface's address (sockaddr_ll); 0 if the port has no interface."""
    return load64(of.names + port * _WORD) if port < of.named else 0


@compiled
def _send(of: Any) -> int:
    """Send the program's output, up to the first frame that an interface does not take."""
    data = load64(of.exchange + x.OUT_DATA)
    records = load64(of.exchange + x.RECORDS)
    waiting = 0
    for number in range(load64(of.exchange + x.RECORDS_COUNT)):
        sent = _sent_at(records + number * _SENT)
        name = _name(of, sent.port)
        if not name:
            continue
        if waiting == AT_ONCE:
            if not _push(of, waiting):
                return _NOT_SENT
            waiting = 0
        store64(of.out_headers + waiting * _HEADER, name)
        store64(of.out_pieces + waiting * _PIECE, data + sent.start)
        store64(of.out_pieces + waiting * _PIECE + _WORD, sent.size)
        store_little(of.out_numbers + waiting * _SHORT, number)
        waiting += 1
    return 0 if _push(of, waiting) else _NOT_SENT


@compiled
def _push(of: Any, waiting: int) -> bool:
    """Send so many messages. Returns False if the one of output ``unsent`` cannot be sent."""
    done = 0
    while done < waiting:
        got = call_c(of.send, of.out, of.out_headers + done * _HEADER, waiting - done, DONT_WAIT, 0)
        if got < 0:
            of.unsent = load_little(of.out_numbers + done * _SHORT)
            return False
        done += got
    return True
