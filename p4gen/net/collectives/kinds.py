"""The kind of a frame on an IncTree, and its rank: ``UP_DATA`` of rank 2, ``DOWN_ACK`` for rank 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from p4gen.rocev2.opcodes import Ack, Nak, Opcode, RnrNak, decode_syndrome
from p4gen.rocev2.places import Places, places_in


class Way(StrEnum):
    """Direction of a packet: toward the IncTree's root (up), or away from it."""

    UP = "UP"
    DOWN = "DOWN"


KINDS = tuple(f"{way}_{what}" for way in Way for what in ("DATA", "CONTROL", "ACK", "NAK", "RNR", "CNP"))
"""UP_DATA is a contribution, DOWN_DATA a result; DOWN_ACK is an ACK that the switch has reflected."""


@dataclass(frozen=True, slots=True)
class Label:
    """The kind of a frame. ``rank`` is the rank that sends it up or receives it; None between switches. ``text`` is a
    short description for drawings."""

    kind: str
    rank: int | None
    psn: int
    text: str


class Kinds:
    """Classifies frames. It knows the number of each rank's address, and the depth below the root of each switch's
    address."""

    def __init__(self, ranks: Mapping[int, int], trees: Mapping[int, int]) -> None:
        self._ranks = dict(ranks)
        self._trees = dict(trees)
        self.describe: Callable[[bytes], tuple[str, str] | None] = roce_text
        """The kind of any frame and a short description, as ``roce_text``; of programs with a protocol of their own,
        another function."""

    def of(self, frame: bytes) -> Label | None:
        """The kind of a frame; None when it does not belong to an IncTree or is too short."""
        places = places_in(frame)
        if places is None:
            return None
        src, dst = int.from_bytes(frame[places.src_addr]), int.from_bytes(frame[places.dst_addr])
        if src in self._trees and dst in self._trees:
            way, rank = (Way.UP if self._trees[dst] < self._trees[src] else Way.DOWN), None
        elif dst in self._trees:
            way, rank = Way.UP, self._ranks.get(src)
        elif src in self._trees:
            way, rank = Way.DOWN, self._ranks.get(dst)
        else:
            return None
        opcode, psn = frame[places.opcode_at], int.from_bytes(frame[places.psn])
        what, text = _what(opcode, frame, places)
        return Label(f"{way}_{what}", rank, psn, f"{text} {psn:x}" if opcode != Opcode.CNP else text)


def roce_text(frame: bytes) -> tuple[str, str] | None:
    """The kind of any RoCEv2 frame (DATA, ACK, NAK and so on) and a short description; None for another frame."""
    places = places_in(frame)
    if places is None:
        return None
    opcode = frame[places.opcode_at]
    what, text = _what(opcode, frame, places)
    return what, text if opcode == Opcode.CNP else f"{text} {int.from_bytes(frame[places.psn]):x}"


def _what(opcode: int, frame: bytes, places: Places) -> tuple[str, str]:
    if opcode == Opcode.ACKNOWLEDGE and len(frame) > places.syndrome_at:
        match decode_syndrome(frame[places.syndrome_at]):
            case Ack():
                return "ACK", "ACK"
            case RnrNak():
                return "RNR", "RNR NAK"
            case Nak(code=code):
                return "NAK", "NAK" if code == 0 else f"NAK {code}"
        return "ACK", f"syndrome {frame[places.syndrome_at]:#x}"
    if opcode == Opcode.CNP:
        return "CNP", "CNP"
    try:
        name = Opcode(opcode).name
    except ValueError:
        return "DATA", f"opcode {opcode:#x}"
    if opcode == Opcode.SEND_ONLY_IMM:
        return "CONTROL", "CONTROL"
    return "DATA", name.removeprefix("SEND_")
