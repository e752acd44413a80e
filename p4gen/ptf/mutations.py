"""Faults to seed into a generated program, to see that the conformance suite can fail.

A fault is a replacement in the program's text. Its pattern must stand there exactly once: a fault
that no longer fits the templates is an error, not a fault that nothing catches.
"""

from __future__ import annotations

from dataclasses import dataclass

from p4gen.errors import FailedError


@dataclass(frozen=True)
class Mutation:
    """A fault: in ``module``, ``find`` becomes ``replace``."""

    name: str
    module: str
    find: str
    replace: str

    def apply(self, program: str) -> str:
        """The program with this fault; ``FailedError`` unless it fits in exactly one place."""
        count = program.count(self.find)
        if count != 1:
            raise FailedError(f"mutation {self.name}: {self.find!r} stands {count} times in the program, not once")
        return program.replace(self.find, self.replace)


MODE_II: tuple[Mutation, ...] = (
    Mutation(
        "everything-is-claimed",
        "LookupTable",
        "if (addresses.apply().hit) {",
        "addresses.apply(); if (hdr.bth.isValid()) {",
    ),
    Mutation("any-source", "LookupTable", "hdr.ipv4.src_addr != peer", "false"),
    Mutation("shared-slots", "LookupTable", "meta.slot = base + (", "meta.slot = ("),
    Mutation("half-the-buffer", "LookupTable", "(slot_t)hdr.bth.psn & mask", "(slot_t)hdr.bth.psn & (mask >> 1)"),
    Mutation("slot-off-by-one", "LookupTable", "(slot_t)hdr.bth.psn & mask)", "(slot_t)hdr.bth.psn & mask) + 1"),
    Mutation("any-edge-contributes", "LookupTable", "contributes == 0", "false"),
    Mutation("mask-forgotten", "LookupTable", "meta.source_mask = source_mask;", "meta.source_mask = 32w0xffffffff;"),
    Mutation("middle-not-parsed", "PacketParser", "(opcode_t.SEND_MIDDLE,   DATA_LENGTH):    parse_payload;", ""),
    Mutation(
        "control-not-parsed",
        "PacketParser",
        "(opcode_t.SEND_ONLY_IMM, CONTROL_LENGTH): parse_immediate;",
        "",
    ),
    Mutation("cnp-not-parsed", "PacketParser", "(opcode_t.CNP,           CNP_LENGTH):     parse_cnp;", ""),
    Mutation("any-length", "ValidatePacket", "hdr.ipv4.total_length != ip_length", "false"),
    Mutation("trailing-bytes", "ValidatePacket", "std_meta.packet_length != frame_length", "false"),
    Mutation("any-version", "ValidatePacket", "hdr.bth.version != 0", "false"),
    Mutation("any-partition", "ValidatePacket", "partition != 0x7fff", "false"),
    Mutation("any-ip-checksum", "ValidatePacket", "std_meta.checksum_error != 0", "false"),
    Mutation("corruption-laundered", "CheckIcrc", "hdr.icrc.crc != expected", "false"),
    Mutation("epoch-ignored", "RecycleBuffer", "held_epoch != epoch", "held_epoch == 0"),
    Mutation("wrap-forgotten", "RecycleBuffer", "ahead[23:23] == 0", "psn > held_psn"),
    Mutation(
        "stale-starts-afresh",
        "RecycleBuffer",
        "slot_use = slot_use_t.STALE;",
        "slot_use = slot_use_t.FRESH;",
    ),
    Mutation("no-duplicate-check", "CheckDuplicate", "arrived & meta.edge_bit;", "arrived & 0;"),
    Mutation("any-opcode-mix", "CheckDuplicate", "word[70:64] != opcode", "false"),
    Mutation("any-control-mix", "CheckDuplicate", "word[63:32] != meta.announced", "false"),
    Mutation("announcement-not-kept", "CheckDuplicate", "++ meta.announced ++", "++ word[63:32] ++"),
    Mutation("complete-at-once", "CheckDuplicate", "arrived == meta.source_mask", "arrived != 0"),
    Mutation(
        "duplicate-unanswered",
        "CheckDuplicate",
        "        if (meta.drop == drop_t.NONE) {\n            slots.write",
        "        if (meta.slot_use == slot_use_t.REPEAT) {\n"
        "            meta.drop = drop_t.CheckDuplicate_duplicate;\n        }\n"
        "        if (meta.drop == drop_t.NONE) {\n            slots.write",
    ),
    Mutation("last-ack-request-wins", "CheckDuplicate", "bth.ack_request | word[71:71];", "bth.ack_request;"),
    Mutation("psn-not-kept", "CheckDuplicate", "meta.epoch ++ bth.psn ++", "meta.epoch ++ word[95:72] ++"),
    Mutation("old-data-added", "AggregateData", "(slot_use == slot_use_t.MERGE)", "(slot_use != slot_use_t.REPEAT)"),
    Mutation("sum-wraps", "AggregateData", "(lane_t)((int<32>)held |+| (int<32>)element)", "held + element"),
    Mutation("sum-unsigned", "AggregateData", "(lane_t)((int<32>)held |+| (int<32>)element)", "held |+| element"),
    Mutation(
        "repeat-returns-own-data",
        "AggregateData",
        "} else if (slot_use == slot_use_t.REPEAT) {\n            element = held;",
        "} else if (slot_use == slot_use_t.REPEAT) {\n            held = element;",
    ),
    Mutation("lane-misplaced", "AggregateData", "lane_3.apply(payload.lane_3,", "lane_3.apply(payload.lane_2,"),
    Mutation("overflow-uncounted", "AggregateData", "overflows.count((bit<32>)meta.context);", ""),
    Mutation(
        "result-not-replicated",
        "ReplicateData",
        "std_meta.mcast_grp = meta.result_group;",
        "std_meta.egress_spec = std_meta.ingress_port;",
    ),
    Mutation("ack-to-another-port", "ReflectAck", "= std_meta.ingress_port;", "= std_meta.ingress_port ^ 1;"),
    Mutation("ttl-kept", "Forward", "hdr.ipv4.ttl = hdr.ipv4.ttl - 1;", ""),
    Mutation("checksum-not-mended", "Forward", "17w0xfeff", "17w0"),
    Mutation("ttl-never-expires", "Forward", "hdr.ipv4.ttl < 2", "false"),
    Mutation("one-address-for-all", "TranslateHeader", "meta.edge = std_meta.egress_rid;", ""),
    Mutation("qp-kept", "TranslateHeader", "hdr.bth.dest_qp = dest_qp;", ""),
    Mutation("udp-checksum-kept", "TranslateHeader", "hdr.udp.checksum = 0; ", ""),
    Mutation(
        "nak-becomes-ack", "TranslateHeader", "hdr.ipv4.ttl = 64;", "hdr.ipv4.ttl = 64; hdr.aeth.syndrome = 0x1f;"
    ),
    Mutation("icrc-stale", "SetIcrc", "hdr.icrc.crc = icrc;", ""),
    Mutation(
        "ip-checksum-stale",
        "UpdateIpv4Checksum",
        "update_checksum(meta.traffic != traffic_t.ORDINARY",
        "update_checksum(meta.traffic == traffic_t.ORDINARY",
    ),
    Mutation(
        "drops-uncounted",
        "IncIngress",
        "\n            drops.count((bit<32>)(bit<8>)meta.drop);\n",
        "\n",
    ),
)
"""Faults in a Mode-II program that sums int32 lanes with saturation."""
