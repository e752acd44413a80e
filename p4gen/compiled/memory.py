"""The memory of a compiled world: arrays of records, reserved for the most there can be and used from the front.

A reservation is address space: a page takes memory once it is written. So arrays never move, and compiled code that
calls Python may go on with the addresses that it has.
"""

from __future__ import annotations

import mmap
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from p4gen.rocev2.places import IPV4

Records = npt.NDArray[Any]
NONE: Final = -1
"""No record, no time, no number."""
COLLECTED: Final = -2
"""The direction of a host whose frames are collected in ``World.left``."""
NEVER: Final = 1 << 62
"""A time that is never reached, ps."""


class Event(IntEnum):
    """Kinds of events, with what ``who`` of an event is."""

    ACTION = 0
    """Of Python; the number of the action."""
    PUMP = 1
    """Of a host."""
    RECEIVE = 2
    """Of a host."""
    TIMER = 3
    """Of a queue pair, as are the next ones: the retransmission timer."""
    QUIET = 4
    """The time that an RNR NAK asked for is over."""
    HOLES = 5
    """Missing packets may have to be requested again."""
    REST = 6
    """The last results may be missing."""
    WAKE = 7
    """Of a switch."""
    JOIN = 8
    """Of a direction, as are the next ones: a frame joins a queue; the number of its record."""
    FREE = 9
    """The line is free again."""
    PAUSE = 10
    """The receiver pauses priorities; a bit for each."""


class Ask(IntEnum):
    """What compiled code asks of Python, with its arguments."""

    ACTION = 0
    """Carry out an action: its number."""
    SENT = 1
    """The oldest send of a pair is complete: the pair."""
    RECEIVED = 2
    """The oldest receive of a pair is complete: the pair, bytes, immediate data or ``NONE``."""
    FAIL = 3
    """A pair has to be broken: the pair, the position of a status among ``verbs.Status``."""
    TEMPLATE = 4
    """A pair lacks a template: the pair, the opcode, bytes of the body; twice that, plus 1 with a solicited event."""
    WRITE = 5
    """A WRITE begins: the pair, the frame, the bytes of its first packet. The answer is the address that it fills, or
    minus the syndrome with which it is refused."""
    REFUSED = 6
    """A frame that only Python reads: the host, the frame."""
    FATE = 7
    """The faults of a direction: the direction, the frame, when it is sent. Python delivers what arrives."""
    LOST = 8
    """A queue is full: the direction, the frame, the time."""
    WATCH = 9
    """A frame passes: the direction, the frame, when it is sent."""
    BATCH = 10
    """A switch that Python runs has packets in ``World.work``: the switch, how many."""
    EVENTS = 11
    """A program has digests, messages or traps: the switch."""
    ANSWER = 12
    """An answer that only Python writes: the pair. The answer is its frame."""
    OVERRUN = 13
    """The receive of a pair is too short for its message: the pair."""
    EXECUTE = 14
    """A READ or an atomic operation in its turn: the pair, the frame. The answer is the number of its PSNs; minus a
    syndrome if it is refused."""
    REPEAT = 15
    """A READ or an atomic operation that has arrived before: the pair, the frame, its number."""
    ENDED = 16
    """The oldest run of a channel is complete: the pair."""
    UNEXPECTED = 17
    """A message of a run has arrived with other immediate data: the pair, the run, the data or ``NONE``."""
    CNP = 18
    """A congestion notification packet is due: the pair. The answer is its frame."""
    TRANSMIT = 19
    """A NIC without a direction sends a frame: the host, the frame, the time. The answer is when its line is free
    again."""
    PROBLEM = 20
    """Something that cannot be: an item of ``PROBLEMS``."""
    OVERRAN = 21
    """A lossless priority has no room at a port: the direction that leads to the port, the frame, the time."""


class Pool(IntEnum):
    """Arrays of records that are taken and given back; a free record's last column is the next free one."""

    MESSAGES = 0
    RECEIVES = 1
    ANSWERS = 2
    LINKS = 3
    KEPT = 4
    RUNS = 5
    TRIPS = 6
    QUEUED = 7
    CHARGES = 8


PROBLEMS: Final = (
    "a packet belongs to no message",
    "a frame is longer than those the network was made for",
    "more packets wait at a switch than its inbox holds",
    "more is under way than the network has memory for",
)

MANY: Final = 1 << 22
"""The most events, frames, and records of each pool."""
PAIRS: Final = 1 << 18
"""The most queue pairs."""
_FLAGS: Final = 1 << 32
"""Bytes of flags of all packets that may be outstanding."""
_MOMENTS: Final = 1 << 28
"""Times of all packets that may be outstanding where a loss may be reported several times."""
REMEMBERED: Final = 8
"""Number of round trips that an adaptive timer remembers."""
TOO_LONG, WAITING, FULL = 1, 2, 3
"""Positions in ``PROBLEMS``."""
SLOT_OF_TEMPLATES: Final = 32
"""Templates of a pair, each in the place that its opcode and size give it."""
HEAD: Final = IPV4.word_at
"""Bytes of a frame before the word with the PSN."""
KEY: Final = IPV4.resv8a_at
"""Bytes of a frame before the BTH's resv8a: the same for all packets of a kind. Of frames over IPv6, both have
``shift`` bytes more, as has every place behind the IP header."""
INBOX: Final = 1 << 16
"""Packets that may wait at a switch."""
PRIORITIES: Final = 8
"""Priorities of frames (IEEE 802.1Q)."""


def record(*names: str, reals: tuple[str, ...] = ()) -> np.dtype[Any]:
    """A record of whole numbers and of ``reals``, eight bytes each."""
    return np.dtype([(name, np.int64) for name in names] + [(name, np.float64) for name in reals])


ARRAYS: Final = (
    "heap", "pool", "lengths", "free", "directions", "switches", "outputs", "inboxes", "work", "offsets", "ends",
    "ports", "hosts", "pairs", "table", "flags", "messages", "receives", "answers", "links", "kept", "templates",
    "known", "runs", "trips", "moments", "pools", "left", "rates", "buffers", "queues", "priorities", "gates", "queued",
    "charges",
)  # fmt: skip
"""The arrays of a world but the first."""
GLOBALS: Final = record(
    "now", "handled", "number", "events", "pairs_used", "frames_used", "frames_free", "flags_used", "moments_used",
    "left_used", "error", "late", "slot", "burst", "mask", "ask", "crc",
    *ARRAYS,
)  # fmt: skip
"""Time and counts of events; how many pairs there are, how many slots of frames were ever used and how many are free
again, and how many frames have been collected. From ``error`` on what is no state: whether an event has failed; how
late timers are, ps; bytes of a slot; packets that a NIC gives to its line at once; the mask of the table of queue
pairs; the addresses of the functions that ask Python and compute a CRC-32, and of the arrays."""
EVENT: Final = record("time", "number", "kind", "who", "arg")
ARRIVED: Final = record("time", "number", "port", "frame")
DIRECTION: Final = record(
    "bandwidth", "delay", "room", "to_switch", "to", "port", "busy_until", "busy", "packets", "bytes", "marked",
    "drawn", "faults", "watched", "buffer", "next_of_buffer", "marks_from", "low", "high", "key",
    "controlled", "host", "output", "queue", "waiting", "sending", "leaving", "turn", "announces", "paused",
    "paused_since", "paused_for", "pauses",
    reals=("share",),
)  # fmt: skip
"""``room`` and ``marks_from``: how long a frame may wait, and from where on it may be marked, ps; ``NEVER``: never.
Of ECN, thresholds in bytes and the share of frames marked at the higher one; marks are draws of ``key``.

From ``controlled`` on: of directions with priority flow control (``p4gen.compiled.pausing``). The host or the output of
a switch that it leads from, the most bytes of a queue, the bytes that wait in all queues; whether a frame is being
sent, and the charge of that frame; the priority that was served last; whether a pause frame is due; the priorities that
are paused, a bit each; since when some is, for how long some was, ps, and how often one was."""
PRIORITY: Final = record("first", "last", "bytes")
"""The queue of a direction for a priority: its frames (``QUEUED``), and their bytes."""
QUEUED: Final = record("frame", "charge", "following")
GATE: Final = record("used", "shut", "xoff", "xon", "limit")
"""A switch's memory for a lossless priority of what came in by a port, in bytes, and whether the sender is paused. A
``limit`` of 0: the priority is not lossless."""
CHARGE: Final = record("gate", "bytes", "copies", "state", "following")
"""A packet in that memory: it stays until all frames that the switch sends for it have left."""
BUFFER: Final = record("size", "latest", "first", reals=("alpha", "bandwidth"))
"""The memory that a switch's queues share: bytes, when all queues will be empty, the first of its directions, the part
of what is free that a queue may take, and the sum of the queues' bandwidths."""
QUEUE: Final = record("offset", "bits", "direction")
"""A register of a program that has the length of a queue, in bytes: where it is in the switch's state."""
SWITCH: Final = record(
    "state", "exchange", "temporary", "batch", "latency", "recirculation", "outputs", "ports", "waiting", "number",
    "wake_at", "received", "lost_ports", "by_python", "queues", "queues_used",
)  # fmt: skip
"""``recirculation`` is the time after which a packet that recirculates arrives again, ps; 0: at once."""
LEFT: Final = record("host", "frame")
"""A frame that has left a host whose frames are collected."""
HOST: Final = record(
    "direction", "mac", "ip", "free_at", "pump_at", "checks_icrc", "turn", "last_turn", "turns", "answering",
    "last_answering", "held", "ip_rest", "shift",
)  # fmt: skip
"""``ip`` and ``ip_rest``, here and of a pair's peer: an IPv4 address as a number, or the halves of an IPv6 address as
they are in memory. ``shift`` is that of the frames (``p4gen.rocev2.places``). ``held`` has a bit for each priority of
which a packet of the host waits for its line: none of its pairs may send."""
PAIR: Final = record(
    "cell", "host", "number", "peer_ip", "mtu", "recovery", "most", "ack_every", "least_timeout", "retry_count",
    "rnr_retry", "rnr_syndrome", "selective", "max_rd_atomic", "first_psn", "received_psn", "priority", "broken",
    "in_turn",
    "next_turn", "listed", "next_answering",
    # the requester
    "una", "next", "high", "end", "oldest", "newest", "current", "again", "last_again", "flags", "mask", "went_back",
    "named", "last_named", "moments", "trips", "allowed", "responses", "timeout",
    "retries", "rnr_retries", "quiet_until", "deadline", "timer_set", "rated", "free_at",
    "sent", "resent", "timeouts", "naks", "rnr_naks", "ghosts", "cnps", "bytes",
    # the responder
    "expected", "msn", "nak_sent", "inside", "room", "size", "width", "filled", "has_receive", "taken_room",
    "taken_size", "taken_width",
    "posted", "receive", "last_receive", "kept", "last_kept", "seen", "hole", "last_hole", "waits_since",
    "answer", "last_answer", "ack_due", "cnp_interval", "next_cnp", "cnp_due",
    "received", "duplicates", "out_of_order", "naks_sent", "rnr_naks_sent", "cnps_sent",
    # the channel
    "has_channel", "part", "window", "ahead", "early", "open", "sending", "receiving", "last_receiving", "rooming",
    "last_rooming", "run", "last_run",
    # of frames over IPv6
    "peer_ip_rest", "shift",
)  # fmt: skip
RATE: Final = record(
    "kind", "alpha_timer", "decrease_interval", "increase_timer", "increase_bytes", "fast_recovery", "nack_cuts",
    "started", "cut_due", "congested", "stage", "alpha_at", "look_at", "increase_at", "bytes", "byte_steps", "due",
    reals=("rate", "target", "alpha", "line_rate", "min_rate", "additive_step", "hyper_step", "gain"),
)  # fmt: skip
"""The rate of a connection (``p4gen.compiled.rates``). ``due``: when everything sent would have left at a planned
rate; ``stage``: increases by the timer since the last cut, ``byte_steps`` those by bytes."""
MESSAGE: Final = record(
    "first", "end", "data", "length", "width", "has_immediate", "immediate", "rkey", "remote", "solicited", "operation",
    "swap_or_add", "compare", "following",
)  # fmt: skip
"""``width``, here and of receives: bytes of an element, which is sent in network order and is in the machine's order in
memory; 1: bytes are sent as they are. ``operation`` is the opcode of the request of a READ or an atomic operation."""
RUN: Final = record(
    "send", "send_length", "receive", "receive_length", "width", "messages", "control", "waits", "added", "begun",
    "rooms", "received", "posted", "sent", "left", "last_result", "next_receiving", "next_room", "moved", "following",
)  # fmt: skip
"""``moved`` is the number that a run gets when its world is frozen."""
RECEIVE: Final = record("room", "size", "width", "following")
ANSWER: Final = record("psn", "syndrome", "msn", "following")
LINK: Final = record("value", "due", "following")
KEPT: Final = record("seq", "opcode", "asks", "frame", "before", "following")
TRIPS: Final = record(
    "seq", "since", "estimate", "patient", "next_took", *(f"took_{i}" for i in range(REMEMBERED)), "following"
)
"""Of a timer that adapts: the packet that is timed, when it was sent, and the last round trips, ps."""
POOL: Final = record("free", "used", "base", "size", "room")
"""The first free record and how many were ever used; the address of the array, bytes of a record, how many there can
be."""
TEMPLATE: Final = np.dtype([("key", np.int64), ("crc", np.int64), ("start", np.uint8, 72)])
NUMBER: Final = np.dtype([("value", np.int64)])
SHORT: Final = np.dtype([("value", np.int32)])
BYTE: Final = np.dtype([("value", np.uint8)])
CELL: Final = record("key", "value")
"""A place in the table of queue pairs: the key, the host and the pair's number; the number of the pair's record. Both
are counted from 1."""
KNOWN: Final = np.dtype([("valid", np.int64), ("crc", np.int64), ("length", np.int64), ("start", np.uint8, 72)])


def column_at(record: np.dtype[Any], name: str) -> int:
    """Where a column is in a record, in bytes."""
    assert record.fields is not None
    return record.fields[name][1]


class World(NamedTuple):
    """All arrays of a world. Compiled functions take ``place``, the address of the first."""

    all: Records
    heap: Records
    pool: npt.NDArray[np.uint8]
    lengths: Records
    free: Records
    directions: Records
    switches: Records
    outputs: Records
    inboxes: Records
    work: Records
    offsets: Records
    ends: Records
    ports: Records
    hosts: Records
    pairs: Records
    table: Records
    flags: Records
    messages: Records
    receives: Records
    answers: Records
    links: Records
    kept: Records
    templates: Records
    known: Records
    runs: Records
    trips: Records
    moments: Records
    pools: Records
    left: Records
    rates: Records
    buffers: Records
    queues: Records
    priorities: Records
    gates: Records
    queued: Records
    charges: Records
    place: int


def reserve(dtype: Any, count: int) -> Any:
    """An array of zeros that takes memory as it is written."""
    kind = np.dtype(dtype)
    no_reserve = getattr(mmap, "MAP_NORESERVE", 0x4000)
    space = mmap.mmap(-1, kind.itemsize * count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve)
    return np.frombuffer(space, kind)


def world(slot: int, directions: int, switches: int, outputs: int, hosts: int) -> World:
    """The memory of a world whose frames have at most ``slot`` bytes."""
    every = np.zeros(1, GLOBALS)
    made = World(
        every,
        reserve(EVENT, MANY),
        reserve(np.uint8, slot * MANY),
        reserve(SHORT, MANY),
        reserve(SHORT, MANY),
        np.zeros(max(1, directions), DIRECTION),
        np.zeros(max(1, switches), SWITCH),
        np.full(max(1, outputs), NONE, np.int32).view(SHORT),
        reserve(ARRIVED, max(1, switches) * INBOX),
        np.zeros(INBOX, ARRIVED),
        np.zeros(INBOX, NUMBER),
        np.zeros(INBOX, NUMBER),
        np.zeros(INBOX, SHORT),
        np.zeros(max(1, hosts), HOST),
        reserve(PAIR, PAIRS),
        reserve(CELL, 2 * PAIRS),
        reserve(BYTE, _FLAGS),
        reserve(MESSAGE, MANY),
        reserve(RECEIVE, MANY),
        reserve(ANSWER, MANY),
        reserve(LINK, MANY),
        reserve(KEPT, MANY),
        reserve(TEMPLATE, PAIRS * SLOT_OF_TEMPLATES),
        reserve(KNOWN, PAIRS * SLOT_OF_TEMPLATES),
        reserve(RUN, PAIRS),
        reserve(TRIPS, PAIRS),
        reserve(NUMBER, _MOMENTS),
        np.zeros(len(Pool), POOL),
        reserve(LEFT, MANY),
        reserve(RATE, PAIRS),
        np.zeros(max(1, switches), BUFFER),
        reserve(QUEUE, max(1, outputs)),
        np.zeros(max(1, directions) * PRIORITIES, PRIORITY),
        np.zeros(max(1, outputs) * PRIORITIES, GATE),
        reserve(QUEUED, MANY),
        reserve(CHARGE, MANY),
        every.ctypes.data,
    )
    first = every[0]
    first["slot"], first["mask"] = slot, 2 * PAIRS - 1
    for pool in Pool:
        array = getattr(made, pool.name.lower())
        made.pools[pool] = NONE, 0, array.ctypes.data, array.itemsize, len(array)
    made.buffers["first"] = made.priorities["first"] = NONE
    for name in ARRAYS:
        first[name] = getattr(made, name).ctypes.data
    return made
