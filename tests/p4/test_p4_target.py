"""What BMv2 cannot do is told apart from what the language forbids."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from p4_programs import FIRST, TAIL, compiled, ingress

TABLE = "action a() {} table t { key = { hdr.h.a : exact; } actions = { a; NoAction; } }"
COMPUTE = "control C(inout headers hdr, inout metadata meta) { apply {} }"
EMIT = "apply { pkt.emit(hdr); }"


@pytest.mark.parametrize(
    "body",
    [
        "t.apply(); hdr.h.a = 1;",
        "if (meta.flag) { t.apply(); } else { t.apply(); } hdr.h.a = 1;",
        "if (t.apply().hit) { hdr.h.a = 1; }",
        "hdr.h.a = hdr.h.a << hdr.h.b;",
        "hdr.h.a = hdr.h.a << (hdr.h.b & 7);",
        "hdr.h.a = (bit<8>)((bit<512>)hdr.h.a >> 256);",
    ],
)
def test_possible(body: str) -> None:
    assert not compiled(ingress(body, TABLE)).beyond_targets


@pytest.mark.parametrize(
    "body",
    [
        "t.apply(); t.apply();",
        "if (meta.flag) { t.apply(); hdr.h.a = 1; } else { t.apply(); }",
        "if (meta.flag) { if (t.apply().hit) { hdr.h.a = 1; } } else { t.apply(); }",
    ],
)
def test_a_table_has_one_successor(body: str) -> None:
    (found,) = compiled(ingress(body, TABLE)).beyond_targets
    assert "in places with different continuations" in found.message
    assert getattr(found.where, "line", None) == FIRST + 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (COMPUTE, COMPUTE.replace("{}", "{ hdr.h.a = 1; }"), "only calls of update_checksum"),
        (COMPUTE, COMPUTE.replace("{}", "{ if (hdr.h.a == 1) {} }"), "only calls of update_checksum"),
        (EMIT, "apply { if (hdr.h.a == 1) { pkt.emit(hdr); } }", "branches and loops"),
        ("header h_t { bit<8> a;", "header h_t { bit<7> a;", "39 bits"),
    ],
)
def test_blocks_that_do_one_thing(old: str, new: str, message: str) -> None:
    text = ingress("")
    assert old in text
    (found,) = compiled(text.replace(old, new)).beyond_targets
    assert re.search(message, found.message)
    assert found.source_line is not None


@pytest.mark.parametrize(
    ("body", "local", "message"),
    [
        ("w();", "action w() { switch (hdr.h.a) { 1: { hdr.h.b = 1; } } }", "'switch' cannot be used in an action"),
        ("hash(meta.x, HashAlgorithm.crc16, 8w0, hdr.h.a, 8w9);", "", "in a list or struct on BMv2, not bit<8>"),
        ("hdr.h.a = hdr.h.a << (bit<9>)hdr.h.b;", "", "shifts by amounts of 8 bits at most, not bit<9>; cast it"),
        ("hdr.h.a = hdr.h.a >> 16w3;", "", "shifts by amounts of 8 bits at most, not bit<16>; cast it"),
        ("hdr.h.a = (bit<8>)((bit<512>)hdr.h.a >> 257);", "", "shifts by 256 bits at most"),
        ("", "register<bool>(4) r;", "registers hold bit strings on BMv2, not bool"),
        (
            "z.apply();",
            "table z { key = { hdr.h.a : lpm; hdr.h.b : lpm; } actions = { NoAction; } }",
            "more than one lpm key",
        ),
    ],
)
def test_what_p4c_refuses_for_bmv2(body: str, local: str, message: str) -> None:
    (found,) = compiled(ingress(body, local)).beyond_targets
    assert message in found.message


def test_a_loop_over_a_range_is_refused_for_bmv2_only(tmp_path: Path) -> None:
    text = ingress("for (bit<8> i in 8w1 .. 8w3) { hdr.h.a = i; }")
    (found,) = compiled(text).beyond_targets
    assert (found.severity, "loops over ranges" in found.message) == ("warning", True)
    (tmp_path / "t.p4").write_text(text)
    for target, status, count in (("embedded", 0, "1 warning"), ("bmv2", 1, "1 error")):
        done = subprocess.run(
            [sys.executable, "-m", "p4gen", "check", "t.p4", "--target", target],
            check=False, cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        assert (done.returncode, done.stdout.strip().endswith(count)) == (status, True), done


def test_a_loop_with_a_condition_is_possible() -> None:
    assert not compiled(ingress("for (bit<8> i = 0; i < 4; i = i + 1) { hdr.h.a = i; }")).beyond_targets


def test_checksums_are_of_whole_fields() -> None:
    call = "{ update_checksum(true, { hdr.h.a ++ hdr.h.b }, hdr.h.c, HashAlgorithm.csum16); }"
    (found,) = compiled(ingress("").replace(COMPUTE, COMPUTE.replace("{}", call))).beyond_targets
    assert "'update_checksum' takes whole fields" in found.message


def test_digests_are_not_sent_by_parsers() -> None:
    text = ingress("").replace("pkt.extract(hdr.h);", "digest(1, meta);")
    (found,) = compiled(text).beyond_targets
    assert "a parser cannot send digests" in found.message


def test_checksum_calls_are_allowed() -> None:
    call = "{ update_checksum(true, { hdr.h.a }, hdr.h.c, HashAlgorithm.csum16); }"
    assert not compiled(ingress("").replace(COMPUTE, COMPUTE.replace("{}", call))).beyond_targets


@pytest.mark.parametrize(
    "value",
    [
        "hdr.h.a >> 16w0",
        "8w0 << hdr.h.c",
        "(hdr.h.a & 0) >> hdr.h.c",
        "hdr.h.a << (hdr.h.c & 0)",
        "(bit<8>)(512w1 << 257)",
    ],
)
def test_shifts_of_which_nothing_is_left(value: str) -> None:
    assert not compiled(ingress(f"meta.x = {value};")).beyond_targets


@pytest.mark.parametrize(("more", "refused"), [("", 0), ("unread = hdr.h.c << hdr.h.c;", 0), ("meta.x = unread;", 1)])
def test_values_that_nothing_reads_are_not_looked_at(more: str, refused: int) -> None:
    body = f"bit<16> unread = hdr.h.c >> hdr.h.c; {more}"
    assert len(compiled(ingress(body.replace("meta.x = unread", "hdr.h.c = unread"))).beyond_targets) == refused


def test_code_that_cannot_run_is_not_looked_at() -> None:
    assert not compiled(ingress("if (false) { meta.x = hdr.h.a << hdr.h.c; }")).beyond_targets


METER = "direct_meter<bit<8>>(MeterType.packets) m;"
READ = "action a() { m.read(meta.x); }"
KEYED = "key = { hdr.h.a : exact; } actions = { a; NoAction; } default_action = NoAction;"
ERROR_KEY = (
    "key = { std.parser_error : exact; } actions = { NoAction; } const entries = { error.NoMatch : NoAction(); }"
)


@pytest.mark.parametrize(
    ("local", "body", "message"),
    [
        (f"{METER} action a() {{}} table t {{ {KEYED} meters = m; }}", "t.apply();", "no action of table 'I.t' reads"),
        (f"{METER} {READ} table t {{ {KEYED} }}", "t.apply();", "the meter of no table"),
        (
            f"{METER} {READ} table t {{ {KEYED} meters = m; }} table u {{ {KEYED} meters = m; }}",
            "t.apply(); u.apply();",
            "belongs to two tables",
        ),
        (
            f"{METER} {READ} action b() {{ m.read(hdr.h.b); }} "
            f"table t {{ {KEYED.replace('{ a;', '{ a; b;')} meters = m; }}",
            "t.apply();",
            "read into two places",
        ),
        (f"table t {{ {ERROR_KEY} }}", "t.apply();", "a key of type error"),
    ],
)
def test_direct_resources_and_entries_that_bmv2_does_not_have(local: str, body: str, message: str) -> None:
    (found,) = compiled(ingress(body, local)).beyond_targets
    assert message in found.message


def test_a_meter_that_is_read_is_one() -> None:
    text = ingress("t.apply();", f"{METER} {READ} table t {{ {KEYED} meters = m; }}")
    assert not compiled(text).beyond_targets


@pytest.mark.parametrize("use", ["meta.x = hdr.stack.next.a;", "hdr.stack.next.a = 1;", "hdr.stack.next = hdr.h;"])
def test_the_next_element_can_only_be_extracted(use: str) -> None:
    text = ingress("").replace("transition accept;", f"{use} pkt.extract(hdr.stack.next); transition accept;", 1)
    (found,) = compiled(text).beyond_targets
    assert "can only extract into it" in found.message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("struct headers { h_t h; h_t[3] stack; }", "struct headers { h_t h; h_t[3] stack; bit<8> x; }", "such as 'x'"),
        (
            "struct headers { h_t h; h_t[3] stack; }",
            "header headers { bit<8> h; bit<8> stack; }",
            "not 'headers' alone",
        ),
    ],
)
def test_the_headers_are_a_struct_of_headers(old: str, new: str, message: str) -> None:
    text = ingress("").replace(old, new).replace("pkt.extract(hdr.h);", "").replace("pkt.emit(hdr);", "")
    assert [f.message for f in compiled(text).beyond_targets if message in f.message]


def test_a_program_without_main() -> None:
    found = compiled(ingress("").replace(TAIL, ""))
    assert [str(f.where) for f in found.beyond_targets] == ["t.p4:1:1"]
    assert "no 'main', an instance of V1Switch" in found.beyond_targets[0].message


def test_a_union_of_the_next_element_is_extracted() -> None:
    union = "header_union either { h_t one; }\nstruct headers { h_t h; h_t[3] stack; either[2] more; }"
    text = ingress("").replace("struct headers { h_t h; h_t[3] stack; }", union)
    assert not compiled(text.replace("pkt.extract(hdr.h);", "pkt.extract(hdr.more.next.one);")).beyond_targets
