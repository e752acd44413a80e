"""P4Info of TNA programs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tna_programs import PARAMS, TAIL, compiled, program

from p4gen.p4.compile import compile_file
from p4gen.protos import p4info

LOCAL = """
    Counter<bit<64>, PortId_t>(512, CounterType_t.PACKETS_AND_BYTES) ports;
    DirectCounter<bit<32>>(CounterType_t.BYTES) hits; DirectMeter(MeterType_t.PACKETS) rate;
    DirectRegister<bit<8>>() own;
    Meter<bit<8>>(16, MeterType_t.BYTES) shaper; Register<pair, bit<16>>(1024) pairs; RegisterParam<bit<8>>(1) unseen;
    Hash<bit<14>>(HashAlgorithm_t.CRC16) choice; ActionProfile(20000) example_action_selector_ap;
    ActionSelector(example_action_selector_ap, choice, SelectorMode_t.FAIR, 200, 100) selector;
    ActionSelector(64, choice, SelectorMode_t.FAIR) lone; Alpm(1024) algo;
    action hit(PortId_t port) { tm.ucast_egress_port = port; ports.count(port); hits.count();
        hdr.h.a = rate.execute() | shaper.execute(0); meta.y = pairs.read(3).first; }
    action miss() { }
    table forward {
        key = { hdr.h.d : ternary; hdr.h.c : selector; } actions = { hit; miss; } default_action = miss;
        counters = hits; meters = rate; registers = own; implementation = selector; size = 512; idle_timeout = true; }
    table spread {
        key = { hdr.h.c : exact; hdr.h.a : selector; } actions = { miss; } implementation = lone; }
    table routes { key = { hdr.h.d : lpm; } actions = { miss; } implementation = algo; }
"""
DEPARSER = """control News(packet_out pkt, inout headers hdr, in metadata meta,
    in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Digest<pair>(1) news;
    apply { if (dprsr.digest_type == 1) { news.pack({ hdr.h.d, meta.y }); } pkt.emit(hdr); }
}
"""


@pytest.fixture(scope="module")
def info() -> p4info.P4Info:
    body = "forward.apply(); spread.apply(); routes.apply();"
    text = f"{DEPARSER}control SwitchIngress({PARAMS}) {{ {LOCAL} apply {{ {body} }} }}"
    tail = TAIL.replace("Ig()", "SwitchIngress()").replace("IgD()", "News()")
    return compiled(program(text, tail=tail)).p4info


def test_names_have_no_pipe_and_ids_are_those_of_intels_compiler(info: p4info.P4Info) -> None:
    """The numbers are from a bf-rt.json that was made by it; a number depends on the name and the pipe alone."""
    assert info.pkg_info.arch == "tna"
    (forward, *_), (profile, *_) = info.tables, info.action_profiles
    assert (forward.preamble.name, forward.preamble.id) == ("SwitchIngress.forward", 0x02 << 24 | 4328115)
    assert (profile.preamble.name, profile.preamble.id) == (
        "SwitchIngress.example_action_selector_ap", 0x11 << 24 | 10579466)  # fmt: skip
    actions = {a.preamble.name: a.preamble.id for a in info.actions}
    assert actions["SwitchIngress.hit"] == 32848556
    assert actions["SwitchIngress.miss"] == 17988458


def test_tables_refer_to_profiles_and_to_their_own_counters_and_meters(info: p4info.P4Info) -> None:
    forward, spread, routes = info.tables
    profile, lone = info.action_profiles
    assert forward.implementation_id == profile.preamble.id
    assert spread.implementation_id == lone.preamble.id
    assert routes.implementation_id == 0
    assert (profile.with_selector, profile.size, profile.max_group_size) == (True, 20000, 200)
    assert (lone.with_selector, lone.size, lone.max_group_size) == (True, 64, 120)
    assert list(profile.table_ids) == [forward.preamble.id]
    (counter,), (meter,) = info.direct_counters, info.direct_meters
    assert list(forward.direct_resource_ids) == [counter.preamble.id, meter.preamble.id]
    assert counter.direct_table_id == meter.direct_table_id == forward.preamble.id
    assert counter.spec.unit == p4info.CounterSpec.BYTES
    assert meter.spec.unit == p4info.MeterSpec.PACKETS
    assert forward.idle_timeout_behavior == p4info.Table.NOTIFY_CONTROL
    assert [f.name for f in forward.match_fields] == ["hdr.h.d"]


def test_counters_meters_registers_and_digests(info: p4info.P4Info) -> None:
    (counter,), (meter,), (register,), (digest,) = info.counters, info.meters, info.registers, info.digests
    assert (counter.preamble.alias, counter.size, counter.spec.unit) == ("ports", 512, p4info.CounterSpec.BOTH)
    assert (meter.preamble.alias, meter.size, meter.spec.unit) == ("shaper", 16, p4info.MeterSpec.BYTES)
    assert (register.preamble.alias, register.size, register.type_spec.struct.name) == ("pairs", 1024, "pair")
    assert (digest.preamble.name, digest.type_spec.struct.name) == ("News.news", "pair")
    assert [m.name for m in info.type_info.structs["pair"].members] == ["first", "second"]


def test_names_of_several_pipes_keep_them() -> None:
    text = f"control Ig({PARAMS}) {{ Meter<bit<8>>(4, MeterType_t.BYTES) m; apply {{ hdr.h.a = m.execute(0); }} }}"
    one = "Pipeline(IgP(), Ig(), IgD(), EgP(), Eg(), EgD())"
    found = compiled(program(text, tail=f"\n{one} left;\n{one} right;\nSwitch(left, right) main;\n")).p4info
    assert [m.preamble.name for m in found.meters] == ["left.Ig.m", "right.Ig.m"]
    assert len({m.preamble.id for m in found.meters}) == 2


@pytest.mark.parametrize("name", ["tna_action_profile", "tna_action_selector", "tna_exact_match"])
def test_ids_agree_with_intels_of_open_p4studios_programs(name: str) -> None:
    if "P4STUDIO" not in os.environ:
        pytest.skip("P4STUDIO names no checkout")
    root = Path(os.environ["P4STUDIO"], "pkgsrc")
    programs = root / "p4-examples" / "p4_16_programs"
    info = compile_file(programs / name / f"{name}.p4", ["__TARGET_TOFINO__=1"], [programs]).p4info
    made = root / "bf-drivers/src/tdi_tofino/tests/tofino_context_json_files" / name / "bf-rt.json"
    # BF-Runtime numbers kinds in another way.
    theirs = {t["name"]: t["id"] & 0xFFFFFF for t in json.loads(made.read_text(encoding="utf-8"))["tables"]}
    ours = {f"pipe.{x.preamble.name}": x.preamble.id & 0xFFFFFF for x in (*info.tables, *info.action_profiles)}
    assert ours
    assert ours.items() <= theirs.items()
