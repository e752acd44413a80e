"""Mutations of the typed IR: what they change, and that each of them changes something."""

from __future__ import annotations

import re

import pytest

from p4gen.model import Model
from p4gen.model.entries import Action, Entry, Exact
from p4gen.p4 import ir
from p4gen.p4.compile import Compiled, compile_text
from p4gen.p4.mutate.mutants import DROPPED, Mutant, mutants
from p4gen.p4.show import statement
from p4gen.p4.walk import walk
from p4gen.papers.epic.conformance.small import small
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.program import compose
from p4gen.program.compilation import compile_spec
from p4gen.ptf.memory import TestedSwitch

PROGRAM = """
#include <v1model.p4>
enum bit<8> kind_t { A = 1, B = 2 }
header h_t { bit<8> a; bit<8> b; kind_t kind; }
struct headers_t { h_t h; }
struct meta_t { bit<8> found; }
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition select(h.h.a, h.h.b) { (1, 2): other; default: accept; } }
    state other { transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply {} }
control Count(inout bit<8> x) {
    register<bit<8>>(4) cells;
    apply {
        bit<8> held;
        cells.read(held, 1);
        if (x[3:0] == 5 && held < 9) { x = x + held; } else { x = held - x; }
        cells.write(1, x);
    }
}
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Count() one; Count() two;
    action set(bit<8> found) { m.found = found; }
    table t { key = { h.h.a: exact; h.h.b: exact; } actions = { set; NoAction; } default_action = NoAction; }
    apply {
        m.found = 0;
        t.apply();
        one.apply(h.h.a); two.apply(h.h.b);
        if (h.h.kind == kind_t.A) { h.h.kind = kind_t.B; }
        h.h.a = m.found;
        s.egress_spec = 1;
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in headers_t h) { apply { p.emit(h.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compile_text(PROGRAM)


def the(compiled: Compiled, before: str, after: str) -> Mutant:
    found = [m for m in mutants(compiled) if (m.before, m.after) == (before, after)]
    assert len(found) == 1, [(m.before, m.after) for m in mutants(compiled)]
    return found[0]


@pytest.mark.parametrize(
    ("module", "where", "before", "after"),
    [
        ("Count", "apply", "if (x[3:0] == 5 && held < 9)", "if (!(x[3:0] == 5 && held < 9))"),
        ("Count", "apply", "if (x[3:0] == 5 && held < 9)", "if (x[4:1] == 5 && held < 9)"),
        ("Count", "apply", "if (x[3:0] == 5 && held < 9)", "if (x[3:0] == 6 && held < 9)"),
        ("Count", "apply", "if (x[3:0] == 5 && held < 9)", "if (x[3:0] == 5 || held < 9)"),
        ("Count", "apply", "if (x[3:0] == 5 && held < 9)", "if (x[3:0] == 5 && held <= 9)"),
        ("Count", "apply", "if (x[3:0] == 5 && held < 9)", "if (x[3:0] == 5 && 9 < held)"),
        ("Count", "apply", "if (x[3:0] == 5 && held < 9)", "if (held < 9)"),
        ("Count", "apply", "if (x[3:0] == 5 && held < 9)", "if (false)"),
        ("Count", "apply", "x = held - x;", "x = x - held;"),
        ("Count", "apply", "x = x + held;", DROPPED),
        ("Count", "apply", "cells.write(1, x);", DROPPED),
        ("Count", "apply", "cells.read(held, 1);", "cells.read(held, 2);"),
        ("I", "set", "m.found = found;", DROPPED),
        ("I", "t", "h.h.b: exact;", DROPPED),
        ("I", "t", "h.h.b: exact;", "h.h.a: exact;"),
        ("I", "apply", "h.h.a = m.found;", "h.h.b = m.found;"),
        ("I", "apply", "two.apply(h.h.b);", "two.apply(h.h.a);"),
        ("I", "apply", "two.apply(h.h.b);", DROPPED),
        ("I", "apply", "h.h.kind = kind_t.B;", "h.h.kind = kind_t.A;"),
        ("P", "start", "(1, 2): other;", "(1, _): other;"),
        ("P", "start", "(1, 2): other;", DROPPED),
        ("D", "apply", "packet.emit(h.h);", DROPPED),
        ("D", "apply", "packet.emit(h.h);", "packet.emit(h.h); packet.emit(h.h);"),
    ],
)
def test_a_mutation_says_where_it_is_and_what_it_changes(
    compiled: Compiled, module: str, where: str, before: str, after: str
) -> None:
    mutant = the(compiled, before, after)
    assert (mutant.module, mutant.where) == (module, where)
    assert after == DROPPED or after != before
    assert re.split(r"\W", before.removeprefix("packet."))[0] in PROGRAM.splitlines()[mutant.pos.line - 1]


def test_all_instances_of_a_control_are_mutated_at_once(compiled: Compiled) -> None:
    mutant = the(compiled, "x = x + held;", "x = x - held;")
    assert len(mutant.exchanges) == 2
    faulty = mutant.apply(compiled.program)
    for name in ("one", "two"):
        assert "x = x - held;" in _assignments(faulty, name)
        assert "x = x + held;" not in _assignments(faulty, name)
    assert "x = x + held;" in _assignments(compiled.program, "one")  # the sound program is as it was


def _block(program: ir.Program, name: str) -> ir.Block:
    ingress = program.blocks["ig"]
    assert isinstance(ingress, ir.Control)
    applied = [node.block for node in walk(ingress.body) if isinstance(node, ir.ApplyBlock)]
    return next(block.body for block in applied if isinstance(block, ir.Control) and block.name.endswith(name))


def _assignments(program: ir.Program, name: str) -> list[str]:
    return [statement(node) for node in walk(_block(program, name)) if isinstance(node, ir.Assign)]


def test_a_dropped_statement_does_nothing(compiled: Compiled) -> None:
    frame = bytes((9, 9, 1))
    assert Model(compiled.program).process(0, frame) == [(1, bytes((0, 247, 2)))]
    kept = the(compiled, "h.h.kind = kind_t.B;", DROPPED).apply(compiled.program)
    assert Model(kept).process(0, frame) == [(1, bytes((0, 247, 1)))]
    other = the(compiled, "x = held - x;", "x = held + x;").apply(compiled.program)
    assert Model(other).process(0, frame) == [(1, bytes((0, 9, 2)))]


def test_a_neighbouring_field_has_the_same_type(compiled: Compiled) -> None:
    found = {(m.before, m.after) for m in mutants(compiled) if m.operator == "neighbouring field"}
    assert found == {
        ("h.h.a: exact;", "h.h.b: exact;"),
        ("h.h.b: exact;", "h.h.a: exact;"),
        ("h.h.a = m.found;", "h.h.b = m.found;"),
        ("one.apply(h.h.a);", "one.apply(h.h.b);"),
        ("two.apply(h.h.b);", "two.apply(h.h.a);"),
        ("s.egress_spec = 1;", "s.egress_port = 1;"),
    }


def test_a_part_that_is_not_written_stays_as_it_was() -> None:
    text = "x = held[2:0] ++ x[7:6] ++ 3w5;"
    compiled = compile_text(PROGRAM.replace("x = held - x;", text))
    found = {m.after: m for m in mutants(compiled) if m.operator == "part not written"}
    kept = {"x = x[7:5] ++ x[7:6] ++ 5;", "x = held[2:0] ++ x[4:3] ++ 5;", "x = held[2:0] ++ x[7:6] ++ x[2:0];"}
    assert set(found) == kept
    frame = bytes((9, 0b01000011, 1))
    assert Model(compiled.program).process(0, frame)[0][1][1] == 0b00001101
    faulty = found["x = held[2:0] ++ x[7:6] ++ x[2:0];"].apply(compiled.program)
    assert Model(faulty).process(0, frame)[0][1][1] == 0b00001011


def test_what_is_emitted_twice_is_there_twice(compiled: Compiled) -> None:
    mutant = the(compiled, "packet.emit(h.h);", "packet.emit(h.h); packet.emit(h.h);")
    (_, frame), *_ = Model(mutant.apply(compiled.program)).process(0, bytes((9, 9, 1)))
    assert frame == bytes((0, 247, 2)) * 2


def test_an_ignored_key_matches_whatever_its_value(compiled: Compiled) -> None:
    entry = Entry("I.t", {"h.h.a": Exact(3), "h.h.b": Exact(4)}, Action("I.set", {"found": 77}))
    second = Entry("I.t", {"h.h.a": Exact(3), "h.h.b": Exact(5)}, Action("I.set", {"found": 78}))
    sound = TestedSwitch(compiled.program)
    sound.insert(entry, second)
    assert sound.process(0, bytes((3, 9, 1)))[0][1][0] == 0
    mutant = the(compiled, "h.h.b: exact;", DROPPED)
    faulty = TestedSwitch(mutant.apply(compiled.program), mutant.ignored)
    faulty.insert(entry, second)
    assert faulty.process(0, bytes((3, 9, 1)))[0][1][0] == 77
    assert faulty.process(0, bytes((4, 9, 1)))[0][1][0] == 0


def test_what_reads_otherwise_but_does_the_same_is_no_mutation() -> None:
    compiled = compile_text(PROGRAM.replace("x = x + held;", "x = x + 0;"))
    texts = {m.after for m in mutants(compiled) if m.before == "x = x + 0;"}
    assert "x = x - 0;" not in texts
    assert "x = x + 1;" in texts


@pytest.mark.parametrize("mode", list(Mode))
def test_mutations_of_generated_programs(mode: Mode) -> None:
    """Enough of them in every module; each has a name of its own, and another text than the sound program's."""
    spec = small(EpicSpec, mode=mode, lanes=8, groups=2)
    compiled = compile_spec(spec)
    found = mutants(compiled)
    assert len({m.key for m in found}) == len(found) > 1000
    modules = {m.module for m in found}
    assert {module.name for module in compose(spec).modules} <= modules
    assert {"PacketParser", "IncIngress", "IncEgress"} <= modules
    for mutant in found[:: len(found) // 50]:
        assert mutant.before != mutant.after
        assert mutant.apply(compiled.program) is not compiled.program


def test_expressions_are_shown_with_the_parentheses_that_they_need() -> None:
    text = "x = (x + 1) * 2 - (x - (x & 1 | 2)) ++ x[3:0];"
    compiled = compile_text(PROGRAM.replace("x = x + held;", "bit<12> y = " + text[4:] + " x = y[7:0];"))
    declared = [node for node in walk(_block(compiled.program, "one")) if isinstance(node, ir.Declare)]
    assert statement(declared[-1]) == "bit<12> y = (x + 1) * 2 - (x - (x & 1 | 2)) ++ x[3:0];"
