"""Small v1model programs for the front end's tests."""

from __future__ import annotations

from p4gen.errors import Diagnostic, Pos
from p4gen.p4 import ir
from p4gen.p4.compile import Compiled, compile_text
from p4gen.p4.parse.source import P4Error

HEAD = """#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; int<8> s; }
struct headers { h_t h; h_t[3] stack; }
struct metadata { bit<8> x; bit<32> y; bool flag; }
parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {} }
control C(inout headers hdr, inout metadata meta) { apply {} }
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply {} }
control D(packet_out pkt, in headers hdr) { apply { pkt.emit(hdr); } }
"""
TAIL = "\nV1Switch(P(), V(), I(), E(), C(), D()) main;\n"
FIRST = HEAD.count("\n") + 1
"""The line on which the text given to ``program`` starts."""


def program(text: str) -> str:
    """A whole program; ``text`` declares control ``I``, the ingress."""
    return HEAD + text + TAIL


def ingress(body: str, local: str = "") -> str:
    """A whole program whose ingress has these declarations (on line ``FIRST`` + 1) and this body (on
    the line after their last)."""
    return program(
        "control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {\n"
        f"{local}\napply {{ {body} }}\n}}"
    )


def compiled(text: str) -> Compiled:
    return compile_text(text, "t.p4")


def errors(text: str) -> list[Diagnostic]:
    """The errors that ``text`` has; none where it compiles."""
    try:
        compiled(text)
    except P4Error as problem:
        return [d for d in problem.diagnostics if d.severity == "error"]
    return []


def places(found: list[Diagnostic]) -> list[tuple[int, int]]:
    """Lines and columns of diagnostics."""
    return [(d.where.line, d.where.column) for d in found if isinstance(d.where, Pos)]


def statements(body: str, local: str = "") -> tuple[ir.Stmt, ...]:
    """The lowered statements of an ingress body."""
    block = compiled(ingress(body, local)).program.blocks["ig"]
    assert isinstance(block, ir.Control)
    return block.body.body


def value(expression: str, target: str = "hdr.h.a") -> ir.Expr:
    """The lowered expression that is assigned to ``target``."""
    (assign,) = statements(f"{target} = {expression};")
    assert isinstance(assign, ir.Assign)
    return assign.value
