"""The exchange area: memory through which the host and the generated code communicate, and the engine's queues.

Byte offsets of 8-byte words. Buffers that grow are allocated with ``malloc``.
"""

from __future__ import annotations

(
    IN_DATA, IN_OFFSETS, IN_PORTS, IN_TIMES, IN_COUNT,
    OUT_DATA, OUT_ROOM, OUT_USED,
    RECORDS, RECORDS_ROOM, RECORDS_COUNT,
    EVENTS, EVENTS_ROOM, EVENTS_USED,
    FRAMES, FRAMES_USED, WORK,
    QUEUE, QUEUE_HEAD, QUEUE_TAIL,
    ARRIVALS, ARRIVALS_HEAD, ARRIVALS_TAIL,
    NOW, SOURCE, OUT_AT, OUT_BASE,
    IN_ENDS,
    QUEUE_ROOM, ARRIVALS_ROOM, ARENA, ARENA_ROOM, ARENA_USED, ARENA_CHUNKS,
    HOLD,
) = range(0, 35 * 8, 8)  # fmt: skip
"""Packets in: bytes, n offsets (8 bytes each), ports (4 each), times in microseconds (8 each, or null), n; and n ends.
Packets out: bytes, and records. Events. Frames of packets on their way, and one to work on; departures;
arrivals. The time, the number of the packet being processed. The deparser's position in
bits and the start of what it writes. The sizes of queues that grow, and memory that is free again when a packet is
done: its address, its size, how much is used, and a list of further pieces. Whether packets that recirculate are held
back (``p4gen.model.passes.HELD``)."""

EXCHANGE_SIZE = 512

RECORD = 24
"""A packet out: where it begins (8 bytes), its size (8), its port (4), the number of the packet it comes from (4)."""

DEPARTURE = 40
"""Frame, replicas (null: one copy to ``port``), how many, bytes to keep (0: all), port; 8 bytes each."""

ARRIVAL = 64
"""Data, size, port, instance type, field list (-1: none), time, memory to free (or null); 8 bytes each. The user
metadata, of which the field list is preserved, follow."""

EVENT = 16
"""An event's site and the bytes that follow it, 8 bytes each."""
