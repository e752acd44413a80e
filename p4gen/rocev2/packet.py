"""Whole RoCEv2 frames over IPv4 or IPv6: building, parsing and an independent check of every derived field.

A ``RocePacket`` stores what is on the wire. ``sealed`` returns it with the right lengths, IPv4 checksum and ICRC;
to make a malformed one, give ``sealed`` the wrong value, or replace fields of a sealed packet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from p4gen.rocev2 import icrc as icrc_of
from p4gen.rocev2 import layouts
from p4gen.rocev2.codes import ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_VLAN, PROTOCOL_UDP, ROCE_UDP_PORT
from p4gen.rocev2.headers import (
    AETH,
    BTH,
    RETH,
    UDP,
    AtomicAckETH,
    AtomicETH,
    Ethernet,
    HeaderError,
    ImmDt,
    IPv4,
    IPv6,
    ones_complement_sum,
)
from p4gen.rocev2.icrc import ICRC_SIZE
from p4gen.rocev2.opcodes import Extension, extensions

MIN_FRAME = 60
"""Length of the shortest Ethernet frame without its FCS; senders pad to it."""


@dataclass(frozen=True, slots=True)
class RocePacket:
    """A RoCEv2 frame. ``payload`` includes the BTH's pad bytes; ``icrc`` is in wire order; ``padding`` is Ethernet's.

    ``vlan`` is the tag control information of an 802.1Q tag: what precedes the EtherType in ``layouts.VLAN``.

    Extension headers that are not None are written in the order RETH, AETH, ImmDt, AtomicETH, AtomicAckETH,
    whether or not the opcode calls for them.
    """

    eth: Ethernet
    ip: IPv4 | IPv6
    udp: UDP
    bth: BTH
    reth: RETH | None = None
    aeth: AETH | None = None
    immdt: ImmDt | None = None
    atomic_eth: AtomicETH | None = None
    atomic_ack_eth: AtomicAckETH | None = None
    payload: bytes = b""
    icrc: bytes = bytes(ICRC_SIZE)
    padding: bytes = b""
    vlan: int | None = None

    @property
    def ipv4(self) -> IPv4:
        """The IPv4 header of a frame that has one; TypeError for another one."""
        if not isinstance(self.ip, IPv4):
            raise TypeError("the frame has an IPv6 header")
        return self.ip

    def transport(self) -> bytes:
        """BTH, extension headers and payload, without the ICRC."""
        ordered = (self.reth, self.aeth, self.immdt, self.atomic_eth, self.atomic_ack_eth)
        return b"".join((self.bth.pack(), *(header.pack() for header in ordered if header is not None), self.payload))

    def ip_packet(self) -> bytes:
        """The bytes from the IP header to the last one before the ICRC."""
        return self.ip.pack() + self.udp.pack() + self.transport()

    def to_bytes(self) -> bytes:
        """The frame exactly as stored, without an FCS."""
        eth = self.eth.pack()
        if self.vlan is not None:
            eth = eth[:-2] + ETHERTYPE_VLAN.to_bytes(2) + self.vlan.to_bytes(2) + eth[-2:]
        return eth + self.ip_packet() + self.icrc + self.padding

    def sealed(
        self,
        *,
        total_length: int | None = None,
        udp_length: int | None = None,
        checksum: int | None = None,
        icrc: bytes | None = None,
    ) -> RocePacket:
        """The same packet with right lengths, IPv4 checksum and ICRC, each unless given. ``total_length`` counts the IP
        header.

        The ICRC covers the given lengths, and the checksum too, so that one field can be wrong alone.
        """
        transport = len(self.transport()) + ICRC_SIZE
        udp = replace(self.udp, length=UDP.SIZE + transport if udp_length is None else udp_length)
        length = self.ip.size + UDP.SIZE + transport
        length = length if total_length is None else total_length
        ip: IPv4 | IPv6
        if isinstance(self.ip, IPv6):
            ip = replace(self.ip, payload_length=max(0, length - IPv6.SIZE))
        else:
            unchecked = replace(self.ip, ihl=self.ip.size // 4, total_length=length)
            ip = replace(unchecked, checksum=unchecked.right_checksum() if checksum is None else checksum)
        packet = replace(self, ip=ip, udp=udp)
        return replace(packet, icrc=icrc_of.icrc(packet.ip_packet()) if icrc is None else icrc)

    def with_udp_checksum(self) -> RocePacket:
        """The same packet with a UDP checksum (RFC 768); to be called on a sealed packet, whose ICRC it covers."""
        blank = replace(self, udp=replace(self.udp, checksum=0))
        return replace(self, udp=replace(self.udp, checksum=_udp_sum(blank) ^ 0xFFFF or 0xFFFF))


def parse(frame: bytes) -> RocePacket:
    """Parse a frame by its BTH opcode. Lengths must be consistent; checksum and ICRC may be wrong (see ``problems``).

    Raises ``HeaderError``, which says what is missing, when the frame is not RoCEv2 or is too short.
    """
    eth = Ethernet.unpack(frame)
    vlan = None
    if eth.ethertype == ETHERTYPE_VLAN and len(frame) >= Ethernet.SIZE + layouts.VLAN.size:
        vlan = int.from_bytes(frame[Ethernet.SIZE : Ethernet.SIZE + 2])
        # The rest is parsed as if there were no tag.
        frame = frame[: Ethernet.SIZE - 2] + frame[Ethernet.SIZE + 2 :]
        eth = Ethernet.unpack(frame)
    if eth.ethertype not in (ETHERTYPE_IPV4, ETHERTYPE_IPV6):
        raise HeaderError(f"Ethernet: ethertype {eth.ethertype:#06x} is not IP")
    ip = (IPv4 if eth.ethertype == ETHERTYPE_IPV4 else IPv6).unpack(frame, Ethernet.SIZE)
    if ip.protocol != PROTOCOL_UDP:
        raise HeaderError(f"IPv{ip.version}: protocol {ip.protocol} is not UDP")
    if isinstance(ip, IPv4) and (ip.fragment_offset or ip.flags & 0b001):
        raise HeaderError("IPv4: a fragment")
    end = Ethernet.SIZE + ip.total_length
    if end > len(frame):
        raise HeaderError(
            f"IPv{ip.version}: total length is {ip.total_length}, {len(frame) - Ethernet.SIZE} bytes are there"
        )
    body, offset = frame[:end], Ethernet.SIZE + ip.size
    udp = UDP.unpack(body, offset)
    if udp.dst_port != ROCE_UDP_PORT:
        raise HeaderError(f"UDP: destination port {udp.dst_port} is not RoCEv2's {ROCE_UDP_PORT}")
    bth = BTH.unpack(body, offset + UDP.SIZE)
    offset += UDP.SIZE + BTH.SIZE
    reth = aeth = immdt = atomic_eth = atomic_ack_eth = None
    for extension in extensions(bth.opcode):
        match extension:
            case Extension.RETH:
                reth = RETH.unpack(body, offset)
                offset += RETH.SIZE
            case Extension.AETH:
                aeth = AETH.unpack(body, offset)
                offset += AETH.SIZE
            case Extension.IMMDT:
                immdt = ImmDt.unpack(body, offset)
                offset += ImmDt.SIZE
            case Extension.ATOMIC_ETH:
                atomic_eth = AtomicETH.unpack(body, offset)
                offset += AtomicETH.SIZE
            case Extension.ATOMIC_ACK_ETH:
                atomic_ack_eth = AtomicAckETH.unpack(body, offset)
                offset += AtomicAckETH.SIZE
    if end - offset < ICRC_SIZE:
        raise HeaderError(f"ICRC: {ICRC_SIZE} bytes needed, {max(end - offset, 0)} left")
    payload, icrc = body[offset : end - ICRC_SIZE], body[end - ICRC_SIZE :]
    return RocePacket(
        eth, ip, udp, bth, reth, aeth, immdt, atomic_eth, atomic_ack_eth, payload, icrc, frame[end:], vlan
    )


def problems(frame: bytes) -> list[str]:
    """Every error in a frame that a receiver may check: lengths, IPv4 and UDP checksum, ICRC, BTH version, pad,
    padding.

    Empty for a frame without any. For a frame that cannot be parsed, the reason is the only one.
    """
    try:
        packet = parse(frame)
    except HeaderError as error:
        return [diagnostic.message for diagnostic in error.diagnostics]
    found = []
    right = packet.sealed()
    if packet.udp.length != right.udp.length:
        found.append(f"UDP length is {packet.udp.length}, the IP packet leaves {right.udp.length}")
    if isinstance(packet.ip, IPv4) and packet.ip.checksum != packet.ip.right_checksum():
        found.append(f"IPv4 checksum is {packet.ip.checksum:#06x}, not {packet.ip.right_checksum():#06x}")
    if packet.udp.checksum and _udp_sum(packet) != 0xFFFF:
        found.append(f"UDP checksum {packet.udp.checksum:#06x} is wrong")
    if not icrc_of.check(frame):
        wanted = icrc_of.icrc(packet.ip_packet())
        found.append(f"ICRC is {packet.icrc.hex()}, not {wanted.hex()}")
    if packet.bth.version != 0:
        found.append(f"BTH version is {packet.bth.version}")
    if len(packet.payload) % 4 or packet.bth.pad_count > len(packet.payload):
        found.append(f"payload is {len(packet.payload)} bytes with a pad count of {packet.bth.pad_count}")
    if packet.padding and (len(frame) != MIN_FRAME or packet.padding.strip(b"\0")):
        found.append(f"{len(packet.padding)} bytes follow the IP packet")
    return found


def _udp_sum(packet: RocePacket) -> int:
    """The one's complement sum over pseudo-header and datagram, which is all ones when the checksum is right (RFC 768;
    RFC 8200, 8.1: its fields are wider, which does not change the sum)."""
    size = 4 if isinstance(packet.ip, IPv4) else 16
    pseudo = packet.ip.src.to_bytes(size) + packet.ip.dst.to_bytes(size) + bytes((0, packet.ip.protocol))
    segment = packet.udp.pack() + packet.transport() + packet.icrc
    return ones_complement_sum((pseudo, len(segment).to_bytes(2), segment))
