"""What kind of packet a frame is to an IncTree, and which rank's: ``UP_DATA`` of rank 2, ``DOWN_ACK`` for rank 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from p4gen.rocev2.opcodes import Ack, Nak, Opcode, RnrNak, decode_syndrome


class Way(StrEnum):
    """Toward the IncTree's root, or away from it."""

    UP = "UP"
    DOWN = "DOWN"


KINDS = tuple(f"{way}_{what}" for way in Way for what in ("DATA", "CONTROL", "ACK", "NAK", "RNR", "CNP"))
"""UP_DATA is a contribution, DOWN_DATA a result; DOWN_ACK is an ACK that the switch has reflected."""


@dataclass(frozen=True, slots=True)
class Label:
    """What a frame is. ``rank`` is the one that sent it up or gets it down, None between switches; ``text`` is short
    enough for a drawing."""

    kind: str
    rank: int | None
    psn: int
    text: str


class Kinds:
    """Knows the addresses of ranks, with their numbers, and of IncTrees' switches, with their depth below the root."""

    def __init__(self, ranks: Mapping[int, int], trees: Mapping[int, int]) -> None:
        self._ranks = dict(ranks)
        self._trees = dict(trees)

    def of(self, frame: bytes) -> Label | None:
        """What a frame is; None when it is not of an IncTree, or too short to say."""
        if len(frame) < 54 or frame[12:14] != b"\x08\x00" or frame[23] != 17:
            return None
        src, dst = int.from_bytes(frame[26:30]), int.from_bytes(frame[30:34])
        if src in self._trees and dst in self._trees:
            way, rank = (Way.UP if self._trees[dst] < self._trees[src] else Way.DOWN), None
        elif dst in self._trees:
            way, rank = Way.UP, self._ranks.get(src)
        elif src in self._trees:
            way, rank = Way.DOWN, self._ranks.get(dst)
        else:
            return None
        opcode, psn = frame[42], int.from_bytes(frame[51:54])
        what, text = _what(opcode, frame)
        return Label(f"{way}_{what}", rank, psn, f"{text} {psn:x}" if opcode != Opcode.CNP else text)


def _what(opcode: int, frame: bytes) -> tuple[str, str]:
    if opcode == Opcode.ACKNOWLEDGE and len(frame) > 54:
        match decode_syndrome(frame[54]):
            case Ack():
                return "ACK", "ACK"
            case RnrNak():
                return "RNR", "RNR NAK"
            case Nak(code=code):
                return "NAK", "NAK" if code == 0 else f"NAK {code}"
        return "ACK", f"syndrome {frame[54]:#x}"
    if opcode == Opcode.CNP:
        return "CNP", "CNP"
    try:
        name = Opcode(opcode).name
    except ValueError:
        return "DATA", f"opcode {opcode:#x}"
    if opcode == Opcode.SEND_ONLY_IMM:
        return "CONTROL", "CONTROL"
    return "DATA", name.removeprefix("SEND_")
