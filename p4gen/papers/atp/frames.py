"""Packets of ATP as frames: Ethernet, IPv4, UDP, ATP's header, elements in network byte order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from p4gen.layout import Stack
from p4gen.papers.atp.headers import ATP, PORT, Message
from p4gen.rocev2 import layouts
from p4gen.rocev2.codes import ECN_CE
from p4gen.rocev2.datagrams import datagram, is_datagram
from p4gen.rocev2.headers import Ethernet, IPv4

_STACK: Final = Stack(layouts.ETHERNET, layouts.IPV4, layouts.UDP, ATP)
_HEADER: Final = _STACK.start("atp")
_FROM, _TO, _TOS = _STACK.bytes("ipv4.src_addr"), _STACK.bytes("ipv4.dst_addr"), _STACK.at("ipv4.ecn")


JobKey = tuple[int, int]
"""A job's number and epoch, which all its packets have."""


def bits(workers: Iterable[int]) -> int:
    """A set of workers, which are counted from 0."""
    return sum(1 << worker for worker in workers)


@dataclass(frozen=True)
class Packet:
    """What workers send, or the server."""

    job: int
    epoch: int
    message: int
    sequence: int
    workers: int
    """The workers in the sum, as a set of bits."""
    data: bytes
    congested: int = 0
    collision: int = 0

    def pack(self) -> bytes:
        """What follows the UDP header."""
        fields = {name: getattr(self, name) for name in ATP.word.unpack(0) if name != "reserved"}
        return ATP.word.pack(**fields, reserved=0).to_bytes(ATP.size) + self.data

    def fits(self, job: JobKey, lanes: int) -> bool:
        """Whether it is one of a job, with so many elements."""
        return ((self.job, self.epoch), len(self.data)) == (job, 4 * lanes)

    def frame(self, ethernet: Ethernet, ip: IPv4, src_port: int = PORT) -> bytes:
        """The frame with these headers; lengths and the IPv4 checksum are filled in, UDP has none."""
        return datagram(ethernet, ip, (src_port, PORT), self.pack())

    @classmethod
    def parse(cls, frame: bytes, destination: int) -> tuple[int, Packet] | None:
        """The packet in a frame without a VLAN tag to an IPv4 address, behind the address that it is from; None if
        there is none. It is congested if the frame's IPv4 header says so, too."""
        if len(frame) < _STACK.size or not is_datagram(frame, PORT) or int.from_bytes(frame[_TO]) != destination:
            return None
        fields = ATP.word.unpack(int.from_bytes(frame[_HEADER : _STACK.size]))
        del fields["reserved"]
        if frame[_TOS] & ECN_CE == ECN_CE:
            fields["congested"] = 1
        return int.from_bytes(frame[_FROM]), cls(**fields, data=frame[_STACK.size :])

    @classmethod
    def described(cls, frame: bytes) -> tuple[str, str] | None:
        """As ``p4gen.net.collectives.kinds.Kinds.describe``."""
        found = cls.parse(frame, int.from_bytes(frame[_TO]))
        if found is None or found[1].message not in set(Message):
            return None
        packet, name = found[1], Message(found[1].message).name.lower().replace("_", " ")
        return "DATA", f"{name} {packet.sequence} of workers {packet.workers:b}"
