"""The ICRC against packets that other people's hardware and software sent."""

from __future__ import annotations

import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.rocev2 import icrc
from p4gen.rocev2.headers import BTH, UDP, AtomicETH, Ethernet, HeaderError, IPv4, ipv4, mac
from p4gen.rocev2.packet import RocePacket

# Captured from an RNIC, 802.1Q priority-tagged. Source: github.com/enjoy-digital/liteeth, test/test_rocev2.py at
# commit b6c75da941ab019d235714607ca386496cea3624, receiver_direct().
LITEETH = {
    "RC SEND_ONLY, 192 bytes of payload": (
        "10e2d5000000b8599f077e2a810000010800450200ec9d4d400040111929c0aa0102c0aa0132fa4f12b700d800000440ffff00deaded"
        "80fedfed001eeac8000055f5d63c3020001eecca000055f5d63c3820001eeecc000055f5d63c4020001ef0ce000055f5d63c4820001e"
        "f2d0000055f5d63c5020001ef4d2000055f5d63c5820001ef6d4000055f5d63c6020001ef8d6000055f5d63c6820001efad8000055f5"
        "d63c7030001efcda000055f5d63c7830001efedc000055f5d63c8030001f00de000055f5d63c8830001f02e0000055f5d63c9030001f"
        "04e2000055f5d63c9830001f06e4000055f5d63ca030001f08e6000055f5d63ca8301e083ed6"
    ),
    "RC ACKNOWLEDGE, MSN 2": (
        "10e2d5000000b8599f077e2a810000010800450200309d4e4000401119e4c0aa0102c0aa0132fa4f12b7001c00001140ffff00deaded"
        "00cf7bf70000000259caeaf7"
    ),
    "RC ACKNOWLEDGE, MSN 4": (
        "10e2d5000000b8599f077e2a810000010800450200309d4f4000401119e3c0aa0102c0aa0132fa4f12b7001c00001140ffff00deaded"
        "00cf7bf900000004a4da30ef"
    ),
}
# Captured on a ConnectX-4 Lx. Source: github.com/secdev/scapy, test/contrib/roce.uts ("RoCE CNP captured on
# ConnectX-4 Lx") at commit ac38b273405b038104df096fe941878937da87cd.
CNP = (
    "e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a001201000012b7002800008100ffff4000"
    "0118000000000000000000000000000000000000000082fd002a"
)
CAPTURES = {name: bytes.fromhex(frame) for name, frame in {**LITEETH, "CNP with BECN set": CNP}.items()}

# Same file, "RoCE layer" and "RoCE over IPv6": UC SEND_ONLY with these 20 bytes (2 of them pad).
UC_PAYLOAD = b"F0\x81\x8b\xe2\x895\xd9\x0e\x9a\x95PT\x01\xbe\x88^P\x00\x00"
UC_BTH = BTH(opcode=0x24, dst_qp=211, psn=13571856, mig_request=True, pad_count=2)


@pytest.mark.parametrize("name", CAPTURES)
def test_captured_frame(name: str) -> None:
    assert icrc.check(CAPTURES[name])


@pytest.mark.parametrize("name", CAPTURES)
def test_captured_frame_with_ethernet_padding(name: str) -> None:
    assert icrc.check(CAPTURES[name] + bytes(7))


@pytest.mark.parametrize("name", CAPTURES)
def test_every_bit_counts_unless_it_may_change_on_the_way(name: str) -> None:
    frame = CAPTURES[name]
    start = 18 if frame[12:14] == b"\x81\x00" else 14
    length_fields = {0, 2, 3}  # version and lengths: changing them moves the ICRC instead
    variant = {1, 8, 10, 11, 26, 27, 32}  # TOS, TTL, IPv4 checksum, UDP checksum, resv8a
    for offset in range(len(frame) - start):
        if offset in length_fields:
            continue
        for bit in range(8):
            changed = bytearray(frame)
            changed[start + offset] ^= 1 << bit
            assert icrc.check(bytes(changed)) == (offset in variant), (offset, bit)


def test_published_ipv4_packet() -> None:
    packet = RocePacket(
        Ethernet(mac("24:8a:07:a8:fa:22"), mac("24:8a:07:a8:fa:22")),
        IPv4(ipv4("192.168.0.7"), ipv4("192.168.0.7"), tos=1, identification=1144),
        UDP(49152, checksum=0xACA2),
        UC_BTH,
        payload=UC_PAYLOAD,
    ).sealed()
    assert (packet.ipv4.total_length, packet.udp.length, packet.ipv4.checksum) == (64, 44, 0xB4D5)
    assert packet.icrc.hex() == "78f353f3"


def test_published_ipv6_packet() -> None:
    ip6 = (6 << 28 | 226 << 20 | 0x1FACE).to_bytes(4) + (44).to_bytes(2) + bytes((17, 255))
    ip6 += bytes.fromhex("2022000000000000000000000000102320230000000000000000000000001024")
    packet = ip6 + UDP(49152, length=44, checksum=0xE7C5).pack() + UC_BTH.pack() + UC_PAYLOAD
    assert icrc.icrc(packet).hex() == "3e5b743b"
    frame = bytes(12) + b"\x86\xdd" + packet
    assert icrc.check(frame + bytes.fromhex("3e5b743b"))
    assert not icrc.check(frame + bytes.fromhex("3e5b743c"))


@given(options=st.integers(0, 10).flatmap(lambda n: st.binary(min_size=4 * n, max_size=4 * n)), body=st.binary())
def test_ipv4_options_are_covered(options: bytes, body: bytes) -> None:
    packet = RocePacket(
        Ethernet(1, 2), IPv4(1, 2, options=options), UDP(), BTH(4, 5, 6), atomic_eth=AtomicETH(1, 2, 3), payload=body
    ).sealed()
    assert icrc.check(packet.to_bytes())
    if options:
        changed = bytearray(packet.to_bytes())
        changed[14 + 20] ^= 1
        assert not icrc.check(bytes(changed))


@pytest.mark.parametrize("packet", [b"", bytes(64), b"\x45" + bytes(38), b"\x4f" + bytes(70), b"\x60" + bytes(30)])
def test_what_cannot_have_an_icrc_is_refused(packet: bytes) -> None:
    with pytest.raises(HeaderError):
        icrc.icrc(packet)


def test_a_cut_frame_is_refused() -> None:
    frame = CAPTURES["CNP with BECN set"]
    with pytest.raises(HeaderError, match="announces 60 bytes, 59 are there"):
        icrc.check(frame[:-1])
    with pytest.raises(HeaderError, match="0x0806 is not IP"):
        icrc.check(frame[:12] + b"\x08\x06" + frame[14:])


@pytest.mark.parametrize("size", [0, 64, 1024, 4096])
def test_changed_headers_change_the_icrc_whatever_the_data_is(size: int) -> None:
    """The patch is the difference of two CRCs that are computed over whole packets, also of headers of two lengths."""
    rng = random.Random(size)
    columns = icrc.behind(size)
    for _ in range(20):
        data, old, new = rng.randbytes(size), rng.randbytes(60), rng.randbytes(rng.choice((56, 60)))
        difference = _word(old) ^ _word(new)
        patch = 0
        for bit, column in enumerate(columns):
            patch ^= column * (difference >> bit & 1)
        assert _word(old + data) ^ patch == _word(new + data)


def _word(part: bytes) -> int:
    """A CRC as a 32-bit number in wire order."""
    return int.from_bytes(zlib.crc32(part).to_bytes(4, "little"))
