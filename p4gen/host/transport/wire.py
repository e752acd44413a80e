"""Fast encoding and decoding of RoCEv2 frames: what is the same for a whole connection is computed once.

The layouts are those of ``p4gen.rocev2``; the tests compare the two. The ICRC covers a frame up to the BTH's byte with
resv8a, which it takes as ones, once for a connection.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from dataclasses import replace
from typing import ClassVar, Final, NamedTuple

from p4gen.host.transport.verbs import Peer
from p4gen.rocev2.codes import BECN, ECN_CE, ECN_ECT0, ETHERTYPE_IPV4, PROTOCOL_UDP, ROCE_UDP_PORT
from p4gen.rocev2.headers import BTH, UDP, Ethernet, IPv4, internet_checksum
from p4gen.rocev2.layouts import BTH as BTH_LAYOUT
from p4gen.rocev2.layouts import CNP, ICRC, QP_BITS, ROCE, ROCE_ANSWER
from p4gen.rocev2.opcodes import Opcode

OVERHEAD: Final = 24
"""Bytes on the wire in addition to the frame: FCS 4, preamble 8, inter-frame gap 12."""
MIN_FRAME: Final = 60
PRIORITY_SHIFT: Final = 5
"""The bits of the byte of DSCP and ECN below the priority: a class selector (RFC 2474)."""
"""The least bytes of a frame on the wire, without its FCS."""
OPCODE_AT: Final = ROCE.at("bth.opcode")
SYNDROME_AT: Final = ROCE_ANSWER.at("aeth.syndrome")
PSN: Final = ROCE.bytes("bth.psn")
MSN: Final = ROCE_ANSWER.bytes("aeth.msn")
DEST_QP: Final = ROCE.bytes("bth.dest_qp")
DST_ADDR: Final = ROCE.bytes("ipv4.dst_addr")
BODY_AT: Final = ROCE.size
"""Where fields are in a frame, and what follows the BTH."""
ANSWER_SIZE: Final = ROCE_ANSWER.size + ICRC.size
"""Bytes of an acknowledgement's frame."""
ACK_REQUEST: Final = BTH_LAYOUT.word.mask("ack_request")
"""The bit of AckReq in the word with the PSN."""

CRC_OF_ONES: Final = zlib.crc32(b"\xff" * 8)
"""That of what stands for InfiniBand's local route header in an ICRC."""
RESIDUE: Final = 0x2144DF1C
"""The CRC-32 of any data that ends with its own CRC-32, least significant byte first."""
_IP: Final = ROCE.start("ipv4")
_UDP: Final = ROCE.start("udp")
_HEADS: Final = ROCE.start("bth")
_START: Final = ROCE.at("bth.resv8a")
"""Number of bytes before resv8a."""
_WORD: Final = ROCE.at("bth.ack_request")
"""The word with AckReq and PSN ends the BTH."""
_ETHER_TYPE: Final = ROCE.bytes("ethernet.ether_type")
_DST_MAC: Final = ROCE.bytes("ethernet.dst_addr")
_SRC_ADDR: Final = ROCE.bytes("ipv4.src_addr")
_TOTAL_LENGTH: Final = ROCE.bytes("ipv4.total_length")
_TOS_AT: Final = ROCE.at("ipv4.ecn")
_TTL_AT: Final = ROCE.at("ipv4.ttl")
_PROTOCOL_AT: Final = ROCE.at("ipv4.protocol")
_IP_CHECKSUM: Final = ROCE.bytes("ipv4.checksum")
_DST_PORT: Final = ROCE.bytes("udp.dst_port")
_UDP_LENGTH: Final = ROCE.bytes("udp.length")
_UDP_CHECKSUM: Final = ROCE.bytes("udp.checksum")
_IPV4: Final = ETHERTYPE_IPV4.to_bytes(2)
_PLAIN: Final = IPv4(0, 0).pack()[0]
"""The first byte of an IPv4 header without options."""
_ECN: Final = 0b11
_QP_AND_PSN: Final = struct.Struct("!II").unpack_from
_QP: Final = (1 << QP_BITS) - 1
"""The two words that end the BTH, from resv8a on; the QP's bits in the first."""
_REMEMBERED: Final = 4096
_crc32: Final = zlib.crc32


def _crc_of_start(start: bytes) -> int:
    """The invariant CRC of the start of a frame, from IPv4 to the BTH's resv8a, with variant fields as ones. ``start``
    may continue up to the word with the PSN."""
    masked = bytearray(start)
    masked[_TOS_AT] = masked[_TTL_AT] = 0xFF
    masked[_IP_CHECKSUM] = masked[_UDP_CHECKSUM] = b"\xff\xff"
    masked[_START : _START + 1] = b"\xff"  # which may be the first byte that is missing
    return _crc32(masked[_IP:], CRC_OF_ONES)


class Writer:
    """Encodes the frames that one end of a connection sends."""

    def __init__(self, mac: int, ip: int, peer: Peer, *, ecn: bool = False, priority: int = 0) -> None:
        self._mac, self._ip, self._peer = mac, ip, peer
        self._tos = priority << PRIORITY_SHIFT | (ECN_ECT0 if ecn else 0)
        self._known: dict[tuple[int, int, bool], tuple[bytes, int]] = {}
        """By opcode, size of the body and solicited event: everything before the word with the PSN, and its invariant
        CRC."""

    def frame(
        self,
        opcode: int,
        psn: int,
        *,
        ack_request: bool = False,
        body: bytes | memoryview = b"",
        solicited: bool = False,
    ) -> bytes:
        """A frame; ``body`` is everything between BTH and ICRC."""
        key = opcode, len(body), solicited
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.begin(*key)
        start, crc = known
        word = (psn | ACK_REQUEST if ack_request else psn).to_bytes(4, "big")
        return b"".join((start, word, body, _crc32(body, _crc32(word, crc)).to_bytes(4, "little")))

    def cnp(self) -> bytes:
        """A congestion notification packet (annex A17.9.3)."""
        frame = bytearray(self.frame(Opcode.CNP, 0, body=bytes(CNP.size)))
        frame[_START] = BECN  # the ICRC reads this byte as ones
        return bytes(frame)

    def begin(self, opcode: int, size: int, solicited: bool) -> tuple[bytes, int]:
        """What frames with a body of ``size`` bytes begin with, up to the word with the PSN, and its invariant CRC."""
        udp = UDP(self._peer.udp_src_port, length=UDP.SIZE + BTH.SIZE + size + ICRC.size)
        ip = IPv4(self._ip, self._peer.ip, tos=self._tos, total_length=IPv4.SIZE + udp.length)
        ip = replace(ip, checksum=ip.right_checksum())
        heads = (Ethernet(self._peer.mac, self._mac), ip, udp, BTH(opcode, self._peer.qp, 0, solicited=solicited))
        start = b"".join(header.pack() for header in heads)[:_WORD]
        return start, _crc_of_start(start)


class Start(NamedTuple):
    """The decoded first bytes of a frame, up to resv8a. ``problem`` is the reason to drop the frame, "" if there is
    none; a wrong ICRC takes precedence over ``later``."""

    problem: str
    later: str = ""
    crc: int = 0
    """The state of the ICRC's CRC after these bytes and resv8a."""
    src: int = 0
    length: int = 0
    """The length of the frame according to its IPv4 header, in bytes."""
    congested: bool = False
    opcode: int = 0


class Reader:
    """Validates the frames that one NIC receives, as real NICs do before they look up a queue pair.

    ``dropped`` counts dropped frames by reason.
    """

    STATE: ClassVar = ("dropped",)

    def __init__(self, mac: int, ip: int) -> None:
        self._mac, self._ip = mac, ip
        self._known: dict[bytes, Start] = {}
        self.dropped: Counter[str] = Counter()
        self.checks_icrc = True

    def read(self, frame: bytes) -> tuple[Start, int, int] | None:
        """(start, QP, word with AckReq and PSN) of a valid frame; None when the frame is to be dropped."""
        key = frame[:_START]
        start = self._known.get(key)
        if start is None:
            start = self._learn(key)
        problem, later, crc, _, length, _, _ = start
        if problem:
            self.dropped[problem] += 1
            return None
        if len(frame) != length:
            self.dropped["bad_length"] += 1
            return None
        if self.checks_icrc and _crc32(frame[_START + 1 :], crc) != RESIDUE:
            self.dropped["bad_icrc"] += 1
            return None
        if later:
            self.dropped[later] += 1
            return None
        qp, word = _QP_AND_PSN(frame, _START)
        return start, qp & _QP, word

    def _learn(self, key: bytes) -> Start:
        # Corrupt headers must not fill the memory; a connection has few different valid ones.
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        start = self._known[key] = self._examine(key)
        return start

    def _examine(self, key: bytes) -> Start:
        if len(key) < _HEADS:
            return Start("truncated")
        if int.from_bytes(key[_DST_MAC]) != self._mac:
            return Start("foreign_mac")
        if key[_ETHER_TYPE] != _IPV4 or key[_IP] != _PLAIN or key[_PROTOCOL_AT] != PROTOCOL_UDP:
            return Start("not_udp_over_ipv4")
        if internet_checksum(key[_IP:_UDP]):
            return Start("bad_ip_checksum")
        if int.from_bytes(key[_DST_PORT]) != ROCE_UDP_PORT:
            return Start("not_rocev2")
        if int.from_bytes(key[DST_ADDR]) != self._ip:
            return Start("foreign_ip")
        total, udp = int.from_bytes(key[_TOTAL_LENGTH]), int.from_bytes(key[_UDP_LENGTH])
        if total != udp + IPv4.SIZE or _IP + total < ROCE.size + ICRC.size or len(key) < _START:
            return Start("bad_length")
        bth = BTH.unpack(key.ljust(ROCE.size, b"\0"), _HEADS)
        partition = BTH_LAYOUT["partition_key"].mask("key")
        later = "bad_version" if bth.version else "bad_pkey" if bth.pkey & partition != partition else ""
        src, congested = int.from_bytes(key[_SRC_ADDR]), key[_TOS_AT] & _ECN == ECN_CE
        return Start("", later, _crc_of_start(key), src, _IP + total, congested, bth.opcode)
