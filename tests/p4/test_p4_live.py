"""P4Info has what the program can come to do, no more: as p4c's front end leaves it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from p4_programs import compiled, ingress

from p4gen.p4.info.text import to_text
from p4gen.p4.p4c import find

LOCAL = """
    action a() { hdr.h.a = 1; }
    action lone() { hdr.h.a = 9; }
    table t { key = { hdr.h.a : exact; } actions = { a; } }
    table u { key = { hdr.h.b : exact; } actions = { a; } }
"""
SUB = """control Sub(inout headers hdr)(bool b) {
    counter(4, CounterType.bytes) n; action act() { hdr.h.a = 1; } action other() { hdr.h.b = 1; }
    table tab { key = { hdr.h.a : exact; } actions = { act; } }
    apply { n.count(0); if (b) tab.apply(); else other(); } }"""
READ = "typedef register<bit<8>> cells; "
TABLE_T = {"I.t", "I.a", "NoAction"}

CASES: dict[str, tuple[str, set[str]]] = {
    "a branch never taken": ("if (false) t.apply();", set()),
    "the only branch taken": ("if (1 < 2) t.apply(); else lone();", TABLE_T),
    "a condition known by algebra": ("if (meta.x >= 0) t.apply(); else lone();", TABLE_T),
    "a value compared with itself": ("if (meta.x == meta.x) t.apply(); else lone();", TABLE_T),
    "what cancels out": ("if ((meta.x ^ meta.x) == 0) t.apply(); else lone();", TABLE_T),
    "constants met by reassociation": ("if (meta.x + 1 - 1 == meta.x) t.apply(); else lone();", TABLE_T),
    "a false conjunct": ("if (meta.flag && false) t.apply();", set()),
    "a false conjunct after an effect": ("if (t.apply().hit && false) lone();", TABLE_T | {"I.lone"}),
    "bits shifted in": ("if ((meta.y << 8)[7:0] == 0) t.apply(); else lone();", TABLE_T),
    "errors are not compared": ("if (error.NoError == error.NoMatch) lone();", {"I.lone"}),
    "a variable is no constant": ("bool b = false; if (b) lone();", {"I.lone"}),
    "a switch on a constant": ("switch (8w3) { 3: { t.apply(); } default: { lone(); } }", TABLE_T),
    "a switch without the case": ("switch (8w3) { 4: { t.apply(); } }", set()),
    "after return": ("return; lone();", set()),
    "after return in both branches": ("if (meta.flag) return; else return; lone();", set()),
    "after return in one branch": ("if (meta.flag) return; lone();", {"I.lone"}),
    "after exit": ("exit; lone();", {"I.lone"}),
    "after exit, beside a return": ("if (meta.flag) return; exit; lone();", set()),
    "a loop that never runs": ("for (bit<8> i in 8w3 .. 8w1) { lone(); }", {"I.lone"}),
    "the result alone unused": ("bool b = t.apply().hit;", TABLE_T),
}
DECLARED: dict[str, tuple[str, str, str, set[str]]] = {
    "a block not applied": ("", "Sub(true) s;", SUB, set()),
    "a block for which a constant decides": (
        "s.apply(hdr);",
        "Sub(false) s;",
        SUB,
        {"I.s.n", "I.s.other"},
    ),
    "an unused counter": ("", "counter(4, CounterType.bytes) n;", "", {"I.n"}),
    "an unused register by another name": ("", "cells(4) r;", READ, set()),
    "one read for nothing": ("bit<8> v; r.read(v, 0);", "cells(4) r;", READ, set()),
    "one read and forgotten": ("bit<8> v; r.read(v, 0); v = 1; hdr.h.a = v;", "cells(4) r;", READ, set()),
    "one read for nothing, twice": ("bit<8> v; r.read(v, 0); bit<8> w = v; if (w == 1) {}", "cells(4) r;", READ, set()),
    "one read in a loop": (
        "bit<8> v = 0; for (bit<8> i in 8w1 .. 8w3) { hdr.h.a = v; r.read(v, 0); }",
        "cells(4) r;",
        READ,
        {"I.r"},
    ),
    "one read for a branch": ("bit<8> v; r.read(v, 0); if (v == 1) { hdr.h.a = 1; }", "cells(4) r;", READ, {"I.r"}),
    "one written": ("r.write(0, 1);", "cells(4) r;", READ, {"I.r"}),
    "actions from outside first, as they are met": (
        "z.apply();",
        "action own() {} table z { actions = { own; two; one; NoAction; } default_action = NoAction; }",
        "action one() {} action two() {}",
        {"I.z", "two", "one", "NoAction", "I.own"},
    ),
}
PROGRAMS = {name: (ingress(body, LOCAL), names) for name, (body, names) in CASES.items()}
DECLARED["digests of actions before those of the body"] = (
    "digest<early>(1, { 1 }); z.apply();",
    "action tell() { digest<late>(1, { 1 }); } table z { actions = { tell; } }",
    "struct early { bit<8> q; } struct late { bit<8> q; }",
    {"I.z", "I.tell", "NoAction", "early", "late"},
)
PROGRAMS |= {
    name: (ingress(body, local).replace("control I(", f"{above}\ncontrol I(", 1), names)
    for name, (body, local, above, names) in DECLARED.items()
}
# p4c cannot describe a register that a typedef gave its type.
CRASHES_P4C = {"one read in a loop", "one read for a branch", "one written"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_left(name: str) -> None:
    text, names = PROGRAMS[name]
    info = compiled(text).p4info
    found = [*info.tables, *info.actions, *info.counters, *info.registers, *info.digests]
    assert {o.preamble.name for o in found} == names


@pytest.mark.skipif(find() is None, reason="p4c-bm2-ss is not on PATH")
@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - CRASHES_P4C))
def test_p4c_agrees_to_the_letter(name: str, tmp_path: Path) -> None:
    text, _ = PROGRAMS[name]
    source, info = tmp_path / "t.p4", tmp_path / "t.txtpb"
    source.write_text(text, encoding="utf-8")
    command = [str(find()), "--p4runtime-files", str(info), "-o", str(tmp_path / "t.json"), str(source)]
    # It may refuse the rest, as loops: P4Info it makes before it comes to what BMv2 cannot do.
    subprocess.run(command, check=False, capture_output=True)
    assert to_text(compiled(text).p4info) == info.read_text(encoding="utf-8")


PARSER = """state start { transition select(8w1) { 1: middle; default: aside; } }
    state middle { transition select(hdr.h.a) { one: accept; default: accept; } }
    state aside { transition select(hdr.h.a) { two: accept; default: accept; } }"""


def test_value_sets_of_states_that_are_reached() -> None:
    text = ingress("").replace(
        "state start { pkt.extract(hdr.h); transition accept; }",
        f"value_set<bit<8>>(4) one; value_set<bit<8>>(4) two;{PARSER}",
    )
    assert [v.preamble.name for v in compiled(text).p4info.value_sets] == ["P.one"]
