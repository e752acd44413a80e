"""The resource model of Tofino: EPIC's Table 17, stages by dependencies, what cannot fit, and p4c's samples."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest
from tna_programs import compiled, ingress, program

from p4gen.chips.tna.resources.chips import TOFINO, TOFINO2
from p4gen.chips.tna.resources.estimate import chip_of, estimate
from p4gen.p4.compile import compile_file
from p4gen.p4.resources import Report


def report(text: str, *defines: str) -> Report:
    """The estimate of a program's only pipe."""
    (found,) = estimate(compiled(text, *defines).program)
    return found


def used(text: str) -> dict[str, int]:
    return {row: amount.used for row, amount in report(text).rows.items()}


# --- Table 17 ------------------------------------------------------------------------------------


def lanes(count: int, slots: int, arch: str = "tna", *, state_grows: bool = True) -> str:
    """Registers as EPIC's have to be: lanes of 32 bits, and three of state: one of 8,192 words, and a bitmap of 16 bits
    and an epoch of 8 for each slot, or, without ``state_grows``, for the first 512."""
    per_slot = slots if state_grows else 512
    index = f"bit<{slots.bit_length() - 1}>"
    fields = " ".join(f"bit<32> l{i};" for i in range(count))
    applied = "\n".join(f"lane_{i}.apply(hdr.payload.l{i}, meta.slot, meta.before);" for i in range(count))
    instances = "\n".join(f"Lane() lane_{i};" for i in range(count))
    return f"""#include <core.p4>
#include <{arch}.p4>
header bth_t {{ bit<16> connection; bit<16> slot; bit<16> bit_; bit<8> epoch; bit<8> kind; }}
header payload_t {{ {fields} }}
struct headers {{ bth_t bth; payload_t payload; }}
struct metadata {{ {index} slot; bit<32> known; bit<16> before; bit<8> epoch; }}
parser IgP(packet_in pkt, out headers hdr, out metadata meta, out ingress_intrinsic_metadata_t intr) {{
    state start {{ pkt.extract(intr); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.bth); pkt.extract(hdr.payload);
                  transition accept; }}
}}
control IgD(packet_out pkt, inout headers hdr, in metadata meta,
            in ingress_intrinsic_metadata_for_deparser_t dprsr) {{ apply {{ pkt.emit(hdr); }} }}
parser EgP(packet_in pkt, out headers hdr, out metadata meta, out egress_intrinsic_metadata_t intr) {{
    state start {{ pkt.extract(intr); transition accept; }}
}}
control Eg(inout headers hdr, inout metadata meta, in egress_intrinsic_metadata_t intr,
           in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
           inout egress_intrinsic_metadata_for_output_port_t oport) {{ apply {{}} }}
control EgD(packet_out pkt, inout headers hdr, in metadata meta,
            in egress_intrinsic_metadata_for_deparser_t dprsr) {{ apply {{ pkt.emit(hdr); }} }}
control Lane(inout bit<32> element, in {index} slot, in bit<16> before) {{
    Register<bit<32>, {index}>({slots}) partial;
    RegisterAction<bit<32>, {index}, bit<32>>(partial) aggregate = {{
        void apply(inout bit<32> held, out bit<32> result) {{
            if (before == 0) {{ held = element; }} else {{ held = held + element; }}
            result = held;
        }}
    }};
    apply {{ element = aggregate.execute(slot); }}
}}
control Known(inout headers hdr, inout metadata meta) {{
    Register<bit<32>, bit<16>>(8192) first;
    RegisterAction<bit<32>, bit<16>, bit<32>>(first) look = {{
        void apply(inout bit<32> held, out bit<32> result) {{ result = held; }}
    }};
    apply {{ meta.known = look.execute(hdr.bth.connection); }}
}}
control Arrived(inout headers hdr, inout metadata meta) {{
    Register<bit<8>, {index}>({per_slot}) epochs;
    RegisterAction<bit<8>, {index}, bit<8>>(epochs) renew = {{
        void apply(inout bit<8> held, out bit<8> result) {{ result = held; held = hdr.bth.epoch; }}
    }};
    Register<bit<16>, {index}>({per_slot}) bitmaps;
    RegisterAction<bit<16>, {index}, bit<16>>(bitmaps) mark = {{
        void apply(inout bit<16> held, out bit<16> result) {{
            result = held;
            if (meta.epoch == 1) {{ held = hdr.bth.bit_; }} else {{ held = held | hdr.bth.bit_; }}
        }}
    }};
    apply {{
        meta.epoch = renew.execute(meta.slot);
        meta.before = mark.execute(meta.slot);
    }}
}}
control Ig(inout headers hdr, inout metadata meta, in ingress_intrinsic_metadata_t intr,
    in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
    inout ingress_intrinsic_metadata_for_tm_t tm) {{
    Known() known;
    Arrived() arrived;
    {instances}
    action set_slot({index} base) {{ meta.slot = ({index})hdr.bth.slot + base; }}
    table flows {{ key = {{ hdr.bth.connection: exact; }} actions = {{ set_slot; }} size = 512; }}
    apply {{
        flows.apply();
        known.apply(hdr, meta);
        arrived.apply(hdr, meta);
        {applied}
    }}
}}
Pipeline(IgP(), Ig(), IgD(), EgP(), Eg(), EgD()) pipe;
Switch(pipe) main;
"""


SLOTS = {"128KB": 512, "512KB": 2048, "2MB": 8192, "8MB": 32768}
"""Slots of 32 lanes in Table 17's columns: two pipes hold a payload of 256 bytes, half the memory each."""
MAP_RAMS = {"128KB": 71, "512KB": 71, "2MB": 103, "8MB": 299}
"""12.33, 12.33, 17.88 and 51.91 % of 576."""


@pytest.mark.parametrize("column", SLOTS)
def test_table_17s_stateful_alus_and_map_rams(column: str) -> None:
    found = report(lanes(32, SLOTS[column]))
    assert found.rows["meter ALU"].used == 35
    assert f"{found.rows['meter ALU'].share:.2f}" == "72.92"
    assert found.rows["map RAM"].used == MAP_RAMS[column]
    # Of SRAMs, EPIC's tables have five more than its registers, the one table here four.
    assert found.rows["SRAM"].used == MAP_RAMS[column] + 4
    assert found.rows["stages"].used <= 12
    assert not found.excess
    assert not found.doubts


def test_state_that_does_not_grow_leaves_four_map_rams_of_table_17_open() -> None:
    assert [used(lanes(32, slots, state_grows=False))["map RAM"] for slots in SLOTS.values()] == [71, 71, 103, 295]


def test_hash_bits_grow_as_table_17s_do() -> None:
    """Two bits of an index more in each of ten stages: eight of lanes, two of state."""
    found = [used(lanes(32, slots))["hash bits"] for slots in SLOTS.values()]
    assert [b - a for a, b in pairwise(found)] == [20, 20, 20]


def test_registers_belong_to_the_control_that_declares_them() -> None:
    modules = report(lanes(32, 512)).modules
    assert {modules[f"Ig.lane_{i}"]["meter ALU"] for i in range(32)} == {1}
    assert modules["Ig.arrived"]["meter ALU"] == 2
    assert modules["Ig.arrived"]["map RAM"] == 4
    assert modules["Ig.known"]["map RAM"] == 3
    assert "meter ALU" not in modules["Ig"]
    assert modules["Ig"]["SRAM"] == 4
    assert modules["ingress headers"]["PHV"] == 8 * 8 + 32 * 32 - 8


def test_lanes_that_no_placement_can_hold_are_refused_with_both_numbers() -> None:
    (refusal,) = report(lanes(64, 512)).excess
    assert refusal == (
        "tna: 67 stateful ALUs need 17 stages; 12 there are."
        " Most by Ig.lane_… (64 instances) 64, Ig.arrived 2, Ig.known 1"
    )
    assert not report(lanes(64, 512, "t2na")).excess


def test_a_register_larger_than_a_stage_is_refused() -> None:
    (refusal,) = report(lanes(1, 48 * 4096, state_grows=False)).excess
    assert refusal == "tna: Ig.lane_0: Ig.lane_0.partial needs 49 map RAMs in one stage; 48 there are"
    assert not report(lanes(1, 47 * 4096, state_grows=False)).excess


# --- stages --------------------------------------------------------------------------------------

TABLES = """action set_x(bit<16> v) { meta.x = v; } action set_y(bit<32> v) { meta.y = v; }
    action set_c(bit<16> v) { hdr.h.c = v; } action take() { hdr.h.d = meta.y; }
    table by_a { key = { hdr.h.a: exact; } actions = { set_x; } size = 256; }
    table by_x { key = { meta.x: exact; } actions = { set_y; } size = 256; }
    table by_b { key = { hdr.h.b: exact; } actions = { set_x; } size = 256; }
    table by_c { key = { hdr.h.c: exact; } actions = { set_y; } size = 256; }
    table to_c { key = { hdr.h.a: exact; } actions = { set_c; } size = 256; }
    table copy { key = { hdr.h.b: exact; } actions = { take; } size = 256; }"""


@pytest.mark.parametrize(
    ("body", "stages"),
    [
        ("by_a.apply();", 1),
        ("by_a.apply(); by_x.apply();", 2),
        ("by_a.apply(); by_x.apply(); copy.apply();", 3),
        # Two writes of one field keep their order.
        ("by_a.apply(); by_b.apply();", 2),
        # What is read before it is written may be in one stage.
        ("by_c.apply(); to_c.apply();", 1),
        ("to_c.apply(); by_c.apply();", 2),
        # No packet meets both branches.
        ("if (hdr.h.b == 0) { by_a.apply(); } else { by_b.apply(); }", 1),
        # A condition is decided like a key.
        ("by_a.apply(); if (meta.x == 0) { copy.apply(); }", 2),
        ("if (by_a.apply().hit) { copy.apply(); }", 1),
        ("switch (by_a.apply().action_run) { set_x: { copy.apply(); } }", 1),
        # Slices of a field are fields.
        ("meta.y[7:0] = hdr.h.a; meta.y[15:8] = hdr.h.b;", 1),
        ("meta.y = meta.y + hdr.h.d; hdr.h.c = meta.y[15:0];", 2),
    ],
)
def test_stages_follow_dependencies(body: str, stages: int) -> None:
    assert used(ingress(body, TABLES))["stages"] == stages


@pytest.mark.parametrize(("arch", "stages"), [("tna", 3), ("t2na", 2)])
def test_what_stands_behind_a_block_of_conditions_waits_for_its_tables_on_tofino(arch: str, stages: int) -> None:
    local = f"{TABLES} action set_d(bit<32> v) {{ hdr.h.d = v; }}"
    local += " table then { key = { hdr.h.c: exact; } actions = { set_d; } size = 256; }"
    behind = "to_c.apply(); then.apply();"
    assert (
        used(ingress(f"if (hdr.h.b == 0) {{ by_a.apply(); by_x.apply(); }} {behind}", local, arch))["stages"] == stages
    )
    # What a condition has alone makes nothing wait, and neither does the other branch.
    assert used(ingress(f"if (hdr.h.b == 0) {{ by_a.apply(); }} {behind}", local, arch))["stages"] == 2
    both = f"if (hdr.h.b == 0) {{ by_a.apply(); by_x.apply(); }} else {{ {behind} }}"
    assert used(ingress(both, local, arch))["stages"] == 2


def test_a_stage_has_four_stateful_alus_and_sixteen_tables() -> None:
    four = "".join(
        f"Register<bit<32>, bit<16>>(16) r{i}; RegisterAction<bit<32>, bit<16>, bit<32>>(r{i}) a{i} ="
        f" {{ void apply(inout bit<32> v) {{ v = v + 1; }} }};"
        for i in range(5)
    )
    calls = [f"a{i}.execute(hdr.h.c);" for i in range(5)]
    assert used(ingress("".join(calls[:4]), four))["stages"] == 1
    assert used(ingress("".join(calls), four))["stages"] == 2
    tables = "".join(
        f"table t{i} {{ key = {{ hdr.h.a: exact; }} actions = {{ NoAction; }} size = 256; }}" for i in range(17)
    )
    assert used(ingress("".join(f"t{i}.apply();" for i in range(17)), tables))["stages"] == 2


def test_a_large_table_goes_on_in_the_next_stage_and_what_depends_on_it_waits() -> None:
    local = """action set_x(bit<16> v) { meta.x = v; } action set_y(bit<32> v) { meta.y = v; }
        table big { key = { hdr.h.d: ternary; } actions = { set_x; } size = 20480; }
        table small { key = { meta.x: exact; } actions = { set_y; } size = 256; }"""
    found = used(ingress("big.apply(); small.apply();", local))
    assert found["TCAM"] == 40
    assert found["stages"] == 3


def test_a_register_that_two_branches_access_is_one() -> None:
    local = """Register<bit<32>, bit<16>>(16) r;
        RegisterAction<bit<32>, bit<16>, bit<32>>(r) a = { void apply(inout bit<32> v) { v = v + 1; } };
        RegisterAction<bit<32>, bit<16>, bit<32>>(r) b = { void apply(inout bit<32> v) { v = 0; } };"""
    found = report(ingress("if (hdr.h.a == 0) { a.execute(hdr.h.c); } else { b.execute(hdr.h.c); }", local))
    assert found.rows["meter ALU"].used == 1
    assert found.rows["map RAM"].used == 2
    assert found.rows["stages"].used == 1
    # The condition's, and one by which the second of the two runs.
    assert found.rows["gateways"].used == 2


def test_a_second_access_that_needs_the_first_ones_result_cannot_be() -> None:
    local = """Register<bit<32>, bit<16>>(16) r; RegisterAction<bit<32>, bit<16>, bit<32>>(r) a = {
        void apply(inout bit<32> v, out bit<32> old) { old = v; } };"""
    found = report(
        ingress("meta.y = a.execute(hdr.h.c); hdr.h.d = meta.y; hdr.h.d = a.execute((bit<16>)meta.y);", local)
    )
    assert len(found.excess) == 1
    assert "both access one memory" in found.excess[0]


def test_counters_meters_and_selectors() -> None:
    local = """Counter<bit<64>, bit<16>>(4096, CounterType_t.PACKETS) c; Meter<bit<16>>(2048, MeterType_t.BYTES) m;
        ActionProfile(512) members; Hash<bit<16>>(HashAlgorithm_t.CRC16) h;
        ActionSelector(members, h, SelectorMode_t.FAIR, 64, 16) selector;
        action send(bit<48> v) { meta.x = (bit<16>)v; }
        table t { key = { hdr.h.a: exact; hdr.h.d: selector; } actions = { send; } implementation = selector;
                  size = 64; }"""
    found = used(ingress("c.count(hdr.h.c); m.execute(hdr.h.c); t.apply();", local))
    assert found["statistics ALU"] == 1
    assert found["meter ALU"] == 2
    # 2 + 1 of the counter, 2 + 1 of the meter, 2 of the selector.
    assert found["map RAM"] == 8


def test_actions_share_words_of_instructions_if_they_write_no_field_in_common() -> None:
    local = """action one(bit<8> v) { hdr.h.a = v; } action two(bit<8> v) { hdr.h.b = v; }
        action three(bit<8> v) { hdr.h.a = v; }
        table t { key = { hdr.h.c: exact; } actions = { one; two; three; NoAction; } default_action = NoAction; }"""
    # The first word holds what does nothing and one more action, so that the third action stands in another one.
    assert used(ingress("t.apply();", local))["VLIW"] == 2
    assert used(ingress("t.apply();", local.replace("hdr.h.b = v", "hdr.h.a = v")))["VLIW"] == 3


def test_only_actions_that_may_have_run_make_a_table_wait() -> None:
    local = """action set_x(bit<16> v) { meta.x = v; }
        table first { key = { hdr.h.a: exact; } actions = { set_x; NoAction; } const default_action = NoAction; }
        table then { key = { hdr.h.b: exact; } actions = { set_x; } size = 8; }"""
    assert used(ingress("switch (first.apply().action_run) { NoAction: { then.apply(); } }", local))["stages"] == 1
    assert used(ingress("switch (first.apply().action_run) { set_x: { then.apply(); } }", local))["stages"] == 2
    assert used(ingress("if (first.apply().miss) { then.apply(); }", local))["stages"] == 1
    assert used(ingress("if (first.apply().hit) { then.apply(); }", local))["stages"] == 2


def test_what_stands_beside_an_exact_table_has_room_for_all_that_it_has() -> None:
    local = """DirectCounter<bit<32>>(CounterType_t.PACKETS_AND_BYTES) c;
        action put(bit<32> y, bit<32> d) { meta.y = y; hdr.h.d = d; c.count(); }
        table t { key = { hdr.h.d: exact; } actions = { put; } size = 512; counters = c; }"""
    found = used(ingress("t.apply();", local))
    # Four RAMs hold 4,096 entries: 32 bits of action data for each, the others beside the key, and two counters a word.
    assert found["map RAM"] == 2 + 1
    assert found["SRAM"] == 4 + 1 + 3


def test_a_quarter_of_a_tables_entries_may_have_a_range() -> None:
    local = """action put(bit<32> y) { meta.y = y; }
        table t { key = { hdr.h.c: range; } actions = { put; } size = 1024; }"""
    assert used(ingress("t.apply();", local))["TCAM"] == (1024 + 6 * 256) // 512
    few = local.replace("table t", "@entries_with_ranges(0x40) table t")
    assert used(ingress("t.apply();", few))["TCAM"] == 3


FEW = """action put() { meta.x = 1; } action drop() { meta.x = 2; }
    table t { key = { hdr.h.a: exact; } actions = { put; drop; NoAction; } const default_action = NoAction;
              const entries = { 1: put(); 2: drop(); } size = 2; }"""


def test_a_gateway_of_tofino_2_holds_a_few_constant_entries() -> None:
    found = report(ingress("t.apply();", FEW, "t2na")).rows
    assert (found["gateways"].used, found["SRAM"].used, found["hash bits"].used) == (1, 0, 0)
    # Of a table with a condition, the gateway is the condition's.
    guarded = report(ingress("if (hdr.h.b == 1) { t.apply(); }", FEW, "t2na")).rows
    assert (guarded["gateways"].used, guarded["SRAM"].used, guarded["hash bits"].used) == (1, 1, 10)
    # Tofino's gateways hold one entry.
    assert used(ingress("t.apply();", FEW))["SRAM"] == 1


def test_what_was_copied_and_what_was_decided_before_makes_nothing_wait() -> None:
    local = """action set_y(bit<32> v) { meta.y = v; }
        table by_x { key = { meta.x: exact; } actions = { set_y; } size = 256; }"""
    # p4c matches the field that was copied.
    assert used(ingress("meta.x = hdr.h.c; by_x.apply();", local))["stages"] == 1
    assert used(ingress("meta.x = hdr.h.c; hdr.h.c = 5; by_x.apply();", local))["stages"] == 2
    # The condition is decided once, before what stands in it changes what it reads.
    body = "if (hdr.h.a == 0) { hdr.h.a = hdr.h.b; meta.x = meta.x + hdr.h.c; }"
    assert used(ingress(body))["stages"] == 1
    # PHV starts with zeros.
    assert used(ingress("bit<32> y = 0; if (hdr.h.a == 0) { y = hdr.h.d; } meta.y = y + 1;"))["logical tables"] == 2


def test_constants_that_no_instruction_holds_are_action_data() -> None:
    local = "action put() { hdr.h.d = %s; meta.y = %s; }"
    assert used(ingress("put();", local % ("0xAAAAAAAA", "0xBBBBBBBB")))["SRAM"] == 1
    assert used(ingress("put();", local % ("0x1AAAAA", "0x1BBBBB")))["SRAM"] == 0


def test_tables_with_one_profile_stand_in_one_stage() -> None:
    local = """ActionProfile(512) members; action send(bit<48> v) { meta.x = (bit<16>)v; }
        table t { key = { hdr.h.d: exact; } actions = { send; } implementation = members; size = 64; }
        table u { key = { meta.y: exact; } actions = { send; } implementation = members; size = 64; }"""
    found = used(ingress("if (hdr.h.a == 1) { t.apply(); } else { u.apply(); }", local))
    assert (found["SRAM"], found["stages"], found["VLIW"]) == (4 + 4 + 1, 1, 1)


# --- PHV, chips ----------------------------------------------------------------------------------


def test_only_what_controls_touch_takes_containers() -> None:
    # A mirror's session and its number, flags of headers in both gresses, and egress's port.
    own = 16 + 8 + 8 + 8 + 16
    assert used(ingress("meta.x = hdr.h.c;"))["PHV"] == own + 16 + 16
    assert used(ingress("meta.y = hdr.h.d;"))["PHV"] == own + 32 + 32
    # A flag of metadata takes a container; of a header's field only the bytes count that are touched.
    assert used(ingress("meta.flag = hdr.h.isValid();"))["PHV"] == own + 8
    assert used(ingress("hdr.h.a = hdr.h.d[7:0];"))["PHV"] == own + 8 + 8


def test_tna_is_for_both_chips() -> None:
    text = ingress("meta.x = hdr.h.c;")
    assert chip_of(compiled(text, "__TARGET_TOFINO__=1").program) is TOFINO
    assert chip_of(compiled(text, "__TARGET_TOFINO__=2").program) is TOFINO2
    assert chip_of(compiled(ingress("", arch="t2na")).program) is TOFINO2
    assert chip_of(compiled(text).program) is TOFINO
    assert report(text, "__TARGET_TOFINO__=2").rows["stages"].available == 20


def test_each_pipe_has_a_report() -> None:
    two = program(
        "control Ig(inout headers hdr, inout metadata meta, in ingress_intrinsic_metadata_t i,"
        " in ingress_intrinsic_metadata_from_parser_t p, inout ingress_intrinsic_metadata_for_deparser_t d,"
        " inout ingress_intrinsic_metadata_for_tm_t t) { apply { meta.x = hdr.h.c; } }",
        tail="\nPipeline(IgP(), Ig(), IgD(), EgP(), Eg(), EgD()) left;\n"
        "Pipeline(IgP(), Ig(), IgD(), EgP(), Eg(), EgD()) right;\nSwitch(left, right) main;\n",
    )
    assert [found.pipe for found in estimate(compiled(two).program)] == ["left", "right"]


# --- programs of others --------------------------------------------------------------------------


def test_all_of_p4cs_samples_have_a_report() -> None:
    data = os.environ.get("P4C_TESTDATA")
    if not data:
        pytest.skip("P4C_TESTDATA names no checkout")
    root = (Path(data) / "../backends/p4tools/modules/testgen/targets/tofino/test/p4-programs").resolve()
    paths = sorted([*root.glob("*.p4"), *root.glob("tofino?_only/*.p4")])
    assert len(paths) == 54
    targets = {"tofino1_only": (1,), "tofino2_only": (2,)}
    count = 0
    for path in paths:
        for target in targets.get(path.parent.name, (1, 2)):
            found = compile_file(path, [f"__TARGET_TOFINO__={target}"], [root]).program
            for one in estimate(found):
                count += 1
                assert one.excess == ()
                assert one.rows["stages"].available == (12 if target == 1 else 20)
                assert bool(found.tables) <= bool(one.rows["logical tables"].used)
    assert count >= 101
