"""RoCEv2 frames at speed: what of a frame is the same for a whole connection is computed once.

The layouts are those of ``p4gen.rocev2``, which the tests hold this module against. Ethernet, IPv4 and UDP headers make
up the first 42 bytes of a frame; the BTH's byte resv8a is byte 46.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from dataclasses import dataclass
from typing import Final

from p4gen.host.verbs import Peer
from p4gen.rocev2.headers import DEFAULT_PKEY, UDP, Ethernet, IPv4, internet_checksum
from p4gen.rocev2.opcodes import ROCE_UDP_PORT

HEADS: Final = 42
"""Bytes of Ethernet, IPv4 and UDP headers together."""
ECT: Final = 0b10
CONGESTED: Final = 0b11
"""ECN codepoints of a sender that understands marks, and of a mark (RFC 3168)."""

_ONES: Final = zlib.crc32(b"\xff" * 8)
_RESIDUE: Final = 0x2144DF1C
"""The CRC-32 of anything that ends in its own CRC-32, least significant byte first."""
_BTH: Final = struct.Struct("!BBHII")
_FRAME_BEFORE_PAYLOAD: Final = 54
_ICRC: Final = 4
_REMEMBERED: Final = 4096


def _crc_of_heads(heads: bytes) -> int:
    """The invariant CRC of the first 42 bytes of a frame: over IPv4 and UDP, variant fields as ones."""
    masked = bytearray(heads[14:])
    masked[1] = masked[8] = 0xFF
    masked[10:12] = masked[26:28] = b"\xff\xff"
    return zlib.crc32(masked, _ONES)


class Writer:
    """Writes the frames that one end of a connection sends."""

    def __init__(self, mac: int, ip: int, peer: Peer, *, ecn: bool = False) -> None:
        self._mac, self._ip, self._peer = mac, ip, peer
        self._tos = ECT if ecn else 0
        self._heads: dict[int, tuple[bytes, int]] = {}
        self._bth: dict[int, tuple[bytes, bytes]] = {}

    def frame(self, opcode: int, psn: int, *, ack_request: bool = False, body: bytes | memoryview = b"") -> bytes:
        """A frame; ``body`` is all that stands between BTH and ICRC."""
        size = len(body)
        heads = self._heads.get(size)
        if heads is None:
            heads = self._heads[size] = self._make_heads(size)
        bth = self._bth.get(opcode)
        if bth is None:
            bth = self._bth[opcode] = self._make_bth(opcode)
        word = (psn | 0x80000000 if ack_request else psn).to_bytes(4, "big")
        crc = zlib.crc32(body, zlib.crc32(bth[1] + word, heads[1]))
        return b"".join((heads[0], bth[0], word, body, crc.to_bytes(4, "little")))

    def cnp(self) -> bytes:
        """A congestion notification packet (annex A17.9.3)."""
        frame = bytearray(self.frame(0x81, 0, body=bytes(16)))
        frame[46] = 0x40  # BECN; the ICRC reads this byte as ones
        return bytes(frame)

    def _make_heads(self, size: int) -> tuple[bytes, int]:
        udp = UDP(self._peer.udp_src_port, length=8 + 12 + size + _ICRC)
        ip = IPv4(self._ip, self._peer.ip, tos=self._tos, total_length=20 + udp.length)
        header = ip.pack()
        header = header[:10] + internet_checksum(header).to_bytes(2) + header[12:]
        heads = Ethernet(self._peer.mac, self._mac).pack() + header + udp.pack()
        return heads, _crc_of_heads(heads)

    def _make_bth(self, opcode: int) -> tuple[bytes, bytes]:
        first = bytes((opcode, 0)) + DEFAULT_PKEY.to_bytes(2)
        qp = self._peer.qp.to_bytes(3)
        return first + b"\0" + qp, first + b"\xff" + qp


@dataclass(frozen=True, slots=True)
class Heads:
    """What the first 42 bytes of frames say: ``problem`` is why they are to be dropped, "" if they are sound."""

    problem: str
    crc: int
    src: int
    length: int
    """Bytes of the frame by its IPv4 header."""
    congested: bool


class Reader:
    """Checks the frames that one NIC receives, as real ones do before they look at any queue pair.

    ``dropped`` counts what it refuses, by reason.
    """

    def __init__(self, mac: int, ip: int) -> None:
        self._mac, self._ip = mac, ip
        self._known: dict[bytes, Heads] = {}
        self.dropped: Counter[str] = Counter()

    def read(self, frame: bytes) -> tuple[Heads, int, int, bool, int] | None:
        """(heads, opcode, QP, AckReq, PSN) of a sound frame; None when it is to be dropped."""
        key = frame[:HEADS]
        heads = self._known.get(key)
        if heads is None:
            heads = self._learn(key)
        if heads.problem:
            self.dropped[heads.problem] += 1
            return None
        if len(frame) != heads.length or len(frame) < _FRAME_BEFORE_PAYLOAD + _ICRC:
            self.dropped["bad_length"] += 1
            return None
        if zlib.crc32(frame[47:], zlib.crc32(frame[42:46] + b"\xff", heads.crc)) != _RESIDUE:
            self.dropped["bad_icrc"] += 1
            return None
        opcode, flags, pkey, qp, psn = _BTH.unpack_from(frame, HEADS)
        if flags & 0xF:
            self.dropped["bad_version"] += 1
            return None
        if pkey & 0x7FFF != 0x7FFF:
            self.dropped["bad_pkey"] += 1
            return None
        return heads, opcode, qp & 0xFFFFFF, psn >= 0x80000000, psn & 0xFFFFFF

    def _learn(self, key: bytes) -> Heads:
        # Corrupt headers must not fill the memory up; a connection has few sound ones.
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        heads = self._known[key] = self._examine(key)
        return heads

    def _examine(self, key: bytes) -> Heads:
        def bad(problem: str) -> Heads:
            return Heads(problem, 0, 0, 0, False)

        if len(key) < HEADS:
            return bad("truncated")
        if int.from_bytes(key[:6]) != self._mac:
            return bad("foreign_mac")
        if key[12:14] != b"\x08\x00" or key[14] != 0x45 or key[23] != 17:
            return bad("not_udp_over_ipv4")
        if internet_checksum(key[14:34]):
            return bad("bad_ip_checksum")
        if int.from_bytes(key[36:38]) != ROCE_UDP_PORT:
            return bad("not_rocev2")
        if int.from_bytes(key[30:34]) != self._ip:
            return bad("foreign_ip")
        total, udp = int.from_bytes(key[16:18]), int.from_bytes(key[38:40])
        if total != udp + 20:
            return bad("bad_length")
        return Heads("", _crc_of_heads(key), int.from_bytes(key[26:30]), 14 + total, key[15] & 3 == CONGESTED)
