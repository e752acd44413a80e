"""Numbers in the headers of RoCEv2 frames, and of what else a switch meets on Ethernet.

Opcodes and syndromes are in ``p4gen.rocev2.opcodes``.
"""

from __future__ import annotations

from typing import Final

from p4gen.rocev2.layouts import ARP_FORM, BTH

ETHERTYPE_IPV4: Final = 0x0800
ETHERTYPE_IPV6: Final = 0x86DD
ETHERTYPE_ARP: Final = 0x0806
ETHERTYPE_VLAN: Final = 0x8100
ETHERTYPE_QINQ: Final = 0x88A8
"""Of the outer one of two tags (IEEE 802.1ad)."""
PROTOCOL_UDP: Final = 17
PROTOCOL_ICMPV6: Final = 58
ROCE_UDP_PORT: Final = 4791
"""The UDP destination port of RoCEv2 (IANA; annex A17)."""

UD_SEND_ONLY: Final = 0x64
"""BTH opcode of a datagram in one packet (InfiniBand 9.2.1)."""
MANAGEMENT_QP: Final = 1
"""The QP of general services: management datagrams."""
MAD_BYTES: Final = 256
"""Length of every management datagram (InfiniBand 13.4.2)."""
CM_CLASS: Final = 0x07
"""The management class of communication management (InfiniBand 16.7)."""

ECN_ECT1: Final = 0b01
ECN_ECT0: Final = 0b10
ECN_CE: Final = 0b11
"""ECN codepoints of senders that understand marks, and of a mark: congestion experienced (RFC 3168)."""

DEFAULT_PKEY: Final = 0xFFFF
"""The default partition, as a full member."""
BECN: Final = BTH["reserved1"].mask("becn")
"""The byte of the BTH in congestion notifications that holds BECN."""


def arp_form(operation: int) -> int:
    """The fixed fields with which ARP for IPv4 over Ethernet begins (RFC 826)."""
    return ARP_FORM.pack(hardware=1, protocol=ETHERTYPE_IPV4, hardware_size=6, protocol_size=4, operation=operation)


NDP_SOLICITATION: Final = 135 << 8
NDP_ADVERTISEMENT: Final = 136 << 8
NDP_SOURCE_MAC: Final = 1 << 8 | 1
NDP_TARGET_MAC: Final = 2 << 8 | 1
NDP_ANSWERS: Final = 0b111 << 29
NDP_HOP_LIMIT: Final = 255
"""Neighbour discovery (RFC 4861): types with code 0, options with their length, and flags of a router's answer."""

ARP_REQUEST: Final = arp_form(1)
ARP_REPLY: Final = arp_form(2)
