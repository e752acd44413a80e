"""The fast frames against p4gen.rocev2, which knows nothing of them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from p4gen.host.transport.verbs import Peer
from p4gen.host.transport.wire import Reader, Writer
from p4gen.rocev2.headers import AETH, BTH, UDP, Ethernet, IPv4
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket, parse, problems

MAC, IP = 0x0200_0000_0001, 0x0A00_0001
PEER = Peer(0x0200_0000_0002, 0x0A00_0002, 0x22, udp_src_port=0xC123)


@given(
    st.sampled_from([Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY]),
    st.integers(0, 0xFFFFFF),
    st.booleans(),
    st.binary(max_size=64).map(lambda data: data[: len(data) & ~3]),
    st.booleans(),
)
def test_a_frame_is_right_in_every_field(opcode: Opcode, psn: int, ack: bool, body: bytes, ecn: bool) -> None:
    frame = Writer(MAC, IP, PEER, ecn=ecn).frame(opcode, psn, ack_request=ack, body=body)
    assert problems(frame) == []
    packet = parse(frame)
    assert (packet.eth.src, packet.eth.dst, packet.ip.src, packet.ip.dst) == (MAC, PEER.mac, IP, PEER.ip)
    assert (packet.udp.src_port, packet.ip.tos) == (PEER.udp_src_port, 2 if ecn else 0)
    assert packet.bth == BTH(opcode, PEER.qp, psn, ack_request=ack)
    assert packet.payload == body


def test_a_cnp_is_right() -> None:
    frame = Writer(MAC, IP, PEER).cnp()
    packet = parse(frame)
    assert problems(frame) == []
    assert (packet.bth.opcode, packet.bth.becn, packet.payload) == (Opcode.CNP, True, bytes(16))


def incoming(payload: bytes = bytes(8)) -> RocePacket:
    bth = BTH(Opcode.SEND_ONLY, 0x11, 5, ack_request=True)
    return RocePacket(Ethernet(MAC, PEER.mac), IPv4(PEER.ip, IP), UDP(), bth, payload=payload).sealed()


def test_reading_a_sound_frame() -> None:
    read = Reader(MAC, IP).read(incoming().to_bytes())
    assert read is not None
    start, qp, word = read
    assert (start.src, start.opcode, qp, word) == (PEER.ip, Opcode.SEND_ONLY, 0x11, 1 << 31 | 5)


@given(st.integers(0, 8 * (14 + 20 + 8 + 12 + 8 + 4) - 1))
def test_a_flipped_bit_is_seen_unless_it_may_change_on_the_way(bit: int) -> None:
    frame = bytearray(incoming().to_bytes())
    frame[bit // 8] ^= 1 << bit % 8
    reader = Reader(MAC, IP)
    read = reader.read(bytes(frame))
    # The source MAC address, the UDP checksum and resv8a are nobody's business here.
    unchecked = 6 <= bit // 8 < 12 or 40 <= bit // 8 < 42 or bit // 8 == 46
    assert (read is not None) == unchecked
    assert sum(reader.dropped.values()) == int(not unchecked)


def test_what_is_refused_is_counted_by_reason() -> None:
    sound = incoming()
    cases = {
        "truncated": sound.to_bytes()[:30],
        "foreign_mac": replace(sound, eth=replace(sound.eth, dst=1)).to_bytes(),
        "foreign_ip": replace(sound, ip=replace(sound.ip, dst=1)).sealed().to_bytes(),
        "bad_ip_checksum": sound.sealed(checksum=1).to_bytes(),
        "not_rocev2": replace(sound, udp=replace(sound.udp, dst_port=1)).sealed().to_bytes(),
        "bad_length": sound.to_bytes() + b"\0",
        "bad_icrc": sound.sealed(icrc=bytes(4)).to_bytes(),
        "bad_version": replace(sound, bth=replace(sound.bth, version=1)).sealed().to_bytes(),
        "bad_pkey": replace(sound, bth=replace(sound.bth, pkey=1)).sealed().to_bytes(),
    }
    for reason, frame in cases.items():
        reader = Reader(MAC, IP)
        assert reader.read(frame) is None
        assert dict(reader.dropped) == {reason: 1}


def test_an_ack_is_read() -> None:
    bth = BTH(Opcode.ACKNOWLEDGE, 0x11, 5)
    ack = RocePacket(Ethernet(MAC, PEER.mac), IPv4(PEER.ip, IP), UDP(), bth, aeth=AETH(31, 2)).sealed()
    assert Reader(MAC, IP).read(ack.to_bytes()) is not None
