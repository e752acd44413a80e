"""What a trace says of assignments, conditions, and choices of action selectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4gen.model import Model, Trace, render
from p4gen.model.entries import Action, Entry, Exact, Indirect
from p4gen.model.profiles import GroupMember
from p4gen.p4.compile import compile_file, compile_text

PROGRAM = """#include <core.p4>
#include <v1model.p4>
enum bit<8> Kind { ONE = 1, TWO = 2 }
enum Colour { RED, GREEN }
header h_t { Kind kind; bit<8> a; bit<16> b; }
struct headers_t { h_t h; h_t[2] stack; }
struct meta_t { bit<16> total; bool odd; Colour colour; }
bit<16> twice(in bit<16> x) {
    return x * 2;
}
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        meta.total = 500;
        packet.extract(hdr.h);
        transition accept;
    }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        bit<8> sum = hdr.h.a + 1;
        bit<1> at = 1;
        meta.odd = sum[0:0] == 1 && hdr.h.isValid();
        meta.colour = Colour.GREEN;
        hdr.h.b[7:0] = sum;
        hdr.stack[at].setValid();
        hdr.stack[at] = hdr.h;
        meta.total = twice(meta.total);
        switch (hdr.h.kind) {
            Kind.TWO: { hdr.h.kind = Kind.ONE; }
            default: {}
        }
        if (!meta.odd || meta.total > 10 + (bit<16>)hdr.h.a) {
            std.egress_spec = 1;
        } else {
            std.egress_spec = 2;
        }
        for (bit<8> i = 0; i < 1; i = i + 1) {
            hdr.h.a = i;
        }
        hdr.stack[at].setInvalid();
    }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""

STEPS = """
13 meta.total = 500 (0x1f4)
20 sum = 8
21 at = 1
22 meta.odd = false
23 meta.colour = GREEN
24 hdr.h.b[7:0] = 8
25 hdr.stack[at].setValid()
26 hdr.stack[at] = {kind=TWO (2), a=7, b=8}
27 meta.total = 1000 (0x3e8)
28 switch (hdr.h.kind): TWO (2)
29 hdr.h.kind = ONE (1)
32 if (!meta.odd || meta.total > 10 + (bit<16>)hdr.h.a): true
33 std.egress_spec = 1
37 i = 0
37 for (i < 1): true
38 hdr.h.a = 0
37 i = 1
37 for (i < 1): false
40 hdr.stack[at].setInvalid()
"""


def steps(trace: Trace) -> list[str]:
    return [f"{event.pos.line} {event.what}" for event in trace.of("assign", "condition") if event.pos is not None]


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_assignments_show_the_new_value_and_conditions_theirs(engine: str) -> None:
    program, trace = compile_text(PROGRAM).program, Trace()
    model = Model(program, engine="jit", cache="") if engine == "jit" else Model(program)
    assert model.process(0, bytes.fromhex("02070000"), trace) == [(1, bytes.fromhex("01000008"))]
    assert steps(trace) == STEPS.strip().splitlines()
    # Tracing changes nothing.
    assert model.process(0, bytes.fromhex("02070000")) == [(1, bytes.fromhex("01000008"))]


@pytest.fixture
def selectors() -> Model:
    model = Model(compile_file(Path(__file__).with_name("selector.p4")).program)
    for member in range(3):
        model.set_member("spread", member, Action("forward", {"port": member}))
    model.set_member("plain", 5, Action("forward", {"port": 5}))
    return model


def chosen(model: Model, source: int) -> tuple[int, list[tuple[str, object]]]:
    trace = Trace()
    frame = (1).to_bytes(6, "big") + source.to_bytes(6, "big") + bytes(2)
    ((port, _),) = model.process(0, frame, trace)
    return port, [(event.what.strip(), event.data["member"]) for event in trace.of("selector")]


def test_the_chosen_member_of_a_group_is_named(selectors: Model) -> None:
    selectors.set_group("spread", 7, [GroupMember(2, 1), GroupMember(0, 1), GroupMember(1, 2)])
    selectors.insert(Entry("t", {"hdr.e.d": Exact(1)}, Indirect(group=7)))
    seen = set()
    for source in range(0, 1 << 40, (1 << 34) + 12345):
        port, ((what, member),) = chosen(selectors, source)
        assert member == port
        assert what.startswith(f"selector I.spread, group 7: member {port} by hash ")
        seen.add(port)
    assert seen == {0, 1, 2}


def test_a_profile_s_member_and_own_actions_are_named(selectors: Model) -> None:
    selectors.insert(Entry("u", {"hdr.e.t": Exact(0)}, Indirect(member=5)))
    assert chosen(selectors, 0) == (5, [("profile I.plain: member 5", 5)])
    own = Indirect(actions=((Action("forward", {"port": 8}), 1, None), (Action("forward", {"port": 9}), 1, None)))
    selectors.delete(Entry("u", {"hdr.e.t": Exact(0)}, Indirect(member=5)))
    selectors.insert(Entry("t", {"hdr.e.d": Exact(1)}, own))
    for source in range(8):
        port, ((what, place),) = chosen(selectors, source)
        assert place == port - 8
        assert what.startswith(f"selector I.spread: action {place} by hash ")


def test_a_group_without_a_live_member_is_said_to_have_none(selectors: Model) -> None:
    selectors.set_group("spread", 7, [])
    selectors.insert(Entry("t", {"hdr.e.d": Exact(1)}, Indirect(group=7)))
    trace = Trace()
    selectors.process(0, (1).to_bytes(6, "big") + bytes(8), trace)
    assert [event.what.strip() for event in trace.of("selector")] == ["selector I.spread, group 7: no live member"]
    at = next(i for i, line in enumerate(render(trace.events)) if "no live member" in line)
    assert "action NoAction()" in render(trace.events)[at + 1]


def test_a_part_of_an_index_that_is_an_enum_is_named() -> None:
    source = """
#include <core.p4>
#include <v1model.p4>
enum bit<4> verdict_t { LOST = 3, LATE = 4 }
header h_t { bit<8> a; }
struct headers_t { h_t h; }
struct metadata_t { bit<8> x; }
parser P(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t m) { apply { } }
control I(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    counter(64, CounterType.packets) verdicts;
    counter(16, CounterType.packets) plain;
    apply {
        verdict_t verdict = verdict_t.LATE;
        verdicts.count((bit<32>)hdr.h.a * 16 + (bit<32>)(bit<4>)verdict);
        plain.count((bit<32>)(bit<4>)verdict);
        plain.count((bit<32>)hdr.h.a + 1);
    }
}
control E(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t hdr, inout metadata_t m) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
    trace = Trace()
    Model(compile_text(source, "enum.p4").program, engine="interp").process(0, b"\x02", trace)
    assert [event.what for event in trace.of("count")] == [
        "count I.verdicts[36 (0x24): LATE (4)]: 1 packets",
        "count I.plain[LATE (4)]: 1 packets",
        "count I.plain[3]: 1 packets",
    ]
