"""The grammar where it depends on what names mean, and recovery from syntax errors."""

from __future__ import annotations

import re

import pytest
from p4_programs import FIRST, compiled, errors, ingress, places, program, value

from p4gen.p4 import ir


def test_less_than_is_not_a_type_argument_list() -> None:
    (statement,) = [value("(bit<8>)(bit<1>)(meta.x < hdr.h.b)")]
    inner = statement.operand if isinstance(statement, ir.Cast) else None
    assert isinstance(inner, ir.Cast)
    assert isinstance(inner.operand, ir.Binary)
    assert inner.operand.op == "<"


def test_nested_type_arguments_close_together() -> None:
    found = compiled(ingress("", "register<tuple<bit<8>, bit<8>>>(4) r;"))
    assert str(found.program.externs[0].type_args[0]) == "tuple<bit<8>, bit<8>>"


def test_shift_right_is_two_adjacent_angles() -> None:
    shifted = value("meta.x >> 2")
    assert isinstance(shifted, ir.Binary)
    assert shifted.op == ">>"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("1 << 2 + 1", 8),
        ("6 & 3 | 8", 10),
        ("8w0xF ^ 8w0b101", 10),
        ("10 - 3 - 2", 5),
        ("0o17", 15),
        ("1_000 & 0xFF", 232),
        ("true ? 1 : 2", 1),
    ],
)
def test_precedence_and_literals(expression: str, expected: int) -> None:
    found = value(expression)
    assert isinstance(found, ir.Literal)
    assert found.value == expected


def test_keywords_that_may_be_names() -> None:
    assert not errors(ingress("bit<8> key = 1; bit<8> state = key; bit<8> type = state; hdr.h.a = type;"))


def test_annotations_keep_their_bodies() -> None:
    found = compiled(ingress("t.apply();", '@my[a=1, b="x"] @other(free text 1) table t { actions = { NoAction; } }'))
    structured, free = found.program.tables[0].annotations
    assert structured.structured
    assert structured.pairs == (("a", 1), ("b", "x"))
    assert free.body == "free text 1"
    assert not free.structured


def test_every_broken_declaration_is_reported() -> None:
    text = program("const bit<8> A = ;\ncontrol I( { apply {} }\nstruct s { bit<8> }\n")
    assert [line for line, _ in places(errors(text))] == [FIRST, FIRST + 1, FIRST + 2]


@pytest.mark.parametrize(
    ("body", "column", "message"),
    [
        ("hdr.h.a = 1 +;", 22, "expected an expression, found ';'"),
        ("hdr.h.a 1;", 17, "expected an assignment or a call"),
        ("hdr.h.a = $;", 19, "unexpected character"),
        ("if hdr.h.isValid() {}", 12, "expected '\\('"),
    ],
)
def test_syntax_errors_point_at_the_token(body: str, column: int, message: str) -> None:
    (found, *_) = errors(ingress(body))
    assert places([found]) == [(FIRST + 2, column)]
    assert found.source_line is not None
    assert body in found.source_line
    assert re.search(message, found.message)


def test_deep_nesting_is_an_error_not_a_crash() -> None:
    assert errors(ingress("hdr.h.a = " + "(" * 5000 + "1" + ")" * 5000 + ";"))
