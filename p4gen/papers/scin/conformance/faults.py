"""Faults to seed into SCIN's programs; the scenarios must detect each."""

from __future__ import annotations

from p4gen.papers.scin.conformance import faults_float16, faults_floats, faults_gaps
from p4gen.papers.scin.conformance.faults_ordered import ORDERED, PROGRAM
from p4gen.papers.scin.conformance.faults_scales import SCALED, SCALES
from p4gen.ptf.mutations import Mutation, Seeding

_ALL = "meta.flow.sources | meta.flow.destinations"
_RECEIVERS = "meta.emission.receivers = "
_FINISHED = f"finishes == 1) {{\n                meta.emission.leaves = out_t.FLAG;\n                {_RECEIVERS}"
_BY_TICK = "{ meta.lookup.kind = kind_t.TICK; }"
_BY_CURSOR = "{ meta.lookup.kind = kind_t.CURSOR; }"
_SMALL = {"mode": "scin", "lanes": 8, "waves": 2, "wave": 4, "contexts": 4, "edges": 4, "ports": 8, "patience": 6}
PROGRAMS: dict[str, dict[str, object]] = {
    "plain": {**_SMALL},
    "wrap": {**_SMALL, "overflow": "wrap"},
    PROGRAM: {**_SMALL, "completion": "ordered"},
    **{name: _SMALL | fields for name, fields in faults_floats.PROGRAMS.items()},
    SCALED: {**_SMALL, "dtype": "mxint8", "lanes": 64, "waves": 4},
    faults_float16.HALVES: _SMALL | faults_float16.PROGRAM,
}

_ARRIVALS = (
    Mutation("starts-one-early", "TrackArrival", "if (arrived == all) {", "if (arrived != 1) {"),
    Mutation("arrival-forgets-call", "TrackArrival", "!= hdr.bth.psn) { arrived = 0; }", "!= hdr.bth.psn) { }"),
    Mutation(
        "any-word-agrees", "TrackArrival", "} else if (hdr.immediate.value != announced) {", "} else if (false) {"
    ),
    Mutation(
        "any-numbers", "TrackArrival", "hdr.immediate.value[31:24] != NUMBERS", "hdr.immediate.value[31:24] == 99"
    ),
    Mutation("old-arrival-counts", "TrackArrival", "if (ahead != 1) {", "if (ahead > 1 && ahead < 0x800000) {"),
    Mutation(
        "aborted-goes-on", "TrackArrival", "} else if (meta.call.status != STATUS_SUCCESS) {", "} else if (false) {"
    ),
    Mutation("nak-of-itself", "TrackArrival", "meta.answer.answer_psn = meta.call.number + 1;", ""),
    Mutation(
        "disagreement-silent",
        "TrackArrival",
        "meta.round.what = cursor_kind_t.ABORT;\n            meta.round.reason = STATUS_DISAGREEMENT;",
        "meta.round.reason = STATUS_DISAGREEMENT;",
    ),
    Mutation("address-not-stored", "StoreAddresses", "operand = hdr.buffers.source ++", "operand = 64w0 ++"),
    Mutation(
        "address-stored-by-context",
        "StoreAddresses",
        "(bit<32>)meta.lookup.edge - 1;",
        "0;",
    ),
    Mutation(
        "result-in-place",
        "StoreAddresses",
        "meta.memory.rkey = operand[31:0];\n        if (meta.emission.leaves == out_t.WRITE) {",
        "meta.memory.rkey = operand[31:0];\n        if (false) {",
    ),
)

_WAVES = (
    Mutation(
        "wave-too-many",
        "IssueWave",
        "if (used > SLOT_MASK + 1) { may = 0; }",
        "if (used > SLOT_MASK + 1 + WAVE) { may = 0; }",
    ),
    Mutation(
        "wave-too-few", "IssueWave", "if (used > SLOT_MASK + 1) { may = 0; }", "if (used > SLOT_MASK) { may = 0; }"
    ),
    Mutation(
        "short-wave-early",
        "IssueWave",
        "psn_t used = next + WAVE - meta.progress.acked",
        "psn_t used = next + count - meta.progress.acked",
    ),
    Mutation(
        "one-wave-an-ack",
        "IssueWave",
        "meta.round.what = cursor_kind_t.ISSUE;\n            next = next",
        "next = next",
    ),
    Mutation("read-psn-by-one", "IssueWave", "next = next + count;", "next = next + 1;"),
    Mutation(
        "read-length-of-full-wave",
        "IssueWave",
        "if (count > WAVE) { count = WAVE; }",
        "if (count != 0) { count = WAVE; }",
    ),
    Mutation("offset-not-added", "MakeRead", "offset = meta.emission.read_psn - meta.call.first;", "offset = 0;"),
    Mutation("read-is-short", "MakeRead", "(bit<32>)meta.emission.packets << 5", "32"),
    Mutation("beyond-is-taken", "IssueWave", "meta.drop = drop_t.IssueWave_never_asked;", "meta.drop = drop_t.NONE;"),
    Mutation("packets-forgotten", "TrackCall", "meta.call.first = meta.call.first + packets;", ""),
    Mutation(
        "sources-are-all", "FindContext", "meta.flow.sources = sources;", "meta.flow.sources = sources | destinations;"
    ),
    Mutation(
        "destinations-are-all",
        "FindContext",
        "meta.flow.destinations = destinations;",
        "meta.flow.destinations = sources | destinations;",
    ),
    Mutation("prune-forgotten", "PrunePort", "meta.drop = drop_t.PrunePort_not_wanted;", "meta.drop = drop_t.NONE;"),
)

_DATA = (
    Mutation(
        "full-slot-merges",
        "CheckDuplicate",
        "} else if ((bitmap & meta.lookup.edge_bit) != 0) {",
        "} else if (false) {",
    ),
    Mutation("late-response-merges", "CheckDuplicate", "if (older == 1) {", "if (false) {"),
    Mutation("slot-not-recycled", "CheckDuplicate", "bitmap = 0;\n            older =", "older ="),
    Mutation("slots-of-all-contexts", "CheckDuplicate", "meta.flow.slots + (bit<32>)", "(bit<32>)"),
    Mutation("first-is-added", "AggregateData", "if (slot_use == use_t.MERGE) {", "if (slot_use != use_t.READ) {"),
    Mutation("wraps", "AggregateData", "(int<32>)held |+| (int<32>)element", "(int<32>)held + (int<32>)element"),
    Mutation(
        "saturates",
        "AggregateData",
        "element = held + element;",
        "element = (lane_t)((int<32>)held |+| (int<32>)element);",
        program="wrap",
    ),
    Mutation("data-of-anybody", "FindContext", "meta.drop = drop_t.FindContext_no_source;", "meta.drop = drop_t.NONE;"),
    Mutation(
        "acks-of-anybody", "FindContext", "meta.drop = drop_t.FindContext_no_destination;", "meta.drop = drop_t.NONE;"
    ),
)

_RESULTS = (
    Mutation(
        "holes-overtaken",
        "ReleaseResult",
        "if (hdr.bth.psn == next) { turn = meta.buffer.complete; }",
        "turn = meta.buffer.complete;",
    ),
    Mutation("held-not-counted", "ReleaseResult", "held = held + 1;", "held = 0;"),
    Mutation(
        "early-release", "ReceiveAck", "meta.progress.acked = acks.lowest;", "meta.progress.acked = meta.call.end - 1;"
    ),
    Mutation(
        "fastest-frees",
        "ReceiveAck",
        "if (precedes(through, acks.lowest) == 1) { acks.lowest = through; }",
        "if (mine == 1) { acks.lowest = through; }",
    ),
    Mutation("ack-of-anything", "ReceiveAck", "if (precedes(acks.psn, meta.release.start) == 1) {", "if (true) {"),
    Mutation("nak-is-ack", "ReceiveAck", "{ acks.psn = acks.psn - 1; }", "{ }"),
    Mutation("flag-twice", "ReceiveAck", "if (acks.before != acks.lowest) {", "if (true) {"),
    Mutation(
        "flag-to-destinations-only",
        "IssueWave",
        f"{_FINISHED}{_ALL};",
        f"{_FINISHED}meta.flow.destinations;",
    ),
    Mutation("status-forgotten", "MakeFlag", "hdr.flag.status = meta.call.status;", "hdr.flag.status = 0;"),
    Mutation(
        "call-number-stale", "MakeFlag", "hdr.flag.call = meta.call.number;", "hdr.flag.call = meta.call.number - 1;"
    ),
    Mutation("nobody-asked", "MakeWrite", "if (hdr.bth.psn == meta.call.end - 1) { hdr.bth.ack_request = 1; }", ""),
    Mutation("length-of-wave", "MakeWrite", "hdr.reth.dma_length = PAYLOAD;", "hdr.reth.dma_length = PAYLOAD << 2;"),
)

_REPAIR = (
    Mutation("reread-every-slot", "Retransmission", "& ~meta.buffer.bitmap & ~asked;", "& ~asked;"),
    Mutation("reread-asks-all", "Retransmission", "meta.flow.sources & hdr.cursor.edges &", "meta.flow.sources &"),
    Mutation("reread-single", "Retransmission", "psn_t count = WAVE - offset;", "psn_t count = 1;"),
    Mutation("reread-each-packet", "Retransmission", "meta.round.asked = asked | missing;", "meta.round.asked = 0;"),
    Mutation("reread-once", "Retransmission", "if (offset == 0) { asked = 0; }", ""),
    Mutation("reread-of-results", "Retransmission", "missing = 0;                     ", "                     "),
    Mutation("rewrite-to-all", "Retransmission", "meta.progress.lacks & hdr.cursor.edges;", "meta.flow.destinations;"),
    Mutation(
        "rewrite-from-old-naks",
        "Retransmission",
        "if (precedes(hdr.bth.psn, meta.progress.acked) == 1) {",
        "if (false) {",
    ),
    Mutation("rewrite-asks-nobody", "Retransmission", "meta.emission.again = 1;", ""),
    Mutation(
        "nak-ignored",
        "AnswerNak",
        "(hdr.aeth.syndrome == SYNDROME_NAK) {\n            meta.round.what = cursor_kind_t.READ;",
        "(hdr.aeth.syndrome == SYNDROME_NAK) {\n            meta.round.what = cursor_kind_t.NONE;",
    ),
    Mutation(
        "any-answer-is-nak",
        "AnswerNak",
        "(hdr.aeth.syndrome == SYNDROME_NAK) {\n            meta.round.what = cursor_kind_t.READ;",
        "(hdr.aeth.syndrome != 0x62) {\n            meta.round.what = cursor_kind_t.READ;",
    ),
    Mutation(
        "abort-silent",
        "AnswerNak",
        "start) == 0) {\n                meta.round.what = cursor_kind_t.ABORT;",
        "start) == 0) {\n                meta.round.what = cursor_kind_t.NONE;",
    ),
    Mutation(
        "late-refusal-aborts",
        "AnswerNak",
        "if (precedes(hdr.bth.psn, meta.release.start) == 0) {\n                meta.round.what = cursor_kind_t.ABORT;",
        "if (true) {\n                meta.round.what = cursor_kind_t.ABORT;",
    ),
    Mutation(
        "lacked-flag-not-sent",
        "SignalCompletion",
        "(hdr.aeth.syndrome == SYNDROME_NAK) {\n                    meta.emission",
        "(false) {\n                    meta.emission",
    ),
    Mutation(
        "abort-has-its-own-psn",
        "SignalCompletion",
        "meta.call.flag_psn = hdr.bth.psn;",
        "meta.call.flag_psn = meta.call.flag_psn;",
    ),
    Mutation("aborted-goes-on-reading", "TrackCall", "if (ended == 1) {", "if (false) {"),
    Mutation("ticks-never-stall", "WatchProgress", "            count = count + 1;\n", ""),
    Mutation("ticks-act-at-once", "WatchProgress", "if (new == 1) { count = 0; }", "if (new == 1) { count = 1; }"),
    Mutation("ticks-act-each", "WatchProgress", "if ((count & (count - 1)) != 0) { stalls = 0; }", ""),
    Mutation("ticks-act-on-old-news", "WatchProgress", "bit<1> stalls = ~meta.progress.comes;", "bit<1> stalls = 1;"),
    Mutation(
        "repeats-are-news", "NoteProgress", "else if (meta.drop == drop_t.NONE) { new = 1; }", "else { new = 1; }"
    ),
    Mutation("results-only-are-news", "NoteProgress", "if (meta.drop == drop_t.NONE) { new", "if (false) { new"),
    Mutation("repeated-acks-are-news", "NoteProgress", "{ new = meta.progress.moves; }", "{ new = 1; }"),
    Mutation("acks-are-no-news", "NoteProgress", "{ new = meta.progress.moves; }", "{ }"),
    Mutation("news-stay", "NoteProgress", "if (comes == 0) { word = 0; }", "if (comes == 0) { }"),
    Mutation("ticks-wrap", "WatchProgress", "if (count == 0xfff) { count = 0x7ff; }", ""),
    Mutation("no-patience", "WatchProgress", "if (count >= PATIENCE) {", "if (count >= PATIENCE - 1) {"),
    Mutation("flags-to-all-again", "WatchProgress", f"{_RECEIVERS}meta.flags.unflagged;", f"{_RECEIVERS}{_ALL};"),
    Mutation(
        "flags-given-up",
        "WatchProgress",
        f"{_RECEIVERS}meta.flags.unflagged;",
        f"{_RECEIVERS}meta.flags.unflagged;\n                if (count >= PATIENCE) {{ {_RECEIVERS}0; }}",
    ),
    Mutation("flag-acks-ignored", "SignalCompletion", "reached = reached | meta.lookup.edge_bit;", ""),
    Mutation("forged-ticks", "LookupTable", f"if (std_meta.ingress_port == CPU_PORT) {_BY_TICK}", _BY_TICK),
    Mutation("forged-cursors", "LookupTable", f"if (std_meta.instance_type == RECIRCULATED) {_BY_CURSOR}", _BY_CURSOR),
    Mutation("any-port", "LookupTable", "if (entrances.apply().miss)", "if (false)"),
    Mutation("anybody-is-peer", "LookupTable", "else if (hdr.ipv4.src_addr != peer)", "else if (false)"),
    Mutation(
        "roles-mixed",
        "LookupTable",
        "if (role == role_t.SYNC) { meta.lookup.kind = kind_t.ARRIVAL; }",
        "meta.lookup.kind = kind_t.ARRIVAL;",
    ),
    Mutation("icrc-unchecked", "CheckIcrc", "if (hdr.icrc.crc != expected)", "if (false)"),
)

_ONE_CALL = (
    Mutation(
        "nak-is-lost-where-a-wave-is-free",
        "ReceiveAck",
        "meta.progress.naks = 1;\n                meta.round.what = cursor_kind_t.WRITE;",
        "meta.round.what = cursor_kind_t.WRITE;",
    ),
    Mutation(
        "flags-of-the-call-before",
        "SignalCompletion",
        "else if (word[55:32] != meta.call.number) { reached = 0; }",
        "",
    ),
    Mutation(
        "nak-of-a-flag-is-its-ack",
        "SignalCompletion",
        "if (hdr.aeth.syndrome[6:5] == 0) { reached",
        "if (true) { reached",
    ),
    Mutation(
        "nak-of-a-flag-writes-it",
        "SignalCompletion",
        "if (meta.call.status != STATUS_SUCCESS) {\n            if (meta.lookup.kind == kind_t.FLAG_ACK) {",
        "if (true) {\n            if (meta.lookup.kind == kind_t.FLAG_ACK) {",
    ),
    Mutation(
        "rnr-nak-is-an-ack",
        "ReceiveAck",
        "if (hdr.aeth.syndrome[6:5] != 0) { acks.psn",
        "if (hdr.aeth.syndrome[6:5] == 3) { acks.psn",
    ),
    Mutation("aborted-reads-again", "TrackCall", "else if (meta.lookup.kind == kind_t.READ_NAK) { ended = 1; }", ""),
    Mutation("aborted-takes-acks", "TrackCall", "else if (meta.lookup.kind == kind_t.WRITE_ACK) { ended = 1; }", ""),
    Mutation("aborted-cursors", "TrackCall", "if (hdr.cursor.what != cursor_kind_t.ABORT) { ended = 1; }", ""),
    Mutation("last-arrival-starts-again", "TrackArrival", "if (known == 0) {", "if (true) {"),
    Mutation("marks-go-on", "TranslateHeader", "hdr.bth.reserved1 = 0;", ""),
    Mutation("class-goes-on", "TranslateHeader", "hdr.ipv4.dscp = 0;", ""),
)
"""What belongs to one call, or to one packet, and not to the next."""

SEEDING = Seeding(
    mutations=(
        *(*_ARRIVALS, *_WAVES, *_DATA, *_RESULTS, *_REPAIR, *_ONE_CALL),
        *(*ORDERED, *faults_gaps.FAULTS, *faults_floats.FAULTS, *SCALES, *faults_float16.FAULTS),
    ),
    programs=PROGRAMS,
    tests={
        "wrap": ("test_scin_data",),
        PROGRAM: ("test_scin_ordered", "test_scin_repair"),
        **faults_floats.TESTS,
        SCALED: ("test_scin_scales", "test_scin_mxint8"),
        faults_float16.HALVES: ("test_scin_int8_float16",),
    },
    first={
        "LookupTable": ("test_scin_entrances", "test_scin_arrival", "test_scin_repair"),
        "TrackArrival": ("test_scin_arrival",),
        "TrackCall": ("test_scin_repair",),
        "IssueWave": ("test_scin_reads", "test_scin_data"),
        "CheckDuplicate": ("test_scin_data",),
        "AggregateData": ("test_scin_data",),
        "ReleaseResult": ("test_scin_results",),
        "ReceiveAck": ("test_scin_results", "test_scin_reads"),
        "NoticeGap": ("test_scin_gaps",),
        "Retransmission": ("test_scin_repair", "test_scin_gaps"),
        "AnswerNak": ("test_scin_repair",),
        "WatchProgress": ("test_scin_repair", "test_scin_results"),
        "SignalCompletion": ("test_scin_results",),
    },
)
