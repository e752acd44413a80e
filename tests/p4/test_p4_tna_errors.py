"""TNA programs that are wrong: the cause and its place."""

from __future__ import annotations

import pytest
from tna_programs import ACTION, LOCAL, PARAMS, REGISTER, TAIL, errors, ingress, program

from p4gen.errors import Pos

WRONG = {
    "nothing implemented": (
        f"{REGISTER} RegisterAction<bit<32>, bit<16>, bit<32>>(reg) add;",
        "an instance of RegisterAction needs an implementation of 'apply': … name = { … };",
    ),
    "another method": (
        ACTION.replace("void apply", "void appyl"),
        "extern RegisterAction has no abstract method 'appyl'",
    ),
    "twice": (
        f"{REGISTER} RegisterAction<bit<32>, bit<16>, bit<32>>(reg) add = {{"
        " void apply(inout bit<32> v) { } void apply(inout bit<32> v) { } };",
        "a second implementation of 'apply'",
    ),
    "no abstract methods": (
        "Register<bit<32>, bit<16>>(4) reg = { void apply(inout bit<32> v) { } };",
        "extern Register has no abstract methods",
    ),
    "too few parameters": (
        ACTION.replace("(inout bit<32> value, out bit<32> rv) { value = value |+| hdr.h.d; rv = value; }", "() { }"),
        "'apply' has 1 to 2 parameters, not 0",
    ),
    "another direction": (
        ACTION.replace("inout bit<32> value, out bit<32> rv", "inout bit<32> value, inout bit<32> rv"),
        "parameter 'rv' must be 'out', not 'inout'",
    ),
    "another type": (
        ACTION.replace("inout bit<32> value, out", "inout bit<16> value, out").replace(
            "value = value |+| hdr.h.d; ", ""
        ),
        "parameter 'value' has type bit<16>, but bit<32> is needed",
    ),
    "a result": (
        ACTION.replace("void apply", "bit<8> apply"),
        "'apply' returns bit<8>, but void is needed",
    ),
    "a counter as a register": (
        "Counter<bit<32>, bit<16>>(4, CounterType_t.BYTES) c;"
        " RegisterAction<bit<32>, bit<16>, bit<32>>(c) add = { void apply(inout bit<32> v) { } };",
        "argument 'reg' of 'RegisterAction' has type Counter<bit<32>, bit<16>>, but Register<_, _> is needed",
    ),
    "a register of other bits": (
        "Register<bit<8>, bit<16>>(4) r; ActionProfile(4) p; Hash<bit<8>>(HashAlgorithm_t.CRC8) h;"
        " ActionSelector(p, h, SelectorMode_t.FAIR, r, 4, 4) s;",
        "argument 'reg' of 'ActionSelector' has type Register<bit<8>, bit<16>>, but Register<bit<1>, _> is needed",
    ),
    "an instance as a value": (
        "Register<bit<32>, bit<16>>(4) r; Register<bit<32>, bit<16>>(r) q;",
        "'r' is not a value",
    ),
    "a property's extern": (
        "DirectCounter<bit<32>>(CounterType_t.BYTES) c;"
        " table t { key = { hdr.h.a : exact; } actions = { NoAction; } registers = c; }",
        "'registers' takes a DirectRegister, not a DirectCounter",
    ),
    "an implementation": (
        "Hash<bit<8>>(HashAlgorithm_t.CRC8) h;"
        " table t { key = { hdr.h.a : exact; } actions = { NoAction; } implementation = h; }",
        "a Hash cannot be the implementation of a table",
    ),
    "a match kind of T2NA": (
        "table t { key = { hdr.h.a : dleft_hash; } actions = { NoAction; } }",
        "match kind 'dleft_hash' is not declared",
    ),
    "an action of T2NA": (
        f"{REGISTER} RegisterAction2<bit<32>, bit<16>, bit<8>, bit<8>>(reg) a;",
        "expected a declaration or 'apply', found 'RegisterAction2'",
    ),
    "this elsewhere": (
        "action act() { this.predicate(); }",
        "'this' can be used only in an instance's implementation of an abstract method",
    ),
    "in an implementation": (
        ACTION.replace("rv = value;", "rv = hdr.h.a;"),
        "this expression has type bit<8>, but bit<32> is needed here",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_with_its_place(name: str) -> None:
    local, message = WRONG[name]
    found = errors(ingress("", local))
    assert [d.message for d in found][:1] == [message] or message in found[0].message, found
    assert isinstance(found[0].where, Pos)
    assert LOCAL <= found[0].where.line <= LOCAL + local.count("\n")


def test_a_pipe_of_t2na_is_none_of_tna() -> None:
    found = errors(program(f"control Ig({PARAMS}) {{ apply {{ }} }}", tail=TAIL.replace("pipe)", "pipe, 5)")))
    message = "argument 'pipe1' has type int, but Pipeline<IH1, IM1, EH1, EM1> is needed here"
    assert [d.message for d in found] == [message]
