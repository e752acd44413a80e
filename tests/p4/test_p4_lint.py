"""The lint: one access per register per pass, on every path."""

from __future__ import annotations

import pytest
from p4_programs import FIRST, HEAD, compiled, ingress, places

from p4gen.p4.lint.rules import lint, pipelines

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
    "if (meta.x == 1) { r.read(v, 1); } if (meta.x != 1) { r.read(v, 2); }",
    "if (meta.x == 1) { r.read(v, 1); } if (meta.x == 2) { r.read(v, 2); }",
    "if (meta.x == 1) {} else { r.read(v, 1); } hdr.h.b = 3; if (meta.x == 1) { if (meta.flag) { r.write(2, v); } }",
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
    ("if (meta.x != 1) { r.read(v, 1); } if (meta.x != 2) { r.read(v, 2); }", "read twice"),
    ("if (meta.x == 1) { r.read(v, 1); } meta.x = 2; if (meta.x != 1) { r.read(v, 2); }", "read twice"),
    ("if (meta.x == 1) { r.read(v, 1); } if (meta.y == 2) { r.read(v, 2); }", "read twice"),
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


# --- banks ---

BANKED = HEAD.replace("bool flag;", "bool flag; bit<1> pipeline; bit<1> other; bit<32> slot;")
TWO = "register<bit<8>>(16) r; register<bit<8>>(16) q; bit<8> v;"
OWN = "(bit<32>)(meta.pipeline ++ meta.y[2:0])"
FLOWS = """action first(bit<3> base) { meta.slot = (bit<32>)(meta.pipeline ++ base); }
    action second(bit<3> base) { meta.slot = (bit<32>)(meta.pipeline ++ (base + meta.y[2:0])); }
    action stray(bit<3> base) { meta.slot = (bit<32>)(meta.other ++ base); }
    action none() { }
    table flows { key = { meta.x : exact; } actions = { %s none; } default_action = none; }"""


def banks(body: str, local: str = TWO, pipelines: int = 2) -> list[str]:
    """What the lint has to say of an ingress with this body, for a program with two pipelines."""
    text = ingress(body, local).replace(HEAD, BANKED)
    found = lint(compiled(text).program, pipelines)
    return [f"{d.message} at {line - FIRST}" for d, (line, _) in zip(found, places(found), strict=True)]


def test_how_many_pipelines_a_program_has_is_read_off_its_metadata() -> None:
    text = ingress("r.write(0, 1);", REGISTER)
    assert pipelines(compiled(text).program) == 1
    assert pipelines(compiled(text.replace(HEAD, BANKED)).program) == 2
    assert pipelines(compiled(text.replace(HEAD, BANKED.replace("bit<1> pipeline", "bit<2> pipeline"))).program) == 4
    # The field may stand in a part of the metadata.
    part = BANKED.replace("bit<1> pipeline;", "part_t part;").replace(
        "struct metadata", "struct part_t { bit<4> x; bit<2> pipeline; }\nstruct metadata"
    )
    assert pipelines(compiled(text.replace(HEAD, part)).program) == 4


@pytest.mark.parametrize(
    "body",
    [
        f"r.read(v, {OWN}); r.write({OWN}, v + 1); q.read(v, {OWN}); q.write({OWN}, v);",
        # Where the packet comes from is decided before the first access.
        f"if (meta.flag) {{ meta.pipeline = 0; }} else {{ meta.pipeline = meta.x[0:0]; }} r.read(v, {OWN});"
        f" q.write({OWN}, v);",
        f"if (meta.flag) {{ r.read(v, {OWN}); }} else {{ r.write({OWN}, 1); }} q.write({OWN}, 2);",
        # After the last access it may change: the packet goes into another pipeline.
        f"r.read(v, {OWN}); q.write({OWN}, v); meta.pipeline = 0;",
    ],
)
def test_indices_with_the_packets_own_pipeline_are_clean(body: str) -> None:
    assert banks(body) == []


def test_an_index_from_a_table_keeps_its_bank_where_paths_meet() -> None:
    begin = "meta.slot = (bit<32>)(meta.pipeline ++ 3w0); flows.apply(); r.read(v, meta.slot); q.write(meta.slot, v);"
    assert banks(begin, TWO + FLOWS % "first; second;") == []
    (found, _) = banks(begin, TWO + FLOWS % "first; stray;")
    assert "register 'I.r' is read at an index that is not provably a pipeline's number and 3 bits" in found
    unset = begin.partition(";")[2]
    assert len(banks(unset, TWO + FLOWS % "first;")) == 2
    # One access a pass still holds for an index of which only the bank is known.
    assert banks(begin.replace("q.write(meta.slot, v)", "r.write(meta.slot, v); q.write(meta.slot, v)"),
                 TWO + FLOWS % "first; second;") == []  # fmt: skip


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("r.read(v, meta.y); q.write(%s, v);", "'I.r' is read at an index that is not provably a pipeline's number"),
        ("r.read(v, (bit<32>)meta.y[3:0]); q.write(%s, v);", "'I.r' is read at an index that is not provably"),
        (
            "r.read(v, (bit<32>)(meta.pipeline ++ meta.y[1:0])); q.write(%s, v);",
            "'I.r' is read at an index that is not provably a pipeline's number and 3 bits",
        ),
        (
            "r.read(v, %s + 1); q.write(%s, v);",
            "'I.r' is read at an index that is not provably a pipeline's number and 3 bits",
        ),
        (
            "r.read(v, (bit<32>)(meta.other ++ meta.y[2:0])); q.write((bit<32>)(meta.other ++ meta.y[2:0]), v);",
            "'I.r' is read in a bank that is not provably that of the packet's own pipeline",
        ),
        (
            "r.read(v, (bit<32>)(1w0 ++ meta.y[2:0])); q.write((bit<32>)(1w0 ++ meta.y[2:0]), v);",
            "'I.r' is read in a bank that is not provably that of the packet's own pipeline",
        ),
        (
            "r.read(v, (bit<32>)(~meta.pipeline ++ meta.y[2:0])); q.read(v, (bit<32>)(~meta.pipeline ++ 3w0));",
            "'I.r' is read in a bank that is not provably that of the packet's own pipeline",
        ),
        (
            "r.read(v, %s); meta.pipeline = meta.other; q.write(%s, v);",
            "'I.q' is written in a different bank from earlier accesses of the pass",
        ),
        (
            "r.read(v, %s); if (meta.flag) { meta.pipeline = 1; } q.write(%s, v);",
            "'I.q' is written in a different bank from earlier accesses of the pass",
        ),
        (
            "r.read(v, %s); q.write((bit<32>)(meta.other ++ meta.y[2:0]), v);",
            "'I.q' is written in a different bank from earlier accesses of the pass",
        ),
        (
            "meta.slot = %s; meta.pipeline = 0; r.read(v, meta.slot); q.write(meta.slot, v);",
            "'I.r' is read in a bank that is not provably that of the packet's own pipeline",
        ),
    ],
)
def test_another_pipelines_bank_is_named(body: str, message: str) -> None:
    found = banks(body.replace("%s", OWN))
    assert f"register {message}" in found[0]
    assert found[0].endswith("at 2")


def test_values_pass_through_the_fields_of_a_struct() -> None:
    pair = "struct pair_t { bit<32> at; bit<8> with; }\ncontrol I("
    body = "pair_t p = { %s, 5 }; p.with = 6; r.read(v, p.at); q.write(p.at, v);"
    text = ingress(body % OWN, TWO).replace(HEAD, BANKED).replace("control I(", pair, 1)
    assert lint(compiled(text).program, 2) == []
    assert len(lint(compiled(text.replace("p.with = 6", "p.at = 6")).program, 2)) == 2


def test_a_register_that_does_not_divide_into_banks_is_named() -> None:
    whole = f"r.read(v, {OWN}); q.write({OWN}, v);"
    assert "register 'I.q' does not divide into 2 banks of 2^n words at 1" in banks(
        whole, TWO.replace("(16) q", "(9) q")
    )
    assert len(banks(whole, pipelines=4)) == 2


def test_both_accesses_are_shown() -> None:
    text = ingress(f"r.read(v, {OWN});\nmeta.pipeline = 0;\nq.write({OWN}, v);", TWO).replace(HEAD, BANKED)
    (found,) = lint(compiled(text).program, 2)
    assert [pos.line - FIRST for pos, _ in found.notes] == [2]
    assert places([found])[0][0] - FIRST == 4


def test_registers_of_egress_have_no_banks() -> None:
    """In egress, the metadata says where a packet goes."""
    text = ingress("", "").replace(HEAD, BANKED)
    egress = "register<bit<8>>(16) e; apply { e.write((bit<32>)(meta.pipeline ++ meta.y[2:0]), 1); } }\ncontrol D("
    text = text.replace("apply {} }\ncontrol D(", egress, 1)
    (found,) = lint(compiled(text).program, 2)
    assert "'E.e' is written in egress, where the metadata does not name" in found.message
    assert lint(compiled(text).program) == []
