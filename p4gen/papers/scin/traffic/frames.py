"""A switch in the middle of a star, and the frames that ranks' NICs send it: for random traffic.

Rank i is behind edge i + 1, whose port is i. PSNs of data are counted from a context's first packet, and calls from its
first call.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final

from p4gen.groups.group import Endpoint, SwitchConfig
from p4gen.papers.scin.codes import NUMBERS
from p4gen.papers.scin.control import Pattern, PullContext, PullEdge, Role, configuration, roles
from p4gen.papers.scin.headers import ANNOUNCED
from p4gen.papers.scin.spec import ScinSpec
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import AETH, BTH, UDP, Ethernet, ImmDt, ip_header
from p4gen.rocev2.opcodes import Ack, Opcode
from p4gen.rocev2.packet import RocePacket
from p4gen.rocev2.places import places_for
from p4gen.vocabulary import ticks

ACK: Final = Ack().syndrome
_SWITCH, _FAR = 0x0AFE0001, 0x0A000001
"""IPv4 addresses of the switch's endpoints, and of the first of those at the other ends of its edges."""
_QPS: Final = 128
"""QP numbers of a context."""


@dataclass(frozen=True)
class Star:
    """The surroundings of a switch that runs a program of ``spec``."""

    spec: ScinSpec

    def context(self, number: int, pattern: Pattern, epoch: int = 1, first_psn: int = 0) -> PullContext:
        """A context of the ranks that ``pattern`` names."""
        edges = (edge for edge in range(1, self.spec.edges + 1) if pattern.participants >> (edge - 1) & 1)
        return PullContext(
            number,
            tuple(self._edge(number, edge) for edge in edges),
            pattern.sources,
            pattern.destinations,
            epoch,
            first_psn,
        )

    def config(self, contexts: Collection[PullContext]) -> SwitchConfig:
        """What the switch must hold to serve contexts."""
        return configuration(self.spec, tuple(contexts))

    def _edge(self, number: int, edge: int) -> PullEdge:
        ip, mac = _FAR + edge, 0x02BB00000000 + edge
        near, far = (
            tuple(Endpoint(mac, ip, base + _QPS * number + 4 * edge + role) for role in roles(self.spec))
            for mac, ip, base in ((0x02AA00000001, _SWITCH, 0x1000), (mac, ip, 0x20000))
        )
        place = 0x7F0000000000 + (edge << 32) + 8 * number
        return PullEdge(
            edge,
            edge - 1,
            near,
            far,
            place,
            0xF1A60000 | number << 8 | edge,
            0xC000 + _QPS * number % 0x1000 + edge,
        )


def from_rank(edge: PullEdge, role: Role, bth: BTH, **parts: Any) -> RocePacket:
    """A packet of one of a rank's queue pairs to its other end. Its ICRC is still to be computed."""
    near, far = edge.local[role], edge.remote[role]
    return RocePacket(
        Ethernet(near.mac, far.mac, places_for(near.ip).ether_type),
        ip_header(far.ip, near.ip),
        UDP(edge.udp_src_port),
        replace(bth, dst_qp=near.qp),
        **parts,
    )


def arrival(
    spec: ScinSpec, context: PullContext, edge: PullEdge, call: int, packets: int, buffers: bytes, other: int = 0
) -> RocePacket:
    """A rank arrives at a call; with ``other``, one of other numbers than the program's."""
    said = ImmDt(ANNOUNCED.pack(numbers=NUMBERS[spec.dtype] ^ other, packets=packets))
    bth = BTH(Opcode.SEND_ONLY_IMM, 0, serial.add(context.first_psn, call), solicited=True, ack_request=True)
    return from_rank(edge, Role.SYNC, bth, immdt=said, payload=buffers)


def response(
    context: PullContext, edge: PullEdge, psn: int, data: bytes, opcode: Opcode, role: Role = Role.READ
) -> RocePacket:
    """A packet of a rank's answer to a READ; of scales, the PSN is that of their wave."""
    aeth = None if opcode is Opcode.READ_RESPONSE_MIDDLE else AETH(ACK, 0)
    return from_rank(edge, role, BTH(opcode, 0, serial.add(context.first_psn, psn)), aeth=aeth, payload=data)


def answer(context: PullContext, edge: PullEdge, role: Role, psn: int, syndrome: int = ACK, msn: int = 0) -> RocePacket:
    """What one of a rank's queue pairs says of a packet."""
    bth = BTH(Opcode.ACKNOWLEDGE, 0, serial.add(context.first_psn, psn))
    return from_rank(edge, role, bth, aeth=AETH(syndrome, msn))


def tick(edge: PullEdge) -> RocePacket:
    """A tick of the switch's agent."""
    return from_rank(edge, Role.SYNC, BTH(ticks.OPCODE, 0, 0), aeth=AETH(0, 1))
