"""The modules of MultiWrite's programs where each hop repairs what it loses: those that keep packets and send them
again, and what differs in the others."""

from __future__ import annotations

from dataclasses import replace

from p4gen.arch import Feature
from p4gen.papers.multiwrite import modules as m
from p4gen.papers.multiwrite import words
from p4gen.papers.multiwrite.headers import WORD_BITS
from p4gen.program import repair
from p4gen.program.module import Drop, Metadata, Module, Register, Size

_FOLDER = "multiwrite/hop"
_WITHOUT = {"seen", "sent", "repeated", "lowest_syndrome", "naks"}
"""What only repair by the source needs."""


def _less(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in _WITHOUT)


CHECK_RANGE = replace(
    m.CHECK_RANGE,
    purpose="knows up to which PSN all next hops have all; a context has room for N PSNs from there on",
    needs=_less(m.CHECK_RANGE.needs),
    changes=(),
    provides=(
        Metadata("start", "psn_t", "the first PSN that some next hop lacks"),
        Metadata("ahead", "bit<1>", "1: the context has no room for the PSN yet"),
    ),
    keeps=(Register("psn_start", words.START, m.CONTEXTS, "the first PSN that some next hop lacks"),),
    drops=(),
)

CHECK_ORDER = replace(
    m.CHECK_ORDER,
    folder=_FOLDER,
    purpose="whether it is this packet's turn, and what its sender is told",
    needs=("hdr.bth", "kind", "context_index", "epoch", "first_psn", "ahead", "first_hop"),
    provides=(
        Metadata("expected", "psn_t", "ePSN before this packet"),
        Metadata("fresh", "bit<1>", "1: a write that comes for the first time"),
        Metadata("notifies", "bit<1>", "1: the source is to slow down", kept=True),
    ),
    drops=(
        Drop("duplicate", "has come before; acknowledged again"),
        Drop("gap", "ahead of its turn: something before it is missing"),
        Drop("ahead", "more than N PSNs are kept for next hops"),
    ),
)

ASSIGN_PSN = replace(
    m.ASSIGN_PSN,
    provides=(
        Metadata("psns", "psns_t", "the PSN of the copy for each edge"),
        Metadata("answered", "psn_t", "of an answer: the PSN up to which it acknowledges"),
        Metadata("believed", "bit<1>", "1: an answer, and all up to there has been sent"),
        Metadata("following", "psn_t", "the source's PSN of what was sent next, or of what a cursor sends"),
        Metadata("more", "bit<1>", "of an answer: 1: something was"),
        Metadata("due", "psn_t", "the PSN that the next copy for the edge gets"),
    ),
    keeps=tuple(register for register in m.ASSIGN_PSN.keeps if register.short not in _WITHOUT),
)

COMBINE_ACKS = replace(
    m.COMBINE_ACKS,
    folder=_FOLDER,
    purpose="what all next hops have acknowledged that each packet named",
    needs=(
        *(name for name in _less(m.COMBINE_ACKS.needs) if name not in ("hdr.aeth", "psns", "acked")),
        "answered",
        "out_mask",
    ),
    changes=(),
    provides=(
        Metadata("lowest", "psn_t", "the least PSN of the source that an edge waits for"),
        Metadata("acked", "psn_t", "the PSN up to which the packet's edge has acknowledged"),
    ),
    drops=(),
)

HOLD_PACKET = Module(
    name="HoldPacket",
    folder=_FOLDER,
    gress="ingress",
    paper="section 5.1: relays buffer whole payloads; EPIC Algorithm 3, lines 10-13",
    purpose="keeps each packet until all its next hops have it",
    part="held",
    needs=(
        "hdr.ipv4",
        "hdr.bth",
        "kind",
        "epoch",
        "ring",
        "ring_mask",
        "following",
        "acked",
    ),
    changes=("hdr.ipv4", "hdr.bth", "hdr.reth", "hdr.immediate", "hdr.payload"),
    provides=(Metadata("complete", "bit<1>", "1: a cursor's, and its packet is to be sent again"),),
    keeps=(
        Register("slots", words.slot, m.RINGS, "the headers of each packet that is kept"),
        Register("word_*.held", WORD_BITS, m.RINGS, "a word of each one's data", Size("words")),
    ),
)

RESEND_TIMER = repair.resend_timer(m.ENDPOINTS, "complete")

START_CURSOR = Module(
    name="StartCursor",
    folder=_FOLDER,
    gress="ingress",
    paper="EPIC Algorithm 3, lines 8 and 9",
    purpose="a NAK, or a tick without progress, sets a retransmission going",
    part="path",
    needs=("hdr.bth", "hdr.aeth", "kind", "acked", "believed", "due", "edge_port", "stalled", "probes"),
    changes=("hdr.bth", "hdr.aeth"),
    provides=(Metadata("goes_round", "bit<1>", "1: recirculates"),),
    drops=(Drop("not_needed", "an answer or a tick that has done its work", loss=False),),
)

RETRANSMISSION = Module(
    name="Retransmission",
    folder=_FOLDER,
    gress="ingress",
    paper="EPIC Algorithm 3, lines 9-14",
    purpose="a cursor's pass: a packet that is kept goes out again",
    needs=("hdr.udp", "hdr.bth", "hdr.aeth", "acked", "complete", "edge_port", "rkey"),
    may_need=("group_number",),
    changes=("hdr.ipv4", "hdr.udp", "hdr.bth", "hdr.reth", "hdr.aeth", "goes_round"),
    drops=(Drop("done", "a cursor that has sent the last packet", loss=False),),
    uses=(Feature.CLONE,),
)

SEND_ACK = replace(
    m.SEND_ACK,
    purpose="how the answer to a write leaves: the write itself if it goes nowhere else, or a clone of it",
    needs=("first_psn", "port", "source_edge", "syndrome", "expected", "fresh"),
    uses=(Feature.CLONE,),
)

MAKE_ACK = replace(
    m.MAKE_ACK,
    purpose="the answer itself, or a congestion notification",
    needs=(*m.MAKE_ACK.needs, "hdr.cnp"),
    changes=(*m.MAKE_ACK.changes, "hdr.cnp"),
)

LOOKUP_TABLE = replace(m.LOOKUP_TABLE, uses=(Feature.TICKS, Feature.RECIRCULATION))

_INSTEAD = {
    each.name: each for each in (LOOKUP_TABLE, CHECK_RANGE, CHECK_ORDER, ASSIGN_PSN, COMBINE_ACKS, SEND_ACK, MAKE_ACK)
}
_AFTER = {
    "CombineAcks": (HOLD_PACKET, RESEND_TIMER, START_CURSOR, RETRANSMISSION),
    "Forward": (repair.ADVANCE_CURSOR,),
}


def instead(every: tuple[Module, ...]) -> tuple[Module, ...]:
    """The modules of a program that keeps packets, from those of one that does not."""
    found: list[Module] = []
    for module in every:
        found += [_INSTEAD.get(module.name, module), *_AFTER.get(module.name, ())]
    return tuple(found)
