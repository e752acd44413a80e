"""MultiWrite's programs: their modules, and the names that their templates use."""

from __future__ import annotations

from typing import Any

from p4gen.papers.multiwrite import words
from p4gen.papers.multiwrite.headers import VERSION, WORD_BITS, datagrams, headers
from p4gen.papers.multiwrite.lanes import LANE_BITS, Lane
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.program import repair
from p4gen.program.common import Ipv4Checksum
from p4gen.program.compose import Composition, ProgramParts
from p4gen.rocev2.icrc import behind
from p4gen.rocev2.opcodes import Ack, Nak, NakCode, RnrNak, SyndromeType
from p4gen.vocabulary import DType, ticks

CHECKSUM = Ipv4Checksum(
    verified="hdr.bth.isValid()",
    acting="ValidatePacket",
    renewed="meta.lookup.kind != kind_t.ORDINARY",
    packets="Copies and answers",
)


def _spec(composition: Composition) -> MultiwriteSpec:
    assert isinstance(composition.spec, MultiwriteSpec)
    return composition.spec


def _lane(spec: MultiwriteSpec) -> Lane | None:
    return None if spec.combine is None else Lane.of(DType(str(spec.combine)))


def _templates(composition: Composition) -> tuple[str, ...]:
    lane = _lane(_spec(composition))
    return (
        "multiwrite/preamble.p4.j2",
        *(lane.templates if lane else ()),
        "shared/headers.p4.j2",
        "shared/metadata.p4.j2",
        "shared/parser.p4.j2",
        composition.arch.template("checksum"),
    )


def _names(composition: Composition) -> dict[str, Any]:
    spec = _spec(composition)
    lane = _lane(spec)
    return {
        "arrival": f"MultiWrite, with losses repaired by {'each hop' if spec.holds else 'the source'}",
        "holds": spec.holds,
        "combines": bool(spec.combine),
        "lane": lane,
        "floats": lane.functions if lane else (),
        "word_lanes": range(0, WORD_BITS, LANE_BITS),
        "payload_words": range(spec.words),
        "word_bits": WORD_BITS,
        "given_up": repair.GIVEN_UP,
        "repair": repair.Repair(epoch="meta.source.epoch", complete="meta.held.complete"),
        "SyndromeType": SyndromeType,
        "cited": {"Forward": "section 4.1: unicast"},
        "each_edge": "contexts x edges",
        "ipv4_checksum": CHECKSUM,
        "patches": spec.icrc.patched,
        "behind_data": behind(spec.payload) if spec.icrc.patched else (),
        "wide": spec.wide,
        "bitmap": "hdr.mweth.bitmap" if spec.wide else "hdr.immediate.value",
        "mweth_version": VERSION,
        "prunes": spec.prunes,
        "appends": spec.appends,
        "edges": range(1, spec.edges + 1),
        "known_opcodes": (
            "WRITE_ONLY" if spec.wide else "WRITE_ONLY_IMM",
            "ACKNOWLEDGE",
            *(("TICK",) if spec.wants_ticks else ()),
            "CNP",
        ),
        "syndromes": {
            "ack": Ack().syndrome,
            "nak": Nak(NakCode.PSN_SEQUENCE_ERROR).syndrome,
            "rnr": RnrNak(repair.RNR_10_US).syndrome,
            "invalid": Nak(NakCode.INVALID_REQUEST).syndrome,
        },
    }


def _flows(spec: MultiwriteSpec) -> tuple[str, str]:
    folder = "multiwrite/hop" if spec.holds else "multiwrite"
    return f"{folder}/ingress.p4.j2", f"{folder}/egress.p4.j2"


def _ticks(spec: MultiwriteSpec) -> dict[str, Any] | None:
    if not spec.wants_ticks:
        return None
    return {"every_us": ticks.EVERY_US, "opcode": f"{ticks.OPCODE:#x}", "port": spec.architecture.cpu_port}


def _folders(spec: MultiwriteSpec) -> tuple[str, ...]:
    combine = ("multiwrite/combine",) if spec.combine else ()
    return (*combine, "multiwrite/hop") if spec.holds else ()


FACET: ProgramParts[MultiwriteSpec] = ProgramParts(
    headers=headers,
    datagrams=datagrams,
    flows=_flows,
    templates=_templates,
    names=_names,
    words=words.layouts,
    folders=_folders,
    ticks=_ticks,
)
