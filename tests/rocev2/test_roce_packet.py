from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.rocev2.codes import ETHERTYPE_IPV6
from p4gen.rocev2.headers import AETH, BTH, UDP, Ethernet, HeaderError, IPv4, internet_checksum, ip_header
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket, parse, problems

from .roce_strategies import IPV4, IPV6, packets

SEND = RocePacket(Ethernet(1, 2), IPv4(3, 4), UDP(), BTH(Opcode.SEND_ONLY, 5, 6), payload=bytes(range(16))).sealed()
ACK = RocePacket(Ethernet(1, 2), IPv4(3, 4), UDP(), BTH(Opcode.ACKNOWLEDGE, 5, 6), aeth=AETH(0x1F, 7)).sealed()


@given(packets(IPV4 | IPV6))
def test_parse_undoes_to_bytes(packet: RocePacket) -> None:
    assert parse(packet.to_bytes()) == packet


@given(packets(IPV4 | IPV6))
def test_a_sealed_packet_has_no_problems(packet: RocePacket) -> None:
    fit = replace(packet, bth=replace(packet.bth, version=0, pad_count=0)).sealed()
    assert problems(fit.to_bytes()) == []


@given(packets(IPV4 | IPV6), st.data())
def test_parsing_a_cut_frame_fails_cleanly(packet: RocePacket, data: st.DataObject) -> None:
    frame = packet.to_bytes()
    with pytest.raises(HeaderError):
        parse(frame[: data.draw(st.integers(0, len(frame) - 1))])


def test_lengths_count_the_icrc() -> None:
    assert (SEND.ip.total_length, SEND.udp.length) == (20 + 8 + 12 + 16 + 4, 8 + 12 + 16 + 4)
    assert ACK.ip.total_length == 48


def test_ethernet_padding_is_kept_apart() -> None:
    packet = parse(ACK.to_bytes() + bytes(2))
    assert packet == replace(ACK, padding=bytes(2))


@pytest.mark.parametrize(
    ("frame", "complaint"),
    [
        (SEND.sealed(udp_length=30), r"UDP length is 30, the IP packet leaves 40"),
        (SEND.sealed(checksum=1), r"IPv4 checksum is 0x0001, not 0x[0-9a-f]{4}"),
        (SEND.sealed(icrc=bytes(4)), r"ICRC is 00000000, not [0-9a-f]{8}"),
        (replace(SEND, udp=replace(SEND.udp, checksum=5)), r"UDP checksum 0x0005 is wrong"),
        (replace(SEND, bth=replace(SEND.bth, version=1)).sealed(), r"BTH version is 1"),
        (replace(SEND, payload=b"12345").sealed(), r"payload is 5 bytes with a pad count of 0"),
        (replace(ACK, bth=replace(ACK.bth, pad_count=1)).sealed(), r"payload is 0 bytes with a pad count of 1"),
        (replace(SEND, padding=b"x"), r"1 bytes follow the IP packet"),
        (SEND.sealed(total_length=61), r"total length is 61, 60 bytes are there"),
        (SEND.sealed(total_length=43), r"ICRC: 4 bytes needed, 3 left"),
        (replace(ACK, aeth=None).sealed(), r"ICRC: 4 bytes needed, 0 left"),
        (replace(SEND, udp=replace(SEND.udp, dst_port=53)).sealed(), r"destination port 53 is not RoCEv2's"),
        (replace(SEND, ip=replace(SEND.ip, protocol=6)).sealed(), r"protocol 6 is not UDP"),
        (replace(SEND, ip=replace(SEND.ipv4, flags=1)).sealed(), r"a fragment"),
        (replace(SEND, eth=Ethernet(1, 2, 0x0806)).sealed(), r"ethertype 0x0806 is not IP"),
    ],
)
def test_each_fault_alone_is_named(frame: RocePacket, complaint: str) -> None:
    (found,) = problems(frame.to_bytes())
    assert re.search(complaint, found)


def test_udp_checksum() -> None:
    packet = SEND.with_udp_checksum()
    segment = SEND.udp.pack() + SEND.transport() + SEND.icrc
    pseudo = SEND.ip.src.to_bytes(4) + SEND.ip.dst.to_bytes(4) + bytes((0, 17)) + len(segment).to_bytes(2)
    assert packet.udp.checksum == internet_checksum(pseudo, segment)
    assert problems(packet.to_bytes()) == []


def test_lengths_over_ipv6() -> None:
    packet = replace(SEND, eth=Ethernet(1, 2, ETHERTYPE_IPV6), ip=ip_header(1 << 127, 1 << 126)).sealed()
    assert (packet.ip.total_length, packet.udp.length) == (40 + 8 + 12 + 16 + 4, 8 + 12 + 16 + 4)
    assert problems(replace(packet, ip=replace(packet.ip, dst=5)).to_bytes()) != []
    with pytest.raises(TypeError):
        _ = packet.ipv4


@given(packets(IPV4 | IPV6))
def test_udp_checksum_is_never_zero_and_leaves_the_icrc_alone(packet: RocePacket) -> None:
    summed = packet.with_udp_checksum()
    assert summed.udp.checksum
    assert not [problem for problem in problems(summed.to_bytes()) if "UDP" in problem or "ICRC" in problem]
