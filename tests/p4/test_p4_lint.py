"""The lint: one access per register per pass, on every path."""

from __future__ import annotations

import pytest
from p4_programs import FIRST, HEAD, compiled, ingress, places

from p4gen.p4.lint import lint

REGISTER = "register<bit<8>>(16) r; bit<8> v; bit<32> i = 0;"

CLEAN = [
    "r.read(v, 3); r.write(3, v + 1);",
    "r.read(v, meta.y); v = v + 1; r.write(meta.y, v);",
    "i = meta.y; r.read(v, meta.y); r.write(i, v);",
    "if (meta.flag) { r.read(v, 1); } else { r.read(v, 2); }",
    "if (meta.flag) { r.read(v, 1); return; } r.read(v, 2);",
    "if (meta.flag) { r.read(v, 1); exit; } r.write(2, v);",
    "switch (meta.x) { 1: { r.read(v, 1); } default: { r.write(1, 2); } }",
    "r.write(meta.y, 1);",
    "r.read(v, (bit<32>)hdr.h.a); hdr.h.b = v; r.write((bit<32>)hdr.h.a, v);",
]
BROKEN = [
    ("r.read(v, 1); r.read(v, 1);", "read twice"),
    ("r.write(1, v); r.write(1, v);", "written twice"),
    ("r.write(1, v); r.read(v, 1);", "read after it was written"),
    ("r.read(v, 1); r.write(2, v);", "not provably"),
    ("r.read(v, meta.y); meta.y = meta.y + 1; r.write(meta.y, v);", "not provably"),
    ("r.read(v, meta.y); if (v == 1) { meta.y = 2; } r.write(meta.y, v);", "not provably"),
    ("if (meta.flag) { r.read(v, 1); } r.read(v, 1);", "read twice"),
    ("r.read(v, 1); r.write(1, v); r.write(1, v);", "written twice"),
    ("for (bit<8> k in 8w0 .. 8w3) { r.write(1, k); }", "in a loop"),
    ("", "never accessed"),
]  # fmt: skip


@pytest.mark.parametrize("body", CLEAN)
def test_clean(body: str) -> None:
    assert not lint(compiled(ingress(body, REGISTER)).program)


@pytest.mark.parametrize(("body", "message"), BROKEN)
def test_broken(body: str, message: str) -> None:
    found = lint(compiled(ingress(body, REGISTER)).program)
    assert len(found) == 1
    assert message in found[0].message


def test_both_places_are_reported() -> None:
    (found,) = lint(compiled(ingress("r.read(v, 1);\nr.read(v, 1);", REGISTER)).program)
    assert places([found])[0][0] == FIRST + 3
    assert found.notes[0][0].line == FIRST + 2


ACTIONS = """action one() { r.read(v, 1); } action two() { r.write(1, 5); }
    table t { key = { hdr.h.a : exact; } actions = { one; two; NoAction; } }"""


def test_actions_of_a_table_are_alternatives() -> None:
    assert not lint(compiled(ingress("t.apply();", REGISTER + ACTIONS)).program)
    (found,) = lint(compiled(ingress("t.apply(); r.read(v, 1);", REGISTER + ACTIONS)).program)[:1]
    assert "twice" in found.message or "after" in found.message


def test_switch_knows_which_action_ran() -> None:
    body = "switch (t.apply().action_run) { one: { r.write(1, v); } NoAction: { r.read(v, 2); } }"
    assert not lint(compiled(ingress(body, REGISTER + ACTIONS)).program)
    body = "switch (t.apply().action_run) { two: { r.write(1, v); } }"
    assert lint(compiled(ingress(body, REGISTER + ACTIONS)).program)


def test_values_follow_arguments_into_sub_controls() -> None:
    sub = """control Sub(inout metadata m, in bit<32> at) {
    register<bit<8>>(16) mine;
    Inner() inner;
    apply { bit<8> w; mine.read(w, m.y); inner.apply(m); mine.write(at, w); }
}
"""
    inner = "control Inner(inout metadata m) { apply { m.x = m.x + 1; } }\n"
    text = ingress("s.apply(meta, meta.y);", "Sub() s;").replace("control I(", inner + sub + "control I(", 1)
    assert not lint(compiled(text).program)
    spoilt = text.replace("m.x = m.x + 1;", "m.y = m.y + 1;")
    # The index was read before: it is still the same value, passed by copy.
    assert not lint(compiled(spoilt).program)
    assert lint(compiled(spoilt.replace("mine.write(at, w)", "mine.write(m.y, w)")).program)


def test_a_register_belongs_to_one_pipeline() -> None:
    text = HEAD.replace(
        "control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply {} }", ""
    )
    text += """register<bit<8>>(4) shared;
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { shared.write(0, 1); } }
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { shared.write(0, 2); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
    (found,) = lint(compiled(text).program)
    assert "both ingress and egress" in found.message
    assert found.notes
