"""SCIN's programs: their modules, and the names that their templates use."""

from __future__ import annotations

from typing import Any

from p4gen.papers.scin import words
from p4gen.papers.scin.codes import FRACTION, GUARD, LARGEST, NOT_A_NUMBER, NUMBERS, TOP, Status
from p4gen.papers.scin.headers import ANNOUNCED, datagrams, headers
from p4gen.papers.scin.lanes import Lane
from p4gen.papers.scin.ranks import blocks_float16 as half
from p4gen.papers.scin.spec import ScinSpec
from p4gen.program.common import Ipv4Checksum
from p4gen.program.compose import Composition, ProgramParts
from p4gen.rocev2.opcodes import Ack, Nak, NakCode

CHECKSUM = Ipv4Checksum(
    verified="hdr.bth.isValid()",
    acting="ValidatePacket",
    renewed="meta.lookup.kind != kind_t.ORDINARY",
    packets="What this program makes",
)


def _spec(composition: Composition) -> ScinSpec:
    assert isinstance(composition.spec, ScinSpec)
    return composition.spec


def _templates(composition: Composition) -> tuple[str, ...]:
    return (
        "scin/preamble.p4.j2",
        *Lane.of(_spec(composition)).templates,
        "shared/headers.p4.j2",
        "shared/metadata.p4.j2",
        "shared/parser.p4.j2",
        composition.arch.template("checksum"),
    )


def _names(composition: Composition) -> dict[str, Any]:
    spec = _spec(composition)
    lane = Lane.of(spec)
    return {
        "arrival": "SCIN, section 3.4",
        "cited": {"Forward": "section 3.2: the switch core"},
        "ipv4_checksum": CHECKSUM,
        "edges": range(1, spec.edges + 1),
        "lanes": range(spec.lanes),
        "lane": lane,
        "floats": lane.functions,
        "numbers": NUMBERS[spec.dtype],
        "exact": NUMBERS[spec.exact] if spec.exact else None,
        "scaled": spec.scaled,
        "scales_shift": max(spec.scale_bytes, 1).bit_length() - 1,
        "wave_shift": spec.wave.bit_length() - 1,
        "mx": {"guard": GUARD, "fraction": FRACTION, "largest": LARGEST, "nan": NOT_A_NUMBER, "top": TOP},
        "half": half.NAMES,
        "announced": ANNOUNCED,
        "statuses": Status,
        "payload_shift": spec.payload.bit_length() - 1,
        "cursor_session": composition.arch.other_session,
        "known_opcodes": (),  # an opcode is known by its queue pair only
        "syndromes": {
            "ack": Ack().syndrome,
            "nak": Nak(NakCode.PSN_SEQUENCE_ERROR).syndrome,
            "invalid": Nak(NakCode.INVALID_REQUEST).syndrome,
            "operational": Nak(NakCode.REMOTE_OPERATIONAL_ERROR).syndrome,
        },
    }


FACET: ProgramParts[ScinSpec] = ProgramParts(
    headers=headers,
    datagrams=datagrams,
    flows=lambda _: ("scin/ingress.p4.j2", "scin/egress.p4.j2"),
    templates=_templates,
    names=_names,
    words=words.layouts,
)
