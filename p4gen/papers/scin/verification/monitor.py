"""What a search of states holds a switch of SCIN to (``p4gen.verification.parts.monitors``), beyond what ranks get."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from p4gen.papers.scin.control import Role
from p4gen.rocev2.headers import HeaderError
from p4gen.rocev2.opcodes import Nak, NakCode, Opcode
from p4gen.rocev2.packet import RocePacket, parse
from p4gen.rocev2.psn import PSN_MASK, diff
from p4gen.verification.parts.monitors import Monitor, Sent

_NAK: Final = Nak(NakCode.PSN_SEQUENCE_ERROR).syndrome
_KIND: Final = 0x60
"""The bits of a syndrome that are 0 in ACKs."""
Record = tuple[int, tuple[int, ...]]
"""How many results have left, and how many each destination has acknowledged."""


@dataclass(frozen=True)
class Pulls(Monitor):
    """Nothing is read that has been written, results are the sums, and flags follow what they stand for.

    Where results take the place of operands, a READ of what has been written would read a result. A flag of a call
    follows the ACKs of all its results by all destinations, and where the last WRITE is the flag, all of its results.
    """

    first_psn: int
    sums: Sequence[bytes]
    """The results of all calls, packet by packet."""
    ends: Sequence[int]
    """Of each call: how many results there are with its own."""
    destinations: int
    """As a bitmap."""
    ordered: bool
    near: Mapping[int, tuple[int, Role]]
    """Rank and role of the switch's queue pairs, by number."""
    far: Mapping[int, tuple[int, Role]]
    """Of the ranks'."""
    waves: Sequence[int] = ()
    """Of each wave of elements with scales: how many results there are with its own, the last of which has them."""
    whole: bool = True
    violates: str = "results"
    excused: bool = False

    @property
    @override
    def first(self) -> Record:
        return 0, (0,) * self.destinations.bit_length()

    @override
    def step(self, record: Record, port: int, arrived: Sequence[bytes], sent: Sent) -> tuple[Hashable, str]:
        written, acked, problem = record[0], list(record[1]), ""
        for frame in arrived:
            packet = _parsed(frame)
            if packet is None or packet.aeth is None or packet.bth.opcode != Opcode.ACKNOWLEDGE:
                continue
            rank, role = self.near.get(packet.bth.dst_qp, (0, Role.SYNC))
            syndrome = packet.aeth.syndrome
            if role is Role.WRITE and (not syndrome & _KIND or syndrome == _NAK):
                through = self._index(packet.bth.psn) + (syndrome != _NAK)
                acked[rank] = max(acked[rank], min(through, written))
        for rank, role, packet in self._left(sent):
            index = self._index(packet.bth.psn)
            if packet.bth.opcode == Opcode.READ_REQUEST and role is Role.SCALES:
                if index < len(self.waves) and self.waves[index] <= written:
                    text = f"the scales of wave {index + 1} of rank {rank} are read when the result's have been written"
                    problem = problem or text
            elif packet.bth.opcode == Opcode.READ_REQUEST:
                if index < written:
                    problem = problem or f"packet {index + 1} of rank {rank} is read when its result has been written"
            elif role is Role.WRITE:
                problem = problem or self._write(packet, rank, index)
                written = max(written, index + 1)
            elif packet.immdt is not None:
                problem = problem or self._flag(packet, rank, written, acked)
        return (written, tuple(acked)), problem

    @override
    def waits(self, record: Record) -> bool:
        return False

    def _write(self, packet: RocePacket, rank: int, index: int) -> str:
        if not 0 <= index < len(self.sums) or packet.payload != self.sums[index]:
            return f"packet {index + 1} of the result is not the sum, at rank {rank}"
        if packet.immdt is not None and index + 1 != self._end(packet):
            return f"packet {index + 1} of the result is a flag, and not the last of its call, at rank {rank}"
        return ""

    def _flag(self, packet: RocePacket, rank: int, written: int, acked: Sequence[int]) -> str:
        assert packet.immdt is not None
        if packet.immdt.value >> 24:
            return ""  # of an abort, which ranks have as a problem
        end = self._end(packet)
        if end < 0:
            return f"rank {rank} has the flag of a call that nobody has made"
        if self.ordered:
            return f"rank {rank} has its flag before {end} results have left" if written < end else ""
        lacks = (each for each, count in enumerate(acked) if self.destinations >> each & 1 and count < end)
        lacking = next(lacks, None)
        return "" if lacking is None else f"rank {rank} has its flag before rank {lacking} has all {end} results"

    def _end(self, packet: RocePacket) -> int:
        """How many results there are with those of the call that a flag names; -1 if there is no such call."""
        assert packet.immdt is not None
        number = diff(packet.immdt.value & PSN_MASK, self.first_psn)
        return self.ends[number] if 0 <= number < len(self.ends) else -1

    def _index(self, psn: int) -> int:
        return diff(psn, self.first_psn)

    def _left(self, sent: Sent) -> list[tuple[int, Role, RocePacket]]:
        """What leaves in a step, with rank and role. Frames are in order by link only: results are first, as what is
        said about them follows them."""
        found = []
        for _, frames in sent:
            for frame in frames:
                packet = parse(frame)
                if (far := self.far.get(packet.bth.dst_qp)) is not None:
                    found.append((*far, packet))
        return sorted(found, key=lambda each: each[1] is not Role.WRITE)


def _parsed(frame: bytes) -> RocePacket | None:
    try:
        return parse(frame)
    except HeaderError:
        return None
