"""Arithmetic on compile-time values (P4_16 specification 8.5 to 8.10)."""

from __future__ import annotations

from p4gen.p4.types import Bits, Type

Value = int | bool | str
MAX_BITS = 1 << 13
"""The most bits that a number or a bit string can have; p4c allows 2048 for BMv2."""


class FoldError(Exception):
    """The operation has no value; the message says why."""


def wrap(value: int, width: int, signed: bool) -> int:
    """``value`` modulo 2**width, in two's complement where ``signed``."""
    value &= (1 << width) - 1
    if signed and width and value >> (width - 1):
        value -= 1 << width
    return value


def fits(value: int, width: int, signed: bool) -> bool:
    """Whether ``width`` bits can hold ``value``, in two's complement where ``signed``."""
    return wrap(value, width, signed) == value


def to_type(value: int, type_: Type) -> int:
    """``value`` converted to ``type_``: wrapped to a bit string's width, unchanged for ``int``.

    Raises ``FoldError`` where an ``int`` has become too large for the compiler.
    """
    if isinstance(type_, Bits):
        return wrap(value, type_.width, type_.signed)
    if value.bit_length() > MAX_BITS:
        raise FoldError(f"the result needs more than {MAX_BITS} bits")
    return value


def compare(op: str, left: Value, right: Value) -> bool:
    """``left op right`` of two known values of one type."""
    match op:
        case "==":
            return left == right
        case "!=":
            return left != right
    assert not isinstance(left, str)
    assert not isinstance(right, str)
    match op:
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
    return left >= right


def arithmetic(op: str, left: int, right: int, type_: Type) -> int:
    """``left op right`` in ``type_`` (``int`` or a bit string). Raises ``FoldError``."""
    match op:
        case "+":
            return to_type(left + right, type_)
        case "-":
            return to_type(left - right, type_)
        case "*":
            return to_type(left * right, type_)
        case "&":
            return left & right
        case "|":
            return left | right
        case "^":
            return to_type(left ^ right, type_)
        case "|+|" | "|-|":
            return _saturating(left + right if op == "|+|" else left - right, type_)
        case "/" | "%":
            if right == 0:
                raise FoldError("division by zero")
            if left < 0 or right < 0:
                raise FoldError(f"'{op}' is not defined for negative numbers")
            return left // right if op == "/" else left % right
    raise AssertionError(op)


def _saturating(value: int, type_: Type) -> int:
    if not isinstance(type_, Bits):
        raise FoldError("saturating arithmetic needs operands of a width")
    low, high = (-(1 << type_.width - 1), (1 << type_.width - 1) - 1) if type_.signed else (0, (1 << type_.width) - 1)
    return min(max(value, low), high)


def shift(op: str, left: int, right: int, type_: Type) -> int:
    """``left << right`` or ``left >> right`` in ``type_``. Raises ``FoldError``."""
    if right < 0:
        raise FoldError("a shift's amount must not be negative")
    if op == ">>":
        return left >> min(right, MAX_BITS)
    if isinstance(type_, Bits):
        return 0 if right >= type_.width else to_type(left << right, type_)
    if right > MAX_BITS:
        raise FoldError(f"the result needs more than {MAX_BITS} bits")
    return to_type(left << right, type_)


def slice_of(value: int, hi: int, lo: int) -> int:
    """Bits ``hi`` to ``lo`` of ``value``."""
    return (value >> lo) & ((1 << (hi - lo + 1)) - 1)
