"""A network for hosts alone: one switch that forwards by destination address, over lines that may lose and delay."""

from __future__ import annotations

import random
from dataclasses import dataclass

from p4gen.host.compiled.hosts import CompiledHosts
from p4gen.host.transport.clock import US
from p4gen.rocev2.places import places_for

PS_PER_BYTE = 80


@dataclass(frozen=True)
class Trouble:
    """Chances for each frame."""

    loss: float = 0
    duplicate: float = 0
    delay: float = 0
    """To take up to 5 us more, and so to be overtaken."""
    corrupt: float = 0


class Fabric:
    """``size`` NICs around a switch; every way from NIC to NIC takes 2 us. ``frames`` keeps what was sent."""

    def __init__(self, size: int, trouble: Trouble | None = None, seed: int = 0, first_ip: int = 0x0A00_0001) -> None:
        self.hosts = CompiledHosts(2048, size)
        self.loop = self.hosts.loop
        self.nics = [self.hosts.add(0x0200_0000_0001 + r, first_ip + r) for r in range(size)]
        self.frames: list[bytes] = []
        self._places = places_for(first_ip)
        self._by_ip = {nic.ip: nic for nic in self.nics}
        self._trouble = trouble or Trouble()
        self._chance = random.Random(seed)
        for nic in self.nics:
            nic.line = self

    def transmit(self, frame: bytes, at: int) -> int:
        """A NIC sends."""
        self.frames.append(frame)
        end = at + PS_PER_BYTE * (len(frame) + 24)
        chance, trouble = self._chance, self._trouble
        for _ in range(1 + (chance.random() < trouble.duplicate)):
            if chance.random() < trouble.loss:
                continue
            arrival = end + 2 * US + (chance.randrange(5 * US) if chance.random() < trouble.delay else 0)
            what = bytearray(frame)
            if chance.random() < trouble.corrupt:
                what[chance.randrange(self._places.bth, len(what))] ^= 1 << chance.randrange(8)
            target = self._by_ip[int.from_bytes(frame[self._places.dst_addr])]
            self.loop.at(arrival, target.receive, bytes(what))
        return end
