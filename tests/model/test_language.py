"""The language as programs see it, from P4 text through the front end (P4_16 specification 1.2.5)."""

from __future__ import annotations

import pytest

from p4gen.model import Model
from p4gen.model.entries import Ternary
from p4gen.p4.compile import compile_text

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; bit<8> c; bit<8> d; }}
header v_t {{ bit<8> size; varbit<32> data; bit<8> after; }}
header e_t {{ bit<8> x; }}
header_union u_t {{ e_t one; h_t four; }}
struct headers_t {{ h_t h; v_t v; e_t[3] s; u_t u; }}
struct metadata_t {{ bit<8> t; }}
{top}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{
    {parser}
}}
control V(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{
    {locals}
    apply {{ {apply} }}
}}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{ apply {{ }} }}
control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""

START = "state start { packet.extract(hdr.h); transition accept; }"


def model(apply: str = "", local: str = "", top: str = "", parser: str = START) -> Model:
    text = PROGRAM.format(top=top, parser=parser, locals=local, apply=apply)
    return Model(compile_text(text, "t.p4").program)


def run(packet: bytes, apply: str = "", **parts: str) -> bytes:
    """What leaves at port 0."""
    ((port, out),) = model(apply, **parts).process(1, packet)
    assert port == 0
    return out


def test_out_arguments_are_copied_out_from_left_to_right() -> None:
    """6.8: "the copy-out … in left to right order"; aliased arguments end with the last one's value."""
    top = "void f(inout bit<8> x, inout bit<8> y) { x = x + 1; y = y + 2; }"
    assert run(b"\1\0\0\0", "f(hdr.h.a, hdr.h.a);", top=top) == b"\3\0\0\0"


def test_inout_parameters_are_copies_while_the_call_runs() -> None:
    """6.8: an action that reads the variable behind its parameter sees the value from before the call."""
    local = "action f(inout bit<8> x) { x = 9; hdr.h.b = hdr.h.a; }"
    assert run(b"\1\0\0\0", "f(hdr.h.a);", local=local) == b"\x09\1\0\0"


def test_composite_inout_arguments_are_copies_for_actions_too() -> None:
    local = "action f(inout h_t x) { x.a = 9; hdr.h.b = 7; }"
    assert run(b"\1\0\0\0", "f(hdr.h);", local=local) == b"\x09\0\0\0"


@pytest.mark.parametrize("leave", ["exit;", "return;"])
def test_exit_and_return_copy_out(leave: str) -> None:
    """12.5: "copy-out … happens" when exit leaves a call; exit then ends the whole block."""
    top = f"""control C(inout bit<8> x) {{
        action act() {{ x = 5; {leave} }}
        apply {{ x = 4; act(); x = x + 1; }}
    }}"""
    expected = b"\5\0\0\0" if leave == "exit;" else b"\6\1\0\0"
    assert run(b"\1\0\0\0", "c.apply(hdr.h.a); hdr.h.b = 1;", local="C() c;", top=top) == expected


def test_the_place_of_an_assignment_is_found_before_its_value() -> None:
    """12.1: the left-hand side is evaluated to an l-value first."""
    parser = """state start { packet.extract(hdr.h); packet.extract(hdr.s.next); packet.extract(hdr.s.next);
        transition accept; }"""
    top = "bit<8> f(inout bit<8> i) { i = i + 1; return 7; }"
    out = run(b"\0\0\0\0\1\2", "hdr.s[hdr.h.a].x = f(hdr.h.a);", top=top, parser=parser)
    assert out == b"\1\0\0\0\7\2"


def test_operands_are_evaluated_left_to_right_and_short_circuit() -> None:
    """8.1 and 8.5."""
    top = "bool f(inout bit<8> x, in bool r) { x = x + 1; return r; }"
    assert run(b"\0\0\0\0", "if (f(hdr.h.a, false) && f(hdr.h.b, true)) hdr.h.c = 1;", top=top) == b"\1\0\0\0"
    assert run(b"\0\0\0\0", "if (f(hdr.h.a, true) || f(hdr.h.b, true)) hdr.h.c = 1;", top=top) == b"\1\0\1\0"


def test_structure_values_are_built_before_they_are_assigned() -> None:
    assert run(b"\1\2\3\4", "hdr.h = { hdr.h.d, hdr.h.c, hdr.h.b, hdr.h.a };") == b"\4\3\2\1"


def test_switch_on_the_action_that_ran_and_on_values() -> None:
    """12.7."""
    local = """
    action x() { hdr.h.b = 1; }
    action y() { hdr.h.b = 2; }
    table t { key = { hdr.h.a: exact; } actions = { x; y; NoAction; } const entries = { 1: x(); 2: y(); } }"""
    apply = """switch (t.apply().action_run) { x: { hdr.h.c = 10; } y: { hdr.h.c = 20; } default: { hdr.h.c = 30; } }
    switch (hdr.h.a) { 1: 2: { hdr.h.d = 7; } default: { hdr.h.d = 8; } }"""
    switch = model(apply, local=local)
    outputs = [switch.process(0, bytes([a, 0, 0, 0]))[0][1] for a in (1, 2, 3)]
    assert outputs == [b"\1\1\x0a\7", b"\2\2\x14\7", b"\3\0\x1e\x08"]


def test_directed_action_parameters_are_bound_in_the_table() -> None:
    """14.1.1: arguments of directed parameters are expressions of the table's declaration."""
    local = """
    action add(inout bit<8> x, in bit<8> y, bit<8> z) { x = x + y + z; }
    table t { key = { hdr.h.a: exact; } actions = { add(hdr.h.b, hdr.h.c); }
        const entries = { 1: add(hdr.h.b, hdr.h.c, 5); } default_action = add(hdr.h.b, hdr.h.c, 0); }"""
    switch = model("t.apply();", local=local)
    assert [switch.process(0, bytes([a, 1, 2, 0]))[0][1][1] for a in (1, 0)] == [8, 3]


def test_loops_break_continue_and_return() -> None:
    """12.8."""
    top = """bit<8> f(in bit<8> n) {
        bit<8> sum = 0;
        for (bit<8> i = 0; i < 100; i = i + 1) {
            if (i == 2) { continue; }
            if (i == 50) { break; }
            if (i > n) { return sum; }
            sum = sum + i;
        }
        return 99;
    }"""
    assert run(b"\4\0\0\0", "hdr.h.b = f(hdr.h.a);", top=top)[1] == 0 + 1 + 3 + 4
    assert run(b"\xf0\0\0\0", "hdr.h.b = f(hdr.h.a);", top=top)[1] == 99
    assert run(b"\0\0\0\0", "for (bit<8> i in 8w3..8w5) { hdr.h.b = hdr.h.b + i; }")[1] == 12


STACK = """state start { packet.extract(hdr.h); transition more; }
    state more { packet.extract(hdr.s.next); transition select(hdr.s.last.x) { 0: accept; default: more; } }"""


def test_stacks_in_parsers() -> None:
    """8.18: next, last and StackOutOfBounds; what was extracted before the error stays."""
    apply = "if (sm.parser_error == error.StackOutOfBounds) { hdr.h.a = 1; }"
    assert run(b"\0\0\0\0\1\0rest", apply, parser=STACK) == b"\0\0\0\0\1\0rest"
    assert run(b"\0\0\0\0\1\1\1\1rest", apply, parser=STACK) == b"\1\0\0\0\1\1\1\1rest"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("hdr.s.push_front(1); hdr.s[0].setValid(); hdr.s[0].x = 9;", b"\x09\1\2"),
        ("hdr.s.push_front(1);", b"\1\2"),
        ("hdr.s.pop_front(1);", b"\2\0"),
        ("hdr.s.pop_front(5);", b""),
        ("hdr.s[1].setInvalid();", b"\1\0"),
    ],
)
def test_stack_operations(call: str, expected: bytes) -> None:
    """8.18: push_front and pop_front move elements; the freed ones become invalid."""
    assert run(b"\0\0\0\0\1\2\0", call, parser=STACK)[4:] == expected


def test_a_run_time_index_outside_the_stack_is_trapped_and_harmless() -> None:
    switch = model("hdr.s[hdr.h.a].x = 5; hdr.h.b = hdr.s[hdr.h.a].x;", parser=STACK)
    assert switch.process(0, b"\7\1\1\1\1\0") == [(0, b"\7\0\1\1\1\0")]
    assert [(t.pos.line > 0, "stack index 7 is out of range" in t.what) for t in switch.traps()] == [(True, True)] * 2


def test_at_most_one_header_of_a_union_is_valid() -> None:
    """8.20."""
    parser = "state start { packet.extract(hdr.h); packet.extract(hdr.u.one); transition accept; }"
    assert run(b"\0\0\0\0\1", "hdr.u.four.setValid(); hdr.u.four.b = 2;", parser=parser) == b"\0\0\0\0\0\2\0\0"
    assert run(b"\0\0\0\0\1", "hdr.u.four = hdr.h;", parser=parser) == b"\0\0\0\0\0\0\0\0"
    assert run(b"\0\0\0\0\1", "if (hdr.u.isValid()) { hdr.h.a = 1; }", parser=parser) == b"\1\0\0\0\1"
    assert run(b"\0\0\0\0\1", "hdr.u.one.setInvalid();", parser=parser) == b"\0\0\0\0"


def test_lookahead_reads_without_moving_on() -> None:
    """13.8.3."""
    parser = """state start { bit<16> next = packet.lookahead<bit<16>>(); packet.extract(hdr.h);
        transition select(next) { 16w0x0102: more; default: accept; } }
        state more { packet.extract(hdr.s.next); transition accept; }"""
    assert run(b"\1\2\3\4\5", "hdr.s[0].setInvalid();", parser=parser) == b"\1\2\3\4"
    assert run(b"\0\2\3\4\5", "hdr.s[0].setInvalid();", parser=parser) == b"\0\2\3\4\5"


VARBIT = """state start { packet.extract(hdr.h); packet.extract(hdr.v, (bit<32>)hdr.h.a); transition accept; }"""
ERRORS = """
    if (sm.parser_error == error.HeaderTooShort) { hdr.h.b = 1; }
    if (sm.parser_error == error.ParserInvalidArgument) { hdr.h.b = 2; }
    if (sm.parser_error == error.PacketTooShort) { hdr.h.b = 3; }
    if (sm.parser_error == error.NoMatch) { hdr.h.b = 4; }
    if (sm.parser_error == error.MyError) { hdr.h.b = 5; }"""
MY_ERROR = "error { MyError }"


@pytest.mark.parametrize(
    ("bits", "expected"), [(0, b"\0\0\0\0\1A"), (16, b"\x10\0\0\0\1ABA"), (40, b"\x28\1\0\0"), (3, b"\3\2\0\0")]
)
def test_varbit_fields(bits: int, expected: bytes) -> None:
    """13.8.2: extract with a size; too large or no multiple of 8 is an error."""
    out = run(bytes([bits, 0, 0, 0]) + b"\1ABABABAB", ERRORS, parser=VARBIT, top=MY_ERROR)
    assert out[: len(expected)] == expected
    assert len(out) == 13


def test_verify_and_select_without_a_match_set_the_error() -> None:
    """13.7 and 13.6: verify(false, e) rejects with e, a select without a match with NoMatch."""
    parser = """state start { packet.extract(hdr.h); verify(hdr.h.a != 9, error.MyError);
        transition select(hdr.h.a) { 1: accept; } }"""
    assert [run(bytes([a, 0, 0, 0]), ERRORS, parser=parser, top=MY_ERROR)[1] for a in (1, 9, 2)] == [0, 5, 4]


def test_value_sets_are_filled_by_the_control_plane() -> None:
    """13.11."""
    parser = """value_set<bit<8>>(4) vs;
        state start { packet.extract(hdr.h); transition select(hdr.h.a) { vs: more; default: accept; } }
        state more { packet.extract(hdr.s.next); transition accept; }"""
    switch = model("hdr.s[0].setInvalid();", parser=parser)
    packet = b"\x12\0\0\0x"
    assert switch.process(0, packet) == [(0, packet)]
    switch.set_value_set("vs", Ternary(0x10, 0xF0), 3)
    assert switch.process(0, packet) == [(0, packet[:-1])]


def test_a_value_set_of_a_struct_stands_for_several_subjects() -> None:
    top = "struct pair_t { bit<8> x; bit<8> y; }"
    parser = """value_set<pair_t>(4) vs;
        state start { packet.extract(hdr.h); transition select(hdr.h.a, hdr.h.b) { vs: more; default: accept; } }
        state more { packet.extract(hdr.s.next); transition accept; }"""
    switch = model("hdr.s[0].setInvalid();", parser=parser, top=top)
    switch.set_value_set("vs", (1, Ternary(0, 1)))
    assert [len(switch.process(0, bytes([1, b, 0, 0, 9]))[0][1]) for b in (2, 3)] == [4, 5]


def test_masks_and_ranges_in_select() -> None:
    parser = """state start { packet.extract(hdr.h); transition select(hdr.h.a, hdr.h.b) {
        (0x10 &&& 0xf0, _): cut; (1 .. 3, 5): cut; default: accept; } }
        state cut { packet.advance(8); transition accept; }"""
    lengths = [len(run(bytes([a, b, 0, 0]) + b"xy", parser=parser)) for a, b in ((0x12, 0), (2, 5), (2, 6), (4, 5))]
    assert lengths == [5, 5, 6, 6]


def test_sub_parsers_and_sub_controls() -> None:
    top = """parser Sub(packet_in packet, out e_t e, inout bit<8> n) {
        state start { packet.extract(e); n = n + e.x; transition accept; }
    }
    control Twice(inout headers_t hdr, in bit<8> by)(bit<8> k) { apply { hdr.h.c = hdr.h.c + by + k; } }"""
    parser = """Sub() sub; state start { packet.extract(hdr.h); sub.apply(packet, hdr.s[0], hdr.h.b);
        sub.apply(packet, hdr.s[1], hdr.h.b); transition accept; }"""
    out = run(
        b"\0\1\0\0\5\6", "one.apply(hdr, hdr.h.b); two.apply(hdr, hdr.h.c);",
        parser=parser, local="Twice(1) one; Twice(2) two;", top=top,
    )  # fmt: skip
    assert out == b"\0\x0c\x1c\0\5\6"


def test_an_endless_loop_is_left_and_trapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("p4gen.model.interp.statements.MAX_ITERATIONS", 10)
    switch = model("for (bit<8> i = 0; i < 5; i = i - i) { hdr.h.a = hdr.h.a + 1; }")
    assert switch.process(0, bytes(4)) == [(0, b"\x0a\0\0\0")]
    assert [t.what for t in switch.traps()] == ["the loop has not ended after 10 rounds; it is exited"]


def test_lookahead_of_a_struct_of_headers() -> None:
    """13.8.3 with a struct: its headers are valid and nothing has been taken from the packet."""
    top = "struct ahead_t { e_t first; e_t[2] rest; }"
    parser = """state start { ahead_t ahead = packet.lookahead<ahead_t>(); packet.extract(hdr.h);
        meta.t = ahead.first.x + ahead.rest[1].x; transition accept; }"""
    assert run(b"\1\2\3\0", "hdr.h.d = meta.t;", parser=parser, top=top) == b"\1\2\3\4"
