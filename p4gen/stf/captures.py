"""Reading capture files: libpcap's format and pcapng (draft-ietf-opsawg-pcapng), of Ethernet frames."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from p4gen.errors import Diagnostic, InputError

_ETHERNET = 1
_MICRO, _NANO = 1000, 1
_PCAP = {0xA1B2C3D4: _MICRO, 0xA1B23C4D: _NANO}
_BYTE_ORDER = 0x1A2B3C4D
_IF_TSRESOL = 9


class BlockType(IntEnum):
    """The blocks of pcapng that the reader understands."""

    SECTION = 0x0A0D0D0A
    INTERFACE = 1
    SIMPLE = 3
    ENHANCED = 6


@dataclass(frozen=True)
class Captured:
    """A frame and when it was captured, in nanoseconds since the epoch."""

    time: int
    frame: bytes


MAX_CAPTURE = 256 << 20
"""Bytes of a capture: it is read as a whole."""


def read_capture(path: Path) -> tuple[Captured, ...]:
    """The frames of a capture in their order.

    Raises ``InputError`` for a file that is no capture, ends within a frame, holds frames that were cut short when
    they were captured, or is not of Ethernet.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CAPTURE + 1)
    except OSError as error:
        raise InputError(Diagnostic(str(path), f"cannot read the capture: {error.strerror}")) from error
    if len(data) > MAX_CAPTURE:
        raise InputError(Diagnostic(str(path), f"has more than {MAX_CAPTURE >> 20} MiB, which is the limit"))
    try:
        if data[:4] == struct.pack("<I", BlockType.SECTION):  # the same in either byte order
            return tuple(_pcapng(data))
        for order in "<>":
            if len(data) >= 24 and struct.unpack_from(f"{order}I", data)[0] in _PCAP:
                return tuple(_pcap(data, order))
    except (_WrongError, struct.error) as error:
        what = str(error) if isinstance(error, _WrongError) else "the capture ends within a block"
        raise InputError(Diagnostic(str(path), what)) from None
    raise InputError(Diagnostic(str(path), "this is no capture: neither pcap nor pcapng"))


class _WrongError(Exception):
    """The file is not a capture that can be read; the message is the reason."""


def _pcap(data: bytes, order: str) -> Iterator[Captured]:
    magic, link = struct.unpack_from(f"{order}I", data)[0], struct.unpack_from(f"{order}I", data, 20)[0]
    _ethernet(link & 0xFFFF)
    unit, at, number = _PCAP[magic], 24, 0
    while at < len(data):
        number += 1
        seconds, fraction, kept, length = struct.unpack_from(f"{order}IIII", data, at)
        yield Captured(seconds * 1_000_000_000 + fraction * unit, _frame(data, at + 16, kept, length, number))
        at += 16 + kept


def _pcapng(data: bytes) -> Iterator[Captured]:
    at, number, time, order = 0, 0, 0, "<"
    units: list[tuple[int, int]] = []
    while at < len(data):
        if struct.unpack_from("<I", data, at)[0] == BlockType.SECTION:
            order = "<" if struct.unpack_from("<I", data, at + 8)[0] == _BYTE_ORDER else ">"
            units = []
        kind, size = struct.unpack_from(f"{order}II", data, at)
        if size < 12 or size % 4 or at + size > len(data):
            raise _WrongError(f"the capture's block at byte {at} is not whole")
        body = data[at + 8 : at + size - 4]
        at += size
        match kind:
            case BlockType.INTERFACE:
                _ethernet(struct.unpack_from(f"{order}H", body)[0])
                units.append(_resolution(body[8:], order))
            case BlockType.SIMPLE:
                number += 1
                (length,) = struct.unpack_from(f"{order}I", body)
                yield Captured(time, _frame(body, 4, min(length, len(body) - 4), length, number))
            case BlockType.ENHANCED:
                number += 1
                interface, high, low, kept, length = struct.unpack_from(f"{order}IIIII", body)
                if interface >= len(units):
                    raise _WrongError(f"frame {number} is of interface {interface}, which the capture does not have")
                times, by = units[interface]
                time = (high << 32 | low) * times // by
                yield Captured(time, _frame(body, 20, kept, length, number))


def _resolution(options: bytes, order: str) -> tuple[int, int]:
    """The factor and the divisor that turn an interface's time stamps into nanoseconds."""
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from(f"{order}HH", options, at)
        if code == _IF_TSRESOL and length == 1:
            exponent = options[at + 4]
            return 1_000_000_000, 1 << (exponent & 0x7F) if exponent & 0x80 else 10**exponent
        at += 4 + (length + 3) // 4 * 4
    return _MICRO, 1


def _ethernet(link: int) -> None:
    if link != _ETHERNET:
        raise _WrongError(f"the capture's link type is {link}; ports of a switch carry Ethernet ({_ETHERNET})")


def _frame(data: bytes, at: int, kept: int, length: int, number: int) -> bytes:
    if at + kept > len(data):
        raise _WrongError(f"the capture ends within frame {number}")
    if kept < length:
        raise _WrongError(f"frame {number} was cut when it was captured: {kept} of its {length} bytes are here")
    return data[at : at + kept]
