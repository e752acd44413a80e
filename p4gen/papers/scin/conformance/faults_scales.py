"""Faults to seed into SCIN's programs of elements with scales; the scenarios must detect each."""

from __future__ import annotations

from typing import Final

from p4gen.ptf.mutations import Mutation

SCALED: Final = "scaled"
"""The program that they are seeded into."""
_FRESH: Final = "if (wave_use == use_t.FRESH)"
_LENGTH: Final = ";\n        hdr.reth.rkey = meta.memory.rkey;\n        hdr.reth.dma_length = (bit<32>)"
_ADDED: Final = "held = held + (lane_t)aligned;"
_CLAMPED: Final = "if (rounded > 127) { rounded = 127; }"
_EMPTY: Final = "if (some == 0) { rounding.scale = 0; }"
_ARE_SCALES: Final = "meta.lookup.kind = kind_t.SCALES;"


def _fault(name: str, module: str, find: str, replace: str) -> Mutation:
    return Mutation(name, module, find, replace, SCALED)


SCALES: Final = (
    _fault(
        "scale-epoch-ignored",
        "TrackScales",
        "if (slot[63:56] != meta.flow.epoch) {\n            bitmap = 0;\n        } else if",
        "if",
    ),
    _fault("emax-is-min", "TrackScales", "if (given > held) { held = given; }", "if (given < held) { held = given; }"),
    _fault("emax-is-last", "TrackScales", "if (given > held) { held = given; }", "held = given;"),
    _fault("emax-of-wave-before", "TrackScales", f"{_FRESH} {{\n            held = given;", "if (false) {"),
    _fault("scales-of-neighbour", "TrackScales", "wave * 4 + (bit<32>)meta.lookup.edge - 1;", "wave * 4;"),
    _fault("scales-not-awaited", "TrackScales", "if (meta.scales.lacking == 0) { complete = 1; }", "complete = 1;"),
    _fault("waves-overtaken", "TrackScales", "if (psn == next) { turn = complete; }", "turn = complete;"),
    _fault(
        "waves-not-held",
        "TrackScales",
        "reads = turn;\n            if (complete > turn) { held = held + 1; }",
        "reads = turn;",
    ),
    _fault("scales-twice", "TrackScales", "meta.drop = drop_t.TrackScales_duplicate;", "wave_use = use_t.MERGE;"),
    _fault("scales-stale", "TrackScales", "meta.drop = drop_t.TrackScales_stale;", "wave_use = use_t.MERGE;"),
    _fault(
        "scales-beyond",
        "TrackScales",
        "if (precedes(psn, meta.scales.scales_end) == 0) {\n                meta.drop",
        "if (false) {\n                meta.drop",
    ),
    _fault(
        "data-beyond",
        "TrackScales",
        "if (precedes(hdr.bth.psn, meta.emission.asked_end) == 0) { meta.drop",
        "if (false) { meta.drop",
    ),
    _fault("scales-of-elements", "MakeRead", "hdr.reth.address = hdr.reth.address + (bit<64>)hdr.reth.dma_length;", ""),
    _fault("scales-psn-is-data's", "MakeRead", "hdr.bth.psn = meta.call.first_scales + (offset >> 2);", ""),
    _fault("scales-overwritten", "MakeRead", f" + ((bit<64>)(offset >> 2) << 3){_LENGTH}", _LENGTH),
    _fault("waves-forgotten", "TrackCall", "((packets + WAVE_MASK) >> 2)", "(packets >> 2)"),
    _fault("shift-off-by-one", "AggregateBlocks", "<< 15) >> shift;", "<< 15) >> (shift + 1);"),
    _fault("guard-bits-lost", "AggregateBlocks", "element << 15) >> shift;", "element << 4) >> shift << 11;"),
    _fault("almost-nothing-is-nothing", "AggregateBlocks", _ADDED, f"if (shift < 23) {{ {_ADDED} }}"),
    _fault("floor-not-round", "Requantise", "rounding.half = (lane_t)1 << (rounding.right - 1);", "rounding.half = 0;"),
    _fault("clamp-at-128", "Requantise", _CLAMPED, _CLAMPED.replace("127", "128")),
    _fault("clamp-at-minus-128", "Requantise", "{ rounded = -127; }", "{ rounded = -128; }"),
    _fault("result-scale-is-emax", "Requantise", "rounding.scale = scale[7:0];", "rounding.scale = largest;"),
    _fault("nan-forgotten", "Requantise", "if (largest == 255) {", "if (false) {"),
    _fault("nan-has-elements", "Requantise", "if (empty == 1) { rounded = 0; }", ""),
    _fault("zero-has-scale", "Requantise", _EMPTY, ""),
    _fault("almost-zero-is-zero", "Requantise", _EMPTY, _EMPTY.replace("some", "used")),
    _fault("scale-wraps", "Requantise", "if (scale > 254) { scale = 254; }", ""),
    _fault("result-scales-of-last", "Requantise", "if (stores == 1) { held = scale; }", "held = scale;"),
    _fault("scales-with-each", "Requantise", "{ hdr.scales.setInvalid(); }", "{ }"),
    _fault("scales-of-short-wave", "Requantise", "if (hdr.bth.psn != meta.call.end - 1) { hdr", "if (true) { hdr"),
    _fault("scales-not-written", "MakeWrite", "hdr.reth.dma_length = PAYLOAD + SCALES;", ""),
    _fault(
        "scales-nak-reads-data",
        "AnswerNak",
        "if (meta.lookup.kind == kind_t.SCALES_NAK) { meta.round.what = cursor_kind_t.SCALES; }",
        "",
    ),
    _fault(
        "scales-lost-for-good",
        "WatchProgress",
        "} else if (meta.scales.awaited != meta.scales.scales_end) {",
        "} else if (false) {",
    ),
    _fault(
        "scales-are-no-progress",
        "NoteProgress",
        "else if (meta.drop == drop_t.NONE) { new",
        "else if (meta.lookup.kind == kind_t.SCALES) { }\n        else if (meta.drop == drop_t.NONE) { new",
    ),
    _fault("scales-of-all-again", "RereadScales", "meta.scales.lacking & hdr.cursor.edges;", "hdr.cursor.edges;"),
    _fault("scales-of-others-again", "RereadScales", "meta.scales.lacking & hdr.cursor.edges;", "meta.scales.lacking;"),
    _fault("scales-of-anybody", "FindContext", " || meta.lookup.kind == kind_t.SCALES) {", ") {"),
    _fault("scales-as-data", "LookupTable", f"if (role == role_t.SCALES) {{ {_ARE_SCALES} }}", _ARE_SCALES),
)
