"""Faults to seed into Mode III's programs: saturating sums of int32 lanes, unless they are about something else."""

from __future__ import annotations

from p4gen.papers.epic.conformance.faults_both import BOTH_MODES
from p4gen.ptf.mutations import Mutation, Seeding

SIZE = {"mode": "III", "lanes": 8, "window": 2, "message": 2, "groups": 2, "fan_in": 4, "ports": 8}

PROGRAMS: dict[str, dict[str, object]] = {
    "plain": {**SIZE},
    "sr": {**SIZE, "reliability": "sr"},
    "sack": {**SIZE, "reliability": "sack"},
    "pipelines": {**SIZE, "pipelines": 2},
    "dynamic": {**SIZE, "op": "dynamic"},
    "ordered": {**SIZE, "fold": "ordered"},
}

_ORDER, _RANGE, _RESEND = "test_iii_order", "test_iii_range", "test_iii_retransmission"
_TIMER, _CONGESTION = "test_iii_timer", "test_iii_congestion"
_LATE, _IDLE = "test_iii_late_answers", "test_iii_idle"
_COLLECTIVES, _SELECTIVE, _PIPELINES = "test_iii_collectives", "test_iii_selective", "test_iii_pipelines"

MODE_III: tuple[Mutation, ...] = (
    *BOTH_MODES,
    Mutation("any-control-mix", "CheckDuplicate", "word[103:72] != meta.invocation.announced", "false"),
    Mutation(
        "announcement-not-kept", "CheckDuplicate", "word = meta.invocation.announced ++", "word = word[103:72] ++"
    ),
    Mutation("any-qp", "LookupTable", "meta.drop = drop_t.LookupTable_unknown_qp;", ""),
    Mutation("ticks-from-anywhere", "LookupTable", "std_meta.ingress_port == CPU_PORT", "true"),
    Mutation("cursors-from-anywhere", "LookupTable", "std_meta.instance_type == RECIRCULATED", "true"),
    Mutation("everybody-is-a-rank", "LookupTable", "meta.lookup.first_hop = first_hop;", "meta.lookup.first_hop = 1;"),
    Mutation(
        "announcements-forgotten",
        "TrackInvocation",
        "meta.invocation.code = chosen[31:29] ++ chosen[23:19];",
        "meta.invocation.code = meta.invocation.announced[31:29] ++ meta.invocation.announced[23:19];",
    ),
    Mutation(
        "unannounced-goes-unanswered",
        "TrackInvocation",
        "chosen = 0;                                               // nothing",
        "meta.drop = drop_t.ClassifyTraffic_no_pattern;            // nothing",
    ),
    Mutation("root-forgotten", "TrackInvocation", "chosen[31:29] ++ chosen[23:19]", "chosen[31:29] ++ 5w0"),
    Mutation(
        "first-psn-is-zero",
        "TrackInvocation",
        "meta.invocation.first_psn = first_psn;",
        "meta.invocation.first_psn = 0;",
    ),
    Mutation("epoch-is-one", "TrackInvocation", "meta.invocation.epoch = epoch;", "meta.invocation.epoch = 1;"),
    Mutation("one-pipe", "ClassifyTraffic", "meta.flow.pipe = pipe;", "meta.flow.pipe = 0;"),
    Mutation("nothing-stands-still", "ClassifyTraffic", "meta.flow.sync = sync;", "meta.flow.sync = 0;"),
    Mutation("all-stands-still", "ClassifyTraffic", "meta.flow.sync = sync;", "meta.flow.sync = 1;"),
    Mutation("outputs-are-all", "ClassifyTraffic", "meta.flow.out_mask = out_mask;", "meta.flow.out_mask = 32w0xf;"),
    Mutation("direction-ignored", "ClassifyTraffic", "meta.lookup.edge_bit == toward_root", "false"),
    Mutation(
        "range-off-by-one",
        "CheckRange",
        "(slot_t)offset > meta.flow.slot_mask",
        "(slot_t)offset > meta.flow.slot_mask + 1",
    ),
    Mutation(
        "range-too-small", "CheckRange", "(slot_t)offset > meta.flow.slot_mask", "(slot_t)offset >= meta.flow.slot_mask"
    ),
    Mutation("range-never-moves", "CheckRange", "{ advances = 1; }", "{ advances = 0; }"),
    Mutation(
        "range-starts-at-the-acked",
        "CheckRange",
        "candidate = through + 1;",
        "candidate = through;",
    ),
    Mutation(
        "old-ack-moves-the-range-too-far",
        "CheckRange",
        "if (precedes(meta.invocation.end, through) == 1) { through = meta.invocation.end; }",
        "",
    ),
    Mutation(
        "old-ack-moves-the-range-by-one-too-far",
        "CheckRange",
        "{ through = meta.invocation.end; }",
        "{ through = meta.invocation.end + 1; }",
    ),
    Mutation(
        "end-is-one-later",
        "CheckRange",
        "precedes(meta.invocation.end, through)",
        "precedes(meta.invocation.end + 1, through)",
    ),
    Mutation(
        "idle-slot-is-newer", "RecycleBuffer", "else if (psn != held_psn)", "else if (precedes(held_psn, psn) == 1)"
    ),
    Mutation("idle-slot-is-joined", "RecycleBuffer", "else if (left_over == 1)", "else if (false)"),
    Mutation("never-sent-is-believed", "TrackSent", "if (behind > REMEMBERED) {", "if (false) {"),
    Mutation("sent-is-not-kept", "TrackSent", "{ newest = psn; }", "{}"),
    Mutation("sent-before-the-wrap-counts", "TrackSent", "if (meta.lookup.kind == kind_t.CONTROL) { newer = 1; }", ""),
    Mutation(
        "cursor-sends-the-unsent",
        "TrackSent",
        "if (meta.drop == drop_t.NONE) { track_sent.apply(hdr.bth, meta); }",
        "",
    ),
    Mutation("one-pipe-sends", "TrackSent", "if (meta.flow.pipe == 0) { aggregation", "if (true) { aggregation"),
    Mutation(
        "gap-after-not-ready",
        "CheckOrder",
        "nak_sent = 1;                                             // what",
        "// what",
    ),
    Mutation(
        "announced-though-refused",
        "IncIngress",
        "if (meta.lookup.kind != kind_t.CONTROL) { track_invocation.apply(hdr, meta); }",
        "track_invocation.apply(hdr, meta);",
    ),
    Mutation("conflict-passes", "TrackInvocation", "{ conflicts = 1; }", "{}"),
    Mutation("other-range-stays", "CheckRange", "{ both = advances; }", "{ both = 0; }"),
    Mutation(
        "wrap-forgotten-in-range",
        "CheckRange",
        "if (precedes(candidate, start) == 0) { start",
        "if (candidate > start) { start",
    ),
    Mutation(
        "range-epoch-ignored",
        "CheckRange",
        "if (word[31:24] != meta.invocation.epoch) { start",
        "if (word == 0) { start",
    ),
    Mutation(
        "duplicates-unanswered",
        "CheckOrder",
        "meta.order.answers = 1;\n            meta.drop = drop_t.CheckOrder_dup",
        "meta.order.answers = 0;\n            meta.drop = drop_t.CheckOrder_dup",
    ),
    Mutation("nak-storm", "CheckOrder", "if (nak_sent == 0) {", "if (true) {"),
    Mutation("no-nak", "CheckOrder", "if (nak_sent == 0) {", "if (false) {"),
    Mutation("second-gap-silent", "CheckOrder", "next = next + 1;\n            nak_sent = 0;", "next = next + 1;"),
    Mutation("gaps-accepted", "CheckOrder", "} else if (ahead != 0) {", "} else if (ahead > 2) {"),
    Mutation("announcements-not-needed", "CheckOrder", "} else if (unannounced == 1) {", "} else if (false) {"),
    Mutation("ack-for-all", "CheckOrder", "meta.order.answers = hdr.bth.ack_request;", "meta.order.answers = 1;"),
    Mutation("ack-too-far", "CheckOrder", "meta.order.answer_psn = meta.order.answer_psn - 1;", ""),
    Mutation("nak-too-early", "CheckOrder", "meta.order.answer_psn = next;", "meta.order.answer_psn = next - 1;"),
    Mutation("credit-given", "MakeAck", "SYNDROME_ACK           = 0x1f", "SYNDROME_ACK           = 0x03"),
    Mutation("any-range", "CheckOrder", "} else if (meta.range.ahead == 1) {", "} else if (false) {"),
    Mutation(
        "switches-are-notified",
        "CheckOrder",
        "meta.order.notifies = meta.lookup.first_hop;",
        "meta.order.notifies = 1;",
    ),
    Mutation(
        "nobody-is-notified", "CheckOrder", "meta.order.notifies = meta.lookup.first_hop;", "meta.order.notifies = 0;"
    ),
    Mutation(
        "announced-off-by-one",
        "CheckOrder",
        "+ (psn_t)hdr.immediate.value[18:0];",
        "+ (psn_t)hdr.immediate.value[18:0] + 1;",
    ),
    Mutation("old-ack-wins", "ReceiveAck", "& ~precedes(psn, word[23:0]);\n        if (newer", ";\n        if (newer"),
    Mutation("nak-acknowledges-its-own", "ReceiveAck", "ack.psn = ack.psn - 1;", ""),
    Mutation(
        "fastest-decides",
        "ReceiveAck",
        "counts & (precedes(word[23:0], lowest) |",
        "counts & (~precedes(word[23:0], lowest) |",
    ),
    Mutation("acks-of-others", "ReceiveAck", "bitmap_t takes = meta.lookup.edge_bit;", "bitmap_t takes = 32w0xf;"),
    Mutation("one-tick-is-enough", "ResendTimer", "if (stands != now) {", "if (false) {"),
    Mutation(
        "ticks-forgotten",
        "ResendTimer",
        "timers.write(meta.lookup.edge_index, vain ++ waited ++ silent ++ stands ++ comes ++ counts_down ++ "
        "refusals ++ time);",
        "",
    ),
    Mutation("no-back-off", "ResendTimer", " && changed > word[26:0]", ""),
    Mutation("never-given-up", "ResendTimer", "if (time >= GIVEN_UP) {", "if (false) {"),
    Mutation("given-up-in-silence", "ResendTimer", "given_up.count(meta.lookup.edge_index);", ""),
    Mutation("given-up-for-good", "ResendTimer", "refusals = 0;\n                time = 0;", "refusals = 0;"),
    Mutation("rnr-timer-ignored", "ResendTimer", "counts_down = 1;\n", "time = 0;\n"),
    Mutation(
        "rnr-timer-off-by-one",
        "ResendTimer",
        "bit<5> code = hdr.aeth.syndrome[4:0];",
        "bit<5> code = hdr.aeth.syndrome[4:0] - 1;",
    ),
    Mutation("longest-rnr-timer-is-shortest", "ResendTimer", "{ delay = 65536; }", "{ delay = 1; }"),
    Mutation("rnr-without-back-off", "ResendTimer", "refusals = refusals + 1;", "refusals = 0;"),
    Mutation("old-acks-hold-nothing", "ResendTimer", "comes = 1;    ", "comes = 0;    "),
    Mutation("old-acks-hold-for-ever", "ResendTimer", "            comes = 0;\n", ""),
    Mutation("repeats-are-refusals", "ResendTimer", "if (counts_down == 0) {", "if (true) {"),
    Mutation(
        "later-refusal-is-a-repeat",
        "ResendTimer",
        "refusals = 0;\n                counts_down = 0;",
        "refusals = 0;",
    ),
    Mutation("rnr-without-limit", "ResendTimer", "{ time = MOST_PATIENT; }", "{ }"),
    Mutation("rnr-limit-shortens", "ResendTimer", "if (delay > time) { time = delay; }", ""),
    Mutation("round-trips-unlearned", "ResendTimer", "if (waited > vain) { vain = waited; }", ""),
    Mutation("round-trips-learned-for-good", "ResendTimer", "vain = vain >> 1;", ""),
    Mutation("round-trips-of-another-epoch", "ResendTimer", "{ word = 0; }", "{ word[85:0] = 0; }"),
    Mutation("waits-of-another-epoch", "ResendTimer", "{ word = 0; }", "{ word[101:86] = 0; word[69:0] = 0; }"),
    Mutation(
        "progress-goes-on-counting-down", "ResendTimer", "time = 0;\n                counts_down = 0;", "time = 0;"
    ),
    Mutation("progress-is-an-old-ack", "ResendTimer", "~precedes(stands[23:0], hdr.bth.psn);", "1;"),
    Mutation("bursts-though-learned", "ResendTimer", "later > (bit<27>)vain && ", ""),
    Mutation("probes-are-bursts", "StartCursor", "if (meta.progress.probes == 1) { count = 1; }", ""),
    Mutation("naks-start-the-timer", "StartCursor", "hdr.aeth.syndrome = (bit<8>)ticks; ", "hdr.aeth.syndrome = 1;"),
    Mutation("the-idle-are-given-up", "ResendTimer", "hdr.aeth.syndrome[0:0] & meta.buffer.complete; ", "1;"),
    Mutation("marks-unnoticed", "NotifyCongestion", "else if (ipv4.ecn == ECN_CE) {", "else if (false) {"),
    Mutation("cnp-for-all", "NotifyCongestion", "else if (ipv4.ecn == ECN_CE) {", "else {"),
    Mutation("cnp-without-limit", "NotifyCongestion", "meta.order.notifies & ~before;", "meta.order.notifies;"),
    Mutation(
        "one-cnp-for-ever", "NotifyCongestion", "if (meta.lookup.kind == kind_t.TICK) { ticks = 1; }", "if (false) { }"
    ),
    Mutation("answers-are-marked", "MakeAck", "if (hdr.ipv4.ecn == ECN_CE) {", "if (false) {"),
    Mutation("resent-with-the-ticks-ecn", "CheckDuplicate", "ecn = word[38:37]; ", ""),
    Mutation("messages-uncounted", "CountMessages", "count = count + (bit<24>)ends;", ""),
    Mutation(
        "packets-counted", "CountMessages", "if (bth.opcode == opcode_t.SEND_FIRST) { ends = 0; }", "if (false) { }"
    ),
    Mutation("middles-counted", "CountMessages", "else if (bth.opcode == opcode_t.SEND_MIDDLE) { ends = 0; }", ""),
    Mutation("duplicates-counted", "CountMessages", "bit<1> ends = meta.order.accepted;", "bit<1> ends = 1;"),
    Mutation(
        "msn-epoch-ignored", "CountMessages", "if (word[31:24] != meta.invocation.epoch) { count", "if (false) { count"
    ),
    Mutation("msn-too-early", "CountMessages", "if (meta.order.whole == 1) {", "if (true) {", "sr"),
    Mutation(
        "tick-skips-one",
        "StartCursor",
        "meta.progress.acked + 1;                // line 9",
        "meta.progress.acked + 2;",
    ),
    Mutation("naks-ignored", "StartCursor", "hdr.aeth.syndrome == SYNDROME_NAK", "false"),
    Mutation("all-answers-resend", "StartCursor", "hdr.aeth.syndrome == SYNDROME_NAK", "true"),
    Mutation(
        "notification-stays",
        "RelayNotification",
        "if (meta.flow.out_group == 0) {",
        "if (true) {",
    ),
    Mutation(
        "notification-to-port-zero",
        "RelayNotification",
        "if (meta.flow.out_group == 0) {\n            std_meta.egress_spec = meta.lookup.port;",
        "if (meta.flow.out_group == 0) {\n            std_meta.egress_spec = 0;",
    ),
    Mutation(
        "invalid-unanswered",
        "CheckDuplicate",
        "meta.order.answer_psn = bth.psn;\n            meta.order.answers = 1;",
        "meta.order.answer_psn = bth.psn;\n            meta.order.answers = 0;",
    ),
    Mutation(
        "cursor-takes-any-slot", "CheckDuplicate", "if (meta.buffer.slot_use == slot_use_t.MERGE) {", "if (true) {"
    ),
    Mutation("resent-without-ackreq", "CheckDuplicate", "bth.ack_request = 1; ", ""),
    Mutation("opcode-forgotten", "CheckDuplicate", "(opcode_t)(3w0 ++ word[36:32])", "opcode_t.SEND_ONLY"),
    Mutation(
        "incomplete-is-resent",
        "Retransmission",
        "if (meta.buffer.complete == 0) {                              // line 10",
        "if (false) {",
    ),
    Mutation("one-packet-bursts", "Retransmission", "if (hdr.bth.psn != hdr.aeth.msn) {", "if (false) {"),
    Mutation(
        "immediate-forgotten",
        "Retransmission",
        "hdr.immediate.value = meta.invocation.announced;",
        "hdr.immediate.value = 0;",
    ),
    Mutation(
        "resent-to-port-zero",
        "Retransmission",
        "std_meta.egress_spec = meta.lookup.port;\n            if (hdr.bth.psn",
        "std_meta.egress_spec = 0;\n            if (hdr.bth.psn",
    ),
    Mutation(
        "incomplete-goes-out",
        "ReplicateData",
        "if (meta.buffer.complete == 0) {                              // line 38",
        "if (false) {",
    ),
    Mutation(
        "completing-ack-lost",
        "SendAck",
        "if (meta.buffer.complete == 1) {\n            clone",
        "if (false) {\n            clone",
    ),
    Mutation("answers-to-the-next-port", "SendAck", "(bit<32>)meta.lookup.port + 1", "(bit<32>)meta.lookup.port + 2"),
    Mutation(
        "cursor-stands-still", "AdvanceCursor", "hdr.bth.psn = hdr.bth.psn + 1;", "hdr.bth.psn = hdr.bth.psn + 2;"
    ),
    Mutation(
        "syndrome-forgotten", "MakeAck", "hdr.aeth.syndrome = meta.order.syndrome;", "hdr.aeth.syndrome = SYNDROME_ACK;"
    ),
    Mutation("answer-keeps-its-psn", "MakeAck", "hdr.bth.psn = meta.order.answer_psn;", ""),
    Mutation("answer-asks", "MakeAck", "hdr.bth.ack_request = 0;", ""),
    Mutation("answer-with-payload", "MakeAck", "hdr.payload.setInvalid();", ""),
    Mutation(
        "cursor-takes-the-tag-back",
        "LearnTag",
        "} else if (meta.lookup.kind != kind_t.CURSOR) {\n            if (hdr.vlan",
        "} else {\n            if (hdr.vlan",
    ),
    Mutation("answers-keep-marks", "MakeAck", f"hdr.bth.reserved1 = 0;{40 * ' '}// neither", "// neither"),
    Mutation(
        "resent-keeps-marks", "StartCursor", "opcode_t.CURSOR;\n            hdr.bth.reserved1 = 0;", "opcode_t.CURSOR;"
    ),
    Mutation("no-becn", "MakeAck", "hdr.bth.reserved1 = 0x40; ", ""),
    Mutation("gap-not-closed", "CheckOrder", "missing = view ^ ((missing_t)1 << back[7:0]);", "missing = view;", "sr"),
    Mutation(
        "closing-unanswered",
        "CheckOrder",
        "// closes a gap\n                meta.order.answers = 1;",
        "// closes",
        "sr",
    ),
    Mutation("limiter-stays", "CheckOrder", "if (in_order == 1) { nak_sent = 0; }", "", "sr"),
    Mutation("later-gap-unasked", "CheckOrder", "if (missing != 0) { asks = 1; }", "", "sr"),
    Mutation("next-hole-waits", "StartCursor", "} else if (meta.progress.repairs == 1) {", "} else if (false) {", "sr"),
    Mutation("same-hole-again", "RepairHoles", "{ hole = hdr.bth.psn + 1; }", "{ }", "sr"),
    Mutation("any-ack-shows-a-hole", "RepairHoles", "~precedes(hdr.bth.psn, hole) & ", "", "sr"),
    Mutation("what-is-under-way-is-lost", "RepairHoles", "& precedes(hdr.bth.psn, through);", "& 1;", "sr"),
    Mutation(
        "holes-without-epoch",
        "RepairHoles",
        "if (word[55:48] != meta.invocation.epoch) {\n            hole",
        "if (word == 0) {\n            hole",
        "sr",
    ),
    Mutation("nak-is-forgotten", "RepairHoles", "through = meta.progress.newest;", "", "sr"),
    Mutation("hole-itself-again", "StartCursor", "hdr.bth.psn = hdr.bth.psn + 1;\n            count", "count", "sr"),
    Mutation("newest-is-expected", "CheckOrder", "expected = next - 1 - oldest;", "", "sr"),
    Mutation("announcements-out-of-order", "CheckOrder", "(control_message & ~in_order) | ", "", "sr"),
    Mutation("cursor-fills-a-gap", "TrackSent", "if (meta.lookup.kind == kind_t.CURSOR) { reads = unsent; }", "", "sr"),
    Mutation("gap-of-one", "CheckOrder", "meta.order.msn = ahead;", "meta.order.msn = 1;", "sack"),
    Mutation("gap-unreported", "CheckOrder", "meta.order.syndrome = SYNDROME_SELECTIVE_NAK;", "", "sack"),
    Mutation(
        "selective-nak-acknowledges",
        "ReceiveAck",
        "takes = 0;                                                // says",
        "takes = meta.lookup.edge_bit;                                                // says",
        "sack",
    ),
    Mutation("all-since-resent", "StartCursor", "if (hdr.aeth.msn < BURST) { count = hdr.aeth.msn; }", "", "sack"),
    Mutation(
        "partials-from-anywhere",
        "LookupTable",
        "&& meta.lookup.kind != kind_t.TICK) {",
        "&& meta.lookup.kind != kind_t.TICK && hdr.ipv4.src_addr != hdr.ipv4.dst_addr) {",
        "pipelines",
    ),
    Mutation("one-bank", "CheckDuplicate", "slots.read(word, meta.flow.slot);", "slots.read(word, 0);", "pipelines"),
    Mutation("numbers-not-kept", "CheckOrder", "numbers = meta.invocation.numbers;", "", "dynamic"),
    Mutation(
        "fold-in-another-order",
        "StoreData",
        "held_0, held_1, held_2, held_3,\n",
        "held_1, held_2, held_3, held_0,\n",
        "ordered",
    ),
    Mutation(
        "last-contribution-not-stored",
        "StoreData",
        "{ edge_3.write(slot, element); }\n            else",
        "{ }\n            else",
        "ordered",
    ),
    Mutation("last-contribution-not-folded", "StoreData", "lane_t held_3 = element;", "lane_t held_3 = 0;", "ordered"),
    Mutation("cursor-is-stored", "StoreData", "if (meta.lookup.kind == kind_t.CURSOR) { sender = 0; }", "", "ordered"),
    Mutation("saturation-counted-again", "StoreData", "{ full = 0; } ", "{ } ", "ordered"),
    Mutation("fold-skips-last-edge", "FoldData", "if (sources[3:3] == 1) {", "if (false) {", "ordered"),
    Mutation(
        "store-to-edge-zero", "StoreData", "bitmap_t sender = meta.lookup.edge_bit;", "bitmap_t sender = 1;", "ordered"
    ),
)
"""Patterns stand once in their program; each program has all of the modules."""

SEEDING = Seeding(
    MODE_III,
    PROGRAMS,
    tests={
        "sr": (_SELECTIVE, _ORDER, _IDLE),
        "sack": (_SELECTIVE,),
        "pipelines": (_PIPELINES, "test_iii_internal"),
        "dynamic": (_COLLECTIVES, _ORDER),
        "ordered": ("test_iii_stores", _ORDER),
    },
    first={
        "LookupTable": ("test_iii_entrances", _ORDER),
        "FindContext": (_COLLECTIVES,),
        "TrackInvocation": (_COLLECTIVES, _LATE),
        "TrackSent": (_LATE, _IDLE),
        "RecycleBuffer": (_IDLE,),
        "CheckRange": (_RANGE, _LATE),
        "CheckOrder": (_ORDER, _COLLECTIVES),
        "ReceiveAck": (_RANGE, _RESEND),
        "ResendTimer": (_TIMER, _RESEND),
        "NotifyCongestion": (_CONGESTION, _RANGE),
        "CountMessages": (_ORDER,),
        "StartCursor": (_RESEND,),
        "Retransmission": (_RESEND,),
        "AdvanceCursor": (_RESEND,),
        "SendAck": (_ORDER,),
        "MakeAck": (_ORDER,),
        "ValidatePacket": (_ORDER,),
        "CheckIcrc": (_ORDER,),
        "TranslateHeader": (_ORDER,),
    },
)
"""Where to look for who notices them."""
