"""Faults to seed into MultiWrite's programs; the scenarios must detect each."""

from __future__ import annotations

from p4gen.papers.multiwrite.conformance.faults_hop import FIRST as FIRST_OF_HOPS
from p4gen.papers.multiwrite.conformance.faults_hop import HOP
from p4gen.papers.multiwrite.conformance.faults_patch import FIRST as FIRST_OF_PATCHES
from p4gen.papers.multiwrite.conformance.faults_patch import PATCH
from p4gen.ptf.mutations import Mutation, Seeding

_SMALL = {"mode": "multiwrite", "payload": 64, "contexts": 4, "edges": 5, "slots": 8, "ports": 8}
PROGRAMS: dict[str, dict[str, object]] = {
    "plain": {**_SMALL},
    "prune": {**_SMALL, "replicate": "prune"},
    "append": {**_SMALL, "place": "append"},
    "wide": {**_SMALL, "receivers": 64},
    "hop": {**_SMALL, "repair": "hop"},
    "wide-hop": {**_SMALL, "receivers": 64, "repair": "hop"},
    "patch": {**_SMALL, "icrc": "patch"},
}

_COPIES = (
    Mutation(
        "copy-to-source-port",
        "ReplicateData",
        "(bit<16>)meta.copies.out_mask;",
        "(bit<16>)(meta.copies.out_mask | meta.lookup.edge_bit);",
    ),
    Mutation("subset-of-all", "ReplicateData", "= (bit<16>)meta.copies.out_mask;", "= 31;"),
    Mutation("prune-inverted", "PrunePort", "if (others[0:0] == 0)", "if (others[0:0] == 1)", program="prune"),
    Mutation("prune-forgotten", "PrunePort", "{ meta.drop = drop_t.PrunePort_not_named; }", "{ }", program="prune"),
    Mutation(
        "prune-off-by-one", "PrunePort", "(bit<8>)(meta.lookup.edge - 1)", "(bit<8>)meta.lookup.edge", program="prune"
    ),
    Mutation("reach-of-neighbour", "ReachPorts", "found.out_mask | edge_bit;", "found.out_mask | (edge_bit << 1);"),
    Mutation("last-edge-only", "ReachPorts", "found.out_mask | edge_bit;", "edge_bit;"),
    Mutation(
        "fence-not-multicast",
        "ReachPorts",
        "meta.copies.out_mask = found.out_mask;",
        "meta.copies.out_mask = found.out_mask;\n"
        "        if (hdr.bth.solicited == 1) { meta.copies.out_mask = found.out_mask & (~found.out_mask + 1); }",
    ),
    Mutation("empty-taken", "ReachPorts", "if (bitmap == 0)", "if (false)"),
    Mutation("unknown-taken", "ReachPorts", "else if (found.unknown != 0)", "else if (false)"),
    Mutation("switches-told", "ReachPorts", "meta.copies.answers = meta.source.first_hop;", "meta.copies.answers = 1;"),
    Mutation("refusal-is-ack", "ReachPorts", "meta.copies.syndrome = SYNDROME_INVALID;", "meta.copies.syndrome = 31;"),
)

_BITMAPS = (
    Mutation("bitmap-not-rewritten", "RewriteBitmap", "hdr.immediate.value = hdr.immediate.value & mask;", ""),
    Mutation("bitmap-cleared", "RewriteBitmap", "hdr.immediate.value & mask;", "hdr.immediate.value & ~mask;"),
    Mutation(
        "one-bit-dropped", "RewriteBitmap", "hdr.immediate.value & mask;", "hdr.immediate.value & mask & mask - 1;"
    ),
    Mutation(
        "hop-limit-forgotten", "RewriteBitmap", "hdr.mweth.hop_limit = hdr.mweth.hop_limit - 1;", "", program="wide"
    ),
    Mutation(
        "hop-limit-endless", "ReachPorts", "else if (hdr.mweth.hop_limit == 0)", "else if (false)", program="wide"
    ),
    Mutation("version-ignored", "FindContext", "if (hdr.mweth.version != MWETH_VERSION)", "if (false)", program="wide"),
    Mutation("group-ignored", "FindContext", "if (hdr.mweth.group_id != group_id)", "if (false)", program="wide"),
    Mutation(
        "header-not-stripped",
        "PlaceWrite",
        "hdr.immediate.setInvalid();\n                hdr.bth.opcode",
        "hdr.bth.opcode",
    ),
    Mutation(
        "wide-header-not-stripped",
        "PlaceWrite",
        "hdr.mweth.setInvalid();\n            hdr.ipv4",
        "hdr.ipv4",
        program="wide",
    ),
    Mutation("opcode-kept", "PlaceWrite", "hdr.bth.opcode = opcode_t.WRITE_ONLY;", ""),
    Mutation("length-not-reduced", "PlaceWrite", "hdr.udp.length = hdr.udp.length - IMMEDIATE_SIZE;", ""),
    Mutation(
        "wide-length-not-reduced",
        "PlaceWrite",
        "hdr.udp.length = hdr.udp.length - MWETH_SIZE;",
        "",
        program="wide",
    ),
    Mutation("dma-length-kept", "PlaceWrite", "hdr.reth.dma_length = PAYLOAD;", "", program="wide"),
    Mutation("fence-is-plain", "PlaceWrite", "if (hdr.bth.solicited == 1) {", "if (false) {"),
    Mutation("fence-has-bitmap", "PlaceWrite", "hdr.immediate.value = meta.source.rank;", ""),
    Mutation(
        "fence-without-immediate",
        "PlaceWrite",
        "hdr.immediate.value = hdr.mweth.immediate;",
        "hdr.immediate.value = 0;",
        program="wide",
    ),
)

_PLACES = (
    Mutation("offset-forgotten", "PlaceWrite", "base + hdr.reth.address;", "base;"),
    Mutation("offset-twice", "PlaceWrite", "base + hdr.reth.address;", "base + 2 * hdr.reth.address;"),
    Mutation("rkey-of-source", "PlaceWrite", "hdr.reth.rkey = rkey;", ""),
    Mutation(
        "append-by-source-psn",
        "PlaceWrite",
        "hdr.bth.psn & slot_mask",
        "meta.order.expected & slot_mask",
        program="append",
    ),
    Mutation("append-unmasked", "PlaceWrite", "(hdr.bth.psn & slot_mask)", "hdr.bth.psn", program="append"),
    Mutation("key-ignored", "FindContext", "if (hdr.reth.rkey != group_key)", "if (false)"),
    Mutation("place-ignored", "FindContext", "else if (hdr.reth.address > last_place)", "else if (false)"),
    Mutation("place-off-by-one", "FindContext", "hdr.reth.address > last_place", "hdr.reth.address >= last_place"),
    Mutation("dma-length-ignored", "FindContext", "if (hdr.reth.dma_length != DMA_LENGTH)", "if (false)"),
)

_PSNS = (
    Mutation("psn-is-the-sources", "AssignPsn", "psn = due;", "psn = packet.psn;"),
    Mutation(
        "next-counted-for-skipped",
        "AssignPsn",
        "edges_t concerned = meta.copies.out_mask | mine;",
        "edges_t concerned = mine; if (meta.order.fresh == 1) { takes = 31; concerned = 31; }",
    ),
    Mutation("next-by-two", "AssignPsn", "psn_t after = due + 1;", "psn_t after = due + 2;"),
    Mutation("next-counted-twice-on-repeat", "AssignPsn", "} else if (meta.order.fresh == 1) {", "} else {"),
    Mutation("next-epoch-ignored", "AssignPsn", "if (counted[31:24] != packet.epoch) { due = packet.first; }", ""),
    Mutation(
        "repeat-gets-new-psn",
        "AssignPsn",
        "if (takes == 1) {\n            psn = due;",
        "if (packet.answers == 0) {\n            psn = due;",
    ),
    Mutation("ring-off-by-one", "AssignPsn", "there = packet.acked + 1;", "there = packet.acked;"),
    Mutation("ring-index-unmasked", "AssignPsn", "(bit<32>)(there & packet.ring_mask)", "(bit<32>)there"),
    Mutation("rings-shared", "AssignPsn", "by_edge = packet.ring + ", "by_edge = "),
    Mutation("ring-not-checked", "AssignPsn", "if (source == packet.psn) {", "if (true) {"),
    Mutation("epoch-of-ring-ignored", "AssignPsn", "bit<1> earlier = precedes(psn, due);", "bit<1> earlier = 1;"),
    Mutation(
        "never-sent-believed", "AssignPsn", "packet.believed = precedes(packet.acked, due);", "packet.believed = 1;"
    ),
    Mutation("nak-acknowledges-its-own", "AssignPsn", "{ packet.acked = packet.acked - 1; }", "{ }"),
    Mutation("ack-not-requested", "NumberCopy", "bth.ack_request = 1;", ""),
)

_ACKS = (
    Mutation("low-not-set-when-idle", "CombineAcks", "low = acks.psn;\n                busy = 1;", "busy = 1;"),
    Mutation("low-always-set", "CombineAcks", "if (busy == 0) {", "if (true) {"),
    Mutation("idle-counts-as-lowest", "CombineAcks", "bit<1> lower = busy & (", "bit<1> lower = ("),
    Mutation("idle-never-set", "CombineAcks", "busy = acks.more;", "busy = 1;"),
    Mutation("min-is-max", "CombineAcks", "precedes(low, acks.lowest)", "precedes(acks.lowest, low)"),
    Mutation(
        "ack-own-edge-only",
        "CombineAcks",
        "{ meta.progress.lowest = acks.lowest; }",
        "{ meta.progress.lowest = acks.mine_low; }",
    ),
    Mutation("nak-overtakes", "CombineAcks", "if (acks.mine_low == meta.progress.lowest) {", "if (true) {"),
    Mutation("nak-swallowed", "CombineAcks", "{ meta.progress.naks = acks.mine_waits; }", "{ }"),
    Mutation(
        "nak-not-kept",
        "CombineAcks",
        "syndrome = acks.syndrome;\n            } else",
        "syndrome = 0;\n            } else",
    ),
    Mutation(
        "nak-kept-for-good",
        "CombineAcks",
        "busy = acks.more;\n                syndrome = acks.syndrome;",
        "busy = acks.more;",
    ),
    Mutation(
        "old-nak-heard",
        "CombineAcks",
        "if (through == acks.acked) {                              //",
        "if (true) { //",
    ),
    Mutation("old-answer-taken", "CombineAcks", "acks.believed & precedes(through, acks.acked);", "acks.believed;"),
    Mutation("syndrome-of-none", "CombineAcks", "if (acks.lowest_syndrome != 0)", "if (false)"),
    Mutation("acked-epoch-ignored", "CombineAcks", "through = acks.start;\n            busy = 0;\n", ""),
    Mutation("repeat-to-all", "CombineAcks", "& meta.sending.sent & acks.lacks;", "& meta.sending.sent;"),
    Mutation(
        "repeat-to-nobody", "CombineAcks", "& meta.sending.sent & acks.lacks;", "& meta.sending.sent & ~acks.lacks;"
    ),
    Mutation(
        "every-answer-told", "CheckRange", "bit<1> moves = precedes(start, meta.progress.lowest);", "bit<1> moves = 1;"
    ),
    Mutation(
        "start-not-kept", "CheckRange", "psn_start.write(meta.lookup.context_index, meta.source.epoch ++ start);", ""
    ),
    Mutation("start-epoch-ignored", "CheckRange", "{ start = meta.source.first_psn; }", "{ }"),
    Mutation(
        "range-off-by-one", "CheckRange", "if (offset > meta.source.ring_mask)", "if (offset >= meta.source.ring_mask)"
    ),
    Mutation(
        "range-too-wide", "CheckRange", "if (offset > meta.source.ring_mask)", "if (offset > meta.source.ring_mask + 1)"
    ),
    Mutation("gap-taken", "CheckOrder", "} else if (bth.psn != next) {", "} else if (false) {"),
    Mutation("gap-nak-again-and-again", "CheckOrder", "meta.copies.answers = ~nak_sent;", "meta.copies.answers = 1;"),
    Mutation(
        "gap-nak-never-again", "CheckOrder", "next = next + 1;\n                nak_sent = 0;", "next = next + 1;"
    ),
    Mutation("gap-nak-of-epsn", "SendAck", "answer_psn = meta.range.start;", "answer_psn = meta.order.expected;"),
    Mutation(
        "ack-of-start",
        "SendAck",
        "meta.answer.answer_psn = meta.range.start - 1;",
        "meta.answer.answer_psn = meta.range.start;",
    ),
    Mutation(
        "waiting-nak-erased",
        "CombineAcks",
        "if (acks.syndrome != 0) { syndrome = acks.syndrome; }",
        "syndrome = acks.syndrome;",
    ),
    Mutation("answers-keep-marks", "MakeAck", "hdr.bth.reserved1 = 0;", ""),
    Mutation("msn-is-psn", "SendAck", "meta.range.start - meta.source.first_psn;", "meta.range.start;"),
    Mutation(
        "duplicate-swallowed",
        "CheckOrder",
        "SYNDROME_ACK;\n                meta.drop = drop_t.CheckOrder_dup",
        "SYNDROME_ACK;\n                meta.copies.answers = 0;\n                meta.drop = drop_t.CheckOrder_dup",
    ),
    Mutation("mark-comes-back", "MakeAck", "{ hdr.ipv4.ecn = ECN_ECT0; }", "{ }"),
    Mutation(
        "notification-to-itself",
        "RelayNotification",
        "apply {\n        meta.lookup.edge = meta.source.source_edge;",
        "apply {",
    ),
    Mutation("source-not-checked", "LookupTable", "else if (hdr.ipv4.src_addr != peer)", "else if (false)"),
    Mutation("any-port", "LookupTable", "if (entrances.apply().miss)", "if (false)"),
    Mutation("destinations-write", "LookupTable", "if (from_source == 0)", "if (false)"),
    Mutation("source-answers", "LookupTable", "if (from_source == 1)", "if (false)"),
    Mutation("icrc-stale", "SetIcrc", "hdr.icrc.crc = icrc;", ""),
    Mutation("icrc-unchecked", "CheckIcrc", "if (hdr.icrc.crc != expected)", "if (false)"),
)

_FIRST = {
    "ReplicateData": ("test_mw_copies",),
    "ReachPorts": ("test_mw_copies", "test_mw_bitmap"),
    "PrunePort": ("test_mw_copies",),
    "RewriteBitmap": ("test_mw_bitmap",),
    "FindContext": ("test_mw_place", "test_mw_bitmap"),
    "PlaceWrite": ("test_mw_place", "test_mw_bitmap"),
    "AssignPsn": ("test_mw_psns", "test_mw_order", "test_mw_acks", "test_mw_hop"),
    "CombineAcks": ("test_mw_acks", "test_mw_hop", "test_mw_order", "test_mw_psns"),
    "CheckRange": ("test_mw_range", "test_mw_acks"),
    "CheckOrder": ("test_mw_order", "test_mw_hop"),
    "SendAck": ("test_mw_order", "test_mw_hop"),
    "MakeAck": ("test_mw_acks",),
    "RelayNotification": ("test_mw_acks",),
    "LookupTable": ("test_mw_place", "test_mw_entrances", "test_mw_hop"),
    "CheckIcrc": ("test_mw_icrc", "test_mw_place"),
}

SEEDING = Seeding(
    mutations=(*_COPIES, *_BITMAPS, *_PLACES, *_PSNS, *_ACKS, *HOP, *PATCH),
    programs=PROGRAMS,
    first=_FIRST | FIRST_OF_HOPS | FIRST_OF_PATCHES,
)
