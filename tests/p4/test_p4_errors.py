"""Errors: each on its line and column, with a cause in the specification's terms; never a traceback."""

from __future__ import annotations

import re

import pytest
from p4_programs import FIRST, HEAD, TAIL, compiled, errors, ingress, places, program

from p4gen.p4.parse.source import P4Error

# Body of an ingress, column of the error in it, and the message.
BODIES = [
    ("hdr.h.a = nothing;", 11, "'nothing' is not declared"),
    ("hdr.h.nothing = 1;", 7, "h_t has no field 'nothing'"),
    ("hdr.h.a = hdr.h.c;", 11, r"bit<16>, but bit<8> is needed"),
    ("hdr.h.a = hdr.h.a + hdr.h.c;", 19, r"'\+' needs operands of one type"),
    ("hdr.h.a = hdr.h.a && true;", 19, "'&&' needs bool operands"),
    ("hdr.h.a = hdr.h.s;", 11, r"int<8>, but bit<8> is needed"),
    ("if (hdr.h.a) {}", 5, "a condition must be a bool"),
    ("5 = hdr.h.a;", 1, "expected a statement"),
    ("hdr.h.isValid() = true;", 17, "expected ';'"),
    ("hdr.h.a = hdr.h.c[3:7];", 18, r"\[3:7\] is not a range"),
    ("hdr.h.a = hdr.h.c[16:9];", 18, "bit 16 is outside"),
    ("hdr.stack[3].setValid();", 11, "outside the stack"),
    ("hdr.stack.next.a = 1;", 11, "only in a parser"),
    ("hdr.h.a = 1 / 0;", 13, "division by zero"),
    ("hdr.h.a = hdr.h.a / hdr.h.b;", 19, "known at compile time"),
    ("hdr.h.a = hdr.h.a << -1;", 19, "must not be negative"),
    ("hdr.h.a = (bit<8>)true;", 11, "cannot cast from bool"),
    ("hdr.h = { 1, 2 };", 9, "2 values for h_t"),
    ("hdr.h = { a = 1 };", 9, "no value for field 'b'"),
    ("hdr.h.push_front(1);", 7, "no method 'push_front'"),
    ("hdr.h.setValid(1);", 16, "no arguments"),
    ("mark_to_drop(std, std);", 13, "no 'mark_to_drop' takes these arguments"),
    ("hdr.h.a = 1 << 100000;", 13, "more than 8192 bits"),
    ("truncate(len = 1);", 10, "no parameter 'len'"),
    ("break;", 1, "only in a loop"),
    ("return 1;", 1, "a value cannot be returned"),
    ("bit<8> x; bit<8> x;", 18, "already declared"),
    ("bit<8> hdr;", 8, "hides a parameter"),
    ("hash(meta.y, HashAlgorithm.crc32, 0, { hdr.h.a }, 10);", 5, "cannot infer"),
    ("verify(true, error.NoError);", 7, "only in a parser"),
    ("hdr.h.a = error.Nope;", 17, "error.Nope is not declared"),
    ("static_assert(1 == 2, \"broken\");", 14, "static_assert failed: broken"),
    ("clone_preserving_field_list(CloneType.I2E, 1, hdr.h.a);", 47, "must be a compile-time constant"),
    ("bit<0xFFFFFFFF> x;", 5, "the width of bit<> must be"),
    ("switch (hdr.h.a) { 1: {} 1: {} }", 26, "a second case"),
    ("switch (hdr.h.a) { default: {} 1: {} }", 32, "must be the last"),
    ("switch (meta.flag) { true: {} }", 9, "cannot choose by a value of type bool"),
    ("for (bit<8> i in hdr.h) {}", 22, "cannot iterate over"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "column", "message"), BODIES)
def test_errors_in_statements(body: str, column: int, message: str) -> None:
    (found, *_) = errors(ingress(body))
    assert re.search(message, found.message), found.message
    assert places([found]) == [(FIRST + 2, column + len("apply { "))]


LOCALS = [
    ("table t { key = { hdr.h.a : exact; } }", 7, "no 'actions' property"),
    ("table t { actions = { nothing; } default_action = NoAction; }", 23, "'nothing' is not declared"),
    ("table t { key = { hdr.h.a : sideways; } actions = { NoAction; } }", 19, "match kind 'sideways'"),
    ("table t { key = { hdr.h.a + 1 : exact; } actions = { NoAction; } }", 19, "needs a @name"),
    ("table t { actions = { NoAction; NoAction; } }", 33, "listed twice"),
    ("table t { actions = { NoAction; } default_action = I; }", 52, "expected|must be an action|is not a value"),
    ("action a(bit<8> v) {} table t { actions = { a(1); } }", 47, "get their values from entries"),
    ("action a(bit<8> v) { v = 1; }", 22, "cannot be written"),
    ("action a(bit<8> v, in bit<8> w) {}", 30, "must come before"),
    ("action a() {} table t { key = { hdr.h.a : exact; } actions = { a; } entries = { 1 &&& 2 : a; } }", 81, "a mask"),
    ("register<bit<8>>(meta.y) r;", 18, "must be a compile-time constant"),
    ("register<bit<8>>(1, 2) r;", 24, "takes 1 arguments, not 2"),
    ("P() p;", 5, "a parser cannot be instantiated in a control"),
    ("Nothing() n;", 1, "expected a declaration"),
    ("const bit<8> N = hdr.h.a;", 18, "must be known at compile time"),
]


@pytest.mark.parametrize(("local", "column", "message"), LOCALS)
def test_errors_in_declarations(local: str, column: int, message: str) -> None:
    (found, *_) = errors(ingress("", local))
    assert re.search(message, found.message), found.message
    assert places([found]) == [(FIRST + 1, column)]


DECLARATIONS = [
    ("header bad { bool[3] x; }", 1, "a stack holds headers"),
    ("header bad { varbit<8> x; varbit<8> y; }", 1, "more than one varbit"),
    ("struct bad { bit<8> a; bit<8> a; }", 1, "second field"),
    ("enum bit<8> e { A = true }", 1, "is needed here"),
    ("struct r { r x; }", 1, "contains itself"),
    ("bit<8> f(in bit<8> x) { if (x == 1) { return x; } }", 1, "does not return a value"),
    ("bit<8> f(in bit<8> x) { return f(x); }", 1, "calls itself"),
    ("control K() { K() k; apply {} }", 1, "contains itself"),
    ("error { NoError }", 1, "error.NoError is already declared"),
    ("parser Q(packet_in p) { state go { transition accept; } }", 1, "no state 'start'"),
    ("parser Q(packet_in p) { state start { transition nowhere; } }", 1, "no state 'nowhere'"),
    ("parser Q(packet_in p) { state start { transition start; } }", 1, "never reaches"),
]


DECLARATIONS += [
    ("@pkginfo const bit<32> x = 0;", 1, "@pkginfo needs"),
    ("struct S<T> { tuple<T, T> t; } const S<_> x = { t = { 0, 0 } };", 1, "type S<_> is not known"),
    ("extern X { X(list<tuple<bit<8>>> data = ...); }", 1, "has no default"),
    ("extern X<T> { X(); void f(in T t); } X<X<bit<8>>>() x;", 1, r"X<bit<8>> cannot have a direction"),
    ("extern X { void f(X x); }", 1, "cannot be a 'X'"),
    ("extern X<T, S> { X(list<tuple<T, S>> d); } "
     "control K() { X<bit<8>, bool>((list<tuple<bool, bool>>){}) x; apply {} }",
     1, "but list<tuple<bit<8>, bool>> is needed"),
    ("struct m { @match(1+1) bit<16> f; }", 1, "@match needs a match kind"),
    ("control K(bit<8> t) { table t { key = { t : exact; } actions = { NoAction; } } apply {} }",
     1, "'t' is not a value"),
    ("extern X { X(); abstract int f(); }", 1, "cannot return a value of type int"),
    ("int f() { return 1; }", 1, "cannot return a value of type int"),
    ("extern X<T> { X(); void f(in T t); } control K() { X<_>() x; apply { x.f(0); } }", 1, "needs a width"),
    ("void f<t>(in bit<8> t) {}", 1, "the name of a type parameter"),
    ('@deprecated("a" | "b") void f() {}', 1, "@deprecated needs one string"),
    ("control K<H>(bool v); package Q<H>(K<H> k = K(H));", 1, "is not a value"),
    ("control K<H>(bool v); package Q<H>(K<H> k = K(H > 3));", 1, "is not a value"),
    ("control K<H>(in H h); control L<H>(in H h) { apply {} } package Q<H>(K<H> k = L<H>()); Q() main;",
     1, "cannot infer"),
    ("parser R<H>(out H h); package A<H>(R<H> p); package B<H>(A<H> a); struct S {} "
     "parser R1(out S h) { state start { transition accept; } } A(R1()) a; B<tuple<>>(a) main;",
     1, "A<tuple<>> is needed"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "message"), DECLARATIONS)
def test_errors_at_the_top_level(text: str, line: int, message: str) -> None:
    (found, *_) = errors(HEAD + text)
    assert re.search(message, found.message), found.message
    assert places([found])[0][0] == FIRST - 1 + line


def test_several_errors_in_one_run() -> None:
    text = ingress("hdr.h.a = x;\nhdr.h.b = true;\nhdr.h.c = hdr.h.c + 1;\nnothing();")
    assert [line for line, _ in places(errors(text))] == [FIRST + 2, FIRST + 3, FIRST + 5]


def test_an_error_in_a_declaration_does_not_spread() -> None:
    assert len(errors(ingress("x = 1; hdr.h.a = x;", "bit<8> x = true;"))) == 1


def test_an_error_shows_the_other_declaration() -> None:
    (found,) = errors(ingress("bit<8> x; bit<16> x;"))
    assert found.notes[0][0].line == FIRST + 2
    assert "declared here" in found.notes[0][1]


def test_an_error_in_generated_text_names_the_template() -> None:
    text = program(
        "control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {\n"
        '#line 40 "modules/forward.p4.j2"\napply {\nhdr.h.a = nothing;\n} }'
    )
    with pytest.raises(P4Error) as caught:
        compiled(text)
    shown = str(caught.value)
    assert f"t.p4:{FIRST + 3}:11: error: 'nothing' is not declared" in shown
    assert "modules/forward.p4.j2:41:1: note: this line was generated from here" in shown
    assert shown.splitlines()[2].endswith("          ^")


def test_wrong_package_arguments() -> None:
    (found, *_) = errors(HEAD + TAIL.replace("I()", "E()").replace("D()", "V()"))
    assert re.search("parameters|cannot be used|should be", found.message)


@pytest.mark.parametrize("number", ["9" * 5000, "0x" + "F" * 5000, "1 << 8000 << 8000", "-(1 << 8191) * (1 << 8191)"])
def test_numbers_too_large_are_refused(number: str) -> None:
    assert errors(HEAD + f"const int N = {number};\n@a({number}) const bit<8> M = 1;")


def test_two_objects_with_one_name() -> None:
    local = '@name(".same") action a() {} @name(".same") action b() {} table t { actions = { a; b; } }'
    (found, *_) = errors(ingress("t.apply();", local))
    assert "already the control-plane name" in found.message


IDLE = "control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }"


@pytest.mark.parametrize(
    "other", ["struct Twice { bit<8> a; }", "extern Twice { Twice(); }", "parser Twice(packet_in p);"]
)
def test_a_control_with_the_name_of_something_else(other: str) -> None:
    found = errors(program(f"{other}\ncontrol Twice() {{ apply {{ }} }}\n{IDLE}"))
    assert [d.message for d in found] == ["'Twice' is already declared in this scope"]
