"""RoCEv2 packets, and datagrams of other protocols, that are not as they should be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from p4gen.rocev2.headers import IPv4, IPv6
from p4gen.rocev2.packet import RocePacket

OTHER_LENGTHS = (4, 8, 12, 24)
"""So many bytes longer: as long as packets of other kinds are."""


def malformed(packet: RocePacket, other: str = "unknown") -> Iterator[tuple[bytes, str]]:
    """Frames that differ in one thing from a packet's, and the reasons for which they are dropped: ``other`` those as
    long as packets of other kinds."""
    good = packet.to_bytes()
    ip = 14 if packet.vlan is None else 18
    short, long = (_longer(packet.ip, by).pack() for by in (-5, 5))
    behind = ip + packet.ip.size
    yield good[:-1], "truncated"
    yield good[:-5], "truncated"
    yield good[:ip] + short + good[behind:-5], "truncated"
    yield good[:ip] + long + good[behind:], "truncated"
    if isinstance(packet.ip, IPv4):
        yield good[: ip + 10] + bytes((good[ip + 10] ^ 1,)) + good[ip + 11 :], "bad_ip_checksum"
    for bth, reason in (
        (replace(packet.bth, version=1), "bad_version"),
        (replace(packet.bth, pkey=0x7FFE), "bad_pkey"),
        (replace(packet.bth, pad_count=1), "bad_length"),
    ):
        yield replace(packet, bth=bth).sealed().to_bytes(), reason
    yield good + bytes(1), "bad_length"
    for by in (-4, 4):
        yield packet.sealed(udp_length=packet.udp.length + by).to_bytes(), "bad_length"
    for more in OTHER_LENGTHS:
        yield replace(packet, payload=packet.payload + bytes(more)).sealed().to_bytes(), other


def malformed_datagram(good: bytes) -> Iterator[tuple[bytes, str]]:
    """The same for an untagged UDP datagram over IPv4 whose contents are longer than its headers: frames with other
    lengths, or a wrong checksum."""
    ip, behind = IPv4.unpack(good, 14), good[34:]
    length = int.from_bytes(behind[4:6])
    yield good[:-1], "truncated"
    yield good[:-5], "truncated"
    yield good[:60], "truncated"
    yield good[:24] + bytes((good[24] ^ 1,)) + good[25:], "bad_ip_checksum"
    yield good + bytes(1), "bad_length"
    for by in (-4, 4):
        yield good[:38] + (length + by).to_bytes(2) + good[40:], "bad_length"
    short, long = (good[:14] + _longer(ip, by).pack() + behind for by in (-4, 4))
    yield long + bytes(4), "bad_length"
    yield short[:-4], "truncated"
    yield long, "truncated"


def _longer(ip: IPv4 | IPv6, by: int) -> IPv4 | IPv6:
    """A header that announces so many bytes more."""
    if isinstance(ip, IPv6):
        return replace(ip, payload_length=ip.payload_length + by)
    longer = replace(ip, total_length=ip.total_length + by)
    return replace(longer, checksum=longer.right_checksum())
