"""Modules of SCIN's programs that know calls and slots: the paper's wave controller (section 3.4)."""

from __future__ import annotations

from dataclasses import replace

from p4gen.papers.scin import words
from p4gen.papers.scin.modules.scales import scaled
from p4gen.papers.scin.sizes import CONTEXTS, FOLDER, SLOTS
from p4gen.papers.scin.spec import ScinSpec
from p4gen.program.module import Drop, Metadata, Module, Register, Size, Table


def _strict(spec: ScinSpec) -> bool:
    return not spec.ordered


def _ordered(spec: ScinSpec) -> bool:
    return spec.ordered


FIND_CONTEXT = Module(
    name="FindContext",
    folder=FOLDER,
    gress="ingress",
    paper="section 3.4.2: source and destination masks",
    purpose="finds whose memory is read and written",
    part="flow",
    needs=("kind", "context", "edge_bit"),
    provides=(
        Metadata("epoch", "epoch_t", "generation of the context's state; older state counts as empty"),
        Metadata("first_psn", "psn_t", "the PSN that all its connections begin with"),
        Metadata("slots", "bit<32>", "its first slot"),
        Metadata("sources", "edges_t", "ranks whose operands are read"),
        Metadata("destinations", "edges_t", "ranks that get the result"),
        Metadata("read_group", "bit<16>", "multicast group of the sources"),
        Metadata("write_group", "bit<16>", "of the destinations"),
        Metadata("flag_group", "bit<16>", "of both"),
    ),
    tables=(Table("contexts", CONTEXTS, "context to its masks and its state"),),
    drops=(
        Drop("not_served", "the context is not set up"),
        Drop("no_source", "data of a rank that is not read"),
        Drop("no_destination", "an answer of a rank that is not written to"),
    ),
)

TRACK_CALL = Module(
    name="TrackCall",
    folder=FOLDER,
    gress="ingress",
    paper="section 3.4.2: the instruction that is executed",
    purpose="knows the call that runs, its PSNs and its status",
    part="call",
    needs=("hdr.bth", "hdr.cursor", "kind", "context_index", "epoch", "first_psn", "sources", "destinations"),
    changes=("leaves", "receivers", "what"),
    provides=(
        Metadata("first", "psn_t", "the first PSN of its data"),
        Metadata("end", "psn_t", "the PSN after its last"),
        Metadata("number", "psn_t", "its number: the PSN of its arrivals"),
        Metadata("status", "bit<8>", "0, or why it was aborted"),
        Metadata("begun", "bit<1>", "1: there has been a call"),
        Metadata("flag_psn", "psn_t", "the PSN of its flags"),
        Metadata("written_flag_psn", "psn_t", "the same of ranks that are written to", wanted=_ordered),
        Metadata("first_scales", "psn_t", "the PSN of the scales of its first wave", wanted=scaled),
    ),
    keeps=(Register("active", words.active, CONTEXTS, "the call that runs"),),
    drops=(Drop("aborted", "the call that it belongs to was aborted", loss=False),),
)

TRACK_ARRIVAL = Module(
    name="TrackArrival",
    folder=FOLDER,
    gress="ingress",
    paper="section 3.3: synchronisation",
    purpose="who has arrived; the last arrival starts the call",
    part="answer",
    needs=(
        "hdr.bth",
        "hdr.immediate",
        "context_index",
        "edge_bit",
        "epoch",
        "sources",
        "destinations",
        "number",
        "status",
    ),
    changes=("leaves", "what", "round_psn", "reason", "announced"),
    provides=(
        Metadata("answer_psn", "psn_t", "the PSN of the answer"),
        Metadata("syndrome", "bit<8>", "its AETH syndrome"),
        Metadata("stores", "bit<1>", "1: the addresses in the arrival are valid from now on"),
    ),
    keeps=(Register("arrivals", words.ARRIVALS, CONTEXTS, "who has arrived at the next call"),),
    drops=(
        Drop("ahead", "of a call after the next one"),
        Drop("aborted", "a call of the context was aborted"),
        Drop("other_numbers", "announces elements of another type than the program's"),
        Drop("disagrees", "announces something else than another rank"),
    ),
)

RECEIVE_ACK = Module(
    name="ReceiveAck",
    folder=FOLDER,
    gress="ingress",
    paper="beside the paper: section 3.4.1 frees slots earlier, and loses nothing",
    purpose="what all destinations have acknowledged",
    part="progress",
    needs=(
        "hdr.bth",
        "hdr.aeth",
        "kind",
        "context_index",
        "edge_bit",
        "epoch",
        "first_psn",
        "destinations",
        "end",
        "number",
        "start",
    ),
    may_need=("first",),
    changes=("what", "round_psn", "reason", "about"),
    provides=(
        Metadata("acked", "psn_t", "the PSN up to which all have acknowledged"),
        Metadata("lacks", "edges_t", "ranks that have not acknowledged the cursor's PSN"),
        Metadata("naks", "bit<1>", "1: the answer is a NAK that something is done about"),
        Metadata("moves", "bit<1>", "1: it acknowledges something new"),
        Metadata("finishes", "bit<1>", "1: with this answer all of the call is acknowledged", wanted=_strict),
    ),
    keeps=(Register("edge_*.acked", words.ACKED, CONTEXTS, "how far a rank has acknowledged", Size("edges")),),
    drops=(Drop("never_sent", "acknowledges what has not been written"),),
)

ISSUE_WAVE = Module(
    name="IssueWave",
    folder=FOLDER,
    gress="ingress",
    paper="section 3.4.1, equation 1",
    purpose="reads the next wave when there is room for it",
    part="emission",
    needs=(
        "hdr.bth",
        "hdr.cursor",
        "kind",
        "context_index",
        "epoch",
        "first_psn",
        "sources",
        "destinations",
        "end",
    ),
    may_need=("finishes", "acked", "naks"),
    changes=("what",),
    provides=(
        Metadata("leaves", "out_t", "what leaves because of this packet"),
        Metadata("receivers", "edges_t", "ranks that get it"),
        Metadata("read_psn", "psn_t", "the first PSN of a READ"),
        Metadata("packets", "psn_t", "how many it asks for"),
        Metadata("again", "bit<1>", "1: it is sent again"),
        Metadata("asked_end", "psn_t", "the PSN after the last that has been asked for"),
    ),
    keeps=(Register("next_read", words.NEXT_READ, CONTEXTS, "the PSN of the next wave"),),
    drops=(Drop("never_asked", "data that no READ has asked for", wanted=lambda spec: not spec.scaled),),
)
_ISSUE_EARLY = replace(ISSUE_WAVE, needs=(*ISSUE_WAVE.needs, "start"))


def issue_wave(spec: ScinSpec) -> Module:
    """The module, which has to know what has left where that makes room."""
    return _ISSUE_EARLY if spec.releases_early else ISSUE_WAVE


CHECK_DUPLICATE = Module(
    name="CheckDuplicate",
    folder=FOLDER,
    gress="ingress",
    paper="section 3.4.1: a wave's entry, IDLE, WAITING or READY",
    purpose="whose data a slot has",
    part="buffer",
    needs=("hdr.bth", "kind", "edge_bit", "epoch", "slots", "sources"),
    provides=(
        Metadata("slot", "bit<32>", "the packet's slot"),
        Metadata("slot_use", "use_t", "what it does with it"),
        Metadata("bitmap", "edges_t", "sources whose data it has"),
        Metadata("complete", "bit<1>", "1: it has the data of all"),
    ),
    keeps=(Register("slots", words.SLOTS, SLOTS, "what a slot holds"),),
    drops=(
        Drop("stale", "its slot holds a later PSN"),
        Drop("duplicate", "its slot has this rank's data"),
    ),
)

RELEASE_RESULT = Module(
    name="ReleaseResult",
    folder=FOLDER,
    gress="ingress",
    paper="section 3.4.1, step 6",
    purpose="writes complete slots in the order of their PSNs",
    part="release",
    needs=("hdr.bth", "hdr.cursor", "kind", "context_index", "epoch", "first_psn", "destinations", "complete"),
    may_need=("sources", "first", "end", "number"),
    changes=("leaves", "receivers", "what", "round_psn"),
    provides=(Metadata("start", "psn_t", "the PSN of the next result"),),
    keeps=(Register("release", words.RELEASE, CONTEXTS, "up to where results have been written"),),
)

AGGREGATE_DATA = Module(
    name="AggregateData",
    folder=FOLDER,
    gress="ingress",
    paper="section 3.4.2: the reduction",
    purpose="reduces data into its slot",
    needs=("slot", "slot_use"),
    changes=("hdr.payload",),
    keeps=(Register("lane_*.partial", 32, SLOTS, "an element of each slot", Size("lanes")),),
    wanted=lambda spec: not spec.scaled,
)
