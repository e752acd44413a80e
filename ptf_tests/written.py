"""Results that ranks get as RDMA WRITEs into memory that they have offered (EPIC footnote 5).

Address, key and immediate data of every WRITE are checked wherever packets are received (``IncTest.unplaced``). What is
here tells what opcode each has, and how many packets its RETH says that its message has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inc import IncTest

from p4gen.groups.group import Edge, GroupContext
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket

Write = tuple[str, int]
"""The opcode of a WRITE, and the packets of the message that its RETH announces; 0 without a RETH."""


def message(packets: int) -> list[tuple[int, Write]]:
    """A message of so many packets: the opcodes of contributions, and what ranks get for each."""
    if packets == 1:
        return [(Opcode.SEND_ONLY, ("WRITE_ONLY_IMM", 1))]
    inner: list[tuple[int, Write]] = [(Opcode.SEND_MIDDLE, ("WRITE_MIDDLE", 0))] * (packets - 2)
    return [(Opcode.SEND_FIRST, ("WRITE_FIRST", packets)), *inner, (Opcode.SEND_LAST, ("WRITE_LAST_IMM", 0))]


def image(packet: RocePacket) -> tuple[object, ...]:
    """The part of a packet that the receiving NIC works on, without AckReq."""
    return replace(packet.bth, ack_request=False), packet.reth, packet.immdt, packet.payload


class Written(IncTest):
    """A test of results that are written."""

    def setUp(self) -> None:
        super().setUp()
        self._written: list[tuple[Edge, RocePacket]] = []

    def not_written(self) -> str | None:
        """Why the program writes no results; None when it does."""
        return None if self.spec.uses_memory else "results are SENDs"

    def unplaced(self, edge: Edge, packet: RocePacket) -> RocePacket:
        """Remembers what has come."""
        self._written.append((edge, packet))
        return super().unplaced(edge, packet)

    def taken(self, group: GroupContext, rank: int) -> list[RocePacket]:
        """The data that a rank has got since it was asked last, as they were on the wire."""
        mine = [packet for edge, packet in self._written if edge == group.edges[rank] and len(packet.payload) > 16]
        self._written = [each for each in self._written if each[0] != group.edges[rank]]
        return mine

    def message_size(self, left: int) -> int:
        """Packets of the next message of a call that has so many left: M, or now and then 1, or all that are left."""
        return min(self.random.choice((1, self.spec.message, self.spec.message)), left)

    def check_written(self, group: GroupContext, ranks: Sequence[int], wanted: Sequence[Write]) -> None:
        """Check that these ranks, and no others, have got these WRITEs since the last check."""
        for rank in range(len(group.edges)):
            self.equal(f"rank {rank}: WRITEs", self.told(group, rank), list(wanted) if rank in ranks else [])

    def told(self, group: GroupContext, rank: int) -> list[Write]:
        """What a rank has got since it was asked last."""
        size = self.spec.payload_bytes
        return [
            (Opcode(p.bth.opcode).name, 0 if p.reth is None else p.reth.dma_length // size)
            for p in self.taken(group, rank)
        ]
