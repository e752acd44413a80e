"""Packets whose correct ICRC has a given value: a CRC is linear, so unused header fields can be solved for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from p4gen.rocev2.packet import RocePacket

_FREE_BITS = 32


def with_icrc(packet: RocePacket, wanted: bytes) -> RocePacket:
    """``packet`` with an identification and source port for which its ICRC is ``wanted``, in wire order."""
    return _freed(packet, solved(lambda bits: _freed(packet, bits).icrc, wanted))


def solved(icrc_of: Callable[[int], bytes], wanted: bytes) -> int:
    """32 bits, which a packet has somewhere, for which its ICRC is ``wanted``, in wire order. ``icrc_of`` tells it."""
    none = int.from_bytes(icrc_of(0))
    missing = none ^ int.from_bytes(wanted)
    effects = [(int.from_bytes(icrc_of(1 << bit)) ^ none, 1 << bit) for bit in range(_FREE_BITS)]
    solution = 0
    for bit in reversed(range(_FREE_BITS)):
        pivot = next((effect for effect in effects if effect[0] >> bit & 1), None)
        if pivot is None:
            continue
        effects = [
            (crc ^ pivot[0], bits ^ pivot[1]) if crc >> bit & 1 else (crc, bits)
            for crc, bits in effects
            if (crc, bits) != pivot
        ]
        if missing >> bit & 1:
            missing, solution = missing ^ pivot[0], solution ^ pivot[1]
    assert missing == 0, f"no 32 bits give the ICRC {wanted.hex()}"
    return solution


def _freed(packet: RocePacket, bits: int) -> RocePacket:
    """The IPv4 identification and the UDP source port are arbitrary."""
    ip = replace(packet.ipv4, identification=bits & 0xFFFF)
    return replace(packet, ip=ip, udp=replace(packet.udp, src_port=bits >> 16)).sealed()
