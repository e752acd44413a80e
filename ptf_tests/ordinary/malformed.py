"""RoCEv2 packets that are not as they should be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from p4gen.rocev2.packet import RocePacket

OTHER_LENGTHS = (4, 8, 12, 24)
"""So many bytes longer: as long as packets of other kinds are."""


def malformed(packet: RocePacket, other: str = "unknown") -> Iterator[tuple[bytes, str]]:
    """Frames that differ in one thing from a packet's, and the reasons for which they are dropped: ``other`` those as
    long as packets of other kinds."""
    good = packet.to_bytes()
    ip = 14 if packet.vlan is None else 18
    length = packet.ipv4.total_length
    assert length is not None
    short, long = (replace(packet.ipv4, total_length=length + by) for by in (-5, 5))
    yield good[:-1], "truncated"
    yield good[:-5], "truncated"
    yield good[:ip] + replace(short, checksum=short.right_checksum()).pack() + good[ip + 20 : -5], "truncated"
    yield good[:ip] + replace(long, checksum=long.right_checksum()).pack() + good[ip + 20 :], "truncated"
    yield good[: ip + 10] + bytes((good[ip + 10] ^ 1,)) + good[ip + 11 :], "bad_ip_checksum"
    for bth, reason in (
        (replace(packet.bth, version=1), "bad_version"),
        (replace(packet.bth, pkey=0x7FFE), "bad_pkey"),
        (replace(packet.bth, pad_count=1), "bad_length"),
    ):
        yield replace(packet, bth=bth).sealed().to_bytes(), reason
    yield good + bytes(1), "bad_length"
    for by in (-4, 4):
        yield packet.sealed(udp_length=length - 20 + by).to_bytes(), "bad_length"
    for more in OTHER_LENGTHS:
        yield replace(packet, payload=packet.payload + bytes(more)).sealed().to_bytes(), other
