"""UDP datagrams over IPv4 that are not RoCEv2's, in frames without a VLAN tag."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from p4gen.layout import Stack
from p4gen.rocev2 import layouts
from p4gen.rocev2.codes import ETHERTYPE_IPV4, PROTOCOL_UDP
from p4gen.rocev2.headers import UDP, Ethernet, IPv4

_STACK: Final = Stack(layouts.ETHERNET, layouts.IPV4, layouts.UDP)
_PORT, _IP = _STACK.bytes("udp.dst_port"), _STACK.start("ipv4")
_OF_FRAGMENTS: Final = 0x3FFF
"""The bits that whole datagrams do not have, of those after the identification."""


def datagram(ethernet: Ethernet, ip: IPv4, ports: tuple[int, int], contents: bytes) -> bytes:
    """A frame with a datagram from one port to another; lengths and the IPv4 checksum are filled in, UDP has none."""
    udp = UDP(*ports, UDP.SIZE + len(contents))
    ip = replace(ip, total_length=IPv4.SIZE + udp.length)
    return ethernet.pack() + replace(ip, checksum=ip.right_checksum()).pack() + udp.pack() + contents


def is_datagram(frame: bytes, port: int) -> bool:
    """Whether a frame has a datagram to a port, neither in fragments nor behind IPv4 options: what switches look into.
    Whatever else they route could come from anybody."""
    return (
        len(frame) >= _STACK.size
        and frame[_IP - 2 : _IP + 1] == ETHERTYPE_IPV4.to_bytes(2) + b"\x45"
        and frame[_IP + 9] == PROTOCOL_UDP
        and not int.from_bytes(frame[_IP + 6 : _IP + 8]) & _OF_FRAGMENTS
        and int.from_bytes(frame[_PORT]) == port
    )
