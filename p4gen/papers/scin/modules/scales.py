"""Modules of SCIN's programs for elements with scales: quantisation in the network (section 3.4.4)."""

from __future__ import annotations

from p4gen.papers.scin import words
from p4gen.papers.scin.sizes import CONTEXTS, FOLDER, SLOTS, SOURCES, WAVES
from p4gen.papers.scin.spec import ScinSpec
from p4gen.program.module import Drop, Metadata, Module, Register, Size


def scaled(spec: ScinSpec) -> bool:
    """Whether a program has these modules."""
    return spec.scaled


def _float16(spec: ScinSpec) -> bool:
    return spec.float16_scales


def _scale(spec: ScinSpec) -> int:
    """Bits of a scale."""
    return 8 * spec.scaling.scale_bytes


TRACK_SCALES = Module(
    name="TrackScales",
    folder=FOLDER,
    gress="ingress",
    paper="section 3.4.4: scales are loaded first",
    purpose="knows all scales of a wave before its data is read",
    part="scales",
    needs=(
        "hdr.bth",
        "hdr.cursor",
        "hdr.scales",
        "kind",
        "context_index",
        "edge",
        "edge_bit",
        "epoch",
        "first_psn",
        "slots",
        "sources",
        "first",
        "end",
        "first_scales",
    ),
    changes=("leaves", "receivers", "read_psn", "packets", "asked_end", "what", "round_psn"),
    provides=(
        Metadata("wave", "bit<32>", "the wave's scales: an index"),
        Metadata("lacking", "edges_t", "sources whose scales of the wave have not come"),
        Metadata("awaited", "psn_t", "the PSN of the next wave's scales"),
        Metadata("scales_end", "psn_t", "the PSN after the last scales that have been asked for"),
        Metadata("shifts", "shifts_t", "of each block of the packet: how far its elements are below the sum's"),
        Metadata("factors", "blocks_t", "the significand of the source's scale", wanted=_float16),
        Metadata("largest", "blocks_t", "the largest scale of all sources"),
    ),
    keeps=(
        Register("scale_slots", words.SCALE_SLOTS, WAVES, "whose scales of a wave have come"),
        Register("ready", words.READY, CONTEXTS, "up to where waves have all their scales"),
        Register("own_*.own", _scale, SOURCES, "the scale of a block of a wave, of each source", Size("scales")),
        Register("top_*.top", _scale, WAVES, "the largest of them", Size("scales")),
    ),
    drops=(
        Drop("never_asked", "of a wave that no READ has asked for"),
        Drop("stale", "its slot holds the scales of a later wave"),
        Drop("duplicate", "this rank's scales of the wave have come"),
    ),
    wanted=scaled,
)

REREAD_SCALES = Module(
    name="RereadScales",
    folder=FOLDER,
    gress="ingress",
    paper="beside the paper, whose network is lossless",
    purpose="a cursor's pass: scales that were lost are read again",
    needs=("hdr.bth", "hdr.cursor", "first", "end", "first_scales", "lacking", "awaited", "scales_end"),
    changes=("leaves", "receivers", "read_psn", "packets", "what", "round_psn", "about"),
    wanted=scaled,
)

AGGREGATE_BLOCKS = Module(
    name="AggregateBlocks",
    folder=FOLDER,
    gress="ingress",
    paper="section 3.4.4: dequantisation and reduction",
    purpose="adds elements, aligned to the largest scale, in their slot",
    part="total",
    needs=("hdr.payload", "slot", "slot_use", "shifts"),
    may_need=("factors",),
    provides=(Metadata("sums", "sums_t", "what the slot now holds"),),
    keeps=(Register("lane_*.partial", 32, SLOTS, "a sum of each slot", Size("lanes")),),
    wanted=scaled,
)

REQUANTISE = Module(
    name="Requantise",
    folder=FOLDER,
    gress="ingress",
    paper="section 3.4.4: quantisation",
    purpose="rounds sums to elements, and gives each block its scale",
    needs=("hdr.bth", "first", "end", "wave", "largest", "sums"),
    changes=("hdr.payload", "hdr.scales"),
    keeps=(Register("result_*.kept", _scale, WAVES, "the scale of a block of a wave's result", Size("scales")),),
    wanted=scaled,
)
