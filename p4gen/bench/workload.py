"""What a switch is measured with: one group of ranks that contribute packet after packet, none lost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p4gen.errors import InputError
from p4gen.inc import compose
from p4gen.manager.config import Edge, Endpoint, Group, SwitchConfig, configure
from p4gen.model import Model
from p4gen.model.jit import Batch
from p4gen.render import render
from p4gen.rocev2.headers import BTH, UDP, Ethernet, IPv4
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket
from p4gen.spec import ProgramSpec

RANKS = 4


@dataclass(frozen=True)
class Workload:
    """A program's text, what its switch must hold, and the packets: each PSN from every rank in turn.

    Each packet that completes a slot makes the switch send the result to every rank.
    """

    spec: ProgramSpec
    text: str
    edges: tuple[Edge, ...]
    config: SwitchConfig
    packets: tuple[tuple[int, bytes], ...]

    @property
    def batch(self) -> Batch:
        """The packets as a batch."""
        return Batch.of(self.packets)

    def configure(self, model: Model) -> Model:
        """Put entries and groups into a switch."""
        model.insert(*self.config.entries)
        for group in self.config.multicast_groups:
            model.set_multicast_group(group)
        return model


def workload(spec: ProgramSpec, packets: int, seed: int) -> Workload:
    """About ``packets`` packets of random lanes. Raises ``InputError`` for a program that has no room for ranks."""
    ranks = min(RANKS, spec.fan_in, spec.ports)
    if ranks < 2:
        raise InputError("a benchmark needs a program with at least two edges and two ports")
    switch = Endpoint(0x02_00_00_00_00_00, 0x0A000001, 0)
    edges = tuple(
        Edge(
            rank + 1,
            rank,
            Endpoint(switch.mac + rank, switch.ip, 100 + rank),
            Endpoint(switch.mac + 0x100 + rank, switch.ip + 0x100 + rank, 200 + rank),
        )
        for rank in range(ranks)
    )
    config = configure(spec, [Group(0, edges, 0, spec.slots_per_group)])
    rng = np.random.default_rng(seed)
    frames = [
        (rank, _contribution(edges[rank], psn % (1 << 24), rng.bytes(spec.payload_bytes)))
        for psn in range(max(packets // ranks, 1))
        for rank in range(ranks)
    ]
    return Workload(spec, render(compose(spec)).text, edges, config, tuple(frames))


def _contribution(edge: Edge, psn: int, payload: bytes) -> bytes:
    packet = RocePacket(
        Ethernet(edge.local.mac, edge.remote.mac),
        IPv4(edge.remote.ip, edge.local.ip),
        UDP(),
        BTH(Opcode.SEND_ONLY, edge.local.qp, psn),
        payload=payload,
    )
    return packet.sealed().to_bytes()
