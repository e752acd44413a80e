"""Updates and results as frames: Ethernet, IPv4, UDP, SwitchML's header, elements in network byte order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from p4gen.layout import Stack
from p4gen.papers.switchml.headers import PORT, SWITCHML
from p4gen.rocev2 import layouts
from p4gen.rocev2.datagrams import datagram, is_datagram
from p4gen.rocev2.headers import Ethernet, IPv4

_STACK: Final = Stack(layouts.ETHERNET, layouts.IPV4, layouts.UDP, SWITCHML)
_HEADER: Final = _STACK.start("switchml")
_FROM, _TO = _STACK.bytes("ipv4.src_addr"), _STACK.bytes("ipv4.dst_addr")


@dataclass(frozen=True)
class Update:
    """What a worker sends of its vector, or gets as the sum."""

    job: int
    epoch: int
    version: int
    slot: int
    offset: int
    data: bytes
    """The elements."""

    def matches(self, other: Update) -> bool:
        """Whether the other one is the same but for the elements, of which it has as many."""
        return len(other.data) == len(self.data) and replace(other, data=self.data) == self

    def pack(self) -> bytes:
        """What follows the UDP header."""
        fields = {"job": self.job, "epoch": self.epoch, "version": self.version, "slot": self.slot}
        return SWITCHML.word.pack(**fields, offset=self.offset).to_bytes(SWITCHML.size) + self.data

    def frame(self, ethernet: Ethernet, ip: IPv4, src_port: int = PORT) -> bytes:
        """The frame with these headers; lengths and the IPv4 checksum are filled in, UDP has none."""
        return datagram(ethernet, ip, (src_port, PORT), self.pack())

    @classmethod
    def parse(cls, frame: bytes, source: int, destination: int) -> Update | None:
        """The update in a frame without a VLAN tag from one IPv4 address to another; None if there is none."""
        ends = int.from_bytes(frame[_FROM]), int.from_bytes(frame[_TO])
        if len(frame) < _STACK.size or not is_datagram(frame, PORT) or ends != (source, destination):
            return None
        word = int.from_bytes(frame[_HEADER : _STACK.size])
        return cls(**SWITCHML.word.unpack(word), data=frame[_STACK.size :])

    @classmethod
    def described(cls, frame: bytes) -> tuple[str, str] | None:
        """As ``p4gen.net.collectives.kinds.Kinds.describe`` for updates and results."""
        found = cls.parse(frame, int.from_bytes(frame[_FROM]), int.from_bytes(frame[_TO]))
        if found is None:
            return None
        return "DATA", f"slot {found.slot} version {found.version} offset {found.offset}"
