"""RoCEv2's invariant CRC, over raw bytes: it uses no layout of p4gen's, so that it can check code that does.

InfiniBand Architecture Specification, volume 1, §7.8.1 and annex A17.3.3: CRC-32 (polynomial 0x04C11DB7, the one of
Ethernet) over eight bytes of ones in place of the LRH, the IP header, the UDP header, the BTH and the rest. Every field
that may change on the way counts as ones: IPv4's type of service, time to live and header checksum (IPv6's traffic
class, flow label and hop limit), UDP's checksum, and the BTH's byte resv8a (FECN, BECN, reserved). The CRC goes onto
the wire least significant byte first.
"""

from __future__ import annotations

import zlib
from typing import Final

from p4gen.rocev2.codes import ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_QINQ, ETHERTYPE_VLAN
from p4gen.rocev2.headers import HeaderError

ICRC_SIZE: Final = 4
_LRH_ONES: Final = b"\xff" * 8
_VLAN_TAGS: Final = (ETHERTYPE_VLAN, ETHERTYPE_QINQ)
_UDP_BTH: Final = 8 + 12


def behind(size: int) -> tuple[int, ...]:
    """How a difference in the CRC of the first part of a packet changes the ICRC, if ``size`` bytes follow.

    The CRC is linear: each bit of the difference flips the same bits of the ICRC, whatever the bytes are. The result
    has these bits for each bit of the difference, the lowest first; both are 32-bit numbers in wire order.
    """
    end = bytes(size)
    none = zlib.crc32(end)
    columns = (zlib.crc32(end, _swapped(1 << bit)) ^ none for bit in range(8 * ICRC_SIZE))
    return tuple(map(_swapped, columns))


def _swapped(crc: int) -> int:
    return int.from_bytes(crc.to_bytes(ICRC_SIZE, "little"), "big")


def icrc(ip_packet: bytes) -> bytes:
    """The four ICRC bytes, in wire order, of a packet given without them.

    ``ip_packet`` runs from the IP header's first byte (IPv4 with or without options, or IPv6) to the last byte
    before the ICRC. Its length fields must already count the ICRC: they are covered. Raises HeaderError when it is
    too short for IP, UDP and BTH, or neither IPv4 nor IPv6.
    """
    masked = bytearray(ip_packet)
    udp = _mask_ip(masked)
    if len(masked) < udp + _UDP_BTH:
        raise HeaderError(f"ICRC: {len(masked)} bytes cannot hold IP, UDP and BTH headers")
    masked[udp + 6 : udp + 8] = b"\xff\xff"
    masked[udp + 8 + 4] = 0xFF
    return zlib.crc32(masked, zlib.crc32(_LRH_ONES)).to_bytes(ICRC_SIZE, "little")


def check(frame: bytes) -> bool:
    """Whether an Ethernet frame's ICRC is right.

    The IP header's length says where the ICRC lies, so Ethernet padding does no harm; VLAN tags are skipped.
    Raises HeaderError when the frame is not IP or ends before its ICRC.
    """
    packet = _ip_packet(frame)
    return icrc(packet[:-ICRC_SIZE]) == packet[-ICRC_SIZE:]


def _mask_ip(packet: bytearray) -> int:
    """Set the IP header's variant fields to ones; returns where UDP starts."""
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= 20:
        packet[1] = 0xFF
        packet[8] = 0xFF
        packet[10:12] = b"\xff\xff"
        return 4 * (packet[0] & 0xF)
    if version == 6 and len(packet) >= 40:
        packet[0] |= 0x0F
        packet[1:4] = b"\xff\xff\xff"
        packet[7] = 0xFF
        return 40
    raise HeaderError("ICRC: neither an IPv4 nor an IPv6 packet")


def _ip_packet(frame: bytes) -> bytes:
    """The frame's IP packet, cut to the length its header announces."""
    start = 12
    while int.from_bytes(frame[start : start + 2]) in _VLAN_TAGS:
        start += 4
    ethertype, start = int.from_bytes(frame[start : start + 2]), start + 2
    packet = frame[start:]
    if ethertype == ETHERTYPE_IPV4:
        length = int.from_bytes(packet[2:4])
    elif ethertype == ETHERTYPE_IPV6:
        length = 40 + int.from_bytes(packet[4:6])
    else:
        raise HeaderError(f"ICRC: ethertype {ethertype:#06x} is not IP")
    if len(packet) < length:
        raise HeaderError(f"ICRC: the IP header announces {length} bytes, {len(packet)} are there")
    return packet[:length]
