"""What open-p4studio's tests of its own programs expect, on the model. ``P4STUDIO`` names a checkout of it; each test
says after which class in ``p4_16_programs/PROGRAM/test.py`` it is made: its settings, its packets, its results."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from p4gen.chips.tna.generator import Application, Counts
from p4gen.chips.tna.machine import TofinoModel
from p4gen.chips.tna.replication import Branch, Ecmp, Lag, MirrorSession, Node, NodeReplica, Tree
from p4gen.model import Model
from p4gen.model.entries import Action, CounterValue, Entry, Match, MulticastGroup, Replica, Ternary
from p4gen.p4.compile import compile_file

TARGETS = pytest.mark.parametrize("target", [1, 2])
A, B, C, D = 8, 9, 10, 11
"""Front ports of pipe 0."""
SECOND = 136
"""One of pipe 1."""
FCS = 4


@pytest.fixture(autouse=True)
def engine() -> None:
    """The interpreter alone: it has all that these programs use."""


class Clock:
    """Microseconds, as a test sets them."""

    now = 0

    def __call__(self) -> int:
        return self.now


def studio(name: str, target: int = 1, clock: Clock | None = None) -> Model:
    """One of the programs on the model."""
    root = os.environ.get("P4STUDIO")
    if not root:
        pytest.skip("P4STUDIO names no checkout")
    folder = Path(root) / "pkgsrc/p4-examples/p4_16_programs"
    program = compile_file(folder / name / f"{name}.p4", [f"__TARGET_TOFINO__={target}"], [folder]).program
    return Model(program, clock=clock or Clock())


def machine(model: Model) -> TofinoModel:
    """The part of it that only Tofino has."""
    assert isinstance(model.machine, TofinoModel)
    return model.machine


def put(model: Model, table: str, match: dict[str, Match], action: str, **data: int) -> Entry:
    """Add an entry."""
    ternary = any(isinstance(value, Ternary) for value in match.values())
    entry = Entry(table, match, Action(action, data), priority=1 if ternary else 0)
    model.insert(entry)
    return entry


def total(octets: bytes) -> int:
    """The ones' complement sum, complemented."""
    found: int = sum(struct.unpack(f"!{len(octets) // 2 + len(octets) % 2}H", octets + bytes(len(octets) % 2)))
    while found >> 16:
        found = (found & 0xFFFF) + (found >> 16)
    return found ^ 0xFFFF


def packet(
    dst: int = 0x000102030405, src: int = 0x060708090A0B, *, protocol: int = 6, ip_src: int = 0x01020304,
    port: int = 0x1234, size: int = 100, ip_sum: int | None = None, sum_: int | None = None, ttl: int = 64,
    ip_dst: int = 0x64636261,
) -> bytes:  # fmt: skip
    """An Ethernet frame with IPv4 and TCP or UDP, all checksums right if they are not given."""
    room = size - 34
    if protocol == 6:
        inner = struct.pack("!HHIIHHHH", port, 80, 0, 0, 0x5002, 8192, 0, 0)
    else:
        inner = struct.pack("!HHHH", port, 80, room, 0)
    inner += bytes(at & 0xFF for at in range(room - len(inner)))
    at = 16 if protocol == 6 else 6
    pseudo = struct.pack("!IIBBH", ip_src, ip_dst, 0, protocol, room)
    found = total(pseudo + inner) if sum_ is None else sum_
    inner = inner[:at] + found.to_bytes(2) + inner[at + 2 :]
    head = struct.pack("!BBHHHBBHII", 0x45, 0, room + 20, 101, 0, ttl, protocol, 0, ip_src, ip_dst)
    own = total(head) if ip_sum is None else ip_sum
    head = head[:10] + own.to_bytes(2) + head[12:]
    return dst.to_bytes(6) + src.to_bytes(6) + b"\x08\0" + head + inner


def sums(frame: bytes) -> tuple[int, int]:
    """The checksums of IPv4 and of TCP or UDP in a frame."""
    at = 34 + (16 if frame[23] == 6 else 6)
    return int.from_bytes(frame[24:26]), int.from_bytes(frame[at : at + 2])


# --- resubmission (tna_resubmit) ------------------------------------------------------------------

RESUBMITTED = {
    "a": ({"f1": 0x12, "f2": 0x3456, "f3": 0x789ABCDE}, 1),
    "b": ({"f1": 0x21}, 2),
    "c": ({"f1": 0x4321, "f2": 0x5678, "f3": 0x9ABC}, 3),
}


@TARGETS
def test_without_resubmission_the_first_pass_counts(target: int) -> None:
    """NoResubmitTest."""
    model = studio("tna_resubmit", target)
    machine(model).set_port_metadata(A, (0xAABBCCDD << 32 | 0x11223344) << (0 if target == 1 else 128))
    put(model, "pass_one", {"port": A, "f1": 0xAABBCCDD, "f2": 0x11223344}, "SwitchIngress.no_resub")
    assert model.process(A, packet()) == [(A, packet(dst=1, src=0))]


@TARGETS
@pytest.mark.parametrize("kind", RESUBMITTED)
def test_a_resubmitted_packet_has_its_digest_and_none_of_its_changes(target: int, kind: str) -> None:
    """ResubmitTest."""
    model, (fields, counter) = studio("tna_resubmit", target), RESUBMITTED[kind]
    machine(model).set_port_metadata(A, (7 << 32 | 8) << (0 if target == 1 else 128))
    match: dict[str, Match] = {f"md.{kind}.{name}": value for name, value in fields.items()}
    if target == 2:
        match[f"md.{kind}.additional"] = 0x1122334455667788
    put(model, f"pass_two_type_{kind}", match, f"okay_{kind}")
    put(model, "pass_one", {"port": A, "f1": 7, "f2": 8}, f"resub_{kind}", more_data=0x1122334455667788, **fields)
    assert model.process(A, packet()) == [(A, packet())]
    assert [model.counter("cntr", at).packets for at in range(4)] == [1, *(int(at == counter) for at in (1, 2, 3))]


# --- registers (tna_register) ----------------------------------------------------------------------


@TARGETS
def test_an_indirect_register_counts_in_the_packets_pipe_with_its_parameters(target: int) -> None:
    """IndirectRegisterSyncTest, RegisterParamTest."""
    model = studio("tna_register", target)
    assert model.registers("test_reg") == [5 << 32 | 7] * 1024
    model.write_register("test_reg.first", 33, 1000)
    model.write_register("test_reg.second", 33, 2000)
    put(model, "reg_match", {"hdr.ethernet.dst_addr": 0x000102030405}, "register_action", idx=33)
    for _ in range(3):
        assert model.process(SECOND, packet()) == [(SECOND, packet())]
    found = [machine(model).registers("test_reg", pipe)[33] for pipe in range(4)]
    assert found == [number << 32 | more for number, more in ((1000, 2000), (1003, 2300), (1000, 2000), (1000, 2000))]
    machine(model).set_parameter("test_cdn", 100)
    machine(model).set_parameter("test_asn", 10)
    model.process(SECOND, packet())
    assert machine(model).registers("test_reg", 1)[33] == 1013 << 32 | 2300


@TARGETS
def test_a_direct_register_counts_for_its_entry(target: int) -> None:
    """DirectRegisterSyncTest."""
    model = studio("tna_register", target)
    entry = put(model, "reg_match_dir", {"hdr.ethernet.src_addr": 0x060708090A0B}, "register_action_dir")
    for _ in range(5):
        assert model.process(A, packet()) == [(A, packet())]
    state = machine(model).state
    (installed,) = state.tables[entry.table if "." in entry.table else "SwitchIngress.reg_match_dir"].entries()
    registers = [pipe.entries["SwitchIngress.test_reg_dir"] for pipe in state.pipes]
    assert registers[0].word.number(registers[0].of[installed])[0] == 5 << 32 | 500
    assert installed not in registers[1].of


# --- mirrors (tna_mirror) --------------------------------------------------------------------------


@TARGETS
def test_an_ingress_mirror_alone_delivers_the_packet_once(target: int) -> None:
    """TestBasicIngMir."""
    model = studio("tna_mirror", target)
    put(model, "mirror_fwd", {"ig_intr_md.ingress_port": A}, "set_md", dest_port=511, ing_mir=1, ing_ses=5, egr_mir=0,
        egr_ses=0)  # fmt: skip
    assert model.process(A, packet()) == []
    for direction, found in (("ingress", [(A, packet())]), ("egress", []), ("both", [(A, packet())])):
        model.set_clone_session(MirrorSession(5, (Replica(A),), direction=direction))  # type: ignore[arg-type]
        assert model.process(A, packet()) == found
    model.set_clone_session(MirrorSession(5, ()))
    assert model.process(A, packet()) == []


@TARGETS
@pytest.mark.xfail(strict=True, reason="setValid clears a header: what the program has written into it before is lost")
def test_an_egress_mirror_delivers_the_packet_twice(target: int) -> None:
    """TestBasicEgrMir."""
    model = studio("tna_mirror", target)
    put(model, "mirror_fwd", {"ig_intr_md.ingress_port": A}, "set_md", dest_port=A, ing_mir=0, ing_ses=0, egr_mir=1,
        egr_ses=5)  # fmt: skip
    assert model.process(A, packet()) == [(A, packet())]
    model.set_clone_session(MirrorSession(5, (Replica(A),), direction="egress"))
    assert model.process(A, packet()) == [(A, packet())] * 2
    model.set_clone_session(MirrorSession(5, (Replica(A),), direction="ingress"))
    assert model.process(A, packet()) == [(A, packet())]


@pytest.mark.parametrize(("target", "most", "size"), [(1, 128, 127), (1, 64, 63), (2, 128, 127)])
def test_a_mirrored_packet_is_cut_with_its_header(target: int, most: int, size: int) -> None:
    """TestTruncMir; of 64 bytes on Tofino 2 it expects 59, which the model has not got."""
    model = studio("tna_mirror", target)
    put(model, "mirror_fwd", {"ig_intr_md.ingress_port": A}, "set_md", dest_port=511, ing_mir=1, ing_ses=5, egr_mir=0,
        egr_ses=0)  # fmt: skip
    model.set_clone_session(MirrorSession(5, (Replica(A),), most, direction="ingress"))
    assert model.process(A, packet(size=200)) == [(A, packet(size=200)[:size])]


@TARGETS
def test_a_mirror_may_go_to_a_multicast_group(target: int) -> None:
    """TestMCast."""
    model = studio("tna_mirror", target)
    put(model, "mirror_fwd", {"ig_intr_md.ingress_port": A}, "set_md", dest_port=511, ing_mir=1, ing_ses=5, egr_mir=0,
        egr_ses=0)  # fmt: skip
    model.set_clone_session(MirrorSession(5, (Replica(B, 1), Replica(C, 1)), direction="ingress"))
    assert model.process(A, packet(size=128)) == [(B, packet(size=128)), (C, packet(size=128))]


# --- multicast (tna_multicast) ---------------------------------------------------------------------


def flooding(
    target: int, *, rid: int = 0, yid: int = 0, hashes: tuple[int, int] = (0, 0), cpu: int = 0, brid: int = 9
) -> Model:
    """The program with the interface of port A, whose packets are flooded in a bridging domain."""
    model = studio("tna_multicast", target)
    put(model, "ing_port", {"ig_intr_md.ingress_port": A, "hdr.vlan_tag.$valid$": 0, "hdr.vlan_tag.vid": 0},
        "set_ifid", ifid=77)  # fmt: skip
    put(model, "ing_src_ifid", {"ig_md.ifid": 77}, "set_src_ifid_md", rid=rid, yid=yid, brid=brid, hash1=hashes[0],
        hash2=hashes[1], c2c_enable=cpu)  # fmt: skip
    return model


def ports(model: Model, frame: bytes) -> list[int]:
    """Where a packet comes out, as it came in."""
    found = model.process(A, frame)
    assert all(data == frame for _, data in found)
    return sorted(port for port, _ in found)


BROADCAST = packet(dst=0xFFFFFFFFFFFF)


@TARGETS
def test_packets_are_switched_or_flooded(target: int) -> None:
    """TestBasic."""
    model = flooding(target)
    put(model, "ing_dmac", {"ig_md.brid": 9, "hdr.ethernet.dst_addr": 0x001111111100}, "l2_switch", port=D)
    assert ports(model, packet(dst=0x001111111100)) == [D]
    assert ports(model, BROADCAST) == []
    model.set_multicast_group(MulticastGroup(9, tuple(Replica(port, 0xFFF6) for port in (A, B, C))))
    assert ports(model, BROADCAST) == [A, B, C]


@TARGETS
def test_the_cpu_has_a_copy_beside_all_others(target: int) -> None:
    """TestMulticastc2c."""
    model = flooding(target, cpu=1)
    machine(model).set_cpu_port(B)
    put(model, "ing_dmac", {"ig_md.brid": 9, "hdr.ethernet.dst_addr": 0x001111111100}, "l2_switch", port=D)
    put(model, "ing_dmac", {"ig_md.brid": 9, "hdr.ethernet.dst_addr": 0x01005E000000}, "route", vrf=9)
    everything = Ternary(0, 0)
    put(model, "ing_ipv4_mcast", {"ig_md.vrf": 9, "hdr.ipv4.src_addr": everything,
                                  "hdr.ipv4.dst_addr": Ternary(0xE0640000, 0xFFFFFFFF)},
        "mcast_route", xid=0, mgid1=9, mgid2=0)  # fmt: skip
    model.set_multicast_group(MulticastGroup(9, (Replica(A, 1), Replica(C, 1))))
    assert ports(model, packet(dst=0x001111111100)) == [B, D]
    assert ports(model, BROADCAST) == [A, B, C]
    routed = packet(dst=0x01005E000000, ip_dst=0xE0640000)
    wanted = packet(dst=0x01005E000000, ip_dst=0xE0640000, ttl=63)
    assert {data for _, data in model.process(A, routed)} == {wanted}


@TARGETS
def test_ports_of_an_exclusion_id_are_pruned_where_the_replication_ids_are_equal(target: int) -> None:
    """TestYid."""
    model = flooding(target, rid=5, yid=20)
    machine(model).set_exclusion(20, [A, B])
    model.set_multicast_group(MulticastGroup(9, (Replica(A, 5), Replica(C, 5), Replica(B, 6))))
    assert ports(model, BROADCAST) == [B, C]
    machine(model).set_global_rid(5)
    assert ports(model, BROADCAST) == [C]
    machine(model).set_exclusion(20, [])
    assert ports(model, BROADCAST) == [A, B, C]


@TARGETS
def test_nodes_of_the_packets_exclusion_id_make_no_copies(target: int) -> None:
    """TestXid."""
    model = flooding(target)
    put(model, "ing_dmac", {"ig_md.brid": 9, "hdr.ethernet.dst_addr": 0x01005E000000}, "route", vrf=9)
    all_of_them: dict[str, Match] = {"hdr.ipv4.src_addr": Ternary(0, 0), "hdr.ipv4.dst_addr": Ternary(0, 0)}
    put(model, "ing_ipv4_mcast", {"ig_md.vrf": 9, **all_of_them}, "mcast_route", xid=3, mgid1=9, mgid2=8)
    model.set_multicast_group(MulticastGroup(9, (NodeReplica(A, 1, exclusion=3), NodeReplica(B, 2, exclusion=4))))
    model.set_multicast_group(MulticastGroup(8, (NodeReplica(C, 1), NodeReplica(D, 1, exclusion=3))))
    assert [port for port, _ in model.process(A, packet(dst=0x01005E000000))] == [B, C]


@TARGETS
def test_ecmp_takes_the_place_of_the_hash_or_one_of_those_that_are_taken(target: int) -> None:
    """TestEcmp: ``getMbrByHash``."""
    nodes: list[Node | None] = [None] * 32
    nodes[0], nodes[3], nodes[7] = Node(1, (A,)), Node(2, (B,)), Node(3, (C, D))
    for number in (0, 1, 2, 3, 7, 31, 32, 35, 100, 8191):
        place, alive = number % 32, [node for node in nodes if node is not None]
        chosen = nodes[place] or alive[number % len(alive)]
        model = flooding(target, hashes=(number, 0))
        machine(model).set_group(Tree(9, (), branches=(Branch(Ecmp(tuple(nodes))),)))
        assert ports(model, BROADCAST) == sorted(chosen.ports)


@TARGETS
def test_a_lag_takes_the_member_of_the_hash_unless_it_is_elsewhere_or_down(target: int) -> None:
    """TestLag: ``getMbrByHash``."""
    members, below, above = (A, B, C), 1, 2
    for number in (0, 1, 2, 3, 4, 5, 6, 4000):
        model = flooding(target, hashes=(0, number))
        machine(model).set_lag(4, Lag(members, below, above))
        machine(model).set_group(Tree(9, (), branches=(Branch(Node(6, (D,), (4,))),)))
        own = number ^ 6 if target == 2 else number
        at = own % 6 - below
        assert ports(model, BROADCAST) == sorted([D, *([members[at]] if 0 <= at < 3 else [])])
        model.set_link(B, False)
        spare = (A, C)[own % 2]
        alive = [] if not 0 <= at < 3 else [spare if members[at] == B else members[at]]
        assert ports(model, BROADCAST) == sorted([D, *alive])


# --- the packet generator (tna_pktgen) --------------------------------------------------------------

MADE = packet()


def generating(target: int, kind: str, number: int, clock: Clock, pipe: int = 0) -> Model:
    """The program, told of an application."""
    model = studio("tna_pktgen", target, clock)
    bits = 3 if target == 1 else 4
    member = Ternary(pipe << bits | number, 0x1F if target == 1 else 0x3F)
    model.set_value_set(f"IPrsr.pgen_{kind}", (member,))
    return model


@TARGETS
@pytest.mark.parametrize("trigger", ["one shot", "periodic"])
def test_timers_make_batches_of_packets(target: int, trigger: str) -> None:
    """OneShotTimer, PeriodicTimer."""
    clock = Clock()
    model = generating(target, "timer", 5, clock, pipe=1)
    entries = [
        put(model, "t_timer_app", {"hdr.timer.pipe_id": 1, "hdr.timer.app_id": 5, "hdr.timer.batch_id": batch,
                                   "hdr.timer.packet_id": number}, "count_timer_app_and_fwd", dst_port=A)
        for batch in range(3) for number in range(4)
    ]  # fmt: skip
    machine(model).start(Application(5, MADE, trigger, 1, 1000, 3, 4))  # type: ignore[arg-type]
    assert model.generate() == []
    clock.now = 1
    assert model.generate() == [(A, MADE)] * 12
    # a header of 6 bytes, and the FCS
    assert [model.entry_counter(entry) for entry in entries] == [CounterValue(1, len(MADE) + 6 + FCS)] * 12
    clock.now = 3
    rounds = 3 if trigger == "periodic" else 1
    assert model.generate() == [(A, MADE)] * 12 * (rounds - 1)
    assert machine(model).state.generator.counts(5, 1) == Counts(rounds, 3 * rounds, 12 * rounds)


@TARGETS
def test_a_recirculated_packet_starts_its_application(target: int) -> None:
    """RecircApp."""
    width, batches, port = (32, 1, 68) if target == 1 else (128, 2, 6)
    tag = 0xFF << width - 8 | 0x123456
    model = generating(target, "recirc", 2, Clock())
    model.set_value_set("IPrsr.recirc", (Ternary(port, 511), Ternary(0xFF, 0xFF)))
    put(model, "t_handle_external_packet", {"hdr.ethernet.dmac": 1}, "fwd_recirc", dst_port=port, tag=tag)
    put(model, "t_recirc", {"hdr.recirc_tag.tag": tag}, "count_recirc_and_fwd", dst_port=A)
    trigger = packet(dst=1)
    assert model.process(C, trigger) == [(A, trigger)]
    entries = []
    for batch in range(batches):
        for number in range(2):
            match: dict[str, Match] = {
                "hdr.recirc.pipe_id": 0, "hdr.recirc.app_id": 2, "hdr.recirc.packet_id": number,
            }  # fmt: skip
            match |= {"hdr.recirc.key": tag & 0xFFFFFF} if target == 1 else {
                "hdr.recirc.batch_id": batch, "hdr.recirc_context.f": tag,
            }  # fmt: skip
            entries.append(put(model, "t_recirc_app", match, "count_recirc_app_and_fwd", dst_port=B))
    mask = (1 << width) - 1
    machine(model).start(
        Application(2, MADE, "recirculation", batches=batches, packets=2, pattern=tag, mask=mask)
    )  # fmt: skip
    assert model.process(C, trigger) == [(A, trigger)] + [(B, MADE)] * 2 * batches
    size = len(MADE) + 6 + FCS + (16 if target == 2 else 0)
    assert [model.entry_counter(entry) for entry in entries] == [CounterValue(1, size)] * 2 * batches
    assert machine(model).state.generator.counts(2) == Counts(1, batches, 2 * batches)


def test_the_deparser_of_tofino_2_starts_its_application() -> None:
    """DprsrApp."""
    model, context = generating(2, "dprsr", 9, Clock()), 0x0123456789ABCDEF << 64 | 0x1122334455667788
    entries = [
        put(model, "t_dprsr_app", {"hdr.dprsr.pipe_id": 0, "hdr.dprsr.app_id": 9, "hdr.dprsr.batch_id": batch,
                                   "hdr.dprsr.packet_id": number, "hdr.dprsr_context.f": context},
            "count_dprsr_app_and_fwd", dst_port=B)
        for batch in range(2) for number in range(2)
    ]  # fmt: skip
    machine(model).state.generator.write(37 * 16, MADE)
    put(model, "t_handle_external_packet", {"hdr.ethernet.dmac": 1}, "dprsr_trig_and_fwd", dst_port=A, ctx=context,
        pkt_buf_start=37, pkt_len=len(MADE))  # fmt: skip
    machine(model).start(
        Application(9, b"", "deparser", batches=2, packets=2, pattern=context, mask=(1 << 128) - 1)
    )  # fmt: skip
    assert model.process(C, packet(dst=1)) == [(A, packet(dst=1))] + [(B, MADE)] * 4
    assert [model.entry_counter(entry) for entry in entries] == [CounterValue(1, len(MADE) + 6 + 16 + FCS)] * 4


@TARGETS
def test_ports_that_go_down_start_an_application_until_they_did_and_again_when_armed(target: int) -> None:
    """PortDownAppTF1, PortDownAppTF2."""
    model = generating(target, "port_down", 4, Clock())
    for port in (B, C):
        for number in range(5):
            put(model, "t_port_down_app", {"hdr.port_down.pipe_id": 0, "hdr.port_down.app_id": 4,
                                           "hdr.port_down.port_num": port, "hdr.port_down.packet_id": number},
                "count_port_down_app_and_fwd", dst_port=A)  # fmt: skip
    machine(model).start(Application(4, MADE, "port down", packets=5))

    def flap(port: int) -> list[tuple[int, bytes]]:
        model.set_link(port, False)
        found = model.generate()
        model.set_link(port, True)
        return found + model.generate()

    assert [flap(port) for port in (B, C)] == [[(A, MADE)] * 5] * 2
    assert [flap(port) for port in (B, C)] == [[], []]
    machine(model).state.generator.arm(C)
    assert [flap(port) for port in (B, C)] == [[], [(A, MADE)] * 5]
    assert machine(model).state.generator.counts(4) == Counts(3, 3, 15)


# --- checksums (tna_checksum) ------------------------------------------------------------------------


def forwarding(target: int, action: str = "", **data: int) -> Model:
    """The program, whose packets leave by port B, with a default action of ``translate``."""
    model = studio("tna_checksum", target)
    model.set_default("output_port", Action("set_output_port", {"port_id": B}))
    if action:
        model.set_default("translate", Action(action, data))
    return model


@TARGETS
def test_wrong_checksums_are_told_and_stay_or_are_mended(target: int) -> None:
    """Ipv4ChksumTest, Ipv4ChksumErrNoUpdTest, Ipv4ChksumErrUpdTest."""
    wrong = packet(ip_sum=0x4321)
    assert forwarding(target).process(A, packet()) == [(B, packet())]
    assert forwarding(target).process(A, wrong) == [(B, packet(dst=0xDEADBEEF, ip_sum=0x4321))]
    assert forwarding(target, "checksum_upd_ipv4", update=1).process(A, wrong) == [(B, packet(dst=0xDEADBEEF))]


@TARGETS
@pytest.mark.parametrize(
    ("action", "protocol", "data", "changed"),
    [
        ("snat", 6, {"src_addr": 0x04030201}, {"ip_src": 0x04030201}),
        ("stpat", 6, {"src_port": 0x4321}, {"port": 0x4321}),
        ("sntpat", 6, {"src_addr": 0x04030201, "src_port": 0x4321}, {"ip_src": 0x04030201, "port": 0x4321}),
        ("snat", 17, {"src_addr": 0x04030201}, {"ip_src": 0x04030201}),
        ("supat", 17, {"src_port": 0x4321}, {"port": 0x4321}),
        ("snupat", 17, {"src_addr": 0x04030201, "src_port": 0x4321}, {"ip_src": 0x04030201, "port": 0x4321}),
    ],
)
def test_checksums_follow_translations_where_they_are_updated(
    target: int, action: str, protocol: int, data: dict[str, int], changed: dict[str, int]
) -> None:
    """TcpTranslate…, UdpTranslate…, Ipv4TcpTranslate…, Ipv4UdpTranslate…, each with and without UpdTest."""
    sent = packet(protocol=protocol)
    own, inner = sums(sent)
    kept = packet(protocol=protocol, ip_sum=own, sum_=inner, **changed)
    mended = packet(protocol=protocol, **changed)
    assert forwarding(target, action, update=0, **data).process(A, sent) == [(B, kept)]
    assert forwarding(target, action, update=1, **data).process(A, sent) == [(B, mended)]


@TARGETS
def test_udp_without_a_checksum_keeps_none(target: int) -> None:
    """Ipv4UdpTranslateSpecialUpdTest."""
    sent, data = packet(protocol=17, sum_=0), {"src_addr": 0x04030201, "src_port": 0x4321}
    found = forwarding(target, "snupat", update=1, **data).process(A, sent)
    assert found == [(B, packet(protocol=17, sum_=0, ip_src=0x04030201, port=0x4321))]


# --- digests, counters, bridged metadata, port metadata ------------------------------------------------


@TARGETS
def test_digests_have_the_packets_fields(target: int) -> None:
    """DigestTest, DigestTest2 (tna_digest)."""
    model = studio("tna_digest", target)
    assert model.process(C, packet()) == []
    put(model, "dmac", {"hdr.ethernet.dst_addr": 0xABCDEF012345}, "dmac_hit_with_digest", port=A, f=0x123456)
    assert model.process(A, packet(dst=0xABCDEF012345)) == [(A, packet(dst=0xABCDEF012345))]
    first, second = model.digests()
    assert first.name.endswith("digest_a")
    assert [value for _, value in first.fields] == [0x000102030405, C, 0x060708090A0B]
    assert second.name.endswith("digest_b")
    assert [value for _, value in second.fields] == [0xABCDEF012345, 0x123456]


@TARGETS
def test_counters_count_frames_with_their_fcs(target: int) -> None:
    """DirectCounterTest, IndirectCounterTest (tna_counter)."""
    model = studio("tna_counter", target)
    direct = put(model, "forward", {"hdr.ethernet.src_addr": Ternary(0x060708090A0B, 0xFFFFFFFFFFFF)}, "hit", port=B)
    put(model, "forward_dst", {"hdr.ethernet.dst_addr": 0x000102030405}, "hit_dst", port=C)
    for _ in range(2):
        assert model.process(A, packet()) == [(C, packet())]
    assert model.entry_counter(direct) == CounterValue(2, 2 * (100 + FCS))
    assert model.counter("indirect_counter", C) == CounterValue(2, 2 * (100 + FCS))
    assert model.counter("indirect_counter", B) == CounterValue(0, 0)


@TARGETS
def test_egress_sees_what_ingress_bridges(target: int) -> None:
    """NoBridgedMdTest, BridgedMdIgIntrMdTest, BridgedMdExampleHdrTest (tna_bridged_md)."""
    model = studio("tna_bridged_md", target)
    model.set_default("output_port", Action("set_output_port", {"port_id": B}))
    assert model.process(A, packet()) == [(B, packet())]
    model.set_default("bridge_md_ctrl", Action("bridge_add_ig_intr_md"))
    for port in (A, C, SECOND):
        assert model.process(port, packet()) == [(B, packet(dst=port))]
    data = {"dst_mac_addr_low": 0xFFEEDDCC, "src_mac_addr_low": 0xBBAA9988}
    model.set_default("bridge_md_ctrl", Action("bridge_add_example_hdr", data))
    assert model.process(A, packet()) == [(B, packet(dst=0xFFEEDDCC, src=0xBBAA9988))]


@TARGETS
def test_packets_match_the_metadata_of_their_port(target: int) -> None:
    """PortMetadataTest (tna_port_metadata)."""
    model = studio("tna_port_metadata", target)
    for port, field in ((A, 7), (B, 8)):
        value = field << 48 | 2 << 24 | 3 << 8 | 4
        machine(model).set_port_metadata(port, value << (0 if target == 1 else 128))
        match: dict[str, Match] = {f"ig_md.port_md.field{at}": at for at in (2, 3, 4)}
        put(model, "port_md_exm_match", {"ig_md.port_md.field1": field, **match}, "hit", port=field)
    assert model.process(A, packet()) == [(7, packet())]
    assert model.process(B, packet()) == [(8, packet())]
    assert model.process(C, packet()) == []
