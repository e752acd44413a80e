"""P4Info: identifiers, aliases and contents as p4c has them."""

from __future__ import annotations

import pytest
from p4_programs import compiled, ingress

from p4gen.p4.info.ids import ACTION, Symbols, member_ids, name_hash
from p4gen.p4.info.text import differences, parse_text, to_text
from p4gen.p4.types import Annotation

# The id of NoAction, the same in every P4Info that p4c ever wrote.
NO_ACTION = 21257015


def test_ids_are_those_of_p4c() -> None:
    assert ACTION << 24 | name_hash("NoAction") & 0xFFFFFF == NO_ACTION


def test_aliases_are_the_shortest_unique_suffixes() -> None:
    symbols = Symbols()
    for name in ("a.x.t", "b.x.t", "c.u"):
        symbols.add(2, name)
    symbols.assign()
    assert [symbols.alias(n) for n in ("a.x.t", "b.x.t", "c.u")] == ["a.x.t", "b.x.t", "u"]


def test_given_ids_keep_their_number_and_get_their_kind() -> None:
    symbols = Symbols()
    symbols.add(2, "t", (Annotation("id", (5,)),))
    symbols.assign()
    assert symbols.id(2, "t") == 2 << 24 | 5


def test_member_ids_go_round_the_ones_given() -> None:
    one = (Annotation("id", (1,)),)
    assert member_ids([(), one, ()]) == [2, 1, 3]


LOCAL = """
    direct_counter(CounterType.packets) dc;
    counter(16, CounterType.bytes) cnt;
    register<bit<32>>(64) reg;
    action_selector(HashAlgorithm.crc16, 128, 14) sel;
    @brief("sets it") action set(@id(7) bit<8> v, bit<9> port) { hdr.h.a = v; std.egress_spec = port; }
    action unused() {}
    @my(1) table t {
        key = { hdr.h.a : exact; hdr.h.b : lpm @name("bee"); hdr.h.c : selector; }
        actions = { set; @defaultonly NoAction; }
        const default_action = NoAction;
        implementation = sel;
        counters = dc;
        size = 99;
    }
"""


def test_a_whole_program() -> None:
    info = compiled(ingress("t.apply(); cnt.count(1); reg.write(0, 1);", LOCAL)).p4info
    (table,) = info.tables
    assert table.preamble.name == "I.t"
    assert table.preamble.alias == "t"
    assert list(table.preamble.annotations) == ["@my(1)"]
    assert [(f.id, f.name, f.bitwidth, f.match_type) for f in table.match_fields] == [
        (1, "hdr.h.a", 8, 2),
        (2, "bee", 8, 3),
    ]
    assert table.size == 99
    assert table.const_default_action_id == NO_ACTION
    assert [(r.scope, list(r.annotations)) for r in table.action_refs] == [(0, []), (2, ["@defaultonly"])]
    assert [a.preamble.name for a in info.actions] == ["NoAction", "I.set"]
    assert info.actions[1].preamble.doc.brief == "sets it"
    assert [(p.id, p.name, p.bitwidth) for p in info.actions[1].params] == [(7, "v", 8), (2, "port", 9)]
    assert info.action_profiles[0].with_selector
    assert info.action_profiles[0].size == 128
    assert list(info.action_profiles[0].table_ids) == [table.preamble.id]
    assert info.direct_counters[0].direct_table_id == table.preamble.id
    assert info.counters[0].size == 16
    assert info.counters[0].spec.unit == 1
    assert info.registers[0].type_spec.bitstring.bit.bitwidth == 32
    assert info.pkg_info.arch == "v1model"


def test_text_goes_both_ways_and_differences_are_named() -> None:
    info = compiled(ingress("t.apply(); reg.write(0, 1); cnt.count(1);", LOCAL)).p4info
    again = parse_text(to_text(info))
    assert not differences(info, again)
    again.tables[0].size = 1
    del again.registers[:]
    found = differences(info, again)
    assert [d.split(":")[0] for d in found] == ["registers", "tables"]
    assert "I.reg is unexpected" in found[0]


@pytest.mark.parametrize("name", ["types"])
def test_types_of_the_control_plane(name: str) -> None:
    local = "action a(port_t p, kind_t k) {} table t { key = { k : exact; } actions = { a; } }"
    text = ingress("t.apply();", f"kind_t k = kind_t.ONE; {local}")
    declarations = """@p4runtime_translation("example.com/port", bit<32>) type bit<9> port_t;
enum bit<8> kind_t { ONE = 1, TWO = 2 }
control I("""
    info = compiled(text.replace("control I(", declarations, 1)).p4info
    assert info.type_info.new_types["port_t"].translated_type.uri == "example.com/port"
    assert [m.value for m in info.type_info.serializable_enums["kind_t"].members] == [b"\x01", b"\x02"]
    assert info.actions[-1].params[0].bitwidth == 32
    assert info.actions[-1].params[0].type_name.name == "port_t"


def test_the_order_of_arguments_is_not_seen_by_a_control_plane() -> None:
    local = """
    bit<8> v = 1;
    action once(in bit<8> p, in bit<8> q) { hdr.h.a = p; hdr.h.b = q; v = 0; }
    """
    called = "bit<8> f(inout bit<8> x) { x = x + 1; return x; }\n"
    reordered = compiled(called + ingress("once(q = f(v), p = f(v)); hdr.h.a = v;", local))
    in_order = compiled(called + ingress("once(p = f(v), q = f(v)); hdr.h.a = v;", local))
    assert to_text(reordered.p4info) == to_text(in_order.p4info)
    assert not reordered.warnings
