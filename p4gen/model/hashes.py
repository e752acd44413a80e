"""The hash algorithms of v1model, with BMv2's parameters (behavioral-model, calculations.cpp)."""

from __future__ import annotations

import functools
import operator
import struct
import zlib
from collections.abc import Callable

Algorithm = Callable[[bytes], int]


def crc32(data: bytes) -> int:
    """CRC-32 (ISO-HDLC): polynomial 0x04C11DB7, reflected, initial value and final xor all ones."""
    return zlib.crc32(data)


def _crc16_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0xA001 if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


_CRC16 = _crc16_table()


def crc16(data: bytes) -> int:
    """CRC-16 (ARC): polynomial 0x8005, reflected, initial value 0."""
    crc = 0
    for byte in data:
        crc = (crc >> 8) ^ _CRC16[(crc ^ byte) & 0xFF]
    return crc


def csum16(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    total = sum(_words(data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def xor16(data: bytes) -> int:
    """The exclusive or of all 16-bit words."""
    return functools.reduce(operator.xor, _words(data), 0)


def identity(data: bytes) -> int:
    """The first eight bytes, as a number."""
    return int.from_bytes(data[:8])


def _words(data: bytes) -> tuple[int, ...]:
    """``data`` as 16-bit words; an odd last byte is padded with zero."""
    if len(data) & 1:
        data += b"\0"
    return struct.unpack(f">{len(data) >> 1}H", data)


ALGORITHMS: dict[str, Algorithm] = {
    "crc32": crc32,
    "crc32_custom": crc32,
    "crc16": crc16,
    "crc16_custom": crc16,
    "csum16": csum16,
    "xor16": xor16,
    "identity": identity,
}
"""By ``HashAlgorithm`` member. The custom CRCs have the parameters BMv2 starts with, which are those
of the plain ones. ``HashAlgorithm.random`` has no definition in BMv2 and none here."""
