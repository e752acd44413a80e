"""A switch in the middle of a star, and the frames that the ends of its edges send: for random traffic and benchmarks.

Rank i is behind edge i + 1, whose port is i. An edge that leads to a switch has the rank of its number plus
``spec.edges`` behind it, too, if bitmaps have such a bit.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from p4gen.groups.group import Endpoint, SwitchConfig
from p4gen.papers.multiwrite.control import Window, WriteContext, WriteEdge, configuration
from p4gen.papers.multiwrite.headers import VERSION, mweth
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import AETH, BTH, RETH, UDP, Ethernet, ImmDt, ip_header
from p4gen.rocev2.opcodes import Ack, Opcode
from p4gen.rocev2.packet import RocePacket
from p4gen.rocev2.places import places_for

ACK: Final = Ack().syndrome
WINDOW_BYTES: Final = 1 << 16
HOP_LIMIT: Final = 7
_SWITCH, _FAR = 0x0AFE0001, 0x0A000001
"""IPv4 addresses of the switch's endpoints, and of the first of those at the other ends of its edges."""
_KEY: Final = 0x5EED0000
_RING: Final = 8
_QPS: Final = 64
"""QP numbers of a context."""


@dataclass(frozen=True)
class Star:
    """The surroundings of a switch that runs a program of ``spec``."""

    spec: MultiwriteSpec
    switches: frozenset[int] = frozenset()
    """Numbers of edges that lead to switches; all others lead to ranks."""

    @property
    def ports(self) -> dict[int, int]:
        """The port of each edge, by the edge's number."""
        return {edge: edge - 1 for edge in range(1, self.spec.edges + 1)}

    def context(self, number: int, source: int, epoch: int = 1, first_psn: int = 0) -> WriteContext:
        """The context whose writes come by the edge ``source``."""
        edges = tuple(self._edge(number, edge, toward=edge == source) for edge in self.ports)
        return WriteContext(
            number,
            self._ranks(source)[-1],
            edges,
            source,
            _KEY + number,
            WINDOW_BYTES,
            epoch,
            first_psn,
            first_hop=source not in self.switches,
            group=number,
            results=self._window(number, source) if self.spec.combine and source not in self.switches else None,
        )

    def config(self, contexts: Collection[WriteContext]) -> SwitchConfig:
        """What the switch must hold to serve contexts."""
        return configuration(self.spec, tuple(contexts), self.ports)

    def _ranks(self, edge: int) -> list[int]:
        """The ranks behind an edge."""
        further = edge - 1 + self.spec.edges
        return [edge - 1, *([further] if edge in self.switches and further < self.spec.receivers else [])]

    def _window(self, number: int, edge: int) -> Window:
        base = 0x7F0000000000 + (number << 24) + (edge << 32)
        return Window(base, 0xD0000000 | number << 8 | edge, (self.spec.payload - 1).bit_length(), _RING)

    def _edge(self, number: int, edge: int, *, toward: bool) -> WriteEdge:
        window = None if toward or edge in self.switches else self._window(number, edge)
        return WriteEdge(
            edge,
            Endpoint(0x02AA00000001, _SWITCH, 0x1000 + _QPS * number + edge),
            Endpoint(0x02BB00000000 + edge, _FAR + edge, 0x200 + number),
            0 if toward else sum(1 << rank for rank in self._ranks(edge)),
            window,
            0xC000 + _QPS * number % 0x1000 + edge,
        )


def write(
    spec: MultiwriteSpec,
    context: WriteContext,
    psn: int,
    bitmap: int,
    data: bytes,
    offset: int = 0,
    *,
    fence: bool = False,
    hop_limit: int = HOP_LIMIT,
    version: int = VERSION,
) -> RocePacket:
    """The source's write with its ``psn``-th packet, from 0. Its ICRC is still to be computed."""
    edge = context.toward
    header, immediate = b"", None
    if spec.wide:
        layout = mweth(spec.receivers)
        header = layout.word.pack(
            version=version,
            flags=int(fence) << 3,
            hop_limit=hop_limit,
            group_id=context.group,
            immediate=context.rank,
            bitmap=bitmap,
        ).to_bytes(layout.size)
    else:
        immediate = ImmDt(bitmap)
    return RocePacket(
        Ethernet(edge.local.mac, edge.remote.mac, places_for(edge.local.ip).ether_type),
        ip_header(edge.remote.ip, edge.local.ip),
        UDP(edge.udp_src_port),
        BTH(
            Opcode.WRITE_ONLY if spec.wide else Opcode.WRITE_ONLY_IMM,
            edge.local.qp,
            serial.add(context.first_psn, psn),
            solicited=fence and not spec.wide,
            ack_request=psn % 4 == 3,
        ),
        reth=RETH(offset, context.rkey, len(header) + len(data)),
        immdt=immediate,
        payload=header + data,
    )


def returned(
    context: WriteContext, edge: WriteEdge, psn: int, number: int, ranks: int, data: bytes, *, asks: bool
) -> RocePacket:
    """The ``psn``-th output, from 0, that comes over an edge: of the token with this number, which ``ranks`` have got.
    Its ICRC is still to be computed."""
    return RocePacket(
        Ethernet(edge.local.mac, edge.remote.mac, places_for(edge.local.ip).ether_type),
        ip_header(edge.remote.ip, edge.local.ip),
        UDP(edge.udp_src_port),
        BTH(Opcode.WRITE_ONLY_IMM, edge.local.qp, serial.add(context.first_psn, psn), ack_request=asks),
        reth=RETH(number, context.rkey, len(data)),
        immdt=ImmDt(ranks),
        payload=data,
    )


def answer(context: WriteContext, edge: WriteEdge, psn: int, syndrome: int = ACK, msn: int = 0) -> RocePacket:
    """What the other end of an edge says of its ``psn``-th copy, from 0."""
    bth = BTH(Opcode.ACKNOWLEDGE, edge.local.qp, serial.add(context.first_psn, psn))
    return RocePacket(
        Ethernet(edge.local.mac, edge.remote.mac, places_for(edge.local.ip).ether_type),
        ip_header(edge.remote.ip, edge.local.ip),
        UDP(edge.udp_src_port),
        bth,
        aeth=AETH(syndrome, msn),
    )
