"""The mathematical unit of a stateful ALU: a power of a number, approximated by its four highest bits.

A number is a mantissa of 8 to 15, in eighths, and a power of 2; for roots the exponent is even, and the mantissa 4 to
15. The table has a byte for each mantissa; the result is that byte, moved by the scale and by the exponent of the
power, without the bits that fall out. Tables from an operation and a factor are those that p4c computes
(``mau/stateful_alu.cpp``), which takes 1 as ``RSQR`` of every mantissa.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from p4gen.p4 import ir

OPERATIONS: Mapping[str, tuple[bool, int, Callable[[float], float], float]] = {
    "MUL": (False, 0, lambda x: x, 1.875),
    "SQR": (False, 1, lambda x: x * x, 3.515625),
    "SQRT": (False, -1, math.sqrt, math.sqrt(1.875)),
    "DIV": (True, 0, lambda x: 1 / x, 1.0),
    "RSQR": (True, 1, lambda _: 1.0, 1.0),
    "RSQRT": (True, -1, lambda x: 1 / math.sqrt(x), math.sqrt(2)),
}
"""By operation: whether the exponent is negated, how it is shifted, the function, and its largest value."""
LEAST, MOST = -32, 31
"""Scales."""


@dataclass(frozen=True)
class Unit:
    """The function of a ``MathUnit``: its table, scale and exponent."""

    negates: bool
    shift: int
    scale: int
    table: tuple[int, ...]

    def power(self, number: int) -> int:
        """The approximated power of a number."""
        exponent = max(number.bit_length() - 1, 0)
        exponent += exponent & 1 if self.shift < 0 else 0
        mantissa = number << 3 >> exponent
        exponent = exponent << self.shift if self.shift >= 0 else exponent >> 1
        by = self.scale + (-exponent if self.negates else exponent)
        value = self.table[mantissa]
        return value << by if by >= 0 else value >> -by


def unit_of(instance: ir.ExternInstance) -> Unit:
    """The function of an instance, from its constructor's arguments."""
    given = instance.arguments
    if "invert" in given:
        data = given["data"]
        assert isinstance(data, tuple)
        table = tuple(map(_number, reversed(data)))
        return Unit(bool(given["invert"]), _number(given["shift"]), _number(given["scale"]), table)
    negates, shift, function, largest = OPERATIONS[str(given["op"])]
    factor = _number(given["factor"]) if "factor" in given else _number(given["A"]) / _number(given["B"])
    most = factor * largest
    scale = min(max(math.floor(math.log2(most)) - 7, LEAST), MOST) if most > 0 else LEAST
    first = 4 if shift < 0 else 8
    values = (round(function(at / 8) * factor * 2.0**-scale) if at >= first else 0 for at in range(16))
    return Unit(negates, shift, scale, tuple(min(max(value, 0), 255) for value in values))


def _number(given: object) -> int:
    assert isinstance(given, int)
    return given
