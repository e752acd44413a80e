"""What a leaf switch has done with NACKs, as words for ladders."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from p4gen.net.views.notes import PacketNotes
from p4gen.papers.themis.spec import ThemisSpec
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.places import places_in

_NAK: Final = 0x60
"""The syndrome of a PSN sequence error."""


def _nack(frame: bytes) -> int | None:
    """The PSN of a NACK; None for other packets."""
    places = places_in(frame)
    if places is None or frame[places.opcode_at] != Opcode.ACKNOWLEDGE or frame[places.syndrome_at] != _NAK:
        return None
    return int.from_bytes(frame[places.psn])


def _notes(spec: ThemisSpec, frame: bytes, outputs: Sequence[bytes], dropped: Collection[str]) -> tuple[str, ...]:
    if not spec.filters:
        return ()
    psn, sent = _nack(frame), [psn for psn in map(_nack, outputs) if psn is not None]
    if psn is None:
        return tuple(f"NACK {made:x} compensated" for made in sent)
    if "BlockedNack.blocked" in dropped:
        return (f"NACK {psn:x} blocked",)
    if outputs and not sent:
        return (f"NACK {psn:x} blocked, ACK sent",)
    return ()


FACET: PacketNotes[ThemisSpec] = PacketNotes(notes=_notes)
