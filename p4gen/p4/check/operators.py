"""Binary operators: types of their operands, folding (P4_16 specification 8.5 to 8.12)."""

from __future__ import annotations

from typing import cast as type_cast

from p4gen.p4 import fold, ir
from p4gen.p4.check import convert
from p4gen.p4.check.scope import Context, DefaultType, InvalidType, RecordType, TypeVar
from p4gen.p4.types import BOOL, Bits, Bool, Error, Int, String, Type, Void, bits


def binary(cx: Context, op: str, left: ir.Expr, right: ir.Expr, at: int) -> ir.Expr:
    """``left op right``, with the implicit casts of spec 8.11.2, folded where both are known."""
    if op in ("==", "!="):
        return _equality(cx, op, left, right, at)
    if op in ("&&", "||"):
        return _logical(cx, op, left, right, at)
    if op == "++" and isinstance(left.type, String) and isinstance(right.type, String):
        assert isinstance(left, ir.Literal)
        assert isinstance(right, ir.Literal)
        return ir.Literal(left.type, cx.pos(at), f"{left.value}{right.value}")
    left, right = convert.without_enum(left), convert.without_enum(right)
    for side in (left, right):
        if not isinstance(side.type, Bits | Int):
            cx.unit.reporter.fail(at, f"'{op}' cannot be applied to {side.type}")
    if op in ("<<", ">>"):
        return _shift(cx, op, left, right, at)
    if op == "++":
        return _concatenate(cx, left, right, at)
    both = convert.same_type(cx, left, right, at)
    if both is None:
        cx.unit.reporter.fail(at, f"'{op}' needs operands of one type, not {left.type} and {right.type}")
    if op in ("/", "%"):
        for side in (left, right):
            if isinstance(side.type, Int) and isinstance(side, ir.Literal) and int(side.value) < 0:
                cx.unit.reporter.fail(at, f"'{op}' is not defined for negative numbers")
    left, right = both
    type_, pos = left.type, cx.pos(at)
    if op in ("<", "<=", ">", ">="):
        if isinstance(left, ir.Literal) and isinstance(right, ir.Literal):
            return ir.Literal(BOOL, pos, fold.compare(op, left.value, right.value))
        _known_width(cx, type_, at)
        return ir.Binary(BOOL, pos, type_cast(ir.BinaryOp, op), left, right)
    if isinstance(type_, Int) and op in ("|+|", "|-|"):
        cx.unit.reporter.fail(at, f"'{op}' needs operands of a known width")
    if op in ("/", "%") and isinstance(type_, Bits) and type_.signed:
        cx.unit.reporter.fail(at, f"'{op}' is not defined for signed values")
    if op in ("/", "%") and isinstance(left, ir.Literal) and not left.value and not isinstance(right, ir.Literal):
        # Zero, once what is evaluated on the right has had its effects.
        return ir.Binary(type_, pos, "&", left, right)
    if isinstance(right, ir.Literal) and (isinstance(left, ir.Literal) or (op in ("/", "%") and not right.value)):
        known = int(left.value) if isinstance(left, ir.Literal) else 0
        try:
            return ir.Literal(type_, pos, fold.arithmetic(op, known, int(right.value), type_))
        except fold.FoldError as problem:
            cx.unit.reporter.fail(at, str(problem))
    if not (isinstance(type_, Int) and op in ("+", "-", "*")):
        # Otherwise a cast to a bit string is to come.
        _known_width(cx, type_, at)
    if (
        op in ("/", "%")
        and cx.unit.has_target
        and not (isinstance(right, ir.Literal) and int(right.value).bit_count() == 1)
    ):
        # The specification leaves run-time division to targets (8.6); p4c's for BMv2 has none.
        cx.unit.reporter.fail(at, f"'{op}' needs operands known at compile time, or a power of two to divide by")
    return ir.Binary(type_, pos, type_cast(ir.BinaryOp, op), left, right)


def _known_width(cx: Context, type_: Type, at: int) -> None:
    if isinstance(type_, Int):
        cx.unit.reporter.fail(at, "the width of this value is unknown; cast an operand to a bit string")


def _equality(cx: Context, op: str, left: ir.Expr, right: ir.Expr, at: int) -> ir.Expr:
    both = convert.same_type(cx, left, right, at)
    if both is None:
        cx.unit.reporter.fail(at, f"{left.type} and {right.type} cannot be compared")
    left, right = both
    for side in both:
        if isinstance(side.type, DefaultType | InvalidType | RecordType | Void | TypeVar):
            cx.unit.reporter.fail(at, f"values of type {side.type} cannot be compared")
    pos = cx.pos(at)
    if isinstance(left, ir.Literal) and isinstance(right, ir.Literal) and not isinstance(left.type, Error):
        return ir.Literal(BOOL, pos, fold.compare(op, left.value, right.value))
    if isinstance(left.type, Int):
        _known_width(cx, left.type, at)
    return ir.Binary(BOOL, pos, type_cast(ir.BinaryOp, op), left, right)


def _logical(cx: Context, op: str, left: ir.Expr, right: ir.Expr, at: int) -> ir.Expr:
    for side in (left, right):
        if not isinstance(side.type, Bool):
            cx.unit.reporter.fail(at, f"'{op}' needs bool operands, not {side.type}")
    if isinstance(left, ir.Literal):
        if bool(left.value) == (op == "||"):
            return ir.Literal(BOOL, cx.pos(at), left.value)
        return right
    return ir.Binary(BOOL, cx.pos(at), type_cast(ir.BinaryOp, op), left, right)


def _shift(cx: Context, op: str, left: ir.Expr, right: ir.Expr, at: int) -> ir.Expr:
    pos = cx.pos(at)
    if isinstance(right.type, Bits) and right.type.signed and not isinstance(right, ir.Literal):
        cx.unit.reporter.fail(at, "a shift's amount must be unsigned")
    if isinstance(right, ir.Literal):
        if int(right.value) < 0:
            cx.unit.reporter.fail(at, "a shift's amount must not be negative")
        if isinstance(left, ir.Literal):
            try:
                return ir.Literal(left.type, pos, fold.shift(op, int(left.value), int(right.value), left.type))
            except fold.FoldError as problem:
                cx.unit.reporter.fail(at, str(problem))
        if isinstance(left.type, Bits) and int(right.value) >= left.type.width:
            cx.unit.reporter.warn(at, f"shifting {left.type} by {right.value} shifts out all of its bits")
    if isinstance(left.type, Int) or (not isinstance(right, ir.Literal) and isinstance(right.type, Int)):
        cx.unit.reporter.fail(at, "the width of the value shifted must be known where the amount is not a constant")
    return ir.Binary(left.type, pos, type_cast(ir.BinaryOp, op), left, right)


def _concatenate(cx: Context, left: ir.Expr, right: ir.Expr, at: int) -> ir.Expr:
    if not isinstance(left.type, Bits) or not isinstance(right.type, Bits):
        cx.unit.reporter.fail(at, "'++' needs operands of a known width")
    width = left.type.width + right.type.width
    if width > fold.MAX_BITS:
        cx.unit.reporter.fail(at, f"the result of '++' would have {width} bits")
    result = bits(width, left.type.signed)
    if isinstance(left, ir.Literal) and isinstance(right, ir.Literal):
        low = fold.wrap(int(right.value), right.type.width, False)
        return ir.Literal(result, cx.pos(at), fold.to_type(int(left.value) << right.type.width | low, result))
    return ir.Binary(result, cx.pos(at), "++", left, right)
