"""Mode II for architectures whose registers have few actions (``Feature.WIDE_STATE`` is not theirs): static groups.

A group runs one pattern, which its table entries say. So no announcement is remembered, and a slot's state is a tag
(PSN and epoch) and a bitmap. ``CAPABILITIES`` says what such programs lack.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Final

from p4gen.arch import Architecture, Feature
from p4gen.errors import InputError
from p4gen.families.epic import folding, words
from p4gen.families.epic import modules as m
from p4gen.families.epic.flow_ii import DROPPED, OURS, ordinary
from p4gen.families.epic.modules.common import ENDPOINTS, SLOTS, sets_icrc
from p4gen.families.epic.spec import NARROW_FAN_IN, EpicSpec
from p4gen.layout import Field, Header, HeaderField, Word
from p4gen.program.flow import Apply, Do, Flow, Step, when
from p4gen.program.module import Drop, Metadata, Module, Register, Size, Table
from p4gen.rocev2 import layouts as roce
from p4gen.spec import DType, Op
from p4gen.spec.program import ProgramSpec

if TYPE_CHECKING:
    from p4gen.model import Model

LANE_BITS: Final = (8, 16, 32)
"""Widths of a lane that a stateful ALU works on."""
AROUND: Final = (*roce.ROCE.headers, roce.VLAN, roce.ICRC)
"""The headers around a payload."""
SPAN_BYTES: Final = 64
"""The most bytes of a payload that a hash reads; the crossbar of a stage has 128, for tables too."""
CHECK_STAGES: Final = 6
"""Stages in front of CheckDuplicate in programs that check the ICRC, as p4c places them."""
ALUS: Final = 4
"""Stateful ALUs, and so lanes, of a stage."""
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
    Capability("mixed_opcode", "a slot's PSN, epoch and bitmap fill its words, so the operation is not kept in it"),
    Capability("ack_request", "the same: a result has the AckReq and the mark of the packet that completes it"),
    Capability("padding", "ingress does not know a frame's length, so bytes behind a datagram are not noticed"),
    Capability("overflows", "the sum is the one result of a lane's stateful ALU, so saturated packets are not counted"),
)
"""What all static programs lack."""
ICRC: Final = Capability("icrc", "it is neither checked nor set: the NICs must ignore it")
"""What programs with ``icrc ignore`` lack as well."""
FOLDED: Final = (
    Capability("truncated", "each pipe parses its own part of a payload: it takes a frame that ends in a later part"),
    Capability("apart", "a slot is the same in all pipes, so that groups in different pipes need different slots"),
)
"""What programs lack that fold a payload."""
FIFO: Final = Capability("stale", "an ALU has two comparisons and one result; links must keep the order of packets")
"""What programs without ``tells_stale`` lack as well."""
HALF: Final = Capability("half", "PSNs 2^23 apart differ by a number without an opposite: the packet's counts as newer")
"""What the others lack."""

_LIKE_II: Final = ("announcements", "patterns", "mixed_opcode", "padding", "overflows", "icrc")
CAPABILITIES_III: Final = (
    *(each for each in (*CAPABILITIES, ICRC) if each.name in _LIKE_II),
    Capability("selective", "reliability sr and sack keep 128 PSNs an edge in a word; a stateful ALU cannot shift one"),
    Capability("notifications", "a packet has one mirrored copy, which is its answer; slots do not keep marks"),
    Capability(
        "timers", "a timer only counts ticks: no RNR NAK makes it wait, and no edge that is given up is counted"
    ),
    Capability("left_over", "a slot that holds the present PSN and epoch since 255 epochs ago is not told apart"),
    Capability("learned_tags", "what a tick has sent again has no VLAN tag: tags of edges are not kept"),
    Capability("generator", "ticks come by the port of the CPU, not from the packet generator"),
    Capability("fan_in", f"a pass takes the minimum of a register for each edge: groups have at most {NARROW_FAN_IN}"),
)
"""What programs of Mode III lack (``static_iii``)."""


def static(spec: ProgramSpec) -> bool:
    """Whether a program is of this form."""
    return Feature.WIDE_STATE not in spec.architecture.features


def tells_stale(spec: EpicSpec) -> bool:
    """Whether a slot tells an older PSN from a newer one, which takes three comparisons in one access."""
    return not spec.needs_order


def capabilities(spec: EpicSpec) -> tuple[Capability, ...]:
    """What a program lacks."""
    if spec.mode.augmented:
        return CAPABILITIES_III
    found = (*CAPABILITIES, *(() if spec.icrc.right else (ICRC,)), HALF if tells_stale(spec) else FIFO)
    return (*found, *(FOLDED if folding.folded(spec) else ()))


def lack(spec: EpicSpec, name: str) -> str:
    """That a program lacks the capability of this name, as a sentence, and why."""
    (found,) = (each for each in capabilities(spec) if each.name == name)
    return f"{spec.arch} programs lack {name}: {found.reason}"


def problems(spec: EpicSpec) -> Iterator[str]:
    """Why the program of a spec cannot be of this form, a sentence each."""
    arch = spec.arch
    if spec.loss_recovery.in_order:
        yield f"{arch}: reliability gbn compares PSNs of 24 bits with a sum, in one access; use sr"
    yield from common_problems(spec)
    yield from _icrc_problems(spec)


def _icrc_problems(spec: EpicSpec) -> Iterator[str]:
    arch = spec.arch
    depth = bridge(spec).size + sum(header.size for header in AROUND) + spec.payload_bytes
    if spec.icrc.right and 0 < spec.architecture.egress_bytes < depth:
        yield (
            f"{arch}: icrc {spec.icrc} with {spec.lanes} lanes needs an egress parser of {depth} bytes, as the ICRC "
            f"is behind the payload; it takes {spec.architecture.egress_bytes}: use fewer lanes, or icrc ignore"
        )
    stages = CHECK_STAGES + (3 if tells_stale(spec) else 2) + ceil(spec.lanes / ALUS) + len(spans(spec))
    if spec.icrc.checked and 0 < spec.architecture.stages < stages:
        yield (
            f"{arch}: icrc {spec.icrc} with {spec.lanes} lanes needs {stages} stages, {CHECK_STAGES} of them before "
            f"any state; there are {spec.architecture.stages}: use fewer lanes, or icrc set"
        )


def common_problems(spec: EpicSpec) -> Iterator[str]:
    """Those of either mode's programs."""
    arch = spec.arch
    if spec.op is Op.DYNAMIC:
        yield f"{arch}: op dynamic needs {2 + len(spec.choices)} actions a lane; a register has at most 4"
    elif not spec.dtype.number_format.integer or spec.lane_bits not in LANE_BITS:
        yield f"{arch}: a stateful ALU has no elements of {spec.dtype}; it has integers of 8, 16 and 32 bits"
    yield from folding.problems(spec)
    yield from _too_wide(spec)
    if spec.pipelines > 1:
        yield f"{arch}: {spec.pipelines} pipelines need recirculation, which programs for {arch} do not use: use 1"
    if spec.variant is not None:
        yield f"{arch}: there is no variant {spec.variant}"


def _too_wide(spec: EpicSpec) -> Iterator[str]:
    most, each, of_what = spec.architecture.results
    if spec.pass_lanes <= most * each:
        return
    fits = 1 << ((most * each).bit_length() - 1)
    wider = [f"--payload-pipes {fold}" for fold in (2, 4) if spec.lanes <= fits * fold and fold > spec.payload_pipes][
        :1
    ]
    a_pass = " in a pass" if folding.folded(spec) else ""
    yield (
        f"{spec.arch}: {spec.pass_lanes} lanes{a_pass} need {spec.pass_lanes // each} {of_what}; {most} there are."
        f" Use {' or '.join([f'--lanes {fits * spec.payload_pipes}', *wider])}"
    )


ORDINARY: Final = "meta.lookup.kind == kind_t.ORDINARY"
"""The P4 condition of packets that are not for the IncEngine."""


def bypassing(spec: EpicSpec) -> str:
    """The P4 condition of packets that bypass egress."""
    return f"{ORDINARY} || meta.fold.goes_on == 1" if folding.folded(spec) else ORDINARY


BITMAP: Final = Field("bitmap", 32, "bitmap")
SLOT: Final = Word(words.EPOCH, Field("psn", roce.PSN_BITS, "PSN"), BITMAP)
"""A slot in one word: what it serves, and whose contributions it has."""
OWNER: Final = Word(Field("psn", roce.PSN_BITS, "PSN"), Field("zeros", 32, "zeros"), words.EPOCH)
"""What a slot serves, where that has a register of its own, and so has the bitmap: programs that tell stale packets."""


def bridge(spec: EpicSpec) -> Header:
    """The header in front of a packet between ingress and egress: the metadata that are kept."""
    summed = (
        HeaderField("kind", 8, "what kind of packet this is", type="kind_t"),
        HeaderField("payload_crc", 32, "what the payload adds to the ICRC"),
    )
    return Header(
        "bridge",
        "What ingress tells egress, in front of the packet; it never leaves the switch",
        (HeaderField("edge", 16, "the edge it came over", type="edge_t"), *(summed if spec.icrc.right else ())),
        noted=True,
    )


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
    ),
    uses=(),
)
VALIDATE_PACKET = replace(
    m.VALIDATE_PACKET,
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


def held(spec: EpicSpec, switch: Model, index: int) -> dict[str, int]:
    """What a slot has: PSN, epoch and bitmap."""
    if tells_stale(spec):
        return OWNER.unpack(switch.register("owners", index)) | {"bitmap": switch.register("slots", index)}
    return SLOT.unpack(switch.register("slots", index))


def spans(spec: EpicSpec) -> tuple[range, ...]:
    """The lanes of each span of a payload that one hash reads."""
    size = 8 * SPAN_BYTES // spec.lane_bits
    return tuple(range(first, min(first + size, spec.lanes)) for first in range(0, spec.lanes, size))


def combined(spec: EpicSpec) -> str:
    """The P4 expression that reduces ``held`` and ``element``, which have the type of ``lane_type``."""
    if spec.op is Op.SUM:
        return "held |+| element" if spec.saturating else "held + element"
    return f"{spec.op}(held, element)"


def lane_type(spec: EpicSpec) -> str:
    """The P4 type of a lane: signed if its elements are, as a stateful ALU distinguishes them by it."""
    dtype: DType = spec.dtype
    return dtype.number_format.p4 if dtype.number_format.least < 0 else f"bit<{spec.lane_bits}>"


def drop(arch: Architecture, stage: str) -> tuple[Step, Step]:
    """A packet with a reason to be dropped is counted, and leaves by no port."""
    return Do(arch.count("drops", "(bit<8>)meta.drop")), Do(arch.drop("egress" if stage == "egress" else "ingress"))


def ingress(spec: EpicSpec) -> Flow:
    """The handling of a packet on arrival."""
    arch = spec.architecture
    aggregate = (
        Apply(check_duplicate(spec), "meta", "line 20; recycles lazily, line 24"),
        Apply(AGGREGATE_DATA, "hdr.payload, meta", "lines 21 and 23"),
        *((_fold(arch),) if folding.folded(spec) else ()),
        when(
            f"{OURS} && meta.fold.goes_on == 0" if folding.folded(spec) else OURS,
            Apply(REPLICATE_DATA, f"meta, {arch.arguments('inout')}", "lines 22 and 25"),
        ),
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
    answers = _unless_lost(spec, reflect)
    collective = (
        *((Apply(CHECK_ICRC, "hdr, meta"),) if spec.icrc.checked else ()),
        Apply(CLASSIFY_TRAFFIC, "hdr, meta", "line 16"),
        when(OURS, when("meta.flow.task == task_t.AGGREGATE", *aggregate, note="line 19", otherwise=(answers,))),
        *((Apply(SUM_PAYLOAD, "hdr.payload, meta"),) if spec.icrc.right else ()),
    )
    return Flow(
        (
            Apply(VALIDATE_PACKET, f"hdr, meta, {arch.arguments('in')}"),
            Apply(LOOKUP_TABLE, "hdr, meta", "line 16"),
            when(
                ORDINARY,
                Do("meta.drop = drop_t.NONE;", "whatever ValidatePacket found"),
                _unless_lost(spec, ordinary(arch)),
                otherwise=collective,
            ),
            when(DROPPED, *drop(arch, "ingress")),
        )
    )


def _fold(arch: Architecture) -> Step:
    fold = Apply(folding.FOLD_PAYLOAD, f"hdr, meta, {arch.arguments('inout')}")
    return when("meta.lookup.kind == kind_t.DATA", fold)


def _unless_lost(spec: EpicSpec, step: Step) -> Step:
    """What comes from another pipe is for a slot, or its group has gone."""
    if not folding.folded(spec):
        return step
    return when("hdr.fold.isValid()", Do("meta.drop = drop_t.FoldPayload_lost;"), otherwise=(step,))


def egress(spec: EpicSpec) -> Flow:
    """The handling of each copy of a packet in egress, which ordinary traffic bypasses."""
    arch = spec.architecture
    return Flow(
        (
            Apply(m.TRANSLATE_HEADER, f"hdr, meta, {arch.arguments('in', 'egress')}", "line 26"),
            *((Apply(SET_ICRC, "hdr, meta"),) if spec.icrc.right else ()),
            when(DROPPED, *drop(arch, "egress")),
        )
    )
