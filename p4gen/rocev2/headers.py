"""The headers of a RoCEv2 frame as plain records: what is stored is what is on the wire.

Addresses are integers (MAC 48 bits, IPv4 32 bits), as in p4gen's table entries. ``pack`` writes exactly the stored
fields, right or wrong; ``p4gen.rocev2.packet`` fills in lengths and checksums. ``unpack`` raises ``HeaderError``
when bytes are missing. Layouts: IEEE 802.3, RFC 791, RFC 768, InfiniBand specification volume 1 §9.2 and §9.3.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import AddressValueError, IPv4Address
from typing import ClassVar, Final, Self

from p4gen.errors import InputError
from p4gen.rocev2.opcodes import ROCE_UDP_PORT, Syndrome, decode_syndrome

ETHERTYPE_IPV4: Final = 0x0800
ETHERTYPE_IPV6: Final = 0x86DD
ETHERTYPE_ARP: Final = 0x0806
ETHERTYPE_VLAN: Final = 0x8100
VLAN_TAG_SIZE: Final = 4
IPPROTO_UDP: Final = 17
DEFAULT_PKEY: Final = 0xFFFF


class HeaderError(InputError):
    """Bytes that are not the header they are taken for."""


def mac(text: str) -> int:
    """``"02:00:00:00:00:01"`` as an integer; ValueError when it is not six bytes."""
    octets = bytes.fromhex(text.replace(":", ""))
    if len(octets) != 6:
        raise ValueError(f"not a MAC address: {text}")
    return int.from_bytes(octets)


def mac_text(value: int) -> str:
    """``0x020000000001`` as ``"02:00:00:00:00:01"``."""
    return value.to_bytes(6).hex(":")


def ipv4(text: str) -> int:
    """``"10.0.0.1"`` as an integer; ValueError when it is none."""
    try:
        return int(IPv4Address(text))
    except AddressValueError:
        raise ValueError(f"not an IPv4 address: {text}") from None


def ipv4_text(value: int) -> str:
    """``0x0A000001`` as ``"10.0.0.1"``."""
    return str(IPv4Address(value))


def ones_complement_sum(chunks: Iterable[bytes]) -> int:
    """RFC 1071's 16-bit sum with end-around carry; each chunk counts as zero-padded to an even length."""
    total = 0
    for chunk in chunks:
        even = chunk if len(chunk) % 2 == 0 else chunk + b"\0"
        total += sum(struct.unpack(f"!{len(even) // 2}H", even))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def internet_checksum(*chunks: bytes) -> int:
    """The Internet checksum (RFC 1071) of chunks whose own checksum field is zero."""
    return ones_complement_sum(chunks) ^ 0xFFFF


class _Header(ABC):
    """What the headers share: subclasses say how their fields map to the words of one struct layout."""

    __slots__ = ()
    SIZE: ClassVar[int]
    _LAYOUT: ClassVar[struct.Struct]

    def pack(self) -> bytes:
        """The header's bytes, exactly as stored; struct.error or OverflowError when a field is too wide."""
        return self._LAYOUT.pack(*self._words())

    @classmethod
    def unpack(cls, data: bytes, offset: int = 0) -> Self:
        """Read the header at ``offset``; HeaderError when the data ends before it does."""
        left = len(data) - offset
        if left < cls._LAYOUT.size:
            raise HeaderError(f"{cls.__name__}: {cls._LAYOUT.size} bytes needed, {max(left, 0)} left")
        return cls._from_words(*cls._LAYOUT.unpack_from(data, offset))

    @abstractmethod
    def _words(self) -> tuple[int, ...]:
        """The words of the layout."""

    @classmethod
    def _from_words(cls, *words: int) -> Self:
        return cls(*words)


@dataclass(frozen=True, slots=True)
class Ethernet(_Header):
    """An Ethernet II header, untagged."""

    SIZE: ClassVar[int] = 14
    _LAYOUT: ClassVar[struct.Struct] = struct.Struct("!HIHIH")

    dst: int
    src: int
    ethertype: int = ETHERTYPE_IPV4

    def _words(self) -> tuple[int, ...]:
        return self.dst >> 32, self.dst & 0xFFFFFFFF, self.src >> 32, self.src & 0xFFFFFFFF, self.ethertype

    @classmethod
    def _from_words(cls, *words: int) -> Self:
        dst_high, dst_low, src_high, src_low, ethertype = words
        return cls(dst_high << 32 | dst_low, src_high << 32 | src_low, ethertype)


@dataclass(frozen=True, slots=True)
class IPv4(_Header):
    """An IPv4 header; ``ihl`` counts 32-bit words and ``options`` are the bytes it covers past the first 20."""

    _LAYOUT: ClassVar[struct.Struct] = struct.Struct("!BBHHHBBHII")

    src: int
    dst: int
    protocol: int = IPPROTO_UDP
    ttl: int = 64
    tos: int = 0
    identification: int = 0
    flags: int = 0b010
    fragment_offset: int = 0
    total_length: int = 0
    checksum: int = 0
    version: int = 4
    ihl: int = 5
    options: bytes = b""

    @property
    def size(self) -> int:
        """The header's bytes as stored, whatever ``ihl`` claims."""
        return 20 + len(self.options)

    def pack(self) -> bytes:
        """The header's bytes, exactly as stored, options included."""
        # Named, not super(): slots=True makes dataclass() build a second class, which a bare super() does not know.
        return _Header.pack(self) + self.options

    @classmethod
    def unpack(cls, data: bytes, offset: int = 0) -> Self:
        """Read the header and its options; HeaderError also for another version or a header length below 5."""
        header = super(IPv4, cls).unpack(data, offset)
        if header.version != 4:
            raise HeaderError(f"IPv4: version is {header.version}")
        if header.ihl < 5:
            raise HeaderError(f"IPv4: header length is {header.ihl} words, 5 is the least")
        options = data[offset + 20 : offset + 4 * header.ihl]
        if len(options) != 4 * header.ihl - 20:
            raise HeaderError(f"IPv4: {4 * header.ihl - 20} bytes of options announced, {len(options)} left")
        return replace(header, options=options) if options else header

    def _words(self) -> tuple[int, ...]:
        return (
            self.version << 4 | self.ihl,
            self.tos,
            self.total_length,
            self.identification,
            self.flags << 13 | self.fragment_offset,
            self.ttl,
            self.protocol,
            self.checksum,
            self.src,
            self.dst,
        )

    @classmethod
    def _from_words(cls, *words: int) -> Self:
        first, tos, length, ident, fragment, ttl, protocol, checksum, src, dst = words
        return cls(
            src=src,
            dst=dst,
            protocol=protocol,
            ttl=ttl,
            tos=tos,
            identification=ident,
            flags=fragment >> 13,
            fragment_offset=fragment & 0x1FFF,
            total_length=length,
            checksum=checksum,
            version=first >> 4,
            ihl=first & 0xF,
        )

    def right_checksum(self) -> int:
        """The checksum that this header should carry (RFC 791)."""
        packed = self.pack()
        return internet_checksum(packed[:10] + b"\0\0" + packed[12:])


@dataclass(frozen=True, slots=True)
class UDP(_Header):
    """A UDP header; RoCEv2 senders leave the checksum 0 (none) and vary the source port for ECMP."""

    SIZE: ClassVar[int] = 8
    _LAYOUT: ClassVar[struct.Struct] = struct.Struct("!HHHH")

    src_port: int = 49152
    dst_port: int = ROCE_UDP_PORT
    length: int = 0
    checksum: int = 0

    def _words(self) -> tuple[int, ...]:
        return (self.src_port, self.dst_port, self.length, self.checksum)


@dataclass(frozen=True, slots=True)
class BTH(_Header):
    """The base transport header (§9.2); ``fecn``, ``becn`` and ``reserved6`` make up its byte resv8a."""

    SIZE: ClassVar[int] = 12
    _LAYOUT: ClassVar[struct.Struct] = struct.Struct("!BBHII")

    opcode: int
    dst_qp: int
    psn: int
    ack_request: bool = False
    solicited: bool = False
    mig_request: bool = False
    pad_count: int = 0
    version: int = 0
    pkey: int = DEFAULT_PKEY
    fecn: bool = False
    becn: bool = False
    reserved6: int = 0
    reserved7: int = 0

    def _words(self) -> tuple[int, ...]:
        return (
            self.opcode,
            self.solicited << 7 | self.mig_request << 6 | self.pad_count << 4 | self.version,
            self.pkey,
            self.fecn << 31 | self.becn << 30 | self.reserved6 << 24 | self.dst_qp,
            self.ack_request << 31 | self.reserved7 << 24 | self.psn,
        )

    @classmethod
    def _from_words(cls, *words: int) -> Self:
        opcode, flags, pkey, qp_word, psn_word = words
        return cls(
            opcode=opcode,
            dst_qp=qp_word & 0xFFFFFF,
            psn=psn_word & 0xFFFFFF,
            ack_request=bool(psn_word >> 31),
            solicited=bool(flags >> 7),
            mig_request=bool(flags >> 6 & 1),
            pad_count=flags >> 4 & 3,
            version=flags & 0xF,
            pkey=pkey,
            fecn=bool(qp_word >> 31),
            becn=bool(qp_word >> 30 & 1),
            reserved6=qp_word >> 24 & 0x3F,
            reserved7=psn_word >> 24 & 0x7F,
        )


@dataclass(frozen=True, slots=True)
class RETH(_Header):
    """The RDMA extended transport header (§9.3.3): remote address, remote key, length of the whole message."""

    SIZE: ClassVar[int] = 16
    _LAYOUT: ClassVar[struct.Struct] = struct.Struct("!QII")

    address: int
    rkey: int
    dma_length: int

    def _words(self) -> tuple[int, ...]:
        return (self.address, self.rkey, self.dma_length)


@dataclass(frozen=True, slots=True)
class AETH(_Header):
    """The ACK extended transport header (§9.3.5)."""

    SIZE: ClassVar[int] = 4
    _LAYOUT: ClassVar[struct.Struct] = struct.Struct("!I")

    syndrome: int
    msn: int = 0

    def _words(self) -> tuple[int, ...]:
        return (self.syndrome << 24 | self.msn,)

    @classmethod
    def _from_words(cls, *words: int) -> Self:
        (word,) = words
        return cls(word >> 24, word & 0xFFFFFF)

    def meaning(self) -> Syndrome:
        """The syndrome, decoded."""
        return decode_syndrome(self.syndrome)


@dataclass(frozen=True, slots=True)
class ImmDt(_Header):
    """Immediate data (§9.3.6)."""

    SIZE: ClassVar[int] = 4
    _LAYOUT: ClassVar[struct.Struct] = struct.Struct("!I")

    value: int

    def _words(self) -> tuple[int, ...]:
        return (self.value,)


@dataclass(frozen=True, slots=True)
class AtomicETH(_Header):
    """The atomic extended transport header (§9.3.4); FETCH_ADD adds ``swap_or_add`` and ignores ``compare``."""

    SIZE: ClassVar[int] = 28
    _LAYOUT: ClassVar[struct.Struct] = struct.Struct("!QIQQ")

    address: int
    rkey: int
    swap_or_add: int
    compare: int = 0

    def _words(self) -> tuple[int, ...]:
        return (self.address, self.rkey, self.swap_or_add, self.compare)


@dataclass(frozen=True, slots=True)
class AtomicAckETH(_Header):
    """The atomic ACK extended transport header (§9.3.5.3): the value before the operation."""

    SIZE: ClassVar[int] = 8
    _LAYOUT: ClassVar[struct.Struct] = struct.Struct("!Q")

    original: int

    def _words(self) -> tuple[int, ...]:
        return (self.original,)
