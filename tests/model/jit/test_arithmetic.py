"""Arithmetic in machine code against Python's integers, at every kind of width (P4_16 specification 1.2.5, section 8).

Programs are hand-built, since the front end refuses some of it (division by what is not known) before it comes here.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from p4gen.model import Model
from p4gen.p4 import ir
from p4gen.p4 import types as t

from ..handmade import POS, Maker, arg_out, assign, binary, bit, extern, lit, register

WIDTHS = (
    *range(1, 10), 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 72, 95, 96, 100, 127, 128, 129, 136, 191, 192, 200, 255,
    256, 257, 511, 512, 513, 777, 1024, 1025, 2047, 2048,
)  # fmt: skip
OPERATORS = ("+", "-", "*", "&", "|", "^", "|+|", "|-|", "/", "%", "<<", ">>")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def wrap(value: int, of: t.Bits) -> int:
    value &= (1 << of.width) - 1
    return value - (1 << of.width) if of.signed and value >> (of.width - 1) else value


def expected(op: str, of: t.Bits, a: int, b: int, by: int) -> int:
    """What the specification says, in Python's integers."""
    if op in ("/", "%"):
        if b == 0:
            return 0
        quotient = abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)
        return wrap(quotient if op == "/" else a - quotient * b, of)
    if op in ("<<", ">>"):
        return wrap(a << by if op == "<<" else a >> by, of)
    if op in ("|+|", "|-|"):
        low = -(1 << (of.width - 1)) if of.signed else 0
        exact = a + b if op == "|+|" else a - b
        return min(max(exact, low), low + (1 << of.width) - 1)
    return wrap(int(eval(f"a {op} b")), of)


def machine(of: t.Bits) -> Model:
    """A program that reads registers a, b, by, and writes every operator's result to a register of its own."""
    maker = Maker()
    names = ("a", "b", *OPERATORS, *COMPARISONS, "neg", "inv", "mux")
    kinds: dict[str, t.Type] = {"by": bit(12)}
    kinds.update(dict.fromkeys(names, of))
    kinds.update(dict.fromkeys(COMPARISONS, t.Bool()))
    instances = {n: register(n, 1, k) for n, k in kinds.items()}
    maker.externs = list(instances.values())
    variables = {n: ir.Variable(n, kinds[n], POS) for n in ("a", "b", "by")}
    a, b, by = (ir.Var(v.type, POS, v) for v in variables.values())
    zero = ir.Arg("in", lit(0, bit(32)))

    def put(name: str, value: ir.Expr) -> ir.Stmt:
        return extern("write", zero, ir.Arg("in", value), instance=instances[name])

    maker.ingress = [ir.Declare(POS, v, None) for v in variables.values()]
    for n, v in variables.items():
        maker.ingress.append(extern("read", arg_out(ir.Var(v.type, POS, v)), zero, instance=instances[n]))
    for op in OPERATORS:
        maker.ingress.append(put(op, binary(op, a, by if op in ("<<", ">>") else b, of)))
    for op in COMPARISONS:
        maker.ingress.append(put(op, binary(op, a, b, t.Bool())))
    less = binary("<", a, b, t.Bool())
    maker.ingress += [put("neg", ir.Unary(of, POS, "-", a)), put("inv", ir.Unary(of, POS, "~", a))]
    maker.ingress += [put("mux", ir.Mux(of, POS, less, b, a)), maker.send(1)]
    return Model(maker.program(), engine="jit", cache="", clock=lambda: 0)


def interesting(rng: Random, of: t.Bits) -> int:
    """A number that is often at an end of the range, or small."""
    full = 1 << of.width
    some = (0, 1, 2, full - 1, full >> 1, (full >> 1) - 1, rng.getrandbits(of.width), rng.getrandbits(8) % full)
    return wrap(rng.choice((*some, rng.getrandbits(rng.randint(1, of.width)))), of)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.sample(28)
def test_every_operator_agrees_with_python(width: int, signed: bool) -> None:
    of, rng = t.Bits(width, signed), Random(width)
    model = machine(of)
    registers = model._state.registers
    for _ in range(40):
        a, b = interesting(rng, of), interesting(rng, of)
        by = rng.choice((0, 1, width - 1, width, rng.randint(0, 4095)))
        values: dict[str, Any] = {"a": a, "b": b, "by": by}
        for name, value in values.items():
            registers[name].cells[0] = value
        model.process(0, b"ab")
        for op in OPERATORS:
            assert registers[op].cells[0] == expected(op, of, a, b, by), f"{a} {op} {b} (shift by {by}), {of}"
        for op in COMPARISONS:
            assert registers[op].cells[0] is eval(f"a {op} b"), f"{a} {op} {b}, {of}"
        assert registers["neg"].cells[0] == wrap(-a, of)
        assert registers["inv"].cells[0] == wrap(~a, of)
        assert registers["mux"].cells[0] == max(a, b)


@pytest.mark.parametrize("source", [1, 7, 8, 33, 64, 65, 129, 2048])
def test_casts_slices_and_concatenation_agree_with_python(source: int) -> None:
    rng = Random(source)
    for signed in (False, True):
        of = t.Bits(source, signed)
        targets = [t.Bits(w, s) for w in (1, 8, 31, 64, 65, 128, 500, 2048) for s in (False, True)]
        maker = Maker()
        a = ir.Variable("a", of, POS)
        instances = {"a": register("a", 1, of)} | {f"{k}": register(f"{k}", 1, k) for k in targets}
        low = rng.randrange(source)
        high = rng.randrange(low, source)
        instances["slice"] = register("slice", 1, bit(high - low + 1))
        instances["twice"] = register("twice", 1, t.Bits(source + 9, signed))
        maker.externs = list(instances.values())
        zero, read = ir.Arg("in", lit(0, bit(32))), ir.Var(of, POS, a)
        maker.ingress = [ir.Declare(POS, a, None), extern("read", arg_out(read), zero, instance=instances["a"])]
        results: dict[str, ir.Expr] = {f"{k}": ir.Cast(k, POS, read) for k in targets}
        results["slice"] = ir.Slice(bit(high - low + 1), POS, read, high, low)
        results["twice"] = binary("++", read, lit(5, bit(9)), t.Bits(source + 9, signed))
        for name, result in results.items():
            maker.ingress.append(extern("write", zero, ir.Arg("in", result), instance=instances[name]))
        model = Model(maker.program(), engine="jit", cache="", clock=lambda: 0)
        for _ in range(10):
            value = interesting(rng, of)
            model._state.registers["a"].cells[0] = value
            model.process(0, b"ab")
            for kind in targets:
                assert model._state.registers[f"{kind}"].cells[0] == wrap(value, kind)
            assert model.register("slice", 0) == (value >> low) & ((1 << (high - low + 1)) - 1)
            assert model._state.registers["twice"].cells[0] == wrap(value << 9 | 5, t.Bits(source + 9, signed))


def test_division_by_zero_is_a_trap_and_gives_zero() -> None:
    model = machine(bit(16))
    model.write_register("a", 0, 7)
    model.process(0, b"ab")
    assert model.register("/", 0) == model.register("%", 0) == 0
    assert [(trap.what, trap.count) for trap in model.traps()] == [("division by zero, taken as 0", 2)]


def test_bits_of_width_zero_are_zero() -> None:
    maker = Maker(fields=(("a", bit(8)), ("none", bit(0)), ("b", bit(8))))
    maker.ingress = [assign(maker.h("none"), lit(0, bit(0))), maker.send(1)]
    model = Model(maker.program(), engine="jit", cache="", clock=lambda: 0)
    assert model.process(0, b"xyz") == [(1, b"xyz")]
