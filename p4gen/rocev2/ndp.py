"""Neighbour discovery (RFC 4861): how a host finds the MAC address of its gateway over IPv6, as by ARP over IPv4."""

from __future__ import annotations

from typing import Final

from p4gen.layout import Stack
from p4gen.rocev2.codes import (
    ETHERTYPE_IPV6,
    NDP_ADVERTISEMENT,
    NDP_HOP_LIMIT,
    NDP_SOLICITATION,
    NDP_SOURCE_MAC,
    NDP_TARGET_MAC,
    PROTOCOL_ICMPV6,
)
from p4gen.rocev2.headers import Ethernet, IPv6, internet_checksum, ip_from
from p4gen.rocev2.layouts import ETHERNET, IPV6, NDP

_SOLICITED: Final = ip_from("ff02::1:ff00:0")
_GROUP_MACS: Final = 0x3333_0000_0000
"""A solicitation goes to this group, with the last 24 bits of the address (RFC 4291, 2.7.1), and to the MAC address
with the last 32 bits of the group's (RFC 2464, 7)."""
_STACK: Final = Stack(ETHERNET, IPV6, NDP)


def solicitation(mac: int, ip: int, target: int) -> bytes:
    """The frame that asks for the MAC address of ``target``, from the host with these addresses."""
    group = _SOLICITED | target & 0xFF_FFFF
    fields = {"form": NDP_SOLICITATION, "flags": 0, "target": target, "option": NDP_SOURCE_MAC, "mac": mac}
    blank = NDP.word.pack(checksum=0, **fields).to_bytes(NDP.size)
    header = IPv6(ip, group, protocol=PROTOCOL_ICMPV6, ttl=NDP_HOP_LIMIT, payload_length=NDP.size)
    pseudo = ip.to_bytes(16) + group.to_bytes(16) + NDP.size.to_bytes(4) + PROTOCOL_ICMPV6.to_bytes(4)
    body = NDP.word.pack(checksum=internet_checksum(pseudo, blank), **fields).to_bytes(NDP.size)
    return Ethernet(_GROUP_MACS | group & 0xFFFF_FFFF, mac, ETHERTYPE_IPV6).pack() + header.pack() + body


def advertised(frame: bytes, target: int) -> int | None:
    """The MAC address of ``target``, if the frame is an advertisement that gives it."""
    if len(frame) < _STACK.size:
        return None
    wanted = (
        ("ethernet.ether_type", ETHERTYPE_IPV6), ("ipv6.next_header", PROTOCOL_ICMPV6),
        ("ndp.form", NDP_ADVERTISEMENT), ("ndp.target", target), ("ndp.option", NDP_TARGET_MAC),
    )  # fmt: skip
    if any(int.from_bytes(frame[_STACK.bytes(field)]) != value for field, value in wanted):
        return None
    return int.from_bytes(frame[_STACK.bytes("ndp.mac")])
