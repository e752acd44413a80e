"""Numbers with units: ``100G`` bit/s, ``1us``, ``256K`` bytes, ``5%``."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from p4gen.inputs import quote

_NUMBER: Final = re.compile(r"\s*([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([a-zA-Z%/]{0,8})\s*$")
MAX_BANDWIDTH: Final = 10**15
"""Bits per second: 1,000T."""
MAX_SIZE: Final = 1 << 40
"""Bytes: 1024G."""
MAX_DURATION: Final = 86_400 * 10**12
"""Picoseconds: a day."""
_DECIMAL: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_TIME: Final = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}


def _split(text: str | float, what: str) -> tuple[Fraction, str]:
    match = _NUMBER.match(str(text))
    if match is None:
        raise ValueError(f"{quote(str(text))} is not {what}")
    return Fraction(match[1]), match[2]


def _scaled(text: str | float, units: dict[str, int], endings: tuple[str, ...], what: str) -> int:
    number, unit = _split(text, what)
    unit = unit.lower()
    for ending in endings:
        unit = unit.removesuffix(ending)
    if unit not in units:
        raise ValueError(f"{text!r} is not {what}")
    return int(number * units[unit])


def bandwidth(text: str | float) -> int:
    """Bits per second: ``100G``, ``100Gb/s``, ``25000000000``."""
    value = _scaled(text, _DECIMAL, ("bit/s", "b/s", "bps"), "a bandwidth such as 100G (bit/s)")
    if not 0 < value <= MAX_BANDWIDTH:
        raise ValueError(f"a bandwidth must be more than 0, and at most 1000T, not {quote(str(text))}")
    return value


def size(text: str | float) -> int:
    """Bytes: ``4M`` and ``4MiB`` are 4 x 2^20, as collectives' sizes are given."""
    value = _scaled(text, _BINARY, ("ib", "b"), "a size such as 256K, 4M or 1G (bytes)")
    if value > MAX_SIZE:
        raise ValueError(f"a size must be at most 1024G, not {quote(str(text))}")
    return value


def duration(text: str | float) -> int:
    """Picoseconds: ``1us``, ``400ns``; a unit is required, except for 0."""
    number, unit = _split(text, "a duration such as 1us")
    if number == 0:
        return 0
    if unit not in _TIME:
        raise ValueError(f"{text!r} is not a duration such as 1us")
    value = int(number * _TIME[unit])
    if value > MAX_DURATION:
        raise ValueError(f"a duration must be at most 86400s, a day, not {quote(str(text))}")
    return value


def share(text: str | float) -> float:
    """A fraction of 1: ``5%`` or ``0.05``."""
    number, unit = _split(text, "a share such as 5%")
    value = number / 100 if unit == "%" else number
    if unit not in ("", "%") or value > 1:
        raise ValueError(f"{text!r} is not a share such as 5% or 0.05")
    return float(value)
