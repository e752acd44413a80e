"""Integers as P4Runtime's binary strings: big-endian, the shortest that holds the value (section 8.3)."""

from __future__ import annotations

from p4gen.p4rt.status import Code, StatusError


def encode(value: int) -> bytes:
    """The canonical string of a non-negative integer; zero is one byte."""
    return value.to_bytes(max((value.bit_length() + 7) // 8, 1))


def decode(data: bytes, width: int, what: str, code: Code = Code.OUT_OF_RANGE) -> int:
    """The integer in ``data``, which may have leading zeros but must fit ``width`` bits (0: any width).

    Raises ``StatusError`` with ``code`` for an empty string and for a value that does not fit: sections on
    single entities ask for INVALID_ARGUMENT where section 8.3 in general says OUT_OF_RANGE.
    """
    if not data:
        raise StatusError(code, f"{what}: the binary string is empty")
    value = int.from_bytes(data)
    if width and value >> width:
        raise StatusError(code, f"{what}: {value:#x} does not fit bit<{width}>")
    return value


def encode_signed(value: int, width: int) -> bytes:
    """The canonical string of an ``int<width>`` given as an unsigned number of that width."""
    signed = value - (1 << width) if value >> (width - 1) else value
    bits = (signed if signed >= 0 else ~signed).bit_length() + 1
    return signed.to_bytes((bits + 7) // 8, signed=True)


def decode_signed(data: bytes, width: int, what: str) -> int:
    """The ``int<width>`` in ``data`` as an unsigned number of that width; errors as for ``decode``."""
    if not data:
        raise StatusError(Code.OUT_OF_RANGE, f"{what}: the binary string is empty")
    value = int.from_bytes(data, signed=True)
    if not -(1 << (width - 1)) <= value < 1 << (width - 1):
        raise StatusError(Code.OUT_OF_RANGE, f"{what}: {value} does not fit int<{width}>")
    return value & (1 << width) - 1
