"""Flows: how they are laid out, which modules they apply, and what a family adds to those of another one."""

from __future__ import annotations

import pytest

from p4gen.errors import InputError
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.papers.themis.spec import ThemisSpec
from p4gen.program import compose
from p4gen.program.flow import Added, Applied, applied, tidy


def laid_out(text: str) -> list[str]:
    return [line.removeprefix(" " * 8) for line in tidy(text.strip().split("\n"))]


def test_blocks_are_indented() -> None:
    assert laid_out("""
        if (a) { b.apply(meta); }
            if (c) {
        d.apply(hdr, meta);
              } else if (e) {
            if (f) {
            g = 1;
        }
                } else {
        h = 2;
        }
    """) == [
        "if (a) { b.apply(meta); }",
        "if (c) {",
        "    d.apply(hdr, meta);",
        "} else if (e) {",
        "    if (f) {",
        "        g = 1;",
        "    }",
        "} else {",
        "    h = 2;",
        "}",
    ]


def test_notes_stand_in_one_column_and_after_what_is_longer() -> None:
    long = "long" * 20
    lines = [
        *tidy(["a;  // why", "if (c) { // when", "d;    // inside { braces", "}", f"{long}; // after", "// whole"])
    ]
    assert [line.index("//") for line in lines if "//" in line] == [70, 70, 70, 91, 8]
    assert lines[2].startswith("            d;")


def test_lines_keep_their_marks() -> None:
    assert [*tidy(["  a;   // why \x00epic/x:3\x01"])] == [f"{'        a;':<68}  // why\x00epic/x:3\x01"]


def test_modules_are_named_once_and_in_order() -> None:
    text = "check_order.apply(hdr, meta);\nif (a) { send_ack.apply(meta); } else { check_order.apply(hdr,\n meta); }"
    assert applied(text) == ("CheckOrder", "SendAck")


def test_a_module_is_added_after_each_place_of_another() -> None:
    added = Added("CountAcks", "meta", "SendAck")
    assert added.to("    send_ack.apply(meta, x);  // line 35\nresend_ack.apply(meta);\n") == (
        "    send_ack.apply(meta, x);  // line 35\ncount_acks.apply(meta);\nresend_ack.apply(meta);\n"
    )
    assert added.to("if (a) { send_ack.apply(meta); }") == "if (a) { send_ack.apply(meta); count_acks.apply(meta); }"
    with pytest.raises(InputError, match="CountAcks cannot follow SendAck"):
        added.to("if (a) { x = 1; send_ack.apply(meta); }")


def test_modules_that_route_come_last_and_those_of_a_guest_before_them() -> None:
    both = EpicSpec(mode=Mode.II, lanes=8, beside=ThemisSpec())
    ingress = compose(both).flows["ingress"]
    assert ingress.applied[0] == Applied("LookupTable")
    assert ingress.applied[-2:] == (Applied("AnswerArp"), Applied("Forward"))
    guests = [each.module for each in ingress.applied if each.guest]
    assert guests[:2] == ["FindFlow", "CheckAnswer"]
    assert compose(both).flows["egress"].applied[-1] == Applied("MakeNack", guest=True)
