"""The modules of Mode II in programs of static groups (``static``)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from p4gen.errors import InputError
from p4gen.papers.epic import modules as m
from p4gen.papers.epic.modules.common import ENDPOINTS, ENTRANCES, SLOTS, sets_icrc
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.tofino import BITMAP, KINDS, OWNER, SLOT, folding, tells_stale
from p4gen.papers.epic.tofino.limits import problems
from p4gen.program.module import Drop, Metadata, Module, Register, Size, Table

LOOKUP_TABLE = replace(
    m.LOOKUP_TABLE,
    purpose="whose packet it is: the edge",
    needs=("hdr.ipv4", "hdr.bth", "kind"),
    may_need=("sender",),
    changes=("kind",),
    provides=(
        Metadata("edge", "edge_t", "ingress: the edge it came over; egress: the edge it leaves by", kept=True),
        Metadata("edge_bit", "bitmap_t", "that edge's bit in the context's bitmaps"),
        Metadata("own_slot", "slot_t", "the slot that its PSN maps to, counted from the group's first"),
    ),
    tables=(
        Table("addresses", Size("groups"), "addresses that the IncEngine answers to"),
        Table("endpoints", ENDPOINTS, "endpoint (IP, QP) to edge"),
        Table("entrances", ENTRANCES, "the ports by which an endpoint's packets come in"),
    ),
    uses=(),
)
VALIDATE_PACKET = replace(
    m.VALIDATE_PACKET,
    folder="epic",
    part="lookup",
    needs=("hdr.ipv4", "hdr.bth"),
    provides=(
        Metadata("kind", "kind_t", "what kind of packet this is; the parser tells", kept=True, wanted=sets_icrc),
        Metadata("kind", "kind_t", "what kind of packet this is; the parser tells", wanted=lambda s: not sets_icrc(s)),
        Metadata("bad_checksum", "bit<1>", "1: the parser found the IPv4 header checksum wrong"),
        *(replace(field, wanted=folding.folded) for field in (folding.VISITS, folding.SENDER)),
    ),
)
CLASSIFY_TRAFFIC = replace(
    m.CLASSIFY_TRAFFIC,
    needs=("hdr.bth", "hdr.immediate", "kind", "edge", "own_slot"),
    may_need=(),
    provides=(
        Metadata("task", "task_t", "what becomes of it"),
        Metadata("slot", "slot_t", "index of the slot that its PSN maps to"),
        Metadata("tag", "bit<32>", "the epoch of the group, and its PSN", wanted=lambda spec: not tells_stale(spec)),
        Metadata("tag", "bit<32>", "its PSN, and a byte of zeros", wanted=tells_stale),
        Metadata("epoch", "bit<32>", "the epoch of the group", wanted=tells_stale),
        Metadata("source_mask", "bitmap_t", "edges whose contributions make a result"),
        Metadata("out_group", "bit<16>", "multicast group of the edges that it, or the result, goes to"),
        Metadata("alone", "bit<1>", "1: a repetition is answered to its sender alone"),
    ),
    tables=(Table("flows", Size("groups", "fan_in", KINDS), "edge, kind and announcement to slots and output edges"),),
    drops=(Drop("no_flow", "in this group's collective, no such packet is expected over this edge"),),
)
CHECK_DUPLICATE = replace(
    m.CHECK_DUPLICATE,
    needs=("edge_bit", "slot", "tag", "source_mask"),
    may_need=(),
    changes=(),
    provides=(
        Metadata("slot_use", "slot_use_t", "what this packet means to its slot"),
        Metadata("before", "bitmap_t", "the slot's bitmap before this packet; 0 if it starts afresh"),
        Metadata("arrived", "bitmap_t", "the same with this packet"),
        Metadata("complete", "bit<1>", "1: every source has contributed to the slot"),
    ),
    keeps=(Register("slots", SLOT, SLOTS, "what each slot serves, and whose contributions it has"),),
    drops=(
        Drop("stale", "its slot already serves a newer PSN", wanted=tells_stale),
        Drop("duplicate", "already in the slot, which waits for others"),
    ),
)
CHECK_OWNERS = replace(
    CHECK_DUPLICATE,
    needs=(*CHECK_DUPLICATE.needs, "epoch"),
    keeps=(
        Register("owners", OWNER, SLOTS, "what each slot serves"),
        Register("slots", BITMAP.bits, SLOTS, "whose contributions each slot has"),
    ),
)
"""The same with two accesses, one behind the other."""
CHECK_ICRC = replace(m.CHECK_ICRC, uses=())
SUM_PAYLOAD = Module(
    name="SumPayload",
    folder="epic",
    gress="ingress",
    paper="beside EPIC: RoCEv2 (InfiniBand Annex A17.3.3)",
    purpose="adds up what the payload contributes to the invariant CRC",
    part="icrc",
    needs=("hdr.payload", "kind"),
    provides=(Metadata("payload_crc", "bit<32>", "what the payload adds to the ICRC; 0 if there is none", kept=True),),
    wanted=sets_icrc,
)
SET_ICRC = replace(m.SET_ICRC, needs=(*m.SET_ICRC.needs, "payload_crc"), uses=())
AGGREGATE_DATA = replace(
    m.AGGREGATE_DATA,
    needs=(*m.AGGREGATE_DATA.needs, "kind"),
    may_need=(),
    keeps=tuple(replace(register, instances=Size("pass_lanes")) for register in m.AGGREGATE_DATA.keeps),
)
REPLICATE_DATA = replace(m.REPLICATE_DATA, may_need=(*m.REPLICATE_DATA.may_need, "sender"))

MODULES: Final[tuple[Module, ...]] = (
    VALIDATE_PACKET,
    LOOKUP_TABLE,
    CHECK_ICRC,
    CLASSIFY_TRAFFIC,
    CHECK_DUPLICATE,
    AGGREGATE_DATA,
    replace(folding.FOLD_PAYLOAD, wanted=folding.folded),
    REPLICATE_DATA,
    m.REFLECT_ACK,
    SUM_PAYLOAD,
    m.ANSWER_ARP,
    m.FORWARD,
    m.TRANSLATE_HEADER,
    SET_ICRC,
)
"""EPIC Algorithm 1. RecycleBuffer is part of CheckDuplicate."""


def modules(spec: EpicSpec) -> tuple[Module, ...]:
    """The modules; ``InputError`` for a spec that has no program of this form."""
    found = [f"{spec.program}: {problem}" for problem in problems(spec)]
    if found:
        raise InputError(*found)
    return tuple(check_duplicate(spec) if module is CHECK_DUPLICATE else module for module in MODULES)


def check_duplicate(spec: EpicSpec) -> Module:
    """The form of CheckDuplicate in a program."""
    return CHECK_OWNERS if tells_stale(spec) else CHECK_DUPLICATE
