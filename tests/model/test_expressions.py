"""Arithmetic of the interpreter against Python's integers (P4_16 specification 1.2.5, section 8)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.chips.v1model.externs import V1MODEL
from p4gen.model.interp import Interpreter
from p4gen.model.state import ModelState
from p4gen.model.values import zero
from p4gen.p4 import ir
from p4gen.p4 import types as t

from .handmade import POS, Maker, binary, bit, lit, var

INTERPRETER = Interpreter(Maker().program(), ModelState(Maker().program()), V1MODEL)


def evaluate(e: ir.Expr, **values: Any) -> Any:
    """The value of ``e`` where its variables have ``values`` by name."""
    compiled = INTERPRETER._build.expr(e)
    frame = INTERPRETER.frame()

    def fill(node: Any) -> None:
        if isinstance(node, ir.Var):
            frame[INTERPRETER.slot(node.variable)] = values[node.variable.name]
        for name in getattr(node, "__dataclass_fields__", ()):
            part = getattr(node, name)
            for item in part if isinstance(part, tuple) else (part,):
                if isinstance(item, ir.Expr):
                    fill(item)

    fill(e)
    return compiled(frame)


def variable(name: str, of: t.Type) -> ir.Var:
    return var(ir.Variable(name, of, POS))


def wrap(value: int, of: t.Bits) -> int:
    value &= (1 << of.width) - 1
    return value - (1 << of.width) if of.signed and value >> (of.width - 1) else value


def limits(of: t.Bits) -> tuple[int, int]:
    if of.signed:
        return -(1 << (of.width - 1)), (1 << (of.width - 1)) - 1
    return 0, (1 << of.width) - 1


@st.composite
def typed_pairs(draw: st.DrawFn) -> tuple[t.Bits, int, int]:
    of = t.Bits(draw(st.integers(1, 130)), draw(st.booleans()))
    low, high = limits(of)
    return of, draw(st.integers(low, high)), draw(st.integers(low, high))


@given(typed_pairs(), st.sampled_from(["+", "-", "*", "&", "|", "^"]))
def test_arithmetic_wraps_to_the_width(pair: tuple[t.Bits, int, int], op: str) -> None:
    """8.6, 8.7: "operations … are performed modulo 2^W", two's complement where signed."""
    of, a, b = pair
    expected = wrap(eval(f"a {op} b"), of)
    assert evaluate(binary(op, variable("a", of), variable("b", of)), a=a, b=b) == expected


@given(typed_pairs())
def test_saturating_arithmetic_stops_at_the_limits(pair: tuple[t.Bits, int, int]) -> None:
    """8.6: "saturating … clamps to the maximum and minimum value"."""
    of, a, b = pair
    low, high = limits(of)
    for op, exact in (("|+|", a + b), ("|-|", a - b)):
        expected = min(max(exact, low), high)
        assert evaluate(binary(op, variable("a", of), variable("b", of)), a=a, b=b) == expected


@given(typed_pairs(), st.integers(0, 300))
def test_shifts(pair: tuple[t.Bits, int, int], by: int) -> None:
    """8.6, 8.7: a left shift fills with zeros, a right shift of int<W> with the sign; a shift by the width
    or more leaves only those."""
    of, a, _ = pair
    amount = variable("by", bit(9))
    assert evaluate(binary("<<", variable("a", of), amount), a=a, by=by) == wrap(a << by, of)
    assert evaluate(binary(">>", variable("a", of), amount), a=a, by=by) == a >> by


@given(typed_pairs())
def test_comparisons(pair: tuple[t.Bits, int, int]) -> None:
    of, a, b = pair
    for op in ("==", "!=", "<", "<=", ">", ">="):
        e = binary(op, variable("a", of), variable("b", of), t.Bool())
        assert evaluate(e, a=a, b=b) is eval(f"a {op} b")


@given(typed_pairs())
def test_negation_and_complement(pair: tuple[t.Bits, int, int]) -> None:
    of, a, _ = pair
    assert evaluate(ir.Unary(of, POS, "-", variable("a", of)), a=a) == wrap(-a, of)
    assert evaluate(ir.Unary(of, POS, "~", variable("a", of)), a=a) == wrap(~a, of)


@given(typed_pairs(), st.integers(1, 130), st.booleans())
def test_casts_truncate_extend_and_reinterpret(pair: tuple[t.Bits, int, int], width: int, signed: bool) -> None:
    """8.11.1: extension follows the source's sign, then bits are kept."""
    of, a, _ = pair
    target = t.Bits(width, signed)
    assert evaluate(ir.Cast(target, POS, variable("a", of)), a=a) == wrap(a, target)


@given(typed_pairs(), st.data())
def test_slice_takes_bits(pair: tuple[t.Bits, int, int], data: st.DataObject) -> None:
    of, a, _ = pair
    lo = data.draw(st.integers(0, of.width - 1))
    hi = data.draw(st.integers(lo, of.width - 1))
    e = ir.Slice(bit(hi - lo + 1), POS, variable("a", of), hi, lo)
    assert evaluate(e, a=a) == (a >> lo) & ((1 << (hi - lo + 1)) - 1)


@given(typed_pairs(), typed_pairs())
def test_concatenation_puts_the_left_operand_above(
    left: tuple[t.Bits, int, int], right: tuple[t.Bits, int, int]
) -> None:
    """8.8: the result has the sign of the left operand."""
    (of, a, _), (other, b, _) = left, right
    whole = t.Bits(of.width + other.width, of.signed)
    expected = wrap((a << other.width) | (b & ((1 << other.width) - 1)), whole)
    assert evaluate(binary("++", variable("a", of), variable("b", other), whole), a=a, b=b) == expected


@pytest.mark.parametrize(("op", "first", "expected"), [("&&", False, False), ("||", True, True)])
def test_logical_operators_short_circuit(op: str, first: bool, expected: bool) -> None:
    """8.5: the right operand is not evaluated when the left one decides; here it would fail."""
    unset = variable("unset", t.Bool())
    e = binary(op, lit(first, t.Bool()), ir.Unary(t.Bool(), POS, "!", ir.Mux(t.Bool(), POS, unset, unset, unset)))
    assert evaluate(e, unset=None) is expected


def test_header_equality_is_about_validity_first() -> None:
    """8.17: two headers are equal if both are invalid, or both are valid and their fields are equal."""
    maker = Maker()
    left, right = variable("l", maker.header), variable("r", maker.header)
    e = binary("==", left, right, t.Bool())
    a, b = zero(maker.header), zero(maker.header)
    a.fields[0] = 1
    assert evaluate(e, l=a, r=b) is True
    a.valid = True
    assert evaluate(e, l=a, r=b) is False
    b.valid = True
    assert evaluate(e, l=a, r=b) is False
    b.fields[0] = 1
    assert evaluate(e, l=a, r=b) is True
