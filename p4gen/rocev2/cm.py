"""Messages of RDMA CM over RoCEv2: how two hosts agree on a connection, and end it.

A message is a management datagram of 256 bytes, which goes from QP 1 to QP 1 as one UD datagram. It consists of the
common header (``layouts.MAD``; InfiniBand specification volume 1, 13.4.2) and 232 bytes, whose layout depends on the
message (12.6.5 to 12.6.11). "Local" is the sender of a message, "remote" the other end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final

from p4gen.layout import Header, HeaderField
from p4gen.rocev2.codes import CM_CLASS, MAD_BYTES, MANAGEMENT_QP, UD_SEND_ONLY
from p4gen.rocev2.headers import BTH, UDP, Ethernet, HeaderError, ip_header, is_ipv6
from p4gen.rocev2.layouts import DETH, MAD, PSN_BITS, QP_BITS
from p4gen.rocev2.packet import RocePacket, parse, problems
from p4gen.rocev2.places import places_for

BASE_VERSION: Final = 1
CLASS_VERSION: Final = 2
"""Version of communication management (InfiniBand 16.7)."""
SEND: Final = 0x03
"""The method ComMgtSend, that of all messages (InfiniBand 16.7)."""
QUEUE_KEY: Final = 0x80010000
"""The well-known key of QP 1."""
RELIABLE: Final = 0
"""``transport`` of a REQ: a reliable connection (InfiniBand 12.7)."""
PATH_MTUS: Final[Mapping[int, int]] = MappingProxyType({1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096})
"""Bytes, by ``path_mtu`` of a REQ (InfiniBand 12.7)."""
_MAPPED: Final = 0xFFFF << 32
"""IPv6 addresses that stand for IPv4 addresses begin with it (RFC 4291, 2.5.5.2); so do GIDs (InfiniBand A17.4)."""


class Kind(IntEnum):
    """A message, by its attribute (InfiniBand 16.7)."""

    REQ = 0x10
    """Request for communication."""
    MRA = 0x11
    """The receiver of a message needs more time."""
    REJ = 0x12
    """Reject."""
    REP = 0x13
    """Reply to a REQ."""
    RTU = 0x14
    """Ready to use: the answer to a REP."""
    DREQ = 0x15
    """Request for disconnection."""
    DREP = 0x16
    """Reply to a DREQ."""


_LOCAL = HeaderField("local_id", 32, "the sender's number of the connection")
_REMOTE = HeaderField("remote_id", 32, "the other end's")
_QPN = HeaderField("local_qpn", QP_BITS, "the sender's queue pair")
_PSN = HeaderField("starting_psn", PSN_BITS, "first PSN that the sender sends")


def _reserved(number: int, bits: int) -> HeaderField:
    return HeaderField(f"reserved{number}", bits, "reserved")


def _message(name: str, section: str, *fields: HeaderField) -> Header:
    """A message's layout; private data fills it up."""
    private = 8 * (MAD_BYTES - MAD.size) - sum(field.bits for field in fields)
    return Header(name, f"InfiniBand {section}", (*fields, HeaderField("private", private, "private data")))


REQ: Final = _message(
    "cm_req",
    "12.6.5",
    _LOCAL,
    _reserved(1, 32),
    HeaderField("service_id", 64, "the service that is asked for"),
    HeaderField("local_ca_guid", 64, "number of the sender's adapter"),
    _reserved(2, 32),
    HeaderField("local_q_key", 32, "key, of reliable datagrams"),
    _QPN,
    HeaderField("responder_resources", 8, "READs and atomics that the sender answers at the same time"),
    HeaderField("local_eecn", 24, "end-to-end context, of reliable datagrams"),
    HeaderField("initiator_depth", 8, "READs and atomics that the sender begins at the same time"),
    HeaderField("remote_eecn", 24, "end-to-end context, of reliable datagrams"),
    HeaderField("remote_response_timeout", 5, "time for the other end's answer"),
    HeaderField("transport", 2, "transport service"),
    HeaderField("flow_control", 1, "1: end-to-end flow control"),
    _PSN,
    HeaderField("local_response_timeout", 5, "time for the sender's answer"),
    HeaderField("retry_count", 3, "retransmissions before the connection fails"),
    HeaderField("partition_key", 16, "partition"),
    HeaderField("path_mtu", 4, "path MTU"),
    HeaderField("rdc_exists", 1, "of reliable datagrams"),
    HeaderField("rnr_retry_count", 3, "retransmissions after RNR NAKs"),
    HeaderField("max_cm_retries", 4, "repetitions of messages"),
    HeaderField("srq", 1, "1: the QP has a shared receive queue"),
    HeaderField("extended_transport", 3, "extended transport type (InfiniBand A14)"),
    HeaderField("local_lid", 16, "sender's LID, which RoCE does not use"),
    HeaderField("remote_lid", 16, "the other end's"),
    HeaderField("local_gid", 128, "sender's GID: its address"),
    HeaderField("remote_gid", 128, "the other end's"),
    HeaderField("flow_label", 20, "flow label"),
    _reserved(3, 6),
    HeaderField("packet_rate", 6, "rate of the path"),
    HeaderField("traffic_class", 8, "traffic class: DSCP and ECN"),
    HeaderField("hop_limit", 8, "hop limit"),
    HeaderField("service_level", 4, "service level"),
    HeaderField("subnet_local", 1, "1: both ends are in one subnet"),
    _reserved(4, 3),
    HeaderField("local_ack_timeout", 5, "time for acknowledgements"),
    _reserved(5, 3),
    HeaderField("alternate_path", 352, "another path, which RoCE does not use"),
)
REJ: Final = _message(
    "cm_rej",
    "12.6.7",
    _LOCAL,
    _REMOTE,
    HeaderField("rejected", 2, "which message is rejected: 0 REQ, 1 REP, 2 none"),
    _reserved(1, 6),
    HeaderField("info_length", 7, "bytes of additional information"),
    _reserved(2, 1),
    HeaderField("reason", 16, "reason"),
    HeaderField("info", 576, "additional information"),
)
REP: Final = _message(
    "cm_rep",
    "12.6.8",
    _LOCAL,
    _REMOTE,
    HeaderField("local_q_key", 32, "key, of reliable datagrams"),
    _QPN,
    _reserved(1, 8),
    HeaderField("local_eecn", 24, "end-to-end context, of reliable datagrams"),
    _reserved(2, 8),
    _PSN,
    _reserved(3, 8),
    HeaderField("responder_resources", 8, "READs and atomics that the sender answers at the same time"),
    HeaderField("initiator_depth", 8, "READs and atomics that the sender begins at the same time"),
    HeaderField("target_ack_delay", 5, "time that the sender takes for an acknowledgement"),
    HeaderField("failover_accepted", 2, "whether the other path is accepted"),
    HeaderField("flow_control", 1, "1: end-to-end flow control"),
    HeaderField("rnr_retry_count", 3, "retransmissions after RNR NAKs"),
    HeaderField("srq", 1, "1: the QP has a shared receive queue"),
    _reserved(4, 4),
    HeaderField("local_ca_guid", 64, "number of the sender's adapter"),
)
RTU: Final = _message("cm_rtu", "12.6.9", _LOCAL, _REMOTE)
DREQ: Final = _message(
    "cm_dreq", "12.6.10", _LOCAL, _REMOTE, HeaderField("remote_qpn", QP_BITS, "the other end's queue pair"),
    _reserved(1, 8),
)  # fmt: skip
DREP: Final = _message("cm_drep", "12.6.11", _LOCAL, _REMOTE)
MRA: Final = _message(
    "cm_mra", "12.6.6", _LOCAL, _REMOTE, HeaderField("received", 2, "which message"), _reserved(1, 6),
    HeaderField("service_timeout", 5, "time until the answer"), _reserved(2, 3),
)  # fmt: skip

LAYOUTS: Final[Mapping[Kind, Header]] = MappingProxyType(
    {
        Kind.REQ: REQ,
        Kind.MRA: MRA,
        Kind.REJ: REJ,
        Kind.REP: REP,
        Kind.RTU: RTU,
        Kind.DREQ: DREQ,
        Kind.DREP: DREP,
    }
)


@dataclass(frozen=True)
class Message:
    """A message. ``values`` are its fields by name, those that are 0 too."""

    kind: Kind
    transaction: int
    values: Mapping[str, int]

    def __getitem__(self, field: str) -> int:
        return self.values[field]

    @classmethod
    def of(cls, kind: Kind, transaction: int = 0, **values: int) -> Message:
        """A message with these fields; the others are 0. Raises ``ValueError`` for fields that it does not have."""
        names = [field.name for field in LAYOUTS[kind].fields]
        unknown = values.keys() - set(names)
        if unknown:
            raise ValueError(f"{kind.name}: no field {', '.join(sorted(unknown))}")
        return cls(kind, transaction, dict.fromkeys(names, 0) | values)

    def to_bytes(self) -> bytes:
        """The management datagram, 256 bytes."""
        header = MAD.word.pack(
            base_version=BASE_VERSION,
            management_class=CM_CLASS,
            class_version=CLASS_VERSION,
            method=SEND,
            status=0,
            class_specific=0,
            transaction=self.transaction,
            attribute=self.kind,
            reserved=0,
            modifier=0,
        )
        layout = LAYOUTS[self.kind]
        return header.to_bytes(MAD.size) + layout.word.pack(**self.values).to_bytes(layout.size)

    @classmethod
    def from_bytes(cls, mad: bytes) -> Message:
        """Read a management datagram. Raises ``HeaderError`` for bytes that are no message of a handshake."""
        if len(mad) != MAD_BYTES:
            raise HeaderError(f"MAD: {len(mad)} bytes instead of {MAD_BYTES}")
        header = MAD.word.unpack(int.from_bytes(mad[: MAD.size]))
        for name, wanted in (
            ("base_version", BASE_VERSION),
            ("management_class", CM_CLASS),
            ("class_version", CLASS_VERSION),
            ("method", SEND),
        ):
            if header[name] != wanted:
                raise HeaderError(f"MAD: {name.replace('_', ' ')} is {header[name]:#x}, not {wanted:#x}")
        if header["attribute"] not in set(Kind):
            raise HeaderError(f"RDMA CM: attribute {header['attribute']:#06x} is no part of a handshake")
        kind = Kind(header["attribute"])
        return cls(kind, header["transaction"], LAYOUTS[kind].word.unpack(int.from_bytes(mad[MAD.size :])))


@dataclass(frozen=True)
class Datagram:
    """A message on its way: IP addresses of its sender and of its receiver."""

    src: int
    dst: int
    message: Message

    def packet(self, eth: Ethernet, **ip: Any) -> RocePacket:
        """The RoCEv2 frame that carries the message, with further fields of the IP header (``ip_header``)."""
        deth = DETH.word.pack(queue_key=QUEUE_KEY, reserved=0, source_qp=MANAGEMENT_QP).to_bytes(DETH.size)
        bth = BTH(UD_SEND_ONLY, MANAGEMENT_QP, 0)
        payload = deth + self.message.to_bytes()
        eth = replace(eth, ethertype=places_for(self.src).ether_type)
        return RocePacket(eth, ip_header(self.src, self.dst, **ip), UDP(), bth, payload=payload).sealed()


def parse_datagram(frame: bytes) -> Datagram:
    """The message in a frame.

    Raises ``HeaderError`` for a frame that a NIC would drop (ICRC, lengths, key of QP 1), and for one that is no
    message.
    """
    wrong = problems(frame)
    if wrong:
        raise HeaderError(wrong[0])
    packet = parse(frame)
    if (packet.bth.opcode, packet.bth.dst_qp) != (UD_SEND_ONLY, MANAGEMENT_QP):
        raise HeaderError(f"BTH: opcode {packet.bth.opcode:#04x} to QP {packet.bth.dst_qp} is no management datagram")
    if len(packet.payload) < DETH.size:
        raise HeaderError(f"DETH: {len(packet.payload)} bytes instead of {DETH.size}")
    deth = DETH.word.unpack(int.from_bytes(packet.payload[: DETH.size]))
    if deth["queue_key"] != QUEUE_KEY or deth["source_qp"] != MANAGEMENT_QP:
        raise HeaderError(f"DETH: key {deth['queue_key']:#010x} of QP {deth['source_qp']} is not that of QP 1")
    return Datagram(packet.ip.src, packet.ip.dst, Message.from_bytes(packet.payload[DETH.size :]))


def gid_of(ip: int) -> int:
    """The GID of an IP address.

    >>> f"{gid_of(0x0A000001):#x}"
    '0xffff0a000001'
    """
    return ip if is_ipv6(ip) else _MAPPED | ip
