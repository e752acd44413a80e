"""What the checker makes of correct programs: casts, folding, names, tables, instances."""

from __future__ import annotations

import re

import pytest
from p4_programs import HEAD, compiled, errors, ingress, program, statements, value

from p4gen.choices import EngineName
from p4gen.errors import InputError
from p4gen.model import Model, is_modelled
from p4gen.p4 import ir
from p4gen.p4.types import Bits, Enum, Header, Struct


def test_integers_take_the_width_they_meet() -> None:
    added = value("hdr.h.b + 1")
    assert isinstance(added, ir.Binary)
    assert added.left.type == added.right.type == Bits(8)


def test_a_constant_that_does_not_fit_is_cut_with_a_warning() -> None:
    found = compiled(ingress("hdr.h.a = 256 + 1;"))
    assert "does not fit" in found.warnings[0].message
    assert isinstance(value("257"), ir.Literal)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("8w200 |+| 8w100", 255),
        ("8w1 |-| 8w2", 0),
        ("(bit<8>)(8s100 |+| 8s100)", 127),
        ("8w255 + 8w2", 1),
        ("(4w1 ++ 4w2)", 0x12),
        ("16w0xABCD[11:4]", 0xBC),
        ("(bit<8>)8w7", 7),
        ("(bit<8>)(int<8>)-1", 255),
        ("~8w1", 254),
        ("8w1 << 9", 0),
    ],
)
def test_folding_wraps_as_the_width_says(expression: str, expected: int) -> None:
    found = value(expression)
    assert isinstance(found, ir.Literal)
    assert found.value == expected


def test_lists_become_what_they_are_assigned_to() -> None:
    found = value("{ 1, 2, 3, -1 }", "hdr.h")
    assert isinstance(found, ir.Aggregate)
    assert isinstance(found.type, Header)
    assert [e.value for e in found.elements if isinstance(e, ir.Literal)] == [1, 2, 3, -1]


def test_struct_expressions_go_by_name_and_dots_fill_in() -> None:
    found = value("{ y = 7, ... }", "meta")
    assert isinstance(found, ir.Aggregate)
    assert isinstance(found.type, Struct)
    assert [e.value for e in found.elements if isinstance(e, ir.Literal)] == [0, 7, False]


def test_hash_infers_its_types_from_lists() -> None:
    (call,) = statements("hash(meta.y, HashAlgorithm.crc32, 32w0, { hdr.h.a, hdr.h.c }, 32w10);")
    assert isinstance(call, ir.Evaluate)
    assert isinstance(call.expr, ir.ExternCall)
    assert [str(t) for t in call.expr.type_args] == ["bit<32>", "bit<32>", "tuple<bit<8>, bit<16>>", "bit<32>"]


def test_generic_functions_and_structs_are_instantiated() -> None:
    text = "struct pair<T> { T one; T two; }\nT second<T>(in pair<T> p) { return p.two; }\n"
    body = "pair<bit<8>> p = { 1, 2 }; hdr.h.a = second(p); hdr.h.b = second<bit<8>>(p);"
    control = f"control I(inout headers hdr, inout metadata meta, inout standard_metadata_t s) {{ apply {{ {body} }} }}"
    block = compiled(program(text + control)).program.blocks["ig"]
    assert isinstance(block, ir.Control)
    calls = [s.value for s in block.body.body if isinstance(s, ir.Assign)]
    assert isinstance(calls[0], ir.FunctionCall)
    assert isinstance(calls[1], ir.FunctionCall)
    assert calls[0].callee is calls[1].callee
    assert calls[0].type == Bits(8)


def test_default_and_named_arguments() -> None:
    text = "bit<8> f(in bit<8> a, in bit<8> b = 5) { return a + b; }\n"
    body = "hdr.h.a = f(b = 1, a = 2); hdr.h.b = f(3);"
    control = f"control I(inout headers hdr, inout metadata meta, inout standard_metadata_t s) {{ apply {{ {body} }} }}"
    block = compiled(program(text + control)).program.blocks["ig"]
    assert isinstance(block, ir.Control)
    args = [
        [a.expr.value for a in s.value.args if isinstance(a.expr, ir.Literal)]
        for s in block.body.body
        if isinstance(s, ir.Assign) and isinstance(s.value, ir.FunctionCall)
    ]
    assert args == [[2, 1], [3, 5]]


def test_switch_on_action_run_resolves_fall_through() -> None:
    local = "action a() {} action b() {} action c() {} table t { actions = { a; b; c; } default_action = a; }"
    (switch,) = statements("switch (t.apply().action_run) { a: b: { hdr.h.a = 1; } default: { hdr.h.a = 2; } }", local)
    assert isinstance(switch, ir.Switch)
    assert isinstance(switch.subject.type, Enum)
    labels = [[label.value for label in c.labels if isinstance(label, ir.Literal)] for c in switch.cases]
    assert labels == [["a", "b"], []]


def test_a_sub_control_is_lowered_for_each_instance() -> None:
    text = """control Lane(inout bit<8> v)(bit<8> seed, bool twice) {
    register<bit<8>>(4) r;
    apply { v = v + seed; if (twice) { v = v + seed; } r.write(0, v); }
}
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    Lane(1, false) one; @name("two") Lane(2, true) other;
    apply { one.apply(hdr.h.a); other.apply(hdr.h.b); Lane.apply(hdr.h.a); }
}"""
    text = text.replace("Lane.apply(hdr.h.a);", "")
    found = compiled(program(text)).program
    assert [e.name for e in found.externs] == ["I.one.r", "I.two.r"]
    block = found.blocks["ig"]
    assert isinstance(block, ir.Control)
    first, second = (s.block for s in block.body.body if isinstance(s, ir.ApplyBlock))
    assert first is not second
    assert first.name == "I.one"


def test_tables_carry_all_their_properties() -> None:
    local = """direct_counter(CounterType.bytes) dc;
    action hit(inout bit<8> x, bit<8> v) { x = v; }
    action miss() {}
    table t {
        key = { hdr.h.a : exact; hdr.h.b : ternary @name("bee"); hdr.h.isValid() : exact; hdr.h.c[7:0] : range; }
        actions = { hit(hdr.h.a); @defaultonly miss; }
        const default_action = miss;
        const entries = {
            (1, 2 &&& 3, true, 4 .. 5) : hit(hdr.h.a, 9);
            (1, _, false, _) : hit(hdr.h.a, 8);
        }
        size = 77;
        counters = dc;
    }"""
    table = compiled(ingress("t.apply();", local)).program.table("t")
    assert [k.name for k in table.keys] == ["hdr.h.a", "bee", "hdr.h.$valid$", "hdr.h.c[7:0]"]
    assert table.size == 77
    assert table.const_default
    assert table.const_entries
    assert table.default_action.ref.default_only
    assert table.direct[0].name == "I.dc"
    first, second = table.entries
    assert first.keys == (ir.Exactly(1), ir.Masked(2, 3), ir.Exactly(True), ir.Between(4, 5))
    assert second.keys[1] == ir.Anything()
    assert (first.action.args, first.priority, second.priority) == ((9,), 2, 1)
    assert isinstance(first.action.ref.bound[0].expr, ir.FieldOf)


@pytest.mark.parametrize(
    ("properties", "entries", "expected"),
    [
        ("", "priority = 10: 1 : a; 2 : a; 3 : a;", [10, 9, 8]),
        ("", "1 : a; 2 : a; 3 : a;", [3, 2, 1]),
        ("priority_delta = 10;", "1 : a; 2 : a;", [11, 1]),
        ("largest_priority_wins = false;", "priority = 1: 1 : a; priority = 5: 2 : a;", [5, 1]),
    ],
)
def test_priorities_of_entries(properties: str, entries: str, expected: list[int]) -> None:
    local = f"""action a() {{}}
    table t {{ key = {{ hdr.h.a : ternary; }} actions = {{ a; }} default_action = a; {properties}
        entries = {{ {entries} }} }}"""
    table = compiled(ingress("t.apply();", local)).program.table("t")
    assert [e.priority for e in table.entries] == expected


def test_a_table_without_default_action_gets_no_action() -> None:
    table = compiled(ingress("t.apply();", "action a() {} table t { actions = { a; } }")).program.table("t")
    assert table.default_action.ref.name == "NoAction"
    assert table.actions[-1].default_only


def test_select_matches_value_sets_masks_ranges_and_lists() -> None:
    parser = """parser Q(packet_in p, out headers hdr, inout metadata m, inout standard_metadata_t s) {
    value_set<bit<8>>(4) vs;
    state start {
        p.extract(hdr.stack.next);
        transition select(hdr.stack.last.a, hdr.stack.last.b) {
            (vs, 1) : accept; (1 &&& 3, 2 .. 4) : start; (_, default) : reject;
        }
    }
}
"""
    control = "control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply {} }"
    text = program(parser + control).replace("V1Switch(P()", "V1Switch(Q()")
    block = compiled(text).program.blocks["p"]
    assert isinstance(block, ir.Parser)
    kinds = [[type(k).__name__ for k in c.keysets] for c in block.states["start"].transition.cases]
    assert kinds == [["ValueSet", "ExactSet"], ["MaskSet", "RangeSet"], ["AnySet", "AnySet"]]


def test_compound_assignment_evaluates_its_target_once() -> None:
    text = "bit<8> f(inout bit<8> x) { x = x + 1; return 0; }\n"
    body = "hdr.stack[f(meta.x)].a += 1;"
    control = f"control I(inout headers hdr, inout metadata meta, inout standard_metadata_t s) {{ apply {{ {body} }} }}"
    block = compiled(program(text + control)).program.blocks["ig"]
    assert isinstance(block, ir.Control)
    (whole,) = block.body.body
    assert isinstance(whole, ir.Block)
    assert isinstance(whole.body[0], ir.Declare)
    assert isinstance(whole.body[1], ir.Assign)


def test_reads_before_a_value_are_warned_of() -> None:
    body = "bit<8> x; if (meta.flag) { x = 1; } hdr.h.a = x; bit<8> y; y = 2; hdr.h.b = y;"
    messages = [w.message for w in compiled(ingress(body)).warnings]
    assert messages == ["'x' may be read before it has a value"]


def test_unused_code_is_checked_too() -> None:
    assert errors(HEAD + "control Unused(inout bit<8> x)(bool n) { apply { x = x + n; } }\n")


def test_types_of_different_declarations_differ() -> None:
    text = "struct one { bit<8> a; }\nstruct two { bit<8> a; }\n"
    body = "one p = { 1 }; two q = p;"
    control = f"control I(inout headers hdr, inout metadata meta, inout standard_metadata_t s) {{ apply {{ {body} }} }}"
    (found,) = errors(program(text + control))
    assert "has type one, but two is needed" in found.message


def test_field_lists_go_by_constants_too() -> None:
    text = "const bit<8> KEPT = 1;\n" + ingress("hdr.h.a = meta.x;")
    text = text.replace("{ bit<8> x; bit<32> y;", "{ @field_list(KEPT, 2) bit<8> x; @field_list(3) bit<32> y;")
    metadata = compiled(text).program.type_args[1]
    assert isinstance(metadata, Struct)
    assert [field.annotations[0].args for field in metadata.fields[:2]] == [(1, 2), (3,)]
    assert "LOST" in errors(text.replace("(KEPT", "(LOST"))[0].message
    text = text.replace("const bit<8> KEPT = 1;", "enum bit<8> List { KEPT = 1 }").replace("(KEPT", "(List.KEPT")
    metadata = compiled(text).program.type_args[1]
    assert isinstance(metadata, Struct)
    assert metadata.fields[0].annotations[0].args == (1, 2)
    assert "LOST" in errors(text.replace("List.KEPT,", "List.LOST,"))[0].message


PORT = "type bit<9> port_t; type port_t deep_t; type int<8> signed_t; type bool flag_t;\n"


def _with_types(text: str, local: str, body: str) -> str:
    return ingress(body, local).replace("#include <v1model.p4>\n", f"#include <v1model.p4>\n{PORT}{text}", 1)


@pytest.mark.parametrize(
    ("text", "local", "body"),
    [
        ("const port_t FIRST = 5;", "", "port_t p = FIRST; hdr.h.c = (bit<16>)(bit<9>)p;"),
        ("const int FIVE = 5;", "", "port_t p = FIVE; hdr.h.c = (bit<16>)(bit<9>)p;"),
        ("", "", "port_t p = 5; hdr.h.c = (bit<16>)(bit<9>)p;"),
        ("", "port_t p;", "p = 2 + 3; hdr.h.c = (bit<16>)(bit<9>)p;"),
        ("", "signed_t p = -5;", "hdr.h.s = (int<8>)p;"),
        ("port_t five() { return 5; }", "", "hdr.h.c = (bit<16>)(bit<9>)five();"),
        ("const port_t FIVE = 5;", "action a(port_t p) {} table t { actions = { a; } default_action = a(FIVE); }", ""),
    ],
)  # fmt: skip
def test_an_int_becomes_a_new_type_with_a_warning(text: str, local: str, body: str) -> None:
    (warning,) = compiled(_with_types(text, local, body)).warnings
    assert "without a cast" in warning.message


@pytest.mark.parametrize(
    ("text", "local", "body"),
    [
        ("", "port_t p;", "p = 9w5;"),
        ("", "port_t p;", "p = (bit<9>)hdr.h.c;"),
        ("", "deep_t p;", "p = 5;"),
        ("", "flag_t p;", "p = 0;"),
        ("", "port_t p = (port_t)0;", "p = p + 1;"),
        ("", "port_t p = (port_t)0;", "p += 1;"),
        ("", "port_t p = (port_t)0;", "if (p == 5) { hdr.h.a = 1; }"),
        ("", "port_t p = (port_t)0;", "p = hdr.h.a == 1 ? p : 5;"),
        ("bit<9> f(in port_t p) { return (bit<9>)p; }", "", "hdr.h.c = (bit<16>)f(5);"),
        ("", "action a(port_t p) {} table t { actions = { a; } default_action = a(5); }", "t.apply();"),
    ],
)
def test_a_new_type_stays_apart_from_its_base(text: str, local: str, body: str) -> None:
    (error,) = errors(_with_types(text, local, body))
    assert "port_t" in error.message or "_t" in error.message


OWN = """#include <core.p4>
struct H1 {{ bit<8> a; }} struct H2 {{ bit<16> b; }} struct X {{ bit<4> c; }}
control Pipe<T, I>(inout T t, inout I i);
package Half<T, I>(Pipe<T, I> p);
{package}
control c1(inout X t, inout H1 i) {{ apply {{ i.a = i.a / 3; }} }}
control c2(inout X t, inout H2 i) {{ apply {{ }} }}
{main}(Half(c1()), Half({second}())) main;
"""


@pytest.mark.parametrize(
    ("package", "main", "second"),
    [
        ("package Whole<T>(Half<T, _> one, Half<T, _> two);", "Whole", "c2"),
        # Of the name of Tofino's, whose compilers have no division.
        ("package Switch<T>(Half<T, H1> one, Half<T, H1> two);", "Switch", "c1"),
        ("package V1Switch<T>(Half<T, _> one, Half<T, _> two);", "V1Switch", "c2"),
    ],
)
def test_an_architecture_of_ones_own(package: str, main: str, second: str) -> None:
    found = compiled(OWN.format(package=package, main=main, second=second))
    assert found.program.package == main
    assert not found.beyond_targets
    assert not is_modelled(found.program)


def test_packages_are_told_apart_by_their_type_arguments() -> None:
    text = OWN.format(package="package Whole<T>(Half<T, H1> one, Half<T, H1> two);", main="Whole", second="c2")
    (error,) = errors(text.replace("a / 3", "a"))
    assert error.message == "argument 'two' is a Half<X, H2>, but a Half<X, H1> is needed"


DEPRECATED = [
    ("clone3(CloneType.I2E, 5, { hdr.h.a });", "", "clone_preserving_field_list"),
    ("resubmit({ hdr.h.a });", "", "resubmit_preserving_field_list"),
    ("recirculate({ hdr.h.a });", "", "recirculate_preserving_field_list"),
    ("mark_to_drop();", "", r"mark_to_drop\(standard_metadata\)"),
    ("hdr.h.c = sum.get({ hdr.h.a });", "Checksum16() sum;", "verify_checksum/update_checksum"),
]


@pytest.mark.parametrize(("body", "local", "successor"), DEPRECATED)
@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_deprecated_extern_names_its_successor(body: str, local: str, successor: str, engine: EngineName) -> None:
    found = compiled(ingress(body, local))
    assert all(re.search(successor, w.message) for w in found.warnings)
    assert found.warnings
    if not local:
        with pytest.raises(InputError, match=successor):
            Model(found.program, engine=engine)


@pytest.mark.parametrize(
    ("text", "body", "expected"),
    [
        ("const int N = 2w3;", "hdr.h.a = N + 1;", 4),
        ("const int<6> N = 2;", "hdr.h.a = 8w1 << N;", 4),
        ("const int N = { 1w1, 1w0 }[0];", "hdr.h.a = N;", 1),
    ],
)
def test_known_bit_strings_are_numbers(text: str, body: str, expected: int) -> None:
    (statement,) = compiled(_with_types(text, "", body)).program.blocks["ig"].body.body  # type: ignore[union-attr]
    assert isinstance(statement, ir.Assign)
    assert isinstance(statement.value, ir.Literal)
    assert statement.value.value == expected


def test_strings_in_annotations_are_joined() -> None:
    (action,) = compiled(ingress("b();", '@name("a" ++ "_" ++ "x") action b() {}')).p4info.actions
    assert action.preamble.name == "I.a_x"
