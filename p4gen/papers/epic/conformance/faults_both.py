"""Faults that fit the programs of both modes: in the modules that Mode III takes over from Mode II."""

from __future__ import annotations

from p4gen.ptf.mutations import Mutation

BOTH_MODES: tuple[Mutation, ...] = (
    Mutation("any-source", "LookupTable", "hdr.ipv4.src_addr != peer", "false"),
    Mutation("any-port", "LookupTable", "if (entrances.apply().miss) {", "if (false) {"),
    Mutation("shared-slots", "ClassifyTraffic", "meta.flow.slot = base + (", "meta.flow.slot = ("),
    Mutation("half-the-buffer", "ClassifyTraffic", "(slot_t)bth.psn & mask", "(slot_t)bth.psn & (mask >> 1)"),
    Mutation("cnp-not-parsed", "PacketParser", "(opcode_t.CNP,           CNP_LENGTH):     parse_cnp;", ""),
    Mutation("any-length", "ValidatePacket", "hdr.ipv4.total_length != ip_length", "false"),
    Mutation("any-version", "ValidatePacket", "hdr.bth.version != 0", "false"),
    Mutation("any-partition", "ValidatePacket", "partition != 0x7fff", "false"),
    Mutation("any-ip-checksum", "ValidatePacket", "std_meta.checksum_error != 0", "false"),
    Mutation("corruption-laundered", "CheckIcrc", "hdr.icrc.crc != expected", "false"),
    Mutation("epoch-ignored", "RecycleBuffer", "held_epoch != epoch", "held_epoch == 0"),
    Mutation("any-opcode-mix", "CheckDuplicate", "word[36:32] != opcode", "false"),
    Mutation("complete-at-once", "CheckDuplicate", "arrived == meta.flow.source_mask", "arrived != 0"),
    Mutation("last-ack-request-wins", "CheckDuplicate", "bth.ack_request | word[39:39];", "bth.ack_request;"),
    Mutation("sum-wraps", "AggregateData", "(lane_t)((int<32>)held |+| (int<32>)element)", "held + element"),
    Mutation("lane-misplaced", "AggregateData", "lane_3.apply(payload.lane_3,", "lane_3.apply(payload.lane_2,"),
    Mutation(
        "tag-taken-off", "TranslateHeader", "hdr.udp.checksum = 0; ", "hdr.vlan.setInvalid(); hdr.udp.checksum = 0; "
    ),
    Mutation("tag-not-counted", "ValidatePacket", "frame_length = frame_length + 4;", ""),
    Mutation("arp-replies-answered", "AnswerArp", "if (hdr.arp.form == ARP_REQUEST) {", "if (true) {"),
    Mutation("arp-answer-to-all", "AnswerArp", "hdr.ethernet.dst_addr = hdr.ethernet.src_addr;", ""),
    Mutation("one-address-for-all", "TranslateHeader", "meta.lookup.edge = std_meta.egress_rid;", ""),
    Mutation("udp-checksum-kept", "TranslateHeader", "hdr.udp.checksum = 0; ", ""),
    Mutation("dscp-zeroed", "TranslateHeader", "hdr.udp.checksum = 0; ", "hdr.udp.checksum = 0; hdr.ipv4.dscp = 0; "),
    Mutation("icrc-stale", "SetIcrc", "hdr.icrc.crc = icrc;", ""),
    Mutation("any-numbers", "FindContext", "announced[28:24] != NUMBERS", "false"),
)
