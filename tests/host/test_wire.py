"""The fast frames against p4gen.rocev2, which knows nothing of them."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.host.compiled.hosts import CompiledHosts
from p4gen.host.transport.verbs import Peer, QpConfig
from p4gen.host.transport.wire import Reader, Writer
from p4gen.rocev2.headers import AETH, BTH, UDP, Ethernet, HeaderError, IPv4, ip_from, ip_header
from p4gen.rocev2.icrc import check, icrc
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket, parse, problems
from p4gen.rocev2.places import IPV4, places_for

MAC = 0x0200_0000_0001
FIRST = {"ipv4": ip_from("10.0.0.1"), "ipv6": ip_from("fd00::ffff:0:0:1")}
kinds = pytest.mark.parametrize("ip", [pytest.param(ip, id=kind) for kind, ip in FIRST.items()])
"""The address of the host; its peer has the next one."""


def peer_of(ip: int) -> Peer:
    return Peer(0x0200_0000_0002, ip + 1, 0x22, udp_src_port=0xC123)


@kinds
@given(
    st.sampled_from([Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY]),
    st.integers(0, 0xFFFFFF),
    st.booleans(),
    st.binary(max_size=64).map(lambda data: data[: len(data) & ~3]),
    st.booleans(),
)
def test_a_frame_is_right_in_every_field(ip: int, opcode: Opcode, psn: int, ack: bool, body: bytes, ecn: bool) -> None:
    peer = peer_of(ip)
    frame = Writer(MAC, ip, peer, ecn=ecn).frame(opcode, psn, ack_request=ack, body=body)
    assert problems(frame) == []
    packet = parse(frame)
    assert (packet.eth.src, packet.eth.dst, packet.ip.src, packet.ip.dst) == (MAC, peer.mac, ip, peer.ip)
    assert (packet.udp.src_port, packet.udp.checksum) == (peer.udp_src_port, 0)
    assert (packet.ip.tos, packet.ip.ttl) == (2 if ecn else 0, 64)
    assert packet.bth == BTH(opcode, peer.qp, psn, ack_request=ack)
    assert packet.payload == body


def test_addresses_of_different_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="addresses of different kinds"):
        Writer(MAC, FIRST["ipv4"], peer_of(FIRST["ipv6"]))


@kinds
def test_a_cnp_is_right(ip: int) -> None:
    frame = Writer(MAC, ip, peer_of(ip)).cnp()
    packet = parse(frame)
    assert problems(frame) == []
    assert (packet.bth.opcode, packet.bth.becn, packet.payload) == (Opcode.CNP, True, bytes(16))


def incoming(ip: int, opcode: Opcode = Opcode.SEND_ONLY) -> RocePacket:
    """A packet from the peer."""
    peer, kind = peer_of(ip), places_for(ip).ether_type
    aeth, payload = (AETH(31, 2), b"") if opcode is Opcode.ACKNOWLEDGE else (None, bytes(8))
    bth = BTH(opcode, 0x11, 5, ack_request=aeth is None)
    heads = Ethernet(MAC, peer.mac, kind), ip_header(peer.ip, ip), UDP(), bth
    return RocePacket(*heads, aeth=aeth, payload=payload).sealed()


@kinds
def test_reading_a_sound_frame(ip: int) -> None:
    read = Reader(MAC, ip).read(incoming(ip).to_bytes())
    assert read is not None
    start, qp, word = read
    assert (start.src, start.opcode, qp, word) == (ip + 1, Opcode.SEND_ONLY, 0x11, 1 << 31 | 5)


@kinds
@given(st.data())
def test_a_flipped_bit_is_seen_unless_it_may_change_on_the_way(ip: int, data: st.DataObject) -> None:
    frame, places = bytearray(incoming(ip).to_bytes()), places_for(ip)
    bit = data.draw(st.integers(0, 8 * len(frame) - 1))
    frame[bit // 8] ^= 1 << bit % 8
    reader = Reader(MAC, ip)
    read = reader.read(bytes(frame))
    # The source MAC address is nobody's business here, nor are the UDP checksum, resv8a, and what routers change of
    # IPv6's header. IPv4's has a checksum.
    changed = bit // 8
    unchecked = 6 <= changed < 12
    if changed >= (places.udp if places is IPV4 else places.ip):
        with contextlib.suppress(HeaderError):
            unchecked = check(bytes(frame))
    assert (read is not None) == unchecked
    assert sum(reader.dropped.values()) == int(not unchecked)


@kinds
def test_what_is_refused_is_counted_by_reason(ip: int) -> None:
    sound, (other,) = incoming(ip), (each for each in FIRST.values() if each != ip)
    cases = {
        "truncated": sound.to_bytes()[:30],
        "foreign_mac": replace(sound, eth=replace(sound.eth, dst=1)).to_bytes(),
        "foreign_ip": replace(sound, ip=replace(sound.ip, dst=1)).sealed().to_bytes(),
        f"not_udp_over_{places_for(ip).name}": incoming(other).to_bytes(),
        "not_rocev2": replace(sound, udp=replace(sound.udp, dst_port=1)).sealed().to_bytes(),
        "bad_length": sound.to_bytes() + b"\0",
        "bad_icrc": sound.sealed(icrc=bytes(4)).to_bytes(),
        "bad_version": replace(sound, bth=replace(sound.bth, version=1)).sealed().to_bytes(),
        "bad_pkey": replace(sound, bth=replace(sound.bth, pkey=1)).sealed().to_bytes(),
    }
    if isinstance(sound.ip, IPv4):
        cases["bad_ip_checksum"] = sound.sealed(checksum=1).to_bytes()
    for reason, frame in cases.items():
        reader = Reader(MAC, ip)
        assert reader.read(frame) is None
        assert dict(reader.dropped) == {reason: 1}


@kinds
def test_an_ack_is_read(ip: int) -> None:
    assert Reader(MAC, ip).read(incoming(ip, Opcode.ACKNOWLEDGE).to_bytes()) is not None


@st.composite
def arrivals(draw: st.DrawFn) -> bytes:
    """A frame for a host with either address: right, or changed, cut or extended, with an ICRC that is right anew or is
    not; or any bytes."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=200))
    ip = draw(st.sampled_from(sorted(FIRST.values())))
    opcodes = [Opcode.SEND_ONLY, Opcode.SEND_FIRST, Opcode.ACKNOWLEDGE, Opcode.CNP, Opcode.READ_REQUEST]
    frame = bytearray(incoming(ip, draw(st.sampled_from(opcodes))).to_bytes())
    for _ in range(draw(st.integers(0, 3))):
        frame[draw(st.integers(0, len(frame) - 1))] = draw(st.integers(0, 255))
    frame = frame[: len(frame) - draw(st.sampled_from([0, 0, 0, 1, 8, 20, 50]))] + bytes(
        draw(st.sampled_from([0, 0, 4]))
    )
    with contextlib.suppress(HeaderError):
        if draw(st.booleans()):
            frame[-4:] = icrc(bytes(frame[14:-4]))
    return bytes(frame)


@kinds
@given(st.lists(arrivals(), min_size=1, max_size=8))
def test_machine_code_takes_what_the_reader_takes(ip: int, frames: list[bytes]) -> None:
    hosts = CompiledHosts(512, 1)
    nic = hosts.add(MAC, ip)
    nic.collect()
    pair = nic.create_pair(0x11, peer_of(ip), QpConfig(), lambda _: None)
    for frame in frames:
        reader, before, broken = Reader(MAC, ip), nic.dropped.copy(), pair.broken is not None
        read = reader.read(frame)
        wanted = reader.dropped
        if read is not None:
            start, qp, _ = read
            size = len(frame) != places_for(ip).answer and start.opcode == Opcode.ACKNOWLEDGE
            if qp != 0x11:
                wanted["unknown_qp"] += 1
            elif start.src != ip + 1:
                wanted["unknown_source"] += 1
            elif broken or size:
                wanted["broken_qp" if broken else "bad_length"] += 1
        nic.receive(frame)
        assert nic.dropped - before == wanted
