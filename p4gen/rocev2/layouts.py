"""The headers of RoCEv2 frames as data, and of what else a switch meets on Ethernet.

Families choose the headers of their programs from here (``ProgramParts.headers``); ``p4gen.rocev2.headers`` has records
of them. Layouts: IEEE 802.3 and 802.1Q, RFC 826, RFC 791, RFC 768, InfiniBand specification volume 1, 9.2, 9.3 and
A17.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from p4gen.layout import Field, Header, HeaderField, Stack, Word

MAC_BITS: Final = 48
IPV4_BITS: Final = 32
IPV6_BITS: Final = 128
QP_BITS: Final = 24
PSN_BITS: Final = 24
OPCODE_BITS: Final = 8


def _mac(name: str, meaning: str) -> HeaderField:
    return HeaderField(name, MAC_BITS, meaning, type="mac_addr_t")


def _ipv4(name: str, meaning: str) -> HeaderField:
    return HeaderField(name, IPV4_BITS, meaning, type="ipv4_addr_t")


def _ipv6(name: str, meaning: str) -> HeaderField:
    return HeaderField(name, IPV6_BITS, meaning, type="ipv6_addr_t")


ETHERNET: Final = Header(
    "ethernet",
    "Ethernet II",
    (
        _mac("dst_addr", "destination address"),
        _mac("src_addr", "source address"),
        HeaderField("ether_type", 16, "EtherType of what follows"),
    ),
)
VLAN: Final = Header(
    "vlan",
    "A VLAN tag (IEEE 802.1Q): it stays on the packet and on all that is made of it",
    (
        HeaderField("priority", 3, "priority"),
        HeaderField("drop_eligible", 1, "drop eligible"),
        HeaderField("vlan", 12, "VLAN"),
        HeaderField("ether_type", 16, "EtherType of what follows"),
    ),
    noted=True,
)
INNER_VLAN: Final = replace(VLAN, name="inner_vlan", meaning="The inner one of two VLAN tags (IEEE 802.1ad)")
ARP_FORM: Final = Word(
    Field("hardware", 16, "hardware type"),
    Field("protocol", 16, "protocol type"),
    Field("hardware_size", 8, "length of a hardware address"),
    Field("protocol_size", 8, "length of a protocol address"),
    Field("operation", 16, "operation"),
)
ARP: Final = Header(
    "arp",
    "ARP for IPv4 over Ethernet (RFC 826)",
    (
        HeaderField("form", 64, "hardware type, protocol type, their address lengths, operation", ARP_FORM, noted=True),
        _mac("src_mac", "sender's MAC address"),
        _ipv4("src_addr", "sender's IPv4 address"),
        _mac("dst_mac", "target's MAC address"),
        _ipv4("dst_addr", "target's IPv4 address"),
    ),
    noted=True,
)
IPV4: Final = Header(
    "ipv4",
    "IPv4 without options (RFC 791)",
    (
        HeaderField("version", 4, "4"),
        HeaderField("ihl", 4, "length of the header in words of 32 bits"),
        HeaderField("dscp", 6, "differentiated services", variant=True),
        HeaderField("ecn", 2, "explicit congestion notification (RFC 3168)", variant=True),
        HeaderField("total_length", 16, "bytes from here to the packet's end"),
        HeaderField("identification", 16, "number of the datagram, for its fragments"),
        HeaderField(
            "flags",
            3,
            "of fragments",
            Word(
                Field("reserved", 1, "reserved"),
                Field("dont_fragment", 1, "1: may not be fragmented"),
                Field("more_fragments", 1, "1: more fragments follow"),
            ),
        ),
        HeaderField("fragment_offset", 13, "the fragment's place in the datagram, in units of 8 bytes"),
        HeaderField("ttl", 8, "time to live", variant=True),
        HeaderField("protocol", 8, "protocol of what follows"),
        HeaderField("checksum", 16, "of the header", variant=True),
        _ipv4("src_addr", "source address"),
        _ipv4("dst_addr", "destination address"),
    ),
)
IPV6: Final = Header(
    "ipv6",
    "IPv6 (RFC 8200)",
    (
        HeaderField("version", 4, "6"),
        HeaderField("dscp", 6, "differentiated services", variant=True),
        HeaderField("ecn", 2, "explicit congestion notification (RFC 3168)", variant=True),
        HeaderField("flow_label", 20, "of a flow (RFC 6437)", variant=True),
        HeaderField("payload_length", 16, "bytes behind this header"),
        HeaderField("next_header", 8, "protocol of what follows"),
        HeaderField("hop_limit", 8, "routers left", variant=True),
        _ipv6("src_addr", "source address"),
        _ipv6("dst_addr", "destination address"),
    ),
)
NDP: Final = Header(
    "ndp",
    "A neighbour's solicitation or advertisement, with a MAC address (RFC 4861, 4.3, 4.4, 4.6.1)",
    (
        HeaderField("form", 16, "ICMPv6's type and code", noted=True),
        HeaderField("checksum", 16, "as RFC 4443 has it (2.3)"),
        HeaderField("flags", 32, "router, solicited, override", noted=True),
        _ipv6("target", "address in question"),
        HeaderField("option", 16, "type and length", noted=True),
        _mac("mac", "MAC address"),
    ),
    noted=True,
)
UDP: Final = Header(
    "udp",
    "UDP (RFC 768)",
    (
        HeaderField("src_port", 16, "source port"),
        HeaderField("dst_port", 16, "destination port"),
        HeaderField("length", 16, "bytes from here to the datagram's end"),
        HeaderField("checksum", 16, "0: none", variant=True),
    ),
)
BTH: Final = Header(
    "bth",
    "Base transport header (InfiniBand 9.2)",
    (
        HeaderField("opcode", OPCODE_BITS, "service and operation", type="opcode_t"),
        HeaderField("solicited", 1, "1: the receiver may be woken"),
        HeaderField("migration", 1, "state of path migration"),
        HeaderField("pad_count", 2, "bytes that fill the payload up to words of 32 bits"),
        HeaderField("version", 4, "0"),
        HeaderField(
            "partition_key",
            16,
            "partition",
            Word(Field("full_member", 1, "1: a full member"), Field("key", 15, "number of the partition")),
        ),
        HeaderField(
            "reserved1",
            8,
            "FECN, BECN and resv8a: variant, so the ICRC takes them as ones",
            Word(
                Field("fecn", 1, "1: congestion on the way here"),
                Field("becn", 1, "1: congestion on the way back"),
                Field("resv8a", 6, "reserved"),
            ),
            noted=True,
            variant=True,
        ),
        HeaderField("dest_qp", QP_BITS, "destination queue pair", type="qp_t"),
        HeaderField("ack_request", 1, "1: an acknowledgement is asked for"),
        HeaderField("reserved2", 7, "reserved"),
        HeaderField("psn", PSN_BITS, "packet sequence number", type="psn_t"),
    ),
    noted=True,
)
RETH: Final = Header(
    "reth",
    "RDMA extended transport header (InfiniBand 9.3.3)",
    (
        HeaderField("address", 64, "remote virtual address"),
        HeaderField("rkey", 32, "remote key"),
        HeaderField("dma_length", 32, "bytes of the whole message"),
    ),
    noted=True,
)
SYNDROME: Final = Word(
    Field("upper", 3, "", Word(Field("reserved", 1, "reserved"), Field("kind", 2, "ACK, RNR NAK or NAK"))),
    Field("value", 5, "value"),
)
"""An AETH syndrome (InfiniBand 9.7.5.1.1)."""
AETH: Final = Header(
    "aeth",
    "ACK extended transport header (InfiniBand 9.3.5)",
    (
        HeaderField("syndrome", SYNDROME.bits, "ACK, RNR NAK or NAK, and its value", SYNDROME),
        HeaderField("msn", 24, "message sequence number"),
    ),
    noted=True,
)
IMMEDIATE: Final = Header(
    "immediate", "Immediate data (InfiniBand 9.3.6)", (HeaderField("value", 32, "immediate data"),), noted=True
)
ATOMIC: Final = Header(
    "atomic",
    "Atomic extended transport header (InfiniBand 9.3.4)",
    (
        HeaderField("address", 64, "remote virtual address"),
        HeaderField("rkey", 32, "remote key"),
        HeaderField("swap_or_add", 64, "what is swapped in, or added"),
        HeaderField("compare", 64, "what is compared with"),
    ),
    noted=True,
)
ATOMIC_ACK: Final = Header(
    "atomic_ack",
    "Atomic ACK extended transport header (InfiniBand 9.3.5.3)",
    (HeaderField("original", 64, "the value before the operation"),),
    noted=True,
)
DETH: Final = Header(
    "deth",
    "Datagram extended transport header (InfiniBand 9.3.2)",
    (
        HeaderField("queue_key", 32, "key of the destination queue"),
        HeaderField("reserved", 8, "reserved"),
        HeaderField("source_qp", QP_BITS, "source queue pair", type="qp_t"),
    ),
    noted=True,
)
MAD: Final = Header(
    "mad",
    "Common header of management datagrams (InfiniBand 13.4.2)",
    (
        HeaderField("base_version", 8, "1"),
        HeaderField("management_class", 8, "what is managed"),
        HeaderField("class_version", 8, "version of the class"),
        HeaderField("method", 8, "method"),
        HeaderField("status", 16, "status"),
        HeaderField("class_specific", 16, "depends on the class"),
        HeaderField("transaction", 64, "number of the transaction"),
        HeaderField("attribute", 16, "what the datagram is about"),
        HeaderField("reserved", 16, "reserved"),
        HeaderField("modifier", 32, "depends on the attribute"),
    ),
    noted=True,
)
CNP: Final = Header(
    "cnp",
    "What follows the BTH in a congestion notification (InfiniBand A17.9.3): nothing but room",
    (HeaderField("reserved", 128, "reserved"),),
    noted=True,
)
ICRC: Final = Header(
    "icrc",
    "Invariant CRC (InfiniBand A17.3.3)",
    (HeaderField("crc", 32, "least significant byte first", noted=True),),
)

HEADERS: Final = (
    *(ETHERNET, VLAN, INNER_VLAN, ARP, IPV4, IPV6, NDP, UDP),
    *(BTH, RETH, AETH, IMMEDIATE, ATOMIC, ATOMIC_ACK, DETH, MAD, CNP, ICRC),
)
"""All of them, outermost first."""
ROCE: Final = Stack(ETHERNET, IPV4, UDP, BTH)
"""What a RoCEv2 frame without a VLAN tag begins with."""
ROCE_IPV6: Final = Stack(ETHERNET, IPV6, UDP, BTH)
"""The same over IPv6."""
ROCE_ANSWER: Final = Stack(*ROCE.headers, AETH)
ROCE_WRITE: Final = Stack(*ROCE.headers, RETH)
"""The same of acknowledgements, and of the first packet of an RDMA WRITE."""
