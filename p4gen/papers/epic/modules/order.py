"""Whose turn it is, what edges have sent and acknowledged, and when something is sent again."""

from __future__ import annotations

from dataclasses import replace

from p4gen.arch import Feature
from p4gen.papers.epic import words
from p4gen.papers.epic.modules.common import (
    CONTEXTS,
    EDGES,
    notifies,
    passes_on,
    stores,
)
from p4gen.papers.epic.spec import EpicSpec
from p4gen.program import repair
from p4gen.program.module import Drop, Metadata, Module, Register, Size


def _selective_naks(spec: EpicSpec) -> bool:
    return spec.loss_recovery.selective_naks


FILTER_ORDER = Module(
    name="FilterOrder",
    folder="epic",
    gress="ingress",
    paper="section C: an ePSN in the switch's endpoint state",
    purpose="what hosts that go back N send ahead of its turn need not touch the buffer",
    needs=("hdr.bth", "kind", "edge_index", "epoch", "last_announced"),
    keeps=(Register("expected", words.EXPECTED, EDGES, "the PSN whose turn it is, of each edge"),),
    drops=(Drop("out_of_order", "ahead of its turn: it will be sent again"),),
    wanted=lambda spec: spec.loss_recovery.in_order,
)

CHECK_RANGE = Module(
    name="CheckRange",
    folder="epic",
    gress="ingress",
    paper="Algorithm 2, lines 6, 26-28 and 31: the pipe's psnStart",
    purpose="a pipe takes PSNs that it has a slot for, and no others",
    part="range",
    needs=(
        "hdr.bth",
        "kind",
        "context_index",
        "epoch",
        "first_psn",
        "end",
        "slot_mask",
        "source_mask",
        "out_mask",
        "pipe",
        "sync",
        "acked",
    ),
    may_need=("at_root",),
    provides=(Metadata("ahead", "bit<1>", "its pipe has no slot for the PSN yet"),),
    keeps=(
        Register("aggregation.psn_start", words.PROGRESS, CONTEXTS, "psnStart of each context's aggregation pipe"),
        Register("broadcast.psn_start", words.PROGRESS, CONTEXTS, "the same of its broadcast pipe"),
    ),
)

CHECK_MESSAGES = Module(
    name="CheckMessages",
    folder="epic",
    gress="ingress",
    paper="section 4.2: paired SEND and RECV, W outstanding messages",
    purpose="a message begins if its pipe has slots for all of it",
    part="range",
    needs=("hdr.bth", "kind", "context_index", "epoch", "first_psn", "slot_mask", "pipe", "acked"),
    provides=(Metadata("ahead", "bit<1>", "its pipe has no slots for it or its message yet"),),
    keeps=(
        Register("aggregation.psn_start", words.PROGRESS, CONTEXTS, "psnStart of each context's aggregation pipe"),
        Register("broadcast.psn_start", words.PROGRESS, CONTEXTS, "the same of its broadcast pipe"),
    ),
)

CHECK_ORDER = Module(
    name="CheckOrder",
    folder="epic",
    gress="ingress",
    paper="Algorithm 2, lines 12 and 33-35; section H.4: arrived, epsn, nak_sent",
    purpose="whether it is this packet's turn, and what its sender is told",
    part="order",
    needs=(
        "hdr.bth",
        "hdr.immediate",
        "kind",
        "edge_index",
        "epoch",
        "first_psn",
        "ahead",
    ),
    may_need=("numbers", "first_hop", "now_acked", "passes"),
    changes=("numbers",),
    provides=(
        Metadata("accepted", "bit<1>", "1: goes into its slot"),
        Metadata("answers", "bit<1>", "1: its sender gets an answer", kept=True),
        Metadata("answer_psn", "psn_t", "the answer's PSN", kept=True),
        Metadata("syndrome", "bit<8>", "the answer's AETH syndrome", kept=True),
        Metadata("msn", "bit<24>", "the answer's MSN", kept=True, wanted=lambda spec: not _selective_naks(spec)),
        Metadata(
            "msn",
            "bit<24>",
            "the answer's MSN; in a selective NAK how many packets it asks for",
            kept=True,
            wanted=_selective_naks,
        ),
        Metadata("whole", "bit<1>", "1: nothing is missing", wanted=words.selective),
        Metadata("notifies", "bit<1>", "1: its sender gets a congestion notification", kept=True, wanted=notifies),
    ),
    keeps=(Register("receive", words.receive, EDGES, "what has arrived over each edge, and what has been announced"),),
    drops=(
        Drop("duplicate", "has arrived before; acknowledged again"),
        Drop("gap", "ahead of its turn: something before it is missing"),
        Drop("not_announced", "no announcement covers its PSN"),
        Drop("ahead", "beyond the pipe's range: its sender runs ahead of the others"),
    ),
)

TRACK_SENT = Module(
    name="TrackSent",
    folder="epic",
    gress="ingress",
    paper="Algorithm 2, line 15: maxPsnSent; InfiniBand 9.7.5.1.1",
    purpose="an answer to what was never sent must not be believed",
    part="progress",
    needs=("hdr.bth", "kind", "context_index", "epoch", "first_psn", "slot_mask", "pipe"),
    provides=(Metadata("newest", "psn_t", "the newest PSN that has been sent", wanted=words.names_holes),),
    keeps=(
        Register("aggregation.sent", words.sent, CONTEXTS, "maxPsnSent of each context's aggregation pipe"),
        Register("broadcast.sent", words.sent, CONTEXTS, "the same of its broadcast pipe"),
    ),
    drops=(Drop("never_sent", "answers a PSN that was never sent, or sent too long ago to matter"),),
)

RECEIVE_ACK = Module(
    name="ReceiveAck",
    folder="epic",
    gress="ingress",
    paper="Algorithm 2, lines 14, 24 and 27; Algorithm 3, lines 1-3",
    purpose="how far each edge has acknowledged what it was sent",
    part="progress",
    needs=(
        "hdr.bth",
        "hdr.aeth",
        "kind",
        "context_index",
        "edge_bit",
        "epoch",
        "first_psn",
        "out_mask",
    ),
    may_need=("start", "sync"),
    provides=(
        Metadata("acked", "psn_t", "the least lastAcked of a pipe's output edges; of a tick, that of its edge"),
        Metadata(
            "now_acked",
            "psn_t",
            "up to which this answer says that a flow that stands still is through",
            wanted=passes_on,
        ),
        Metadata("passes", "bit<1>", "1: this answer says so", wanted=passes_on),
    ),
    keeps=(
        Register("edge_*.acked", words.PROGRESS, CONTEXTS, "lastAcked of one edge of each context", Size("fan_in")),
    ),
)

REPAIR_HOLES = Module(
    name="RepairHoles",
    folder="epic",
    gress="ingress",
    paper="section C: NIC-SR, whose NAKs name one hole at a time",
    purpose="the next hole is repaired as soon as the oldest is",
    part="progress",
    needs=("hdr.bth", "hdr.aeth", "edge_index", "epoch", "first_psn", "newest"),
    provides=(Metadata("repairs", "bit<1>", "1: the packet behind the ACK's is missing"),),
    keeps=(Register("holes", words.HOLES, EDGES, "which packets of an edge are repaired"),),
    wanted=words.names_holes,
)

RESEND_TIMER = replace(
    repair.resend_timer(EDGES, "complete"), paper="Algorithm 2, line 14; Algorithm 3, lines 3 and 14: resend"
)

NOTIFY_CONGESTION = Module(
    name="NotifyCongestion",
    folder="epic",
    gress="ingress",
    paper="section 4.4, congestion control; DCQCN's notification point",
    purpose="a rank whose packets arrive marked, or beyond the range, is to slow down",
    part="order",
    needs=("hdr.ipv4", "kind", "edge_index", "first_hop", "notifies"),
    changes=("notifies",),
    keeps=(Register("notified", 1, EDGES, "whether an edge has been sent a CNP since its last tick"),),
    wanted=notifies,
)

COUNT_MESSAGES = Module(
    name="CountMessages",
    folder="epic",
    gress="ingress",
    paper="beside EPIC: InfiniBand 9.7.7.2 (message sequence number)",
    purpose="how many messages an edge has sent whole",
    part="order",
    needs=("hdr.bth", "edge_index", "epoch", "accepted"),
    may_need=("syndrome", "whole"),
    changes=("msn",),
    keeps=(Register("completed", words.completed, EDGES, "the MSN of what each edge is answered with"),),
)

START_CURSOR = Module(
    name="StartCursor",
    folder="epic",
    gress="ingress",
    paper="Algorithm 3, lines 8 and 9",
    purpose="a NAK, or a tick without progress, sets a retransmission going",
    part="path",
    needs=("hdr.bth", "hdr.aeth", "kind", "port", "acked", "stalled", "probes"),
    may_need=("complete", "next", "repairs"),
    changes=("hdr.bth", "hdr.aeth", "hdr.ipv4", "hdr.udp", "hdr.immediate", "hdr.payload"),
    provides=(Metadata("goes_round", "bit<1>", "1: recirculates"),),
    drops=(
        Drop("not_needed", "not a loss: an answer or a tick that has done its work", loss=False),
        Drop("waits", "not a loss: stored, and its message waits for others or its turn", loss=False, wanted=stores),
    ),
)

RELAY_NOTIFICATION = Module(
    name="RelayNotification",
    folder="epic",
    gress="ingress",
    paper="section 4.4, congestion control",
    purpose="congestion notifications reach those who send",
    needs=("port", "out_group"),
    uses=(Feature.MULTICAST,),
)
