"""24-bit packet sequence numbers as serial numbers.

A PSN is newer than another if it is ahead by less than half the number space (2^23), and older otherwise (InfiniBand
Architecture Specification, volume 1, §9.7.1): PSN + 2^23 - 1 is newer, PSN + 2^23 is older.
"""

from __future__ import annotations

from typing import Final

PSN_MASK: Final = 0xFF_FFFF
HALF: Final = 1 << 23


def add(psn: int, count: int) -> int:
    """The PSN ``count`` packets after ``psn``, or before it if ``count`` is negative."""
    return (psn + count) & PSN_MASK


def diff(a: int, b: int) -> int:
    """How many packets ``a`` is ahead of ``b``: from -2^23 (which counts as older) to 2^23 - 1."""
    return ((a - b + HALF) & PSN_MASK) - HALF


def is_newer(a: int, b: int) -> bool:
    """Whether ``a`` comes after ``b``; equal PSNs are neither newer nor older."""
    return diff(a, b) > 0
