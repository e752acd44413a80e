"""STF commands for what only Tofino has."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4gen.errors import InputError
from p4gen.p4.compile import compile_file, compile_text
from p4gen.stf import StfError, StfResult, parse_text, run
from p4gen.stf.engines import ENGINES

from . import programs
from .programs import IG_PARSER, text

ALONE = (
    "test_a_global", "test_a_lags", "test_one_node_of_an_ecmp", "test_the_direction", "test_low_pass", "test_early",
    "test_a_recirculated", "test_the_deparser",
)  # fmt: skip
"""Tests of what only the interpreter has."""
STF = Path(__file__).parents[2] / "stf"
SEND = "tm.ucast_egress_port = 3;"
HASHED = """tm.mcast_grp_a = 1; tm.rid = hdr.h.c; tm.level1_exclusion_id = (bit<16>)hdr.h.a;
    tm.level2_exclusion_id = (bit<9>)hdr.h.b; tm.level1_mcast_hash = hdr.h.d[28:16];
    tm.level2_mcast_hash = hdr.h.d[12:0];"""
NODES = """mc_mgrp_create 1
mc_node_create 1 5 6 = one
mc_node_create 2 7 = two
mc_node_associate 1 $one
mc_node_associate 1 $two
"""


@pytest.fixture(autouse=True)
def refused(request: pytest.FixtureRequest) -> None:
    """The engine jit says of the former that it does not have it."""
    if programs.ENGINE == "jit" and request.node.name.startswith(ALONE):
        params = {name: value for name, value in request.node.callspec.params.items() if name != "engine"}
        with pytest.raises(InputError, match=r"the engine jit does not have it|is not supported by the behavioural"):
            request.node.obj(**params)
        pytest.skip("refused by jit")


def outcome(source: str, script: str) -> StfResult:
    packet = "buffer:0x0102030405060708090a"
    return run(compile_text(source, "t.p4", ()).program, parse_text(script.replace("BUFFER", packet), "t.stf"),
               engine=ENGINES[programs.ENGINE])  # fmt: skip


def ports(script: str, *packets: str, arch: str = "tna") -> list[list[int]]:
    """The ports of each packet's copies after a script."""
    found = outcome(text(HASHED, arch=arch), script + "".join(f"packet 1 {packet}\n" for packet in packets))
    lines = [output.cause.line for output in found.outputs]
    first = len(script.splitlines()) + 1
    return [
        [output.port for output, line in zip(found.outputs, lines, strict=True) if line == first + at]
        for at in range(len(packets))
    ]


def refusal(source: str, script: str) -> str:
    with pytest.raises(StfError) as caught:
        outcome(source, script)
    (diagnostic,) = caught.value.diagnostics
    return f"{diagnostic.where}: {diagnostic.message}"


def test_nodes_are_left_out_by_exclusion_ids_of_both_levels() -> None:
    script = NODES + "mc_node_l1_xid 1 $two 9\nmc_prune 4 5 7\n"
    assert ports(script, "00000000 00000000", "09000000 00000000", "00040001 00000000", "00040002 00000000") == [
        [5, 6, 7], [5, 6], [6, 7], [5, 6],
    ]  # fmt: skip


def test_a_global_replication_id_excludes_ports_of_all_nodes() -> None:
    assert ports(NODES + "mc_prune 4 5 7\nmc_global_rid 77\n", "0004004d 00000000") == [[6]]


@pytest.mark.parametrize(("arch", "found"), [("tna", [15, 16, 17]), ("t2na", [16, 15, 15])])
def test_a_lags_member_is_chosen_by_the_second_hash(arch: str, found: list[int]) -> None:
    script = "mc_mgrp_create 1\nmc_node_create 1 8 = n\nmc_node_associate 1 $n\nmc_node_lags $n 3\n"
    script += "mc_set_lag_membership 3 15 16 17\n"
    sent = ("00000000 00000000", "00000000 00000001", "00000000 00000002")
    assert ports(script, *sent, arch=arch) == [[8, port] for port in found]
    assert ports(script + "port_down 17\n", sent[2]) == [[8, 15]]


def test_one_node_of_an_ecmp_is_chosen_by_the_first_hash() -> None:
    script = NODES.replace("mc_node_associate 1 $one\nmc_node_associate 1 $two\n", "") + """mc_ecmp_create = e
mc_ecmp_add $e $one
mc_ecmp_add $e $two
mc_ecmp_associate 1 $e 9
"""  # fmt: skip
    sent = ("00000000 00000000", "00000000 00010000", "00000000 00030000", "09000000 00000000")
    assert ports(script, *sent) == [[5, 6], [7], [7], []]


def test_the_direction_of_a_mirror_and_the_cpus_port() -> None:
    source = text(f"{SEND} tm.copy_to_cpu = 1; dprsr.mirror_type = 1; meta.session = 2;",
                  deparser="mirror.emit(meta.session); pkt.emit(hdr);", deparser_local="Mirror(1) mirror;")  # fmt: skip
    packet = "packet 1 00000000 00000000\n"
    script = f"cpu_port 20\nmirroring_add 2 9\n{packet}expect 9\nmirroring_direction 2 egress\n{packet}"
    script += "expect 3\nexpect 3\nexpect 20\nexpect 20\n"
    assert outcome(source, script).failures == ()


def test_port_metadata_parameters_and_fields_of_registers() -> None:
    parser = IG_PARSER.replace("pkt.advance(PORT_METADATA_SIZE);", "pair p = port_metadata_unpack<pair>(pkt);"
                               " meta.y = p.second;")  # fmt: skip
    local = """RegisterParam<bit<32>>(10) step; Register<pair, bit<16>>(2) reg;
        RegisterAction<pair, bit<16>, bit<32>>(reg) add = {
            void apply(inout pair value, out bit<32> rv) {
                value.first = value.first + step.read(); value.second = value.second + meta.y;
                rv = value.second; } };"""
    script = """port_metadata 1 0x0000000000000005
register_param step 7
register_write reg.second 1 3
packet 1 00000000 00000000
expect 3 00000000 00000008
check_register reg.first(1) == 7
check_register Ig.reg.second(1) == 8
check_register reg(1) == 0x0000000700000008
register_read reg.first 1
"""
    found = outcome(text(f"{SEND} hdr.h.d = add.execute(1);", local, ig_parser=parser), script)
    assert (found.failures, found.notes) == ((), ("reg.first[1] = 7",))


def test_low_pass_filters_follow_their_input() -> None:
    local = "Lpf<bit<32>, bit<8>>(4) low;"
    source = text(f"{SEND} hdr.h.d = low.execute(hdr.h.d, hdr.h.a);", local)
    script = """packet 1 00000000 00000064
expect 3 00000000 00000064
lpf_set low sample 1000000000 2000000000 1 2
packet 1 02000000 000003e8
expect 3 02000000 00000000
wait 1
packet 1 02000000 000003e8
expect 3 02000000 0000013c
wait 2
packet 1 02000000 00000000
expect 3 02000000 00000074
lpf_set low rate 1000000000 1000000000 0
packet 1 01000000 00000064
packet 1 01000000 00000064
expect 3 01000000 00000064
expect 3 01000000 000000c8
wait 1
packet 1 01000000 00000000
expect 3 01000000 0000004a
"""
    assert outcome(source, script).failures == ()
    assert refusal(source, "lpf_set low rising 1 1 0\n") == "t.stf:1:1: a filter's type rising: it is rate, sample"
    assert refusal(source, "wred_set low 0 1 2 100\n") == "t.stf:1:1: Ig.low is a Lpf, which has other parameters"
    assert refusal(source, "lpf_set low rate 1 1 0 4\n") == "t.stf:1:1: Ig.low: index 4, it has 4 elements"


def test_early_detection_drops_between_its_thresholds_by_chance() -> None:
    source = text(f"{SEND} hdr.h.b = red.execute(hdr.h.d, hdr.h.a);", "Wred<bit<32>, bit<8>>(4, 1, 2) red;")
    script = "packet 1 00000000 00ffffff\nexpect 3 00020000 00ffffff\nwred_set red 0 100 200 50\n"
    for depth, mark in (("00000063", "02"), ("000000c8", "01")):
        script += f"packet 1 00000000 {depth}\nexpect 3 00{mark}0000 {depth}\n"
    assert outcome(source, script).failures == ()
    many = outcome(source, "wred_set red 0 0 200 100\n" + "packet 1 00000000 00000064\n" * 200)
    dropped = sum(output.data[1] == 1 for output in many.outputs)
    assert 60 < dropped < 140


TIMER = """parser IgP(packet_in pkt, out headers hdr, out metadata meta, out ingress_intrinsic_metadata_t intr) {
    state start { pkt.extract(intr); pkt.advance(PORT_METADATA_SIZE);
        transition select(intr.ingress_port) { GENERATOR &&& 0x7f: made; default: plain; } }
    state made { transition select(pkt.lookahead<bit<8>>()) { 0xFF &&& 0xFF: plain; default: tagged; } }
    state tagged { pkt.extract(hdr.tag); transition plain; }
    state plain { pkt.extract(hdr.h); transition accept; }
}"""


def test_applications_of_the_packet_generator_start_by_time_and_are_told_of() -> None:
    source = text("if (hdr.tag.isValid()) { tm.ucast_egress_port = 3; }",
                  ig_parser=TIMER.replace("GENERATOR", "68"))  # fmt: skip
    script = """pktgen_app_cfg 2 trigger_timer_periodic(pipe:1, timer_nanosec:1000000, packets_per_batch_cfg:1, BUFFER)
wait 0.0015
pktgen_app_read 2 1
pktgen_app_disable 2 1
wait 1
"""
    found = outcome(source, script)
    assert found.notes == ("pktgen application 2 of pipe 1: 1 triggers, 1 batches, 2 packets",)
    assert len(found.outputs) == 2
    found = outcome(source, """pktgen_app_cfg 2 trigger_timer_one_shot(timer_nanosec:5000, batch_count_cfg:1, BUFFER)
expect 3 0200 0000 0000 0102 0304 0506 0708 090a $
expect 3 0200 0001 0000 0102 0304 0506 0708 090a $
wait 1
""")  # fmt: skip
    assert found.failures == ()
    assert {output.cause.line for output in found.outputs} == {4}


def test_a_port_that_goes_down_starts_an_application_once_until_it_is_armed() -> None:
    source = text(SEND, ig_parser=TIMER.replace("GENERATOR", "68"))
    made = "expect 3 0100 0009 0000 0102 0304 0506 0708 090a $\n"
    script = f"""pktgen_app_cfg 1 trigger_port_down(BUFFER)
port_down 9
{made}port_up 9
port_down 9
port_up 9
pktgen_clear_port_down 9
port_down 9
{made}"""
    assert outcome(source, script).failures == ()


def test_a_recirculated_packet_starts_an_application_of_its_pipe() -> None:
    body = (
        "tm.ucast_egress_port = 68; if (hdr.tag.isValid() || hdr.h.b == 1) { tm.ucast_egress_port = 3; } hdr.h.b = 1;"
    )
    source = text(body, ig_parser=TIMER.replace("GENERATOR", "68"))
    script = """pktgen_app_cfg 3 trigger_recirc_pattern(pattern_value:0xff010002, pattern_mask:0xffff00ff, BUFFER)
packet 1 ff00ab02 00000000
expect 3 ff01ab02 00000000
expect 3 03 01ab02 0000 0102 0301 0506 0708090a $
packet 1 ff00ab03 00000000
expect 3 ff01ab03 00000000
pktgen_app_read 3
pktgen_app_read 4 1
"""
    start, _, rest = script.partition("\n")
    found = outcome(source, f"{start}\n{start.replace('cfg 3', 'cfg 4').replace('n(p', 'n(pipe:1, p')}\n{rest}")
    assert found.failures == ()
    assert [note.partition(": ")[2] for note in found.notes] == [
        "1 triggers, 1 batches, 1 packets", "0 triggers, 0 batches, 0 packets",
    ]  # fmt: skip


def test_the_deparser_starts_an_application_with_a_packet_of_the_buffer() -> None:
    body = """tm.ucast_egress_port = 3;
        if (!hdr.tag.isValid()) { dprsr.pktgen = 1; dprsr.pktgen_address = 2; dprsr.pktgen_length = 4; }"""
    source = text(body, ig_parser=TIMER.replace("GENERATOR", "6"), arch="t2na", deparser_local="Pktgen() start;",
                  deparser="if (dprsr.pktgen == 1) { start.emit(hdr.h.d); } pkt.emit(hdr);")  # fmt: skip
    script = """pktgen_pkt_buffer 32 0x01020304
pktgen_app_cfg 3 trigger_dprsr(pattern_value:0x2a000000000000000000000000, pattern_mask:0xff000000000000000000000000)
packet 1 00000000 0000002a
expect 3 00000000 0000002a $
expect 3 03 00 0000 0000 0000002a00000000 0000000000000000 01020304 $
packet 1 00000000 0000002b
expect 3 00000000 0000002b $
"""
    assert outcome(source, script).failures == ()
    line = "t.stf:1:1: packet generator, application 3: only Tofino 2 has applications that the deparser starts"
    assert refusal(text(SEND), "pktgen_app_cfg 3 trigger_dprsr()\n") == line  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pktgen_app_cfg 1 trigger_never()", "18: trigger_never: an application is trigger_timer_one_shot, trigger_t"),
        ("pktgen_app_cfg 1 trigger_port_down(port:1)", "18: port: a field is pipe, timer_nanosec, batch_count_cfg, "),
        ("pktgen_app_cfg 1 trigger_port_down(buffer:12)", "43: bytes are written as 0x and an even number of digits"),
        ("pktgen_pkt_buffer 16383 0x1234", "1: packet generator: the buffer has 16384 bytes"),
        ("mc_ecmp_add 0 0", "1: multicast node 0: it has not been created"),
        ("mc_node_l1_xid 1 0 5", "1: multicast group 1: it has not been created"),
        ("mirroring_direction 1 egress", "1: mirror session 1: it is not configured"),
        ("mc_set_lag_membership 255 1", "1: multicast LAG 255: LAGs are numbered from 0 to 254"),
        ("port_loopback 3 maybe", "1: loopback of port 3 maybe: it is on, off"),
        ("register_param step", "20: expected value, found the end of the line"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(line: str, message: str) -> None:
    assert refusal(text(SEND), line + "\n").startswith(f"t.stf:1:{message}")


def test_switches_of_other_architectures_do_not_have_these_commands() -> None:
    with pytest.raises(StfError) as caught:
        run(compile_file(STF / "count.p4").program, parse_text("\nport_metadata 1 2\n", "t.stf"))
    assert str(caught.value) == "t.stf:2:1: error: switches of v1model have no port_metadata"
