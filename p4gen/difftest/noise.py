"""The part of random traffic that is alike for all families: traffic of others, and damage."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from p4gen.difftest.events import Packet
from p4gen.errors import InputError
from p4gen.groups import NextHop, Route
from p4gen.groups.config import routing
from p4gen.model.entries import Entry
from p4gen.rocev2.codes import ETHERTYPE_ARP, ETHERTYPE_VLAN, ROCE_UDP_PORT, arp_form
from p4gen.rocev2.headers import BTH, UDP, Ethernet, IPv4, ipv4
from p4gen.rocev2.layouts import ARP, ROCE, VLAN
from p4gen.rocev2.packet import RocePacket
from p4gen.vocabulary import ProgramSpec

OPCODES: Final = (*range(0x18), 0x20, 0x64, 0xC0, 0xC1, 0xFF)
"""Opcodes for packets that have any: those of the reliable connection, and some that nobody knows."""
_HEADERS: Final = 54
"""Bytes of the headers up to the BTH, where half of the wrong bits are."""
_OTHER_BTH: Final = 0.03
_WRONG_CHECKSUM: Final = 0.005
_PORT: Final = ROCE_UDP_PORT.to_bytes(2)


def routes(spec: ProgramSpec) -> list[Entry]:
    """Entries that route ordinary traffic, which is of IPv4. Raises ``InputError`` for a program that knows none."""
    if not spec.ipv4:
        raise InputError(f"{spec.program}: random traffic of the family {spec.family} is of IPv4; use ip both")
    hops = [NextHop(n, n % spec.ports, 0x02BB00 + n, 0x02CC00 + n) for n in range(4)]
    return [*routing([Route("10.9.0.1/32", 0), Route("10.9.1.0/24", 1), Route("10.9.2.0/24", 2, 2)], hops)]


def foreign(rng: random.Random, ports: int, local: int) -> Packet:
    """A packet of no group or connection: RoCEv2 to be routed, an ARP request for an address such as ``local``, or
    random bytes."""
    port = rng.randrange(ports)
    if rng.random() < 0.2:
        return Packet(port, rng.randbytes(rng.randrange(14, 200)), "noise")
    if rng.random() < 0.25:
        asked = rng.choice((local, ipv4("10.9.0.9")))
        ends = (0xFFFFFFFFFFFF).to_bytes(6) + (0x02DD).to_bytes(6) + ETHERTYPE_ARP.to_bytes(2)
        sender = {"src_mac": 0x02DD, "src_addr": ipv4("10.9.0.1")}
        question = ARP.word.pack(form=arp_form(1), **sender, dst_mac=0, dst_addr=asked)
        return Packet(port, ends + question.to_bytes(ARP.size), "question")
    away = ipv4(rng.choice(("10.9.0.1", "10.9.1.7", "10.9.2.3", "192.0.2.1")))
    bth = BTH(rng.choice(OPCODES), rng.getrandbits(24), rng.getrandbits(24))
    ip = IPv4(ipv4("10.9.0.2"), away, ttl=rng.choice((64, 1)))
    packet = RocePacket(Ethernet(0x02AA, 0x02DD), ip, UDP(50000), bth, payload=rng.randbytes(64))
    return Packet(port, packet.sealed().to_bytes(), "ordinary")


def vary(rng: random.Random, packet: RocePacket) -> tuple[RocePacket, bool]:
    """A packet with other fields of the IPv4 header, sometimes with a tag or other bits of the BTH, rarely with a wrong
    checksum. Its ICRC is right. Also whether a switch has a reason to drop it."""
    ip = replace(
        packet.ipv4, ttl=rng.choice((64, 63, 2, 1)), tos=rng.choice((0, 0, 1, 2, 3, rng.getrandbits(8))),
        identification=rng.getrandbits(16),
    )  # fmt: skip
    bth, checksum = packet.bth, None
    if rng.random() < _OTHER_BTH:
        bth = rng.choice(
            (
                replace(bth, pkey=rng.getrandbits(16)),
                replace(bth, version=1),
                replace(bth, pad_count=1),
                replace(bth, dst_qp=rng.getrandbits(16)),
            )
        )
    tag = rng.getrandbits(16) if rng.random() < 0.05 else None
    if rng.random() < _WRONG_CHECKSUM:
        checksum = rng.getrandbits(16)
    sealed = replace(packet, ip=ip, bth=bth, vlan=tag).sealed(checksum=checksum)
    sound = bth == packet.bth and checksum is None
    return (sealed.with_udp_checksum() if rng.random() < 0.1 else sealed), sound


def spoilt(rng: random.Random, frame: bytes) -> bytes:
    """A frame with one wrong bit, or a part of it."""
    how: Callable[[random.Random, bytes], bytes] = rng.choice((_flip_bit, _cut))
    return how(rng, frame)


def _flip_bit(rng: random.Random, frame: bytes) -> bytes:
    at = rng.randrange(min(len(frame), rng.choice((_HEADERS, len(frame)))))
    return frame[:at] + bytes((frame[at] ^ 1 << rng.randrange(8),)) + frame[at + 1 :]


def _cut(rng: random.Random, frame: bytes) -> bytes:
    return frame[: rng.randrange(14, len(frame))]


def has_opcode(frame: bytes, opcodes: Sequence[int]) -> bool:
    """Whether a frame is a RoCEv2 datagram with one of these opcodes."""
    if frame[ROCE.bytes("ethernet.ether_type")] == ETHERTYPE_VLAN.to_bytes(2):
        frame = frame[VLAN.size :]  # the tag is followed by what untagged frames have there
    at = ROCE.at("bth.opcode")
    return frame[ROCE.bytes("udp.dst_port")] == _PORT and len(frame) > at and frame[at] in opcodes
