"""Blocks that are given externs when they are applied."""

from __future__ import annotations

import re

import pytest
from p4_programs import compiled, errors, ingress

from p4gen.p4 import ir
from p4gen.p4.walk import used_by

SUB = """control Sub(inout headers hdr, register<bit<8>> r, bit<8> n) {
    action act() { r.write(0, n); }
    table tab { key = { hdr.h.a : exact; } actions = { act; } }
    apply { bit<8> v; r.read(v, 0); hdr.h.a = v; tab.apply(); }
}
"""
REGISTERS = (
    "register<bit<8>>(4) one; register<bit<8>>(4) two; register<bit<16>>(4) wide; counter(4, CounterType.bytes) c;"
)


def with_sub(body: str, local: str = "Sub() s; Sub() q;", above: str = "") -> str:
    text = ingress(body, f"{REGISTERS} {local}")
    return text.replace("control I(", f"{SUB}{above}\ncontrol I(", 1)


def accesses(text: str) -> set[tuple[str, str]]:
    """Block and register of every access from the ingress."""
    block = compiled(text).program.blocks["ig"]
    found = used_by(block)
    return {
        (owner.name, call.instance.name)
        for owner in found.blocks
        for call in used_by(owner).calls
        if call.instance is not None and owner is not block
    }


def test_each_instance_has_the_externs_it_is_given() -> None:
    text = with_sub("s.apply(hdr, one, 3); q.apply(hdr, two, 4);")
    assert accesses(text) == {("I.s", "I.one"), ("I.q", "I.two")}
    assert [t.name for t in compiled(text).program.tables] == ["I.s.tab", "I.q.tab"]


def test_what_is_left_is_passed_at_run_time() -> None:
    block = compiled(with_sub("s.apply(n = 3, r = one, hdr = hdr);")).program.blocks["ig"]
    assert isinstance(block, ir.Control)
    (applied,) = block.body.body
    assert isinstance(applied, ir.ApplyBlock)
    assert [p.variable.name for p in applied.block.params] == ["hdr", "n"]
    assert len(applied.args) == 2


@pytest.mark.parametrize("body", ["", "s.apply(hdr, one, 1); s.apply(hdr, one, 2);", "Sub.apply(hdr, one, 3);"])
def test_never_twice_and_without_an_instance(body: str) -> None:
    assert not errors(with_sub(body))


def test_externs_are_handed_on() -> None:
    above = "control Outer(inout headers hdr, register<bit<8>> x) { Sub() s; apply { s.apply(hdr, x, 1); } }"
    text = with_sub("o.apply(hdr, two);", "Outer() o;", above)
    assert ("I.o.s", "I.two") in accesses(text)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("s.apply(hdr, one, 3); s.apply(hdr, two, 3);", "applied with different externs here"),
        ("s.apply(hdr, wide, 3);", r"is a register<bit<16>>, but a register<bit<8>> is needed"),
        ("s.apply(hdr, c, 3);", "is a counter, but a register<bit<8>> is needed"),
        ("s.apply(hdr, hdr.h.a, 3);", "has type bit<8>, but register<bit<8>> is needed"),
        ("s.apply(hdr, 3);", "no argument for parameter 'n'"),
    ],
)
def test_wrong_externs(body: str, message: str) -> None:
    (found, *_) = errors(with_sub(body))
    assert re.search(message, found.message)
