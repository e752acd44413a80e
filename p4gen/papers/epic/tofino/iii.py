"""Mode III for architectures whose registers have few actions, an experiment: static groups, connections hop by hop.

PSNs count from a group's first one and stand in the upper bits of words of 32 bits, each beside the group's epoch: so a
word of another epoch counts as 0, and one comparison with 0 tells which of two PSNs comes first. A packet meets
registers in the order lastAcked and psnStart, ePSN, NAK sent and MSN, slots, payload and opcodes, maxPsnSent, timers.
``capabilities.CAPABILITIES_III`` says what such programs lack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from p4gen.errors import InputError
from p4gen.layout import Field, Header, HeaderField, Word
from p4gen.papers.epic import modules as m
from p4gen.papers.epic import words
from p4gen.papers.epic.modules.common import EDGES, SLOTS
from p4gen.papers.epic.spec import NARROW_FAN_IN, Congestion, EpicSpec
from p4gen.papers.epic.tofino import modules as ii
from p4gen.papers.epic.tofino.limits import common_problems
from p4gen.program.module import Metadata, Module, Register, Size, Table
from p4gen.rocev2.layouts import PSN_BITS
from p4gen.vocabulary.message import MESSAGE

KINDS: Final = 9
"""Entries of ``flows`` for an edge: data, two announcements, answers in three passes, ticks, cursors, notifications."""
BURST: Final = 64
"""The most packets that one NAK or tick triggers."""
GIVEN_UP_BITS: Final = 19
"""After 2^19 ticks (10.5 s, if there is one every 20 us) nothing is sent again."""
KEPT: Final = 69
"""Bytes of an answer's copy: the bridge, and Ethernet with a tag, IPv4, UDP, BTH."""


def problems(spec: EpicSpec) -> Iterator[str]:
    """Why the program of a spec cannot be of this form, a sentence each."""
    arch = spec.architecture
    if spec.needs_order:
        yield (
            f"{spec.arch}: mode III compares serial numbers beside epochs in one access, three comparisons; a stateful "
            f'ALU of this chip has {arch.comparisons}. EPIC\'s authors: "we cannot implement Mode-I/III in Tofino". '
            "Use --arch t2na, where it is an experiment"
        )
        return
    if not spec.loss_recovery.in_order:
        how = spec.loss_recovery
        yield f"{spec.arch}: reliability {how} shifts words of 128 bits, which no stateful ALU does: use gbn"
    if spec.icrc.right:
        yield f"{spec.arch}: icrc {spec.icrc} needs a CRC over the payload, in passes of their own: use ignore"
    if spec.congestion is Congestion.CNP:
        yield f"{spec.arch}: congestion cnp needs a second mirrored copy beside an answer's: use none"
    if spec.fan_in > NARROW_FAN_IN:
        yield (
            f"{spec.arch}: fan_in {spec.fan_in} needs the minimum of {spec.fan_in} registers in a pass; "
            f"at most {NARROW_FAN_IN}: use --fan-in {NARROW_FAN_IN}"
        )
    if spec.architecture.front_ports(spec.ports)[-1] >= 1 << 7:
        yield f"{spec.arch}: {spec.ports} ports are of several pipes; mode III recirculates in pipe 0: use --ports 62"
    yield from common_problems(spec)


def modules(spec: EpicSpec) -> tuple[Module, ...]:
    """The modules; ``InputError`` for a spec that has no program of this form."""
    found = [f"{spec.program}: {problem}" for problem in problems(spec)]
    if found:
        raise InputError(*found)
    return MODULES


def cursor_session(spec: EpicSpec) -> int:
    """The mirror session of cursors: that of the port by which packets recirculate."""
    return spec.architecture.port_session(spec.architecture.recirculation_port)


def passes() -> Mapping[str, int]:
    """How many times a packet goes through the chip at most, by the program's ``kind_t``."""
    once = dict.fromkeys(("ORDINARY", "DATA", "CONTROL"), 1)
    return once | {
        "ANSWER": 3 + BURST,
        "NOTIFICATION": 1,
        "MALFORMED": 1,
        "TICK": 1 + BURST,
        "CURSOR": BURST,
        "CHECKED": 2 + BURST,
        "COUNTED": 1 + BURST,
    }


_EPOCH: Final = Field("epoch", 32, "epoch")
_ZEROS: Final = Field("zeros", 8, "zeros")
PROGRESS: Final = Word(Field("psn", PSN_BITS, "PSNs since the group's first"), _ZEROS, _EPOCH)
"""A PSN that marks progress."""
COUNT: Final = Word(Field("msn", 32, "MSN"), _EPOCH)
TIMER: Final = Word(
    Field("acked", PSN_BITS, "PSNs that are acknowledged"), words.EPOCH, Field("ticks", 32, "ticks since")
)
SLOT: Final = Word(
    Field("psn", PSN_BITS, "PSN"),
    words.EPOCH,
    Field("ack_request", 1, "AckReq"),
    Field("zeros", 23, "zeros"),
    Field("bitmap", 8, "bitmap"),
)
PIPES: Final = Size("pipes", "groups")

BRIDGE: Final = Header(
    "bridge",
    "What ingress tells egress, in front of the packet or of its mirrored copy; it never leaves the switch",
    (
        HeaderField("edge", 16, "the edge it came over", type="edge_t"),
        HeaderField("form", 8, "what it is", type="form_t"),
        HeaderField("copy_psn", PSN_BITS, "the PSN of an answer, or a cursor's next one", type="psn_t"),
        HeaderField("syndrome", 8, "an answer's AETH syndrome"),
        HeaderField("msn", 32, "its MSN", type="int<32>"),
    ),
    noted=True,
)
REST: Final = Header(
    "rest",
    "What the session keeps of an answer's copy behind its headers, if it has no tag",
    (HeaderField("unused", 32, "not used"),),
)
MIRRORED: Final = {
    "when": "MIRRORED",
    "header": "bridge_t",
    "session": "meta.answer.copy_session",
    "fields": (
        "meta.lookup.edge",
        "meta.answer.copy_form",
        "meta.answer.copy_psn",
        "meta.order.syndrome",
        "meta.order.msn",
    ),
}
"""What the template ``arch/tna/deparser`` asks for."""

_FOLDER: Final = "epic/iii"
"""The folder of the templates that Mode II's programs do not share."""
LOOKUP_TABLE = replace(
    ii.LOOKUP_TABLE,
    folder=_FOLDER,
    provides=(
        *ii.LOOKUP_TABLE.provides,
        Metadata("port", "bit<9>", "that edge's port"),
        Metadata("session", "MirrorId_t", "the mirror session of that port"),
        Metadata("first_hop", "bit<1>", "1: a rank is at the other end of it"),
    ),
)
CLASSIFY_TRAFFIC = replace(
    ii.CLASSIFY_TRAFFIC,
    folder=_FOLDER,
    needs=("hdr.bth", "hdr.immediate", "kind", "edge", "edge_bit", "own_slot"),
    provides=(
        Metadata("task", "task_t", "what becomes of it"),
        Metadata("slot", "slot_t", "index of the slot that its PSN maps to"),
        Metadata("tag", "int<32>", "its PSN, from the group's first one on"),
        Metadata("next", "int<32>", "the PSN behind it"),
        Metadata("mark", "bit<32>", "its PSN and the epoch"),
        Metadata("contribution", "bitmap_t", "its edge's bit, and whether it asks for an ACK"),
        Metadata("origin", "int<32>", "what a PSN is added to, so that it counts from the group's first one"),
        Metadata("epoch", "int<32>", "the epoch of the group"),
        Metadata("pipe", "bit<16>", "index of the words of state of its pipe"),
        Metadata("outside", "bit<32>", "the bits of a distance that lead beyond the pipe's range"),
        Metadata("source_mask", "bitmap_t", "edges whose contributions make a result"),
        Metadata("out_mask", "bitmap_t", "edges that answers are awaited from; of a tick, its own"),
        Metadata("out_group", "bit<16>", "multicast group of the edges that it, or the result, goes to"),
    ),
    tables=(Table("flows", Size("groups", "fan_in", KINDS), "edge, kind and announcement to slots and output edges"),),
)
RECEIVE_ACK = replace(
    m.RECEIVE_ACK,
    folder=_FOLDER,
    needs=("hdr.aeth", "kind", "edge_bit", "epoch", "tag", "next", "pipe", "out_mask"),
    provides=(
        Metadata("through", "int<32>", "up to which this answer says that all has arrived"),
        Metadata("lowest", "int<32>", "the least of the pipe's output edges; of a tick, that of its edge"),
    ),
    keeps=(Register("edge_*.acked", PROGRESS, PIPES, "what one edge of each pipe has acknowledged", Size("fan_in")),),
)
CHECK_RANGE = replace(
    m.CHECK_RANGE,
    folder=_FOLDER,
    needs=("hdr.aeth", "kind", "epoch", "tag", "pipe", "outside"),
    may_need=(),
    provides=(
        Metadata("offset", "bit<32>", "how far its PSN is behind the first one of the range"),
        Metadata("beyond", "bit<32>", "not 0: its pipe has no slot for the PSN yet"),
    ),
    keeps=(Register("psn_start", PROGRESS, PIPES, "psnStart of each pipe"),),
)
CHECK_ORDER = replace(
    m.CHECK_ORDER,
    folder=_FOLDER,
    needs=("hdr.bth", "edge", "first_hop", "epoch", "tag", "beyond"),
    may_need=(),
    changes=(),
    provides=(
        Metadata("accepted", "bit<1>", "1: goes into its slot"),
        Metadata("answers", "bit<1>", "1: its sender gets an answer"),
        Metadata("answer", "int<32>", "the answer's PSN, from the group's first one on"),
        Metadata("syndrome", "bit<8>", "the answer's AETH syndrome", kept=True),
    ),
    keeps=(
        Register("expected", PROGRESS, EDGES, "ePSN of each edge"),
        Register("nak_sent", 32, EDGES, "the epoch in which its ePSN has been asked for"),
    ),
    drops=tuple(drop for drop in m.CHECK_ORDER.drops if drop.reason != "not_announced"),
)
COUNT_MESSAGES = replace(
    m.COUNT_MESSAGES,
    folder=_FOLDER,
    needs=("hdr.bth", "edge", "epoch", "accepted"),
    may_need=(),
    changes=(),
    provides=(Metadata("msn", "int<32>", "messages that its edge has sent whole", kept=True),),
    keeps=(Register("completed", COUNT, EDGES, "the MSN of what each edge is answered with"),),
)
CHECK_DUPLICATE = replace(
    m.CHECK_DUPLICATE,
    folder=_FOLDER,
    needs=("hdr.bth", "kind", "contribution", "slot", "mark", "source_mask", "accepted"),
    may_need=(),
    changes=("hdr.bth",),
    provides=(
        Metadata("slot_use", "slot_use_t", "what this packet means to its slot"),
        Metadata("complete", "bit<1>", "1: every source has contributed to the slot"),
    ),
    keeps=(Register("slots", SLOT, SLOTS, "what each slot serves, and whose contributions it has"),),
    drops=(),
)
RETRANSMISSION = replace(
    m.RETRANSMISSION,
    folder=_FOLDER,
    part="answer",
    needs=("hdr.udp", "hdr.bth", "hdr.aeth", "hdr.immediate", "kind", "port", "slot", "complete"),
    changes=("hdr.ipv4", "hdr.udp", "hdr.bth", "hdr.aeth", "hdr.immediate", "hdr.payload"),
    provides=(
        Metadata("copy_session", "MirrorId_t", "the session of its mirrored copy"),
        Metadata("copy_form", "form_t", "what the copy becomes"),
        Metadata("copy_psn", "psn_t", "the copy's PSN", kept=True),
    ),
    keeps=(
        Register("opcodes", 8, SLOTS, "the opcode of each result"),
        Register("announced", MESSAGE.bits, SLOTS, "what each result announces"),
    ),
    uses=(),
)
TRACK_SENT = replace(
    m.TRACK_SENT,
    folder=_FOLDER,
    part="progress",
    needs=("kind", "epoch", "next", "pipe", "lowest", "complete"),
    provides=(
        Metadata("behind", "bit<32>", "how far an answer's PSN is before the newest one that was sent"),
        Metadata("outstanding", "bit<1>", "1: of a tick's edge, something is not acknowledged"),
    ),
    keeps=(Register("sent", PROGRESS, PIPES, "maxPsnSent of each pipe"),),
)
RESEND_TIMER = replace(
    m.RESEND_TIMER,
    folder=_FOLDER,
    needs=("edge", "epoch", "lowest", "outstanding"),
    provides=(
        *m.RESEND_TIMER.provides,
        Metadata("now", "int<32>", "what its edge has acknowledged, and the epoch"),
    ),
    keeps=(Register("timers", TIMER, EDGES, "the timer of what each edge has not acknowledged"),),
)
START_CURSOR = replace(
    m.START_CURSOR,
    folder=_FOLDER,
    needs=("hdr.bth", "hdr.aeth", "kind", "origin", "lowest", "stalled"),
    provides=(
        *m.START_CURSOR.provides,
        Metadata("oldest", "bit<32>", "the PSN that a tick's edge has not acknowledged, in the upper bits"),
        Metadata("form", "form_t", "egress: what comes there", kept=True),
    ),
)
SEND_ACK = replace(
    m.SEND_ACK,
    folder=_FOLDER,
    needs=("session", "origin", "answers", "answer"),
    provides=(Metadata("serial", "bit<32>", "the answer's PSN, in the upper bits"),),
    changes=("copy_session", "copy_form", "copy_psn"),
    uses=(),
)
ADVANCE_CURSOR = replace(m.ADVANCE_CURSOR, folder=_FOLDER, needs=("hdr.bth", "copy_psn"), uses=())
MAKE_ACK = replace(
    m.MAKE_ACK,
    folder=_FOLDER,
    needs=("hdr.ipv4", "hdr.udp", "hdr.bth", "copy_psn", "syndrome", "msn"),
    changes=("hdr.ipv4", "hdr.udp", "hdr.bth", "hdr.aeth", "hdr.rest", "hdr.icrc"),
)
MODULES: Final[tuple[Module, ...]] = (
    ii.VALIDATE_PACKET,
    LOOKUP_TABLE,
    CLASSIFY_TRAFFIC,
    CHECK_RANGE,
    CHECK_ORDER,
    COUNT_MESSAGES,
    RECEIVE_ACK,
    CHECK_DUPLICATE,
    ii.AGGREGATE_DATA,
    RETRANSMISSION,
    TRACK_SENT,
    RESEND_TIMER,
    START_CURSOR,
    m.REPLICATE_DATA,
    SEND_ACK,
    m.REFLECT_ACK,
    m.ANSWER_ARP,
    m.FORWARD,
    ADVANCE_CURSOR,
    MAKE_ACK,
    m.TRANSLATE_HEADER,
)
"""EPIC Algorithms 2 and 3. RecycleBuffer is part of CheckDuplicate."""
