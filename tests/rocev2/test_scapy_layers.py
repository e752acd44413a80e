"""Scapy's view of our frames, and ours of Scapy's, must be the same."""

from __future__ import annotations

from hypothesis import given
from scapy.layers import dns, inet, vxlan  # noqa: F401 - dns and vxlan claim source ports for themselves
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from p4gen.rocev2 import scapy_layers as sl
from p4gen.rocev2.headers import BTH, UDP, Ethernet, IPv4
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket, parse, problems

from .roce_strategies import packets


@given(packets())
def test_scapy_dissects_what_we_build(packet: RocePacket) -> None:
    frame = packet.to_bytes()
    seen = Ether(frame)
    bth = seen[sl.BTH]
    assert (bth.opcode, bth.dqpn, bth.psn, bth.padcount, bth.version, bth.pkey) == (
        packet.bth.opcode,
        packet.bth.dst_qp,
        packet.bth.psn,
        packet.bth.pad_count,
        packet.bth.version,
        packet.bth.pkey,
    )
    assert (bth.ackreq, bth.solicited, bth.migreq) == (
        packet.bth.ack_request,
        packet.bth.solicited,
        packet.bth.mig_request,
    )
    assert bth.icrc.to_bytes(4) == packet.icrc
    if packet.reth:
        reth = seen[sl.RETH]
        assert (reth.address, reth.rkey, reth.dma_length) == (
            packet.reth.address,
            packet.reth.rkey,
            packet.reth.dma_length,
        )
    if packet.aeth:
        assert (seen[sl.AETH].syndrome, seen[sl.AETH].msn) == (packet.aeth.syndrome, packet.aeth.msn)
    if packet.immdt:
        assert seen[sl.ImmDt].value == packet.immdt.value
    if packet.atomic_eth:
        atomic = seen[sl.AtomicETH]
        assert (atomic.address, atomic.rkey, atomic.swap_or_add, atomic.compare) == (
            packet.atomic_eth.address,
            packet.atomic_eth.rkey,
            packet.atomic_eth.swap_or_add,
            packet.atomic_eth.compare,
        )
    if packet.payload:
        assert bytes(seen.lastlayer()) == packet.payload
    assert bytes(seen) == frame


@given(packets())
def test_scapy_computes_the_same_icrc(packet: RocePacket) -> None:
    seen = Ether(packet.to_bytes())
    del seen[sl.BTH].icrc
    assert bytes(seen) == packet.to_bytes()


def test_no_source_port_makes_it_another_protocol() -> None:
    """Those that Scapy knows, such as VXLAN's and DNS's, are as good as any for a sender of RoCEv2."""
    ports = {fields["sport"] for fields, _ in inet.UDP.payload_guess if "sport" in fields}
    assert {53, 4789} <= ports
    for port in sorted(ports):
        packet = RocePacket(
            Ethernet(1, 2), IPv4(3, 4), UDP(port), BTH(Opcode.SEND_ONLY, 5, 6), payload=b"data"
        ).sealed()
        assert (port, Ether(packet.to_bytes())[sl.BTH].dqpn) == (port, 5)


def test_a_packet_built_by_scapy_is_right() -> None:
    built = (
        Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
        / inet.IP(src="10.0.0.2", dst="10.0.0.1", flags="DF")
        / inet.UDP(sport=49152, dport=4791, chksum=0)
        / sl.BTH(opcode=int(Opcode.WRITE_ONLY_IMM), dqpn=17, psn=0xFFFFFF)
        / sl.RETH(address=1 << 40, rkey=7, dma_length=8)
        / sl.ImmDt(value=9)
        / Raw(b"12345678")
    )
    frame = bytes(built)
    assert problems(frame) == []
    ours = parse(frame)
    assert ours.immdt is not None
    assert (ours.bth.dst_qp, ours.immdt.value, ours.payload) == (17, 9, b"12345678")
