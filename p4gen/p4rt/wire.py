"""Protobuf's wire format, encoded by hand for messages that occur in very large numbers.

Where protobuf is implemented in Python it takes tens of microseconds for a message, and a program's registers are tens
of thousands of them. Encoding: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, BYTES = 0, 2


def varint(value: int) -> bytes:
    """A non-negative integer, seven bits per byte, the least significant first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """An integer field; nothing for 0, the default."""
    return varint(field << 3 | VARINT) + varint(value) if value else b""


def blob(field: int, data: bytes) -> bytes:
    """A bytes, string or message field, even if empty."""
    return varint(field << 3 | BYTES) + varint(len(data)) + data


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message as (number, value). ValueError for wire types other than varint and bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == VARINT:
            value, at = _varint(data, at)
            yield key >> 3, value
        elif key & 7 == BYTES:
            size, at = _varint(data, at)
            yield key >> 3, data[at : at + size]
            at += size
        else:
            raise ValueError(f"wire type {key & 7} of field {key >> 3}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
