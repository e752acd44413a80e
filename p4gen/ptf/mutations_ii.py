"""Faults to seed into Mode II's programs: sums of int32 lanes with saturation, unless they are about something else."""

from __future__ import annotations

from p4gen.ptf.mutations import Mutation, Seeding
from p4gen.ptf.mutations_both import BOTH_MODES

SIZE = {"mode": "II", "lanes": 8, "window": 2, "message": 2, "groups": 4, "fan_in": 4, "ports": 8}

PROGRAMS: dict[str, dict[str, object]] = {
    "plain": {**SIZE},
    "gbn": {**SIZE, "reliability": "gbn"},
    "pipes": {**SIZE, "pipelines": 2},
    "dynamic": {**SIZE, "op": "dynamic"},
}

MODE_II: tuple[Mutation, ...] = (
    *BOTH_MODES,
    Mutation(
        "everything-is-claimed",
        "LookupTable",
        "if (addresses.apply().hit) {",
        "addresses.apply(); if (hdr.bth.isValid()) {",
    ),
    Mutation("slot-off-by-one", "ClassifyTraffic", "(slot_t)bth.psn & mask)", "(slot_t)bth.psn & mask) + 1"),
    Mutation(
        "mask-forgotten", "ClassifyTraffic", "meta.source_mask = source_mask;", "meta.source_mask = 32w0xffffffff;"
    ),
    Mutation("middle-not-parsed", "PacketParser", "(opcode_t.SEND_MIDDLE,   DATA_LENGTH):    parse_payload;", ""),
    Mutation(
        "control-not-parsed",
        "PacketParser",
        "(opcode_t.SEND_ONLY_IMM, CONTROL_LENGTH): parse_immediate;",
        "",
    ),
    Mutation("trailing-bytes", "ValidatePacket", "std_meta.packet_length != frame_length", "false"),
    Mutation(
        "stale-starts-afresh",
        "RecycleBuffer",
        "slot_use = slot_use_t.STALE;",
        "slot_use = slot_use_t.FRESH;",
    ),
    Mutation("no-duplicate-check", "CheckDuplicate", "arrived & meta.edge_bit;", "arrived & 0;"),
    Mutation("announcement-not-kept", "CheckDuplicate", "++ meta.announced ++", "++ word[63:32] ++"),
    Mutation(
        "duplicate-unanswered",
        "CheckDuplicate",
        "        if (meta.drop == drop_t.NONE) {\n            slots.write",
        "        if (meta.slot_use == slot_use_t.REPEAT) {\n"
        "            meta.drop = drop_t.CheckDuplicate_duplicate;\n        }\n"
        "        if (meta.drop == drop_t.NONE) {\n            slots.write",
    ),
    Mutation("psn-not-kept", "CheckDuplicate", "meta.epoch ++ bth.psn ++", "meta.epoch ++ word[95:72] ++"),
    Mutation("old-data-added", "AggregateData", "(slot_use == slot_use_t.MERGE)", "(slot_use != slot_use_t.REPEAT)"),
    Mutation("sum-unsigned", "AggregateData", "(lane_t)((int<32>)held |+| (int<32>)element)", "held |+| element"),
    Mutation(
        "repeat-returns-own-data",
        "AggregateData",
        "} else if (slot_use == slot_use_t.REPEAT) {\n            element = held;",
        "} else if (slot_use == slot_use_t.REPEAT) {\n            held = element;",
    ),
    Mutation("overflow-uncounted", "AggregateData", "overflows.count((bit<32>)meta.context);", ""),
    Mutation(
        "result-not-replicated",
        "ReplicateData",
        "std_meta.mcast_grp = meta.out_group;                  // line 25",
        "std_meta.egress_spec = std_meta.ingress_port;",
    ),
    Mutation(
        "ack-to-another-port",
        "ReflectAck",
        "apply {\n        std_meta.egress_spec = std_meta.ingress_port;",
        "apply {\n        std_meta.egress_spec = std_meta.ingress_port ^ 1;",
    ),
    Mutation("ttl-kept", "Forward", "hdr.ipv4.ttl = hdr.ipv4.ttl - 1;", ""),
    Mutation("checksum-not-mended", "Forward", "17w0xfeff", "17w0"),
    Mutation("ttl-never-expires", "Forward", "hdr.ipv4.ttl < 2", "false"),
    Mutation("qp-kept", "TranslateHeader", "hdr.bth.dest_qp = dest_qp;", ""),
    Mutation(
        "nak-becomes-ack", "TranslateHeader", "hdr.ipv4.ttl = 64;", "hdr.ipv4.ttl = 64; hdr.aeth.syndrome = 0x1f;"
    ),
    Mutation(
        "ip-checksum-stale",
        "UpdateIpv4Checksum",
        "update_checksum(meta.kind != kind_t.ORDINARY",
        "update_checksum(meta.kind == kind_t.ORDINARY",
    ),
    Mutation(
        "drops-uncounted",
        "IncIngress",
        "\n            drops.count((bit<32>)(bit<8>)meta.drop);\n",
        "\n",
    ),
    Mutation(
        "zero-is-announced",
        "TrackInvocation",
        "if (chosen[63:56] != meta.epoch) {",
        "if (chosen[63:56] != chosen[63:56]) {",
    ),
    Mutation("announcement-of-any-epoch", "TrackInvocation", "if (held[63:56] != epoch) {", "if (held[63:56] == 0) {"),
    Mutation("first-announcement-only", "TrackInvocation", "if (ahead > (psn_t)held[18:0]) {", "if (false) {"),
    Mutation("announcement-inside-another", "TrackInvocation", "if (ahead > (psn_t)held[18:0]) {", "if (true) {"),
    Mutation(
        "last-announcement-wins",
        "TrackInvocation",
        "} else if (ahead[23:23] == 0) {\n                if (ahead > (psn_t)held",
        "} else if (true) {\n                if (ahead > (psn_t)held",
    ),
    Mutation(
        "newest-forgets-its-predecessor",
        "TrackInvocation",
        "{ carried = held; }",
        "{ carried = 0; }",
    ),
    Mutation(
        "repetition-displaces-the-one-before",
        "TrackInvocation",
        "carried = 0;                                          // known already",
        "replaced = 0;",
    ),
    Mutation("previous-not-looked-at", "TrackInvocation", "if (second[63:56] == meta.epoch) { chosen = second; }", ""),
    Mutation("oldest-not-looked-at", "TrackInvocation", "if (third[63:56] == meta.epoch) { chosen = third; }", ""),
    Mutation("announced-per-switch", "TrackInvocation", "newest.apply((bit<32>)meta.context,", "newest.apply(0,"),
    Mutation("anything-is-announced", "TrackInvocation", "if (since > (psn_t)chosen[18:0]) {", "if (false) {"),
    Mutation(
        "one-packet-too-many",
        "TrackInvocation",
        "if (since > (psn_t)chosen[18:0]) {",
        "if (since > (psn_t)chosen[18:0] + 1) {",
    ),
    Mutation(
        "one-packet-too-few",
        "TrackInvocation",
        "if (since > (psn_t)chosen[18:0]) {",
        "if (since >= (psn_t)chosen[18:0] && since != 0) {",
    ),
    Mutation(
        "range-of-18-bits",
        "TrackInvocation",
        "if (since > (psn_t)chosen[18:0]) {",
        "if (since > (psn_t)chosen[17:0]) {",
    ),
    Mutation(
        "data-in-place-of-control",
        "TrackInvocation",
        "if (meta.kind == kind_t.DATA) {                   // in the place of a control message",
        "if (false) {",
    ),
    Mutation(
        "control-in-place-of-data",
        "TrackInvocation",
        "} else if (meta.kind == kind_t.CONTROL) {             // in the place of data",
        "} else if (false) {",
    ),
    Mutation(
        "op-not-looked-at",
        "TrackInvocation",
        "hdr.immediate.value[28:24] != NUMBERS",
        "hdr.immediate.value[26:24] != 0",
    ),
    Mutation("notification-by-psn", "TrackInvocation", "if (meta.kind != kind_t.NOTIFICATION) {", "if (true) {"),
    Mutation("root-not-in-code", "TrackInvocation", "chosen[31:29] ++ chosen[23:19]", "chosen[31:29] ++ 5w0"),
    Mutation("up-is-down", "ClassifyTraffic", "meta.edge_bit == toward_root", "meta.edge_bit != toward_root"),
    Mutation("nothing-is-down", "ClassifyTraffic", "meta.edge_bit == toward_root", "false"),
    Mutation(
        "control-is-an-answer",
        "ClassifyTraffic",
        "else if (meta.kind == kind_t.CONTROL) { answers = 0;",
        "else if (meta.kind == kind_t.CONTROL) { answers = 1;",
    ),
    Mutation(
        "answers-from-below-are-from-above",
        "ClassifyTraffic",
        "meta.traffic = traffic_t.UP_ANSWER",
        "meta.traffic = traffic_t.DOWN_ANSWER",
    ),
    Mutation("unknown-pattern-ignored", "ClassifyTraffic", "meta.drop = drop_t.ClassifyTraffic_no_pattern;", ""),
    Mutation("unknown-flow-ignored", "ClassifyTraffic", "meta.drop = drop_t.ClassifyTraffic_no_flow;", ""),
    Mutation("alone-ignored", "ReplicateData", "repeats = meta.alone;", "repeats = 0;"),
    Mutation("alone-everywhere", "ReplicateData", "repeats = meta.alone;", "repeats = 1;"),
    Mutation(
        "alone-for-all",
        "ReplicateData",
        "if (meta.slot_use == slot_use_t.REPEAT) { repeats",
        "if (meta.complete == 1) { repeats",
    ),
    Mutation("answers-are-not-combined", "IncIngress", "if (meta.kind == kind_t.ANSWER) { combines = 1; }", ""),
    Mutation(
        "notifications-are-combined", "IncIngress", "if (meta.kind == kind_t.ANSWER) { combines = 1; }", "combines = 1;"
    ),
    Mutation("broadcast-never-begins", "IncIngress", "bit<1> combines = meta.begins;", "bit<1> combines = 0;"),
    Mutation("begins-unmarked", "CombineAcks", "acks.begins = meta.begins;", "acks.begins = 0;"),
    Mutation("begin-takes-all-for-acknowledged", "CombineAcks", "if (ahead[23:20] != 0) { word", "if (true) { word"),
    Mutation("begin-resets-nothing", "CombineAcks", "if (ahead[23:20] != 0) { word", "if (false) { word"),
    Mutation(
        "begin-acknowledges-itself",
        "CombineAcks",
        "acks.psn = acks.psn - 1;\n        } else {",
        "acks.psn = acks.psn + 9;\n        } else {",
    ),
    Mutation("node-keeps-its-psn", "CombineAcks", "if (behind[23:20] != 0) { node = acks.psn; }", ""),
    Mutation("ack-of-anyone-counts-for-all", "CombineAcks", "} else if (mine == 1) {", "} else if (true) {"),
    Mutation("ack-not-kept", "CombineAcks", "acked.write(context, word);", ""),
    Mutation(
        "ack-takes-back",
        "CombineAcks",
        "} else if (ahead[23:23] == 0) {\n                word = acks.psn",
        "} else {\n                word = acks.psn",
    ),
    Mutation(
        "nak-lost-behind-ack",
        "CombineAcks",
        "if (acks.syndrome[6:5] != 0) {                             // a NAK says more than an ACK",
        "if (false) {",
    ),
    Mutation(
        "ack-after-nak-lost",
        "CombineAcks",
        "bit<1> lower = ~acks.found | above[23:23];",
        "bit<1> lower = ~acks.found | above[23:23] & ~word[6:6];",
    ),
    Mutation(
        "greatest-for-least",
        "CombineAcks",
        "bit<1> lower = ~acks.found | above[23:23];",
        "bit<1> lower = ~acks.found | ~above[23:23];",
    ),
    Mutation(
        "least-of-plain-numbers",
        "CombineAcks",
        "bit<1> lower = ~acks.found | above[23:23];",
        "bit<1> lower = ~acks.found;\n        if (word[31:8] < acks.lowest) { lower = 1; }",
    ),
    Mutation("everyone-is-waited-for", "CombineAcks", "if (counts == 1) {", "if (true) {"),
    Mutation("nak-behind-equal-ack", "CombineAcks", "if (word[6:5] != 0) { acks.lowest_syndrome = word[7:0]; }", ""),
    Mutation(
        "nak-acknowledges-its-psn",
        "CombineAcks",
        "acks.psn = acks.psn - 1;\n            }",
        "acks.psn = acks.psn;\n            }",
    ),
    Mutation(
        "rnr-nak-is-an-ack",
        "CombineAcks",
        "if (acks.syndrome[6:5] != 0) {                                 // NAK, RNR NAK: up to the PSN before",
        "if (acks.syndrome[6:6] != 0) {",
    ),
    Mutation("repeated-ack-swallowed", "CombineAcks", "if (acks.psn == acks.lowest) {", "if (false) {"),
    Mutation("every-ack-goes-on", "CombineAcks", "bit<1> goes_on = 0;", "bit<1> goes_on = 1;"),
    Mutation("progress-not-noticed", "CombineAcks", "goes_on = ~progress[23:23];", "goes_on = 0;"),
    Mutation("node-not-kept", "CombineAcks", "node_acked.write((bit<32>)meta.context, node);", ""),
    Mutation(
        "nak-forwarded-too-early",
        "CombineAcks",
        "        bit<1> goes_on = 0;\n",
        "        bit<1> goes_on = 0;\n        if (acks.syndrome[6:5] != 0) {\n            acks.lowest = acks.psn;\n"
        "            acks.lowest_syndrome = acks.syndrome;\n        }\n",
    ),
    Mutation("own-psn-goes-on", "CombineAcks", "hdr.bth.psn = acks.lowest;", ""),
    Mutation(
        "nak-goes-on-as-ack", "CombineAcks", "hdr.aeth.syndrome = acks.lowest_syndrome;", "hdr.aeth.syndrome = 0x1f;"
    ),
    Mutation(
        "nak-with-the-psn-before", "CombineAcks", "{ hdr.bth.psn = acks.lowest + 1; }", "{ hdr.bth.psn = acks.lowest; }"
    ),
    Mutation(
        "edge-forgotten",
        "CombineAcks",
        "edge_2.apply(context, mine[2:2], outs[2:2], acks);",
        "edge_2.apply(context, mine[2:2], 0, acks);",
    ),
    Mutation("acks-per-switch", "CombineAcks", "bit<32> context = (bit<32>)meta.context;", "bit<32> context = 0;"),
    Mutation(
        "filter-lets-all-pass",
        "FilterOrder",
        "} else if (ahead[23:23] == 0) {\n            meta.drop = drop_t.FilterOrder_out_of_order;",
        "} else if (false) {\n            meta.drop = drop_t.FilterOrder_out_of_order;",
        "gbn",
    ),
    Mutation(
        "filter-stops-repetitions",
        "FilterOrder",
        "} else if (ahead[23:23] == 0) {\n            meta.drop = drop_t.FilterOrder_out_of_order;",
        "} else {\n            meta.drop = drop_t.FilterOrder_out_of_order;",
        "gbn",
    ),
    Mutation(
        "filter-never-advances",
        "FilterOrder",
        "} else if (ahead == 0) {\n            word = meta.epoch ++ (bth.psn + 1);",
        "} else if (ahead == 0) {\n            word = word;",
        "gbn",
    ),
    Mutation(
        "filter-takes-any-beginning",
        "FilterOrder",
        "} else if (known == 0) {\n            meta.drop",
        "} else if (false) {\n            meta.drop",
        "gbn",
    ),
    Mutation(
        "filter-ignores-control",
        "FilterOrder",
        "if (meta.kind == kind_t.CONTROL) {\n            if (known",
        "if (false) {\n            if (known",
        "gbn",
    ),
    Mutation(
        "repeated-control-sets-back",
        "FilterOrder",
        "} else if (ahead[23:23] == 0) {\n                word = meta.epoch",
        "} else {\n                word = meta.epoch",
        "gbn",
    ),
    Mutation(
        "filter-forgets-the-epoch", "FilterOrder", "if (word[31:24] == meta.epoch) { known = 1; }", "known = 1;", "gbn"
    ),
    Mutation(
        "one-epsn-for-all", "FilterOrder", "expected.read(word, (bit<32>)meta.edge);", "expected.read(word, 1);", "gbn"
    ),
    Mutation("filter-skipped", "IncIngress", "filter_order.apply(hdr.bth, meta);", "", "gbn"),
    Mutation(
        "one-bank-for-slots",
        "ClassifyTraffic",
        "(bit<32>)(meta.pipeline ++ (base + ((slot_t)bth.psn & mask))[4:0])",
        "base + ((slot_t)bth.psn & mask)",
        "pipes",
    ),
    Mutation(
        "one-bank-for-announcements",
        "TrackInvocation",
        "newest.apply((bit<32>)(meta.pipeline ++ ((bit<32>)meta.context)[1:0]),",
        "newest.apply((bit<32>)meta.context,",
        "pipes",
    ),
    Mutation("wrong-pipeline", "LookupTable", "std_meta.ingress_port >= 4", "std_meta.ingress_port >= 5", "pipes"),
    Mutation(
        "pipeline-by-port-always",
        "LookupTable",
        "(std_meta.instance_type != RECIRCULATED) {                 //",
        "(true) {                 //",
        "pipes",
    ),
    Mutation(
        "partials-from-anywhere",
        "LookupTable",
        "(std_meta.instance_type != RECIRCULATED) { meta.drop",
        "(false) { meta.drop",
        "pipes",
    ),
    Mutation("never-the-other-pipeline", "TranslateHeader", "meta.pipeline = to_pipe[0:0];", "", "pipes"),
    Mutation("partials-leave-the-switch", "TranslateHeader", "meta.goes_round = 1;", "", "pipes"),
    Mutation("everything-goes-round", "IncIngress", "meta.goes_round = 0;", "meta.goes_round = 1;", "pipes"),
    Mutation(
        "announced-op-forgotten",
        "TrackInvocation",
        "meta.numbers = (numbers_t)chosen[28:24];",
        "meta.numbers = numbers_t.SUM_INT32;",
        "dynamic",
    ),
    Mutation(
        "latest-op-for-all",
        "TrackInvocation",
        "if (second[63:56] == meta.epoch) { chosen = second; }",
        "if (second[63:56] == meta.epoch) { chosen = second; chosen[28:24] = 0; }",
        "dynamic",
    ),
    Mutation("any-op", "TrackInvocation", "hdr.immediate.value[28:27] == 3", "false", "dynamic"),
    Mutation("any-dtype", "TrackInvocation", "hdr.immediate.value[26:24] > 1", "false", "dynamic"),
    Mutation("bias-forgotten", "AggregateData", "lane_t bias = 0x80000000;", "lane_t bias = 0;", "dynamic"),
    Mutation("bias-for-all", "AggregateData", "if (((bit<5>)numbers)[0:0] == 1) { bias = 0; }", "", "dynamic"),
    Mutation(
        "minimum-is-maximum",
        "AggregateData",
        "if ((held ^ bias) < (element ^ bias))",
        "if ((held ^ bias) > (element ^ bias))",
        "dynamic",
    ),
    Mutation("unsigned-sum-wraps", "AggregateData", "element = held |+| element;", "element = wrapped;", "dynamic"),
)

SEEDING = Seeding(
    MODE_II,
    PROGRAMS,
    tests={
        "gbn": ("test_order",),
        "pipes": ("test_pipelines",),
        "dynamic": ("test_dynamic", "test_announcement"),
    },
    first={
        "LookupTable": ("test_validation", "test_aggregation"),
        "PacketParser": ("test_control", "test_aggregation"),
        "ValidatePacket": ("test_validation",),
        "CheckIcrc": ("test_validation",),
        "TrackInvocation": ("test_announcement", "test_control", "test_patterns"),
        "ClassifyTraffic": ("test_tree", "test_reduce", "test_patterns"),
        "RecycleBuffer": ("test_reliability", "test_aggregation"),
        "CheckDuplicate": ("test_reliability", "test_control"),
        "AggregateData": ("test_arithmetic", "test_reliability"),
        "ReplicateData": ("test_tree", "test_reliability"),
        "ReflectAck": ("test_reliability",),
        "CombineAcks": ("test_broadcast", "test_patterns"),
        "Forward": ("test_forwarding",),
        "TranslateHeader": ("test_tree", "test_reliability"),
        "SetIcrc": ("test_tree",),
        "IncIngress": ("test_broadcast",),
    },
)
