"""Fast encoding and decoding of RoCEv2 frames: what is the same for a whole connection is computed once.

The layouts are those of ``p4gen.rocev2``; the tests compare the two. Ethernet, IPv4 and UDP headers are the first 42
bytes of a frame; the BTH's byte resv8a is byte 46.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from typing import ClassVar, Final, NamedTuple

from p4gen.host.transport.verbs import Peer
from p4gen.rocev2.codes import DEFAULT_PKEY, ROCE_UDP_PORT
from p4gen.rocev2.headers import UDP, Ethernet, IPv4, internet_checksum

HEADS: Final = 42
"""Total size of Ethernet, IPv4 and UDP headers, in bytes."""
ECT: Final = 0b10
CONGESTED: Final = 0b11
"""ECN codepoints: of a sender that supports ECN, and of a marked packet (RFC 3168)."""

_ONES: Final = zlib.crc32(b"\xff" * 8)
_RESIDUE: Final = 0x2144DF1C
"""The CRC-32 of any data that ends with its own CRC-32, least significant byte first."""
_BTH: Final = struct.Struct("!BBH")
_QP_AND_PSN: Final = struct.Struct("!II").unpack_from
_START: Final = HEADS + 4
"""Number of bytes before resv8a."""
_FRAME_BEFORE_PAYLOAD: Final = 54
_ICRC: Final = 4
_REMEMBERED: Final = 4096
_crc32: Final = zlib.crc32


def _crc_of_start(start: bytes) -> int:
    """The invariant CRC of the start of a frame, from IPv4 to the BTH's resv8a, with variant fields as ones. ``start``
    may continue up to the word with the PSN."""
    masked = bytearray(start[14:])
    masked[1] = masked[8] = 0xFF
    masked[10:12] = masked[26:28] = b"\xff\xff"
    masked[_START - 14 : _START - 13] = b"\xff"
    return _crc32(masked, _ONES)


class Writer:
    """Encodes the frames that one end of a connection sends."""

    def __init__(self, mac: int, ip: int, peer: Peer, *, ecn: bool = False) -> None:
        self._mac, self._ip, self._peer = mac, ip, peer
        self._tos = ECT if ecn else 0
        self._known: dict[tuple[int, int], tuple[bytes, int]] = {}
        """By opcode and size of the body: everything before the word with the PSN, and its invariant CRC."""

    def frame(self, opcode: int, psn: int, *, ack_request: bool = False, body: bytes | memoryview = b"") -> bytes:
        """A frame; ``body`` is everything between BTH and ICRC."""
        key = opcode, len(body)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._make(opcode, len(body))
        start, crc = known
        word = (psn | 0x80000000 if ack_request else psn).to_bytes(4, "big")
        return b"".join((start, word, body, _crc32(body, _crc32(word, crc)).to_bytes(4, "little")))

    def cnp(self) -> bytes:
        """A congestion notification packet (annex A17.9.3)."""
        frame = bytearray(self.frame(0x81, 0, body=bytes(16)))
        frame[46] = 0x40  # BECN; the ICRC reads this byte as ones
        return bytes(frame)

    def _make(self, opcode: int, size: int) -> tuple[bytes, int]:
        udp = UDP(self._peer.udp_src_port, length=8 + 12 + size + _ICRC)
        ip = IPv4(self._ip, self._peer.ip, tos=self._tos, total_length=20 + udp.length)
        header = ip.pack()
        header = header[:10] + internet_checksum(header).to_bytes(2) + header[12:]
        bth = bytes((opcode, 0)) + DEFAULT_PKEY.to_bytes(2) + b"\0" + self._peer.qp.to_bytes(3)
        start = Ethernet(self._peer.mac, self._mac).pack() + header + udp.pack() + bth
        return start, _crc_of_start(start)


class Start(NamedTuple):
    """The decoded first 46 bytes of a frame, up to resv8a. ``problem`` is the reason to drop the frame, "" if there is
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
        if _crc32(frame[47:], crc) != _RESIDUE:
            self.dropped["bad_icrc"] += 1
            return None
        if later:
            self.dropped[later] += 1
            return None
        qp, word = _QP_AND_PSN(frame, _START)
        return start, qp & 0xFFFFFF, word

    def _learn(self, key: bytes) -> Start:
        # Corrupt headers must not fill the memory; a connection has few different valid ones.
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        start = self._known[key] = self._examine(key)
        return start

    def _examine(self, key: bytes) -> Start:
        if len(key) < HEADS:
            return Start("truncated")
        if int.from_bytes(key[:6]) != self._mac:
            return Start("foreign_mac")
        if key[12:14] != b"\x08\x00" or key[14] != 0x45 or key[23] != 17:
            return Start("not_udp_over_ipv4")
        if internet_checksum(key[14:34]):
            return Start("bad_ip_checksum")
        if int.from_bytes(key[36:38]) != ROCE_UDP_PORT:
            return Start("not_rocev2")
        if int.from_bytes(key[30:34]) != self._ip:
            return Start("foreign_ip")
        total, udp = int.from_bytes(key[16:18]), int.from_bytes(key[38:40])
        if total != udp + 20 or 14 + total < _FRAME_BEFORE_PAYLOAD + _ICRC or len(key) < _START:
            return Start("bad_length")
        opcode, flags, pkey = _BTH.unpack_from(key, HEADS)
        later = "bad_version" if flags & 0xF else "bad_pkey" if pkey & 0x7FFF != 0x7FFF else ""
        return Start(
            "", later, _crc_of_start(key), int.from_bytes(key[26:30]), 14 + total, key[15] & 3 == CONGESTED, opcode
        )
