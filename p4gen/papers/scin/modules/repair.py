"""Modules of SCIN's programs that repair losses, which the paper's network has not, and the cursors that go round."""

from __future__ import annotations

from p4gen.arch import Feature
from p4gen.papers.scin import words
from p4gen.papers.scin.sizes import CONTEXTS, EDGES, FOLDER
from p4gen.program.module import Metadata, Module, Register

_ROUND = ("what", "round_psn", "reason", "about", "asked", "announced")


NOTICE_GAP = Module(
    name="NoticeGap",
    folder=FOLDER,
    gress="ingress",
    paper="beside the paper, whose network is lossless",
    purpose="what a source's packet has passed over is read again",
    needs=("hdr.bth", "context_index", "edge", "edge_bit", "epoch", "first_psn", "first"),
    changes=("what", "round_psn", "about", "announced"),
    keeps=(Register("following", words.FOLLOWING, EDGES, "the next packet of a source"),),
)

RETRANSMISSION = Module(
    name="Retransmission",
    folder=FOLDER,
    gress="ingress",
    paper="beside the paper, whose network is lossless",
    purpose="a cursor's pass: what was lost is read or written again",
    needs=(
        "hdr.bth",
        "hdr.cursor",
        "sources",
        "first",
        "end",
        "acked",
        "lacks",
        "bitmap",
        "asked_end",
        "start",
    ),
    may_need=("complete",),
    changes=(
        "leaves",
        "receivers",
        "read_psn",
        "packets",
        "again",
        "what",
        "round_psn",
        "about",
        "asked",
        "announced",
    ),
)

SIGNAL_COMPLETION = Module(
    name="SignalCompletion",
    folder=FOLDER,
    gress="ingress",
    paper="section 3.3: flags",
    purpose="whose flag has arrived",
    part="flags",
    needs=(
        "hdr.bth",
        "hdr.aeth",
        "kind",
        "context_index",
        "edge_bit",
        "epoch",
        "sources",
        "destinations",
        "number",
        "status",
        "begun",
    ),
    may_need=("first", "end", "flag_psn", "written_flag_psn"),
    changes=("leaves", "receivers", "flag_psn", "written_flag_psn"),
    provides=(Metadata("unflagged", "edges_t", "ranks whose flag has not"),),
    keeps=(Register("flagged", words.FLAGGED, CONTEXTS, "ranks that have their flag"),),
)

NOTE_PROGRESS = Module(
    name="NoteProgress",
    folder=FOLDER,
    gress="ingress",
    paper="beside the paper, whose network is lossless",
    purpose="what has come since the last tick, new or not",
    part="progress",
    needs=("kind", "context_index", "moves"),
    provides=(
        Metadata("comes", "bit<1>", "of a tick, 1: something has come since the one before"),
        Metadata("news", "bit<1>", "1: something new has"),
    ),
    keeps=(Register("noted", words.NOTED, CONTEXTS, "whether anything has come since the last tick"),),
)

WATCH_PROGRESS = Module(
    name="WatchProgress",
    folder=FOLDER,
    gress="ingress",
    paper="beside the paper, whose network is lossless",
    purpose="ticks without progress have something sent again, or end the call",
    needs=(
        "context_index",
        "epoch",
        "sources",
        "destinations",
        "end",
        "number",
        "status",
        "acked",
        "start",
        "asked_end",
        "unflagged",
        "comes",
        "news",
    ),
    may_need=("awaited", "scales_end"),
    changes=("leaves", "receivers", "what", "round_psn", "reason", "about"),
    keeps=(Register("watched", words.WATCHED, CONTEXTS, "for how long nothing new has come"),),
)

ANSWER_NAK = Module(
    name="AnswerNak",
    folder=FOLDER,
    gress="ingress",
    paper="beside the paper, whose network is lossless",
    purpose="a READ that was lost is sent again, one that is refused ends the call",
    needs=("hdr.bth", "hdr.aeth", "kind", "edge_bit", "number", "start"),
    may_need=("awaited",),
    changes=("what", "round_psn", "reason", "about"),
)

START_CURSOR = Module(
    name="StartCursor",
    folder=FOLDER,
    gress="ingress",
    paper="beside the paper: one access to each register a pass",
    purpose="sends a cursor round for what takes a pass of its own",
    part="round",
    provides=(
        Metadata("what", "cursor_kind_t", "what a cursor does next", kept=True),
        Metadata("round_psn", "psn_t", "its PSN", kept=True),
        Metadata("reason", "bit<8>", "of an abort: the status", kept=True),
        Metadata("about", "edges_t", "ranks that it is about", kept=True),
        Metadata("asked", "edges_t", "ranks that have been asked in this wave", kept=True),
        Metadata("announced", "bit<32>", "what the arrivals announced", kept=True),
    ),
    uses=(Feature.CLONE,),
)

ADVANCE_CURSOR = Module(
    name="AdvanceCursor",
    folder=FOLDER,
    gress="egress",
    paper="beside the paper: see StartCursor",
    purpose="makes a cursor of a clone",
    needs=_ROUND,
    changes=(
        "hdr.udp",
        "hdr.bth",
        "hdr.aeth",
        "hdr.immediate",
        "hdr.buffers",
        "hdr.payload",
        "hdr.scales",
        "hdr.cursor",
    ),
    uses=(Feature.RECIRCULATION,),
)
