"""Mode II for architectures whose registers have few actions (``Feature.WIDE_STATE`` is not theirs): static groups.

A group runs one pattern, which its table entries say. So no announcement is remembered, and a slot's state is a tag
(PSN and epoch) and a bitmap. ``CAPABILITIES`` says what such programs lack.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from p4gen.arch import Architecture, Feature
from p4gen.errors import InputError
from p4gen.families.epic import modules as m
from p4gen.families.epic import words
from p4gen.families.epic.flow_ii import DROPPED, OURS, ordinary
from p4gen.families.epic.modules.common import ENDPOINTS, SLOTS
from p4gen.families.epic.spec import EpicSpec
from p4gen.layout import Field, Header, HeaderField, Word
from p4gen.program.flow import Apply, Do, Flow, Step, when
from p4gen.program.module import Drop, Metadata, Module, Register, Size, Table
from p4gen.rocev2.layouts import PSN_BITS
from p4gen.spec import DType, Op
from p4gen.spec.program import ProgramSpec

LANES: Final = 32
"""The most lanes in a pass."""
LANE_BITS: Final = (8, 16, 32)
"""Widths of a lane that a stateful ALU works on."""
KINDS: Final = 6
"""Entries of ``flows`` for an edge, at most: data, two announcements, answers, notifications, and one to spare."""


@dataclass(frozen=True)
class Capability:
    """What a program lacks, and why."""

    name: str
    reason: str


CAPABILITIES: Final = (
    Capability("announcements", "groups are static: three announcements a context are 192 bits; a word has 64"),
    Capability("patterns", "a group runs one pattern, as nothing remembers which of several was announced"),
    Capability("broadcast", "CombineAcks needs the word of each edge in one pass; a pass has an access to a register"),
    Capability("mixed_opcode", "a slot's tag and bitmap take its 64 bits, so the operation is not kept in it"),
    Capability("ack_request", "the same: a result has the AckReq and the mark of the packet that completes it"),
    Capability("padding", "ingress does not know a frame's length, so bytes behind a datagram are not noticed"),
    Capability("overflows", "the sum is the one result of a lane's stateful ALU, so saturated packets are not counted"),
    Capability("icrc", "a CRC over the payload takes a pass of its own: the NICs must ignore the ICRC"),
)
"""What all static programs lack."""
FIFO: Final = Capability("stale", "an ALU has two comparisons and one result; links must keep the order of packets")
"""What programs without ``tells_stale`` lack as well."""
HALF: Final = Capability("half", "PSNs 2^23 apart differ by a number without an opposite: the packet's counts as newer")
"""What the others lack."""


def static(spec: ProgramSpec) -> bool:
    """Whether a program is of this form."""
    return Feature.WIDE_STATE not in spec.architecture.features


def tells_stale(spec: EpicSpec) -> bool:
    """Whether a slot tells an older PSN from a newer one, which takes three comparisons and two results."""
    return spec.architecture.comparisons >= 3


def capabilities(spec: EpicSpec) -> tuple[Capability, ...]:
    """What a program lacks."""
    return (*CAPABILITIES, HALF if tells_stale(spec) else FIFO)


def problems(spec: EpicSpec) -> Iterator[str]:
    """Why the program of a spec cannot be of this form, a sentence each."""
    arch = spec.arch
    if spec.loss_recovery.in_order:
        yield f"{arch}: reliability gbn compares PSNs of 24 bits with a sum, in one access; use sr"
    if spec.op is Op.DYNAMIC:
        yield f"{arch}: op dynamic needs {2 + len(spec.choices)} actions a lane; a register has at most 4"
    elif not spec.dtype.number_format.integer or spec.lane_bits not in LANE_BITS:
        yield f"{arch}: a stateful ALU has no elements of {spec.dtype}; it has integers of 8, 16 and 32 bits"
    if spec.lanes > LANES:
        yield (
            f"{arch}: {spec.lanes} lanes need {spec.lanes} results of stateful ALUs in a pass; "
            f"{LANES} have a place: use --lanes {LANES}"
        )
    if spec.pipelines > 1:
        yield f"{arch}: {spec.pipelines} pipelines need recirculation, which programs for {arch} do not use: use 1"
    if spec.variant is not None:
        yield f"{arch}: there is no variant {spec.variant}"


def slot(_spec: EpicSpec) -> Word:
    """The word of a slot: what it serves, and whose contributions it has."""
    return Word(Field("psn", PSN_BITS, "PSN"), words.EPOCH, Field("bitmap", 32, "bitmap"))


BRIDGE: Final = Header(
    "bridge",
    "What ingress tells egress, in front of the packet; it never leaves the switch",
    (
        HeaderField("kind", 8, "what kind of packet this is", type="kind_t"),
        HeaderField("edge", 16, "the edge it came over", type="edge_t"),
    ),
    noted=True,
)

LOOKUP_TABLE = replace(
    m.LOOKUP_TABLE,
    purpose="whose packet it is: the edge",
    needs=("hdr.ipv4", "hdr.bth", "kind"),
    changes=("kind",),
    provides=(
        Metadata("edge", "edge_t", "ingress: the edge it came over; egress: the edge it leaves by", kept=True),
        Metadata("edge_bit", "bitmap_t", "that edge's bit in the context's bitmaps"),
        Metadata("own_slot", "slot_t", "the slot that its PSN maps to, counted from the group's first"),
    ),
    tables=(
        Table("addresses", Size("groups"), "addresses that the IncEngine answers to"),
        Table("endpoints", ENDPOINTS, "endpoint (IP, QP) to edge"),
    ),
    uses=(),
)
VALIDATE_PACKET = replace(
    m.VALIDATE_PACKET,
    part="lookup",
    needs=("hdr.ipv4", "hdr.bth"),
    provides=(
        Metadata("kind", "kind_t", "what kind of packet this is; the parser tells", kept=True),
        Metadata("bad_checksum", "bit<1>", "1: the parser found the IPv4 header checksum wrong"),
    ),
)
CLASSIFY_TRAFFIC = replace(
    m.CLASSIFY_TRAFFIC,
    needs=("hdr.bth", "hdr.immediate", "kind", "edge", "own_slot"),
    may_need=(),
    provides=(
        Metadata("task", "task_t", "what becomes of it"),
        Metadata("slot", "slot_t", "index of the slot that its PSN maps to"),
        Metadata("tag", "bit<32>", "its PSN, and the epoch of the group"),
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
    keeps=(Register("slots", slot, SLOTS, "what each slot serves, and whose contributions it has"),),
    drops=(
        Drop("stale", "its slot already serves a newer PSN", wanted=tells_stale),
        Drop("duplicate", "already in the slot, which waits for others"),
    ),
)
RECYCLE_BUFFER = replace(m.RECYCLE_BUFFER, needs=("tag",), provides=())
AGGREGATE_DATA = replace(m.AGGREGATE_DATA, may_need=())

MODULES: Final[tuple[Module, ...]] = (
    VALIDATE_PACKET,
    LOOKUP_TABLE,
    m.CHECK_ICRC,
    CLASSIFY_TRAFFIC,
    CHECK_DUPLICATE,
    AGGREGATE_DATA,
    m.REPLICATE_DATA,
    m.REFLECT_ACK,
    m.ANSWER_ARP,
    m.FORWARD,
    m.TRANSLATE_HEADER,
    m.SET_ICRC,
)
"""EPIC Algorithm 1. RecycleBuffer is part of CheckDuplicate's one access."""


def modules(spec: EpicSpec) -> tuple[Module, ...]:
    """The modules; ``InputError`` for a spec that has no program of this form."""
    found = [f"{spec.program}: {problem}" for problem in problems(spec)]
    if found:
        raise InputError(*found)
    return MODULES


def combined(spec: EpicSpec) -> str:
    """The P4 expression that reduces ``held`` and ``element``, which have the type of ``lane_type``."""
    if spec.op is Op.SUM:
        return "held |+| element" if spec.saturating else "held + element"
    return f"{spec.op}(held, element)"


def lane_type(spec: EpicSpec) -> str:
    """The P4 type of a lane: signed if its elements are, as a stateful ALU distinguishes them by it."""
    dtype: DType = spec.dtype
    return dtype.number_format.p4 if dtype.number_format.least < 0 else f"bit<{spec.lane_bits}>"


def _drop(arch: Architecture, stage: str) -> tuple[Step, Step]:
    return Do(arch.count("drops", "(bit<8>)meta.drop")), Do(arch.drop("egress" if stage == "egress" else "ingress"))


def ingress(spec: EpicSpec) -> Flow:
    """The handling of a packet on arrival."""
    arch = spec.architecture
    aggregate = (
        Apply(CHECK_DUPLICATE, "meta", "line 20; recycles lazily, line 24"),
        Apply(AGGREGATE_DATA, "hdr.payload, meta", "lines 21 and 23"),
        when(OURS, Apply(m.REPLICATE_DATA, f"meta, {arch.arguments('inout')}", "lines 22 and 25")),
    )
    reflect = when(
        "meta.flow.task == task_t.REFLECT",
        Apply(m.REFLECT_ACK, arch.arguments("inout")),
        otherwise=(
            when(
                "meta.flow.task == task_t.REPLICATE",
                Do(arch.multicast("meta.flow.out_group"), "line 25", (Feature.MULTICAST,)),
                otherwise=(Do("meta.drop = drop_t.ClassifyTraffic_no_flow;"),),
            ),
        ),
    )
    collective = (
        *((Apply(m.CHECK_ICRC, "hdr, meta"),) if spec.icrc.checked else ()),
        Apply(CLASSIFY_TRAFFIC, "hdr, meta", "line 16"),
        when(OURS, when("meta.flow.task == task_t.AGGREGATE", *aggregate, note="line 19", otherwise=(reflect,))),
    )
    return Flow(
        (
            Apply(VALIDATE_PACKET, f"hdr, meta, {arch.arguments('in')}"),
            Apply(LOOKUP_TABLE, "hdr, meta", "line 16"),
            when("meta.lookup.kind == kind_t.ORDINARY", ordinary(arch), otherwise=collective),
            when(DROPPED, *_drop(arch, "ingress")),
        )
    )


def egress(spec: EpicSpec) -> Flow:
    """The handling of each copy of a packet in egress; ordinary traffic passes unchanged."""
    arch = spec.architecture
    return Flow(
        (
            when(
                "meta.lookup.kind != kind_t.ORDINARY",
                Apply(m.TRANSLATE_HEADER, f"hdr, meta, {arch.arguments('in', 'egress')}", "line 26"),
                *((Apply(m.SET_ICRC, "hdr"),) if spec.icrc.checked else ()),
                when(DROPPED, *_drop(arch, "egress")),
            ),
        )
    )
