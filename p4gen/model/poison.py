"""The values that a program reads before it has written them: visible garbage, where BMv2 has zeros.

The specification leaves such values open (P4_16 8.25). Zeros hide that a program depends on them; poison shows it.
"""

from __future__ import annotations

from typing import Any

from p4gen.model.values import zero
from p4gen.p4 import types as t

PATTERN = 0xA5
"""Repeated from the least significant byte on, to the width of the value."""


def initial(of: t.Type, *, poison: bool) -> Any:
    """The value of an uninitialised variable: ``zero``, or with ``poison`` the pattern in all its numbers.

    Headers are invalid and varbit fields empty in either; truth values are true when poisoned.
    """
    return _poisoned(of, zero(of)) if poison else zero(of)


def _poisoned(of: t.Type, value: Any) -> Any:
    of = t.strip(of)
    match of:
        case t.Bits(width=width, signed=signed):
            return _number(width, signed)
        case t.SerEnum(base=base):
            return _number(base.width, base.signed)
        case t.Bool():
            return True
        case t.Header(fields=fields) | t.HeaderUnion(fields=fields) | t.Struct(fields=fields):
            parts = [f.type for f in fields]
        case t.Tuple(elements=elements):
            parts = list(elements)
        case t.Stack(element=element, size=size):
            parts = [element] * size
        case _:
            return value
    value.fields[:] = [_poisoned(part, inner) for part, inner in zip(parts, value.fields, strict=True)]
    return value


def _number(width: int, signed: bool) -> int:
    size = (width + 7) // 8
    found = int.from_bytes(bytes([PATTERN]) * size, "big") & ((1 << width) - 1)
    return found - (1 << width) if signed and found >> (width - 1) else found
