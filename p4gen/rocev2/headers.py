"""The headers of a RoCEv2 frame as plain records: what is stored is what is on the wire.

Addresses are integers, as in p4gen's table entries: MAC addresses of 48 bits; an IP address that does not fit 32 bits
is one of IPv6 (``is_ipv6``). ``pack`` writes exactly the stored fields, right or wrong; ``p4gen.rocev2.packet`` fills
in lengths and checksums. ``unpack`` raises ``HeaderError`` when bytes are missing. Layouts: IEEE 802.3, RFC 791,
RFC 8200, RFC 768, InfiniBand specification volume 1 §9.2 and §9.3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from dataclasses import field as attribute
from functools import cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address
from typing import ClassVar, Self

from typing_extensions import override

from p4gen.errors import InputError
from p4gen.layout import Header
from p4gen.rocev2 import layouts
from p4gen.rocev2.codes import DEFAULT_PKEY, ETHERTYPE_IPV4, PROTOCOL_UDP, ROCE_UDP_PORT
from p4gen.rocev2.opcodes import Syndrome, decode_syndrome


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


def is_ipv6(address: int) -> bool:
    """Whether an IP address is one of IPv6; IPv4's fit 32 bits."""
    return address >> layouts.IPV4_BITS != 0


def ip_from(text: str) -> int:
    """``"10.0.0.1"`` or ``"fd00::1"`` as an integer; ValueError when it is neither an IPv4 nor an IPv6 address."""
    address = ip_address(text)
    if address.version == 6 and not is_ipv6(int(address)):
        raise ValueError(f"{text} is not an address of a host")
    return int(address)


def ip_text(address: int) -> str:
    """``0x0A000001`` as ``"10.0.0.1"``, a greater number as an IPv6 address."""
    return str(IPv6Address(address)) if is_ipv6(address) else ipv4_text(address)


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


def _of(*fields: str) -> dict[str, tuple[str, ...]]:
    """Declare an attribute whose name is not that of its field, or that stands for several adjacent fields."""
    return {"of": fields}


class _Header:
    """The base of all headers: a subclass names its layout, and its attributes are fields of that layout."""

    __slots__ = ()
    LAYOUT: ClassVar[Header]
    SIZE: ClassVar[int]

    def __init_subclass__(cls) -> None:
        cls.SIZE = cls.LAYOUT.size

    @classmethod
    @cache
    def _places(cls) -> tuple[tuple[str, int, int], ...]:
        """Each attribute that is a field, with its lowest bit and its width."""
        found = []
        for each in fields(cls):  # type: ignore[arg-type]  # subclasses are dataclasses
            names = each.metadata.get("of", (each.name,))
            if names:
                ends = [cls.LAYOUT.word.ends(name) for name in names]
                found.append((each.name, ends[-1][1], ends[0][0] - ends[-1][1] + 1))
        return tuple(found)

    def pack(self) -> bytes:
        """The header's bytes, exactly as stored; ValueError when a field is too wide."""
        word = 0
        for name, low, bits in self._places():
            value = getattr(self, name)
            if value >> bits:
                raise ValueError(f"{type(self).__name__}: {name} = {value} does not fit {bits} bits")
            word |= value << low
        return word.to_bytes(self.LAYOUT.size)

    @classmethod
    def unpack(cls, data: bytes, offset: int = 0) -> Self:
        """Read the header at ``offset``; HeaderError when the data ends before it does."""
        size = cls.LAYOUT.size
        left = len(data) - offset
        if left < size:
            raise HeaderError(f"{cls.__name__}: {size} bytes needed, {max(left, 0)} left")
        word = int.from_bytes(data[offset : offset + size])
        values = {name: word >> low & (1 << bits) - 1 for name, low, bits in cls._places()}
        return cls(**{name: bool(values[name]) if bits == 1 else values[name] for name, _, bits in cls._places()})


@dataclass(frozen=True, slots=True)
class Ethernet(_Header):
    """An Ethernet II header, untagged."""

    LAYOUT: ClassVar[Header] = layouts.ETHERNET

    dst: int = attribute(metadata=_of("dst_addr"))
    src: int = attribute(metadata=_of("src_addr"))
    ethertype: int = attribute(default=ETHERTYPE_IPV4, metadata=_of("ether_type"))


@dataclass(frozen=True, slots=True)
class IPv4(_Header):
    """An IPv4 header; ``ihl`` counts 32-bit words and ``options`` are the bytes it covers past ``SIZE``."""

    LAYOUT: ClassVar[Header] = layouts.IPV4

    src: int = attribute(metadata=_of("src_addr"))
    dst: int = attribute(metadata=_of("dst_addr"))
    protocol: int = PROTOCOL_UDP
    ttl: int = 64
    tos: int = attribute(default=0, metadata=_of("dscp", "ecn"))
    identification: int = 0
    flags: int = 0b010
    fragment_offset: int = 0
    total_length: int = 0
    checksum: int = 0
    version: int = 4
    ihl: int = 5
    options: bytes = attribute(default=b"", metadata=_of())

    @property
    def size(self) -> int:
        """The header's bytes as stored, whatever ``ihl`` claims."""
        return self.SIZE + len(self.options)

    @override
    def pack(self) -> bytes:
        """The header's bytes, options included."""
        # Named, not super(): slots=True makes dataclass() build a second class, which a bare super() does not know.
        return _Header.pack(self) + self.options

    @classmethod
    @override
    def unpack(cls, data: bytes, offset: int = 0) -> Self:
        """Parse an IPv4 header with its options. Raises ``HeaderError`` also for another version, or a header length
        below 5."""
        header = super(IPv4, cls).unpack(data, offset)
        if header.version != 4:
            raise HeaderError(f"IPv4: version is {header.version}")
        if header.ihl < 5:
            raise HeaderError(f"IPv4: header length is {header.ihl} words, 5 is the least")
        options = data[offset + cls.SIZE : offset + 4 * header.ihl]
        announced = 4 * header.ihl - cls.SIZE
        if len(options) != announced:
            raise HeaderError(f"IPv4: {announced} bytes of options announced, {len(options)} left")
        return replace(header, options=options) if options else header

    def right_checksum(self) -> int:
        """The checksum that this header should carry (RFC 791)."""
        return internet_checksum(replace(self, checksum=0).pack())


@dataclass(frozen=True, slots=True)
class IPv6(_Header):
    """An IPv6 header. What IPv4's header has too is named as there: ``protocol`` is the next header, ``ttl`` the hop
    limit, ``tos`` the traffic class."""

    LAYOUT: ClassVar[Header] = layouts.IPV6

    src: int = attribute(metadata=_of("src_addr"))
    dst: int = attribute(metadata=_of("dst_addr"))
    protocol: int = attribute(default=PROTOCOL_UDP, metadata=_of("next_header"))
    ttl: int = attribute(default=64, metadata=_of("hop_limit"))
    tos: int = attribute(default=0, metadata=_of("dscp", "ecn"))
    flow_label: int = 0
    payload_length: int = 0
    version: int = 6

    @property
    def size(self) -> int:
        """The header's bytes."""
        return self.SIZE

    @property
    def total_length(self) -> int:
        """Bytes from here to the packet's end, as far as the header says."""
        return self.SIZE + self.payload_length

    @classmethod
    @override
    def unpack(cls, data: bytes, offset: int = 0) -> Self:
        """Parse an IPv6 header. Raises ``HeaderError`` also for another version."""
        header = super(IPv6, cls).unpack(data, offset)
        if header.version != 6:
            raise HeaderError(f"IPv6: version is {header.version}")
        return header


def ip_header(src: int, dst: int, *, ttl: int = 64, tos: int = 0) -> IPv4 | IPv6:
    """The IP header of a UDP datagram between two addresses of one kind. Raises ``ValueError`` for addresses of
    different kinds."""
    if is_ipv6(src) != is_ipv6(dst):
        raise ValueError(f"{ip_text(src)} and {ip_text(dst)} are addresses of different kinds")
    return IPv6(src, dst, ttl=ttl, tos=tos) if is_ipv6(src) else IPv4(src, dst, ttl=ttl, tos=tos)


@dataclass(frozen=True, slots=True)
class UDP(_Header):
    """A UDP header; RoCEv2 senders leave the checksum 0 (none) and vary the source port for ECMP."""

    LAYOUT: ClassVar[Header] = layouts.UDP

    src_port: int = 49152
    dst_port: int = ROCE_UDP_PORT
    length: int = 0
    checksum: int = 0


@dataclass(frozen=True, slots=True)
class BTH(_Header):
    """The base transport header (§9.2); ``fecn``, ``becn`` and ``reserved6`` make up its byte resv8a."""

    LAYOUT: ClassVar[Header] = layouts.BTH

    opcode: int
    dst_qp: int = attribute(metadata=_of("dest_qp"))
    psn: int
    ack_request: bool = False
    solicited: bool = False
    mig_request: bool = attribute(default=False, metadata=_of("migration"))
    pad_count: int = 0
    version: int = 0
    pkey: int = attribute(default=DEFAULT_PKEY, metadata=_of("partition_key"))
    fecn: bool = False
    becn: bool = False
    reserved6: int = attribute(default=0, metadata=_of("resv8a"))
    reserved7: int = attribute(default=0, metadata=_of("reserved2"))


@dataclass(frozen=True, slots=True)
class RETH(_Header):
    """The RDMA extended transport header (§9.3.3): remote address, remote key, length of the whole message."""

    LAYOUT: ClassVar[Header] = layouts.RETH

    address: int
    rkey: int
    dma_length: int


@dataclass(frozen=True, slots=True)
class AETH(_Header):
    """The ACK extended transport header (§9.3.5)."""

    LAYOUT: ClassVar[Header] = layouts.AETH

    syndrome: int
    msn: int = 0

    def meaning(self) -> Syndrome:
        """The syndrome, decoded: an ACK, an RNR NAK, a NAK, or a reserved code."""
        return decode_syndrome(self.syndrome)


@dataclass(frozen=True, slots=True)
class ImmDt(_Header):
    """The immediate data header (§9.3.6): 32 bits for the receiver's application."""

    LAYOUT: ClassVar[Header] = layouts.IMMEDIATE

    value: int


@dataclass(frozen=True, slots=True)
class AtomicETH(_Header):
    """The atomic extended transport header (§9.3.4); FETCH_ADD adds ``swap_or_add`` and ignores ``compare``."""

    LAYOUT: ClassVar[Header] = layouts.ATOMIC

    address: int
    rkey: int
    swap_or_add: int
    compare: int = 0


@dataclass(frozen=True, slots=True)
class AtomicAckETH(_Header):
    """The atomic ACK extended transport header (§9.3.5.3): the value before the operation."""

    LAYOUT: ClassVar[Header] = layouts.ATOMIC_ACK

    original: int
