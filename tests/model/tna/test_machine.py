"""What happens around a program's blocks: drops, groups, mirrors, resubmission, recirculation, pipes, the generator."""

from __future__ import annotations

import pytest

from p4gen.chips.tna.generator import Application
from p4gen.chips.tna.replication import MirrorSession, NodeReplica
from p4gen.errors import InputError
from p4gen.model import ControlError, Trace
from p4gen.model.entries import CloneSession, MulticastGroup, Replica

from .programs import IG_PARSER, frame, machine, switch, text

SEND = "tm.ucast_egress_port = 3;"

# --- drops -------------------------------------------------------------------------------------


def test_what_the_program_does_not_assign_counts_for_nothing() -> None:
    trace = Trace()
    assert switch(text("")).process(1, frame(), trace) == []
    assert trace.of("drop")[0].data["where"] == "ingress"
    assert switch(text("tm.ucast_egress_port = 0;")).process(1, frame()) == [(0, frame())]
    assert switch(text(f"{SEND} invalidate(tm.ucast_egress_port);")).process(1, frame()) == []


@pytest.mark.parametrize("direction", ["out", "inout"])
def test_a_field_that_a_control_may_assign_counts_for_nothing_where_it_does_not(direction: str) -> None:
    other = (
        IG_PARSER
        + f"""
control Choose(in bit<8> a, {direction} PortId_t port) {{ apply {{ if (a == 1) {{ port = 3; }} }} }}"""
    )
    model = switch(text("Choose.apply(hdr.h.a, tm.ucast_egress_port);", ig_parser=other))
    assert model.process(1, frame(1)) == [(3, frame(1))]
    assert model.process(1, frame(2)) == []


def test_a_struct_for_the_traffic_manager_may_be_an_out_parameter() -> None:
    other = (
        IG_PARSER
        + """
control Choose(in bit<8> a, out ingress_intrinsic_metadata_for_tm_t tm) {
    apply { if (a == 1) { tm.ucast_egress_port = 3; } } }"""
    )
    model = switch(text("Choose.apply(hdr.h.a, tm);", ig_parser=other))
    assert model.process(1, frame(1)) == [(3, frame(1))]
    assert model.process(1, frame(2)) == []


def test_an_assignment_counts_even_if_its_value_was_not_assigned() -> None:
    body = "bit<9> port = tm.ucast_egress_port; if (hdr.h.a == 1) { tm.ucast_egress_port = port; }"
    model = switch(text(body))
    assert model.process(1, frame(1)) == [(0, frame(1))]
    assert model.process(1, frame(2)) == []


def test_fields_are_validated_with_their_header_or_by_an_assignment() -> None:
    body = "bool before = is_validated(tm.ucast_egress_port); tm.ucast_egress_port = 3;"
    body += " if (!before && is_validated(tm.ucast_egress_port) && is_validated(hdr.h.a) && !is_validated(hdr.tag.e)) {"
    assert switch(text(body + " hdr.h.b = 1; }")).process(1, frame()) == [(3, frame(0, 1))]


def test_port_511_is_no_port() -> None:
    assert switch(text("tm.ucast_egress_port = 511;")).process(1, frame()) == []


def test_drop_ctl_of_either_gress() -> None:
    model = switch(text(f"{SEND} dprsr.drop_ctl = hdr.h.a[2:0];", egress="dprsr.drop_ctl = hdr.h.b[2:0];"))
    assert model.process(1, frame()) == [(3, frame())]
    assert model.process(1, frame(1)) == []
    assert model.process(1, frame(0, 1)) == []
    assert model.process(1, frame(2, 6)) == [(3, frame(2, 6))]


def test_the_copy_to_the_cpu_goes_beside_unicast_and_by_its_own_bit() -> None:
    body = f"{SEND} tm.copy_to_cpu = 1; dprsr.drop_ctl = hdr.h.a[2:0];"
    model = switch(text(body))
    assert model.process(1, frame()) == [(3, frame()), (64, frame())]
    assert model.process(1, frame(1)) == [(64, frame(1))]
    assert model.process(1, frame(2)) == [(3, frame(2))]
    assert switch(text(body, arch="t2na")).process(1, frame()) == [(3, frame()), (2, frame())]


def test_ingress_drops_packets_with_parser_errors_that_its_control_does_not_read() -> None:
    assert switch(text(SEND)).process(1, b"short") == []
    read = text(f"{SEND} if (prsr.parser_err == PARSER_ERROR_PARTIAL_HDR) {{ tm.ucast_egress_port = 4; }}")
    assert switch(read).process(1, b"short") == [(4, b"short")]
    assert switch(read).process(1, frame()) == [(3, frame())]


def test_a_packet_that_no_case_matches_is_dropped_and_a_rejected_one_goes_on() -> None:
    parser = IG_PARSER.replace("extract(hdr.h); transition accept;", "extract(hdr.h); transition select(hdr.h.a) {"
                               " 1: accept; 2: reject; }")  # fmt: skip
    model = switch(text(f"{SEND} hdr.h.c = prsr.parser_err;", ig_parser=parser))
    assert model.process(1, frame(1)) == [(3, frame(1))]
    assert model.process(1, frame(2)) == [(3, frame(2))]
    assert model.process(1, frame(3)) == []


def test_egress_drops_no_packet_for_a_parser_error() -> None:
    model = switch(text(f"{SEND} hdr.h.setInvalid();", egress="if (prsr.parser_err != 0) { hdr.tag.setValid();"
                        " hdr.tag.kind = (bit<8>)prsr.parser_err; }"))  # fmt: skip
    assert model.process(1, frame(rest=b"xyz")) == [(3, b"\2" + bytes(7) + b"xyz")]


# --- intrinsic metadata -------------------------------------------------------------------------


def test_egress_sees_port_replication_id_and_length() -> None:
    egress = "hdr.h.a = (bit<8>)intr.egress_port; hdr.h.c = intr.pkt_length; hdr.h.d = (bit<32>)intr.egress_rid;"
    model = switch(text("tm.mcast_grp_a = 1;", egress=egress + " hdr.h.b = (bit<8>)intr.egress_rid_first;"))
    model.set_multicast_group(MulticastGroup(1, (Replica(5, 7), Replica(6, 8))))
    assert model.process(1, frame()) == [(5, frame(5, 1, 16, 7)), (6, frame(6, 0, 16, 8))]


def test_times_are_nanoseconds_of_the_switchs_clock() -> None:
    body = f"{SEND} hdr.h.c = (bit<16>)prsr.global_tstamp; hdr.h.d = (bit<32>)intr.ingress_mac_tstamp;"
    assert switch(text(body), clock=lambda: 3).process(1, frame()) == [(3, frame(c=3000, d=3000))]


@pytest.mark.parametrize(("arch", "size"), [("tna", 8), ("t2na", 24)])
def test_port_metadata_stands_between_intrinsic_metadata_and_the_packet(arch: str, size: int) -> None:
    parser = IG_PARSER.replace("pkt.advance(PORT_METADATA_SIZE);", "pair p = port_metadata_unpack<pair>(pkt);"
                               " meta.y = p.second;")  # fmt: skip
    model = switch(text(f"{SEND} hdr.h.d = meta.y;", ig_parser=parser, arch=arch))
    assert model.process(1, frame()) == [(3, frame())]
    machine(model).set_port_metadata(1, (5 << 32 | 77) << 8 * (size - 8))
    assert model.process(1, frame()) == [(3, frame(d=77))]
    assert model.process(2, frame()) == [(3, frame())]
    with pytest.raises(ControlError, match=f"its metadata has {8 * size} bits"):
        machine(model).set_port_metadata(1, 1 << 8 * size)


def test_tna_on_tofino_2_has_that_chips_ports_and_sizes() -> None:
    source = text(
        "tm.ucast_egress_port = 6; tm.copy_to_cpu = 1; if (intr.ingress_port == 6) { tm.ucast_egress_port = 3; }"
    )
    assert switch(source).process(1, frame()) == [(6, frame()), (64, frame())]
    found = switch(source, "__TARGET_TOFINO__=2").process(1, frame())
    assert found == [(2, frame()), (3, frame()), (2, frame())]


def test_egress_can_be_passed_by() -> None:
    model = switch(text(f"{SEND} tm.bypass_egress = hdr.h.a[0:0];", egress="hdr.h.b = 9;"))
    assert model.process(1, frame()) == [(3, frame(0, 9))]
    assert model.process(1, frame(1)) == [(3, frame(1))]


# --- groups ------------------------------------------------------------------------------------


def test_both_groups_and_unicast_make_copies() -> None:
    model = switch(text(f"{SEND} tm.mcast_grp_a = 1; tm.mcast_grp_b = 2;"))
    model.set_multicast_group(MulticastGroup(1, (Replica(5), Replica(6))))
    model.set_multicast_group(MulticastGroup(2, (Replica(7),)))
    assert [port for port, _ in model.process(1, frame())] == [3, 5, 6, 7]


def test_a_nodes_copies_are_excluded_by_its_exclusion_id() -> None:
    model = switch(text("tm.mcast_grp_a = 1; if (hdr.h.a != 0) { tm.level1_exclusion_id = (bit<16>)hdr.h.b; }"))
    nodes = (NodeReplica(5, 1, exclusion=0), NodeReplica(6, 1, exclusion=9), Replica(7, 2))
    model.set_multicast_group(MulticastGroup(1, nodes))
    assert [port for port, _ in model.process(1, frame())] == [5, 6, 7]
    assert [port for port, _ in model.process(1, frame(1, 9))] == [5, 7]
    assert [port for port, _ in model.process(1, frame(1, 0))] == [6, 7]


def test_ports_are_excluded_where_the_replication_id_is_the_packets() -> None:
    model = switch(text("tm.mcast_grp_a = 1; tm.rid = hdr.h.c; tm.level2_exclusion_id = (bit<9>)hdr.h.a;"))
    model.set_multicast_group(MulticastGroup(1, (Replica(5, 1), Replica(6, 1), Replica(5, 2))))
    machine(model).set_exclusion(4, [5])
    assert model.process(1, frame(4, c=1)) == [(6, frame(4, c=1)), (5, frame(4, c=1))]
    assert len(model.process(1, frame(4, c=2))) == 2
    assert len(model.process(1, frame(4, c=3))) == 3
    assert len(model.process(1, frame(3, c=1))) == 3


# --- mirrors, resubmission ----------------------------------------------------------------------

MIRRORED = """parser EgP(packet_in pkt, out headers hdr, out metadata meta, out egress_intrinsic_metadata_t eg_intr) {
    state start { pkt.extract(eg_intr); transition select(pkt.lookahead<bit<8>>()) { 0xEE: tagged; default: plain; } }
    state tagged { pkt.extract(hdr.tag); transition plain; }
    state plain { pkt.extract(hdr.h); transition accept; }
}"""
MIRROR = "if (dprsr.mirror_type == 1) { mirror.emit<tag_t>(meta.session, {0xEE, 1, 2, 3}); } pkt.emit(hdr);"


def mirroring(body: str, arch: str = "tna") -> str:
    return text(body, eg_parser=MIRRORED, deparser=MIRROR, deparser_local="Mirror() mirror;", arch=arch)


@pytest.mark.parametrize("arch", ["tna", "t2na"])
def test_an_ingress_mirror_copies_the_packet_as_it_arrived_behind_its_header(arch: str) -> None:
    model = switch(mirroring(f"{SEND} hdr.h.a = 5; dprsr.mirror_type = 1; meta.session = 27;", arch))
    assert model.process(1, frame()) == [(3, frame(5))]
    model.set_clone_session(CloneSession(27, (Replica(9, 4),)))
    tag = b"\xee\1\0\2\0\0\0\3"
    assert model.process(1, frame()) == [(9, tag + frame()), (3, frame(5))]
    model.set_clone_session(CloneSession(27, (Replica(9),), packet_length=18))
    assert model.process(1, frame()) == [(9, tag + frame()[:10]), (3, frame(5))]


def test_a_mirror_needs_its_type_its_direction_and_no_bar() -> None:
    model = switch(
        mirroring(f"{SEND} meta.session = 27; dprsr.mirror_type = hdr.h.a[2:0]; dprsr.drop_ctl = hdr.h.b[2:0];")
    )
    model.set_clone_session(MirrorSession(27, (Replica(9),), direction="ingress"))
    assert [port for port, _ in model.process(1, frame(1))] == [9, 3]
    assert [port for port, _ in model.process(1, frame(2))] == [3]
    assert [port for port, _ in model.process(1, frame(1, 4))] == [3]
    assert [port for port, _ in model.process(1, frame(1, 1))] == [9]
    model.set_clone_session(MirrorSession(27, (Replica(9),), direction="egress"))
    assert [port for port, _ in model.process(1, frame(1))] == [3]


def test_an_egress_mirror_copies_the_packet_as_it_leaves() -> None:
    egress = "if (!hdr.tag.isValid()) { hdr.h.a = 7; dprsr.mirror_type = 1; dprsr.drop_ctl = 1; meta.session = 2; }"
    model = switch(text(SEND, eg_parser=MIRRORED, egress=egress, egress_deparser=MIRROR,
                        egress_deparser_local="Mirror(1) mirror;"))  # fmt: skip
    model.set_clone_session(MirrorSession(2, (Replica(9),), direction="egress"))
    assert model.process(1, frame()) == [(9, b"\xee\1\0\2\0\0\0\3" + frame(7))]


def test_an_instance_with_a_type_acts_for_that_type_only() -> None:
    deparser = "mirror.emit(meta.session); digest.pack({hdr.h.a, hdr.h.c}); pkt.emit(hdr);"
    local = "Mirror(1) mirror; Digest<tuple<bit<8>, bit<16>>>(2) digest;"
    body = f"{SEND} meta.session = 2; dprsr.mirror_type = hdr.h.a[2:0]; dprsr.digest_type = hdr.h.a[2:0];"
    model = switch(text(body, deparser=deparser, deparser_local=local))
    model.set_clone_session(CloneSession(2, (Replica(9),)))
    assert [port for port, _ in model.process(1, frame(1))] == [9, 3]
    assert model.digests() == []
    assert [port for port, _ in model.process(1, frame(2, c=5))] == [3]
    (digest,) = model.digests()
    assert (digest.name, [value for _, value in digest.fields]) == ("IgD.digest", [2, 5])


RESUBMITTED = """parser IgP(packet_in pkt, out headers hdr, out metadata meta, out ingress_intrinsic_metadata_t intr) {
    state start { pkt.extract(intr); transition select(intr.resubmit_flag) { 0: first; 1: again; } }
    state first { pkt.advance(PORT_METADATA_SIZE); transition packet; }
    state again { meta.tag = pkt.lookahead<tag_t>(); pkt.advance(PORT_METADATA_SIZE); transition packet; }
    state packet { pkt.extract(hdr.h); transition accept; }
}"""


@pytest.mark.parametrize("arch", ["tna", "t2na"])
def test_a_resubmitted_packet_arrives_once_more_as_it_came_with_its_metadata(arch: str) -> None:
    body = f"{SEND} hdr.h.c = hdr.h.c + 1; hdr.h.d = meta.tag.g;"
    body += " if (intr.resubmit_flag == 0) { dprsr.resubmit_type = 1; }"
    deparser = "if (dprsr.resubmit_type == 1) { again.emit<tag_t>({1, 2, 3, 44}); } pkt.emit(hdr);"
    source = text(body, ig_parser=RESUBMITTED, deparser=deparser, deparser_local="Resubmit() again;", arch=arch)
    assert switch(source).process(1, frame(d=9)) == [(3, frame(c=1, d=44))]
    twice = source.replace("if (intr.resubmit_flag == 0)", "if (true)")
    assert switch(twice).process(1, frame(d=9)) == [(3, frame(c=1, d=44))]


# --- ports and pipes ----------------------------------------------------------------------------


@pytest.mark.parametrize(("arch", "port"), [("tna", 68), ("tna", 196), ("t2na", 6), ("t2na", 134)])
def test_output_of_recirculation_ports_arrives_again(arch: str, port: int) -> None:
    body = f"hdr.h.a = hdr.h.a + 1; tm.ucast_egress_port = {port}; if (intr.ingress_port == {port}) {{ {SEND} }}"
    model = switch(text(body, arch=arch))
    assert model.process(1, frame()) == [(3, frame(2))]


def test_a_port_in_loopback_returns_what_leaves_it() -> None:
    model = switch(text("tm.ucast_egress_port = 5; if (intr.ingress_port == 5) { tm.ucast_egress_port = 3; }"))
    assert model.process(1, frame()) == [(5, frame())]
    machine(model).set_loopback(5)
    assert model.process(1, frame()) == [(3, frame())]


def test_endless_recirculation_ends_with_a_trap() -> None:
    model = switch(text("tm.ucast_egress_port = 68;"))
    assert model.process(1, frame()) == []
    assert "more than 1000 passes" in model.traps()[0].what


TWO = """control Ig2(inout headers hdr, inout metadata meta, in ingress_intrinsic_metadata_t intr,
    in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
    inout ingress_intrinsic_metadata_for_tm_t tm) {
    Register<bit<32>, bit<16>>(1, 50) reg; RegisterAction<bit<32>, bit<16>, bit<32>>(reg) add = {
        void apply(inout bit<32> value, out bit<32> rv) { value = value + 1; rv = value; } };
    apply { hdr.h.d = add.execute(0); tm.ucast_egress_port = 4; }
}
Pipeline(IgP(), Ig(), IgD(), EgP(), Eg(), EgD()) one;
Pipeline(IgP(), Ig2(), IgD(), EgP(), Eg(), EgD()) two;
Switch(one, two) main;
"""


def test_two_programs_run_in_pipes_of_their_own() -> None:
    local = """Register<bit<32>, bit<16>>(1) reg; RegisterAction<bit<32>, bit<16>, bit<32>>(reg) add = {
        void apply(inout bit<32> value, out bit<32> rv) { value = value + 1; rv = value; } };"""
    model = switch(text(f"hdr.h.d = add.execute(0); {SEND}", local, tail=TWO))
    found = [model.process(port, frame()) for port in (0, 128, 0, 256, 384)]
    wanted = [(3, 1), (4, 51), (3, 2), (3, 1), (4, 51)]
    assert found == [[(port, frame(d=d))] for port, d in wanted]


def test_the_parser_of_a_ports_channel_is_used() -> None:
    other = IG_PARSER.replace("parser IgP", "parser IgQ").replace("transition accept", "meta.x = 1; transition accept")
    tail = """IngressParsers(IgP(), IgQ()) ig_prsrs; EgressParsers(EgP()) eg_prsrs;
        MultiParserPipeline(ig_prsrs, Ig(), IgD(), eg_prsrs, Eg(), EgD()) pipe; MultiParserSwitch(pipe) main;"""
    model = switch(text(f"{SEND} hdr.h.c = meta.x;", tail=other + tail))
    assert [model.process(port, frame()) for port in (0, 3, 4, 7, 8)] == [[(3, frame(c=c))] for c in (0, 0, 1, 1, 0)]


def test_a_request_whose_type_is_not_assigned_is_none() -> None:
    deparser = "if (dprsr.digest_type == 0) { digest.pack({hdr.h.a, hdr.h.c}); } pkt.emit(hdr);"
    body = f"{SEND} if (hdr.h.a == 1) {{ dprsr.digest_type = 0; }}"
    model = switch(text(body, deparser=deparser, deparser_local="Digest<tuple<bit<8>, bit<16>>>() digest;"))
    assert model.process(1, frame(2)) == [(3, frame(2))]
    assert model.digests() == []
    assert model.process(1, frame(1)) == [(3, frame(1))]
    assert len(model.digests()) == 1


def test_an_egress_parser_that_does_not_extract_the_metadata_begins_behind_it() -> None:
    empty = """parser EgP(packet_in pkt, out headers hdr, out metadata meta, out egress_intrinsic_metadata_t eg_intr) {
    state start { transition accept; } }"""
    model = switch(text(SEND, eg_parser=empty, egress_deparser=""))
    assert model.process(1, frame()) == [(3, frame())]


@pytest.mark.parametrize(("arch", "more"), [("tna", ""), ("t2na", "pkt.advance(128);")])
def test_port_metadata_that_is_a_header_is_extracted(arch: str, more: str) -> None:
    parser = IG_PARSER.replace("pkt.advance(PORT_METADATA_SIZE);", "tag_t p = port_metadata_unpack<tag_t>(pkt);"
                               f" meta.y = p.g; {more}")  # fmt: skip
    model = switch(text(f"{SEND} hdr.h.d = meta.y;", ig_parser=parser, arch=arch))
    machine(model).set_port_metadata(1, 77 << (0 if arch == "tna" else 128))
    assert model.process(1, frame()) == [(3, frame(d=77))]


# --- generated packets ---------------------------------------------------------------------------

TIMER = """parser IgP(packet_in pkt, out headers hdr, out metadata meta, out ingress_intrinsic_metadata_t intr) {
    pktgen_timer_header_t timer; pktgen_port_down_header_t down;
    state start { pkt.extract(intr); pkt.advance(PORT_METADATA_SIZE);
        transition select(intr.ingress_port) { GENERATOR: app; default: packet; } }
    state app { transition select(pkt.lookahead<bit<8>>()) { 0x07: went_down; default: time; } }
    state time { pkt.extract(timer); meta.x = timer.batch_id; meta.y = (bit<32>)timer.packet_id; transition packet; }
    state went_down { pkt.extract(down); meta.x = (bit<16>)down.port_num; transition packet; }
    state packet { pkt.extract(hdr.h); transition accept; }
}"""
APPLIED = f"{SEND} hdr.h.c = meta.x; hdr.h.d = meta.y;"


@pytest.mark.parametrize(("arch", "port"), [("tna", 68), ("t2na", 6)])
def test_a_periodic_application_makes_its_batches_in_virtual_time(arch: str, port: int) -> None:
    now = 0
    model = switch(text(APPLIED, ig_parser=TIMER.replace("GENERATOR", str(port)), arch=arch), clock=lambda: now)
    machine(model).start(Application(1, frame(1), "periodic", period=10_000, packets=2, between_packets=1000))
    assert model.process(1, frame(9)) == [(3, frame(9))]
    now = 10
    assert machine(model).generate() == [(3, frame(1))]
    now = 19
    frozen = model.freeze()
    assert model.process(1, frame(9)) == [(3, frame(1, d=1)), (3, frame(9))]
    model.restore(frozen)
    assert model.process(1, frame(9)) == [(3, frame(1, d=1)), (3, frame(9))]
    now = 31
    assert machine(model).generate() == [(3, frame(1, d=d)) for d in (0, 1, 0, 1)]


def test_a_one_shot_application_starts_once() -> None:
    now = 0
    model = switch(text(APPLIED, ig_parser=TIMER.replace("GENERATOR", "68")), clock=lambda: now)
    machine(model).start(Application(2, frame(1), batches=2, between_batches=5000))
    assert machine(model).generate() == [(3, frame(1))]
    now = 100
    assert machine(model).generate() == [(3, frame(1, c=1))]
    now = 200
    assert machine(model).generate() == []


def test_an_application_in_another_pipe_starts_when_a_port_of_it_goes_down() -> None:
    model = switch(text(APPLIED, ig_parser=TIMER.replace("GENERATOR", "68").replace("0x07", "0x0D")
                        .replace("68: app", "196: app")))  # fmt: skip
    machine(model).start(Application(5, frame(1), "port down", pipe=1))
    model.set_link(5, False)
    assert machine(model).generate() == []
    model.set_link(130, False)
    assert machine(model).generate() == [(3, frame(1, c=130))]
    assert machine(model).generate() == []


@pytest.mark.parametrize(
    ("application", "message"),
    [
        (Application(8, b""), "application 8: there are 8 applications in each of 4 pipes"),
        (Application(1, b"", "periodic"), "application 1: a periodic application needs a period"),
        (Application(1, b"", packets=0), "application 1: batches and packets are counted from 1 to 65536"),
    ],
)
def test_applications_that_cannot_be_are_refused(application: Application, message: str) -> None:
    with pytest.raises(InputError, match=f"packet generator, {message}"):
        machine(switch(text(SEND))).start(application)


def test_a_header_takes_whole_bytes_of_a_packet() -> None:
    parser = IG_PARSER.replace("pkt.extract(hdr.h);", "pkt.extract(hdr.odd); pkt.extract(hdr.h);")
    source = text(f"hdr.h.a = hdr.odd.m; {SEND}", ig_parser=parser, eg_parser=parser.replace("IgP", "EgP").replace(
        "ingress_", "egress_").replace("pkt.advance(PORT_METADATA_SIZE);", ""))  # fmt: skip
    headers = "struct headers { tag_t tag; h_t h; }"
    odd = "header odd_t { bit<4> n; bit<8> m; } struct headers { tag_t tag; odd_t odd; h_t h; }"
    model = switch(source.replace(headers, odd))
    assert model.process(1, b"\x12\x3f" + frame(9)) == [(3, b"\x12\x30" + frame(0x23))]
    assert model.process(1, b"\x12\x3f" + frame(9)[:7]) == []
