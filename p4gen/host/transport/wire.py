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
from p4gen.rocev2.codes import BECN, ECN_ECT0, PROTOCOL_UDP, ROCE_UDP_PORT
from p4gen.rocev2.headers import BTH, UDP, Ethernet, internet_checksum, ip_header
from p4gen.rocev2.layouts import BTH as BTH_LAYOUT
from p4gen.rocev2.layouts import CNP, QP_BITS, ROCE
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket
from p4gen.rocev2.places import IPV4, Places, places_for

OVERHEAD: Final = 24
"""Bytes on the wire in addition to the frame: FCS 4, preamble 8, inter-frame gap 12."""
MIN_FRAME: Final = 60
"""The least bytes of a frame on the wire, without its FCS."""
PRIORITY_SHIFT: Final = 5
"""The bits of the byte of DSCP and ECN below the priority: a class selector (RFC 2474)."""
ACK_REQUEST: Final = BTH_LAYOUT.word.mask("ack_request")
"""The bit of AckReq in the word with the PSN."""

CRC_OF_ONES: Final = zlib.crc32(b"\xff" * 8)
"""That of what stands for InfiniBand's local route header in an ICRC."""
RESIDUE: Final = 0x2144DF1C
"""The CRC-32 of any data that ends with its own CRC-32, least significant byte first."""
_DST_MAC, _ETHER_TYPE = ROCE.bytes("ethernet.dst_addr"), ROCE.bytes("ethernet.ether_type")
_QP_AND_PSN: Final = struct.Struct("!II").unpack_from
_QP: Final = (1 << QP_BITS) - 1
"""The two words that end the BTH, from resv8a on; the QP's bits in the first."""
_REMEMBERED: Final = 4096
_crc32: Final = zlib.crc32


def _crc_of_start(start: bytes, places: Places) -> int:
    """The invariant CRC of the start of a frame, from the IP header on, with variant fields as ones. ``start`` ends
    before the BTH's resv8a, which counts, or later."""
    size = max(len(start), places.resv8a_at + 1)
    masked = int.from_bytes(start.ljust(size, b"\0")) | int.from_bytes(places.variant[:size])
    return _crc32(masked.to_bytes(size)[places.ip :], CRC_OF_ONES)


class Writer:
    """Encodes the frames that one end of a connection sends."""

    def __init__(self, mac: int, ip: int, peer: Peer, *, ecn: bool = False, priority: int = 0) -> None:
        """Raises ``ValueError`` if the peer's address is one of another kind."""
        self._places = places_for(ip)
        eth = Ethernet(peer.mac, mac, self._places.ether_type)
        tos = priority << PRIORITY_SHIFT | (ECN_ECT0 if ecn else 0)
        self._start = RocePacket(eth, ip_header(ip, peer.ip, tos=tos), UDP(peer.udp_src_port), BTH(0, peer.qp, 0))
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
        frame[self._places.resv8a_at] = BECN  # the ICRC reads this byte as ones
        return bytes(frame)

    def begin(self, opcode: int, size: int, solicited: bool) -> tuple[bytes, int]:
        """What frames with a body of ``size`` bytes begin with, up to the word with the PSN, and its invariant CRC."""
        bth = replace(self._start.bth, opcode=opcode, solicited=solicited)
        packet = replace(self._start, bth=bth, payload=bytes(size)).sealed(icrc=b"")
        start = packet.to_bytes()[: self._places.word_at]
        return start, _crc_of_start(start, self._places)


class Start(NamedTuple):
    """The decoded first bytes of a frame, up to resv8a. ``problem`` is the reason to drop the frame, "" if there is
    none; a wrong ICRC takes precedence over ``later``."""

    problem: str
    later: str = ""
    crc: int = 0
    """The state of the ICRC's CRC after these bytes and resv8a."""
    src: int = 0
    length: int = 0
    """The length of the frame according to its IP header, in bytes."""
    congested: bool = False
    opcode: int = 0


class Reader:
    """Validates the frames that one NIC receives, as real NICs do before they look up a queue pair. They are of the
    kind of its address: IPv4 without options, or IPv6 without extension headers.

    ``dropped`` counts dropped frames by reason.
    """

    STATE: ClassVar = ("dropped",)

    def __init__(self, mac: int, ip: int) -> None:
        self._mac, self._ip = mac, ip
        self._places = places_for(ip)
        self._known: dict[bytes, Start] = {}
        self.dropped: Counter[str] = Counter()
        self.checks_icrc = True

    def read(self, frame: bytes) -> tuple[Start, int, int] | None:
        """(start, QP, word with AckReq and PSN) of a valid frame; None when the frame is to be dropped."""
        at = self._places.resv8a_at
        key = frame[:at]
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
        if self.checks_icrc and _crc32(frame[at + 1 :], crc) != RESIDUE:
            self.dropped["bad_icrc"] += 1
            return None
        if later:
            self.dropped[later] += 1
            return None
        qp, word = _QP_AND_PSN(frame, at)
        return start, qp & _QP, word

    def _learn(self, key: bytes) -> Start:
        # Corrupt headers must not fill the memory; a connection has few different valid ones.
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        start = self._known[key] = self._examine(key)
        return start

    def _examine(self, key: bytes) -> Start:
        places = self._places
        if len(key) < places.bth:
            return Start("truncated")
        if int.from_bytes(key[_DST_MAC]) != self._mac:
            return Start("foreign_mac")
        bits, plain = places.first
        udp = key[places.ip] & bits == plain and key[places.protocol_at] == PROTOCOL_UDP
        if not udp or int.from_bytes(key[_ETHER_TYPE]) != places.ether_type:
            return Start(f"not_udp_over_{places.name}")
        if places is IPV4 and internet_checksum(key[places.ip : places.udp]):
            return Start("bad_ip_checksum")
        if int.from_bytes(key[places.udp_port]) != ROCE_UDP_PORT:
            return Start("not_rocev2")
        if int.from_bytes(key[places.dst_addr]) != self._ip:
            return Start("foreign_ip")
        length = places.counted_from + int.from_bytes(key[places.length])
        told = places.udp + int.from_bytes(key[places.udp_length])
        if length != told or length < places.shortest or len(key) < places.resv8a_at:
            return Start("bad_length")
        bth = BTH.unpack(key.ljust(places.body, b"\0"), places.bth)
        partition = BTH_LAYOUT["partition_key"].mask("key")
        later = "bad_version" if bth.version else "bad_pkey" if bth.pkey & partition != partition else ""
        src, congested = int.from_bytes(key[places.src_addr]), key[places.ecn_at] & places.ce == places.ce
        return Start("", later, _crc_of_start(key, places), src, length, congested, bth.opcode)
