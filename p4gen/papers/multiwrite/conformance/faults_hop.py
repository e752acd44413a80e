"""Faults to seed into MultiWrite's programs where each hop repairs losses."""

from __future__ import annotations

from p4gen.ptf.mutations import Mutation

PROGRAM = "hop"


def _fault(name: str, module: str, find: str, replace: str, program: str = PROGRAM) -> Mutation:
    return Mutation(name, module, find, replace, program=program)


HOP = (
    _fault("late-nak-cursor", "HoldPacket", "{ meta.held.complete = lacks; }", "{ meta.held.complete = 1; }"),
    _fault(
        "cursor-without-end", "StartCursor", "hdr.aeth.msn = meta.sending.due - 1;", "hdr.aeth.msn = hdr.bth.psn + 9;"
    ),
    _fault("cursor-too-short", "StartCursor", "hdr.aeth.msn = meta.sending.due - 1;", "hdr.aeth.msn = hdr.bth.psn;"),
    _fault("naks-bring-nothing", "StartCursor", "starts = meta.sending.believed;", "starts = 0;"),
    _fault("every-nak-resends", "StartCursor", "} else if (hdr.aeth.syndrome == SYNDROME_NAK) {", "} else {"),
    _fault("ticks-bring-nothing", "StartCursor", "starts = ticks;", "starts = 0;"),
    _fault("timer-never-starts", "StartCursor", "hdr.aeth.syndrome = (bit<8>)ticks;", "hdr.aeth.syndrome = 0;"),
    _fault("cursor-sends-one", "Retransmission", "if (hdr.bth.psn != hdr.aeth.msn) {", "if (false) {"),
    _fault("cursor-goes-on", "Retransmission", "if (hdr.bth.psn != hdr.aeth.msn) {", "if (true) {"),
    _fault("resent-key-of-destination", "Retransmission", "hdr.reth.rkey = meta.source.rkey;", "hdr.reth.rkey = 0;"),
    _fault("resent-unasked", "Retransmission", "hdr.bth.ack_request = 1;", "hdr.bth.ack_request = 0;"),
    _fault("cursor-bitmap-of-packet", "HoldPacket", "hdr.immediate.value = word[31:0];", "hdr.immediate.value = 2;"),
    _fault(
        "cursor-bitmap-forgotten",
        "HoldPacket",
        "hdr.mweth.bitmap = word[63:0];",
        "hdr.mweth.bitmap = 2;",
        program="wide-hop",
    ),
    _fault("fence-is-not-kept", "HoldPacket", "hdr.bth.solicited = word[98:98];", "hdr.bth.solicited = 0;"),
    _fault("mark-is-not-kept", "HoldPacket", "hdr.ipv4.ecn = word[97:96];", ""),
    _fault("place-is-not-kept", "HoldPacket", "hdr.reth.address = word[95:32];", "hdr.reth.address = 0;"),
    _fault("data-is-not-kept", "HoldPacket", "if (stores == 1) { held.write(", "if (false) { held.write("),
    _fault("cursor-psn-of-source", "AssignPsn", "packet.following = source;", "packet.following = there;"),
    _fault("cursor-finds-the-next", "AssignPsn", "packet.acked = packet.acked - 1;                          //", "//"),
    _fault("ticks-are-believed", "AssignPsn", "meta.sending.believed = 0;", "meta.sending.believed = packet.believed;"),
    _fault("hop-low-is-not-set", "CombineAcks", "low = acks.psn;\n                busy = 1;", "busy = 1;"),
    _fault("hop-idle-never-set", "CombineAcks", "busy = acks.more;", "busy = 1;"),
    _fault("hop-min-is-max", "CombineAcks", "precedes(low, acks.lowest)", "precedes(acks.lowest, low)"),
    _fault("hop-old-answer-taken", "CombineAcks", "acks.believed & precedes(through, acks.acked);", "acks.believed;"),
    _fault("hop-epoch-ignored", "CombineAcks", "            through = acks.start;\n", ""),
    _fault("hop-gap-taken", "CheckOrder", "} else if (bth.psn != next) {", "} else if (false) {"),
    _fault("hop-gap-nak-again", "CheckOrder", "meta.copies.answers = ~nak_sent;", "meta.copies.answers = 1;"),
    _fault("hop-duplicate-swallowed", "CheckOrder", "meta.copies.answers = 1;", "meta.copies.answers = 0;"),
    _fault("hop-unasked-answers", "CheckOrder", "meta.copies.answers = bth.ack_request;", "meta.copies.answers = 1;"),
    _fault("hop-range-ignored", "CheckOrder", "} else if (meta.range.ahead == 1) {", "} else if (false) {"),
    _fault(
        "hop-switches-told",
        "CheckOrder",
        "meta.copies.answers = meta.source.first_hop;          //",
        "meta.copies.answers = 1;  //",
    ),
    _fault("hop-not-notified", "CheckOrder", "meta.order.notifies = meta.source.first_hop;", ""),
    _fault(
        "hop-ahead-is-a-gap",
        "CheckOrder",
        "nak_sent = 1;                                         //",
        "nak_sent = 0; //",
    ),
    _fault("hop-refused-taken", "CheckOrder", "if (meta.drop == drop_t.NONE) { arrives = 1; }", "arrives = 1;"),
    _fault("ack-of-before", "SendAck", "meta.order.expected + (psn_t)meta.order.fresh;", "meta.order.expected;"),
    _fault(
        "answer-instead-of-copies",
        "SendAck",
        "if (meta.order.fresh == 1) {\n            clone",
        "if (false) {\n            clone",
    ),
    _fault("tick-of-anyone", "LookupTable", "if (std_meta.ingress_port == CPU_PORT) {", "if (true) {"),
    _fault(
        "cursor-of-anyone",
        "LookupTable",
        "} else if (std_meta.instance_type == RECIRCULATED) {",
        "} else if (hdr.bth.opcode == opcode_t.CURSOR) {",
    ),
    _fault(
        "resent-keeps-marks", "StartCursor", "opcode_t.CURSOR;\n            hdr.bth.reserved1 = 0;", "opcode_t.CURSOR;"
    ),
    _fault("nak-of-nothing-starts", "StartCursor", "if (oldest == meta.sending.due) { starts = 0; }", ""),
    _fault("cursor-outlives-acks", "Retransmission", " & ~precedes(hdr.aeth.msn, first);", ";"),
    _fault(
        "cursor-ends-late",
        "Retransmission",
        "meta.drop = drop_t.Retransmission_done;",
        "meta.drop = drop_t.Retransmission_done;\n"
        "if (hdr.bth.psn != hdr.aeth.msn) { clone_preserving_field_list(CloneType.I2E, CURSOR_SESSION, KEPT); }",
    ),
    _fault("timer-runs-on", "ResendTimer", "stands = now;", ""),
    _fault("never-stalled", "ResendTimer", "meta.progress.stalled = 1;                            //", "//"),
    _fault("waits-for-nothing", "ResendTimer", "counts_down = 1;", ""),
    _fault("repeats-are-refusals", "ResendTimer", "if (counts_down == 0) {", "if (true) {"),
    _fault("old-acks-hold-nothing", "ResendTimer", "comes = 1;    ", "comes = 0;    "),
    _fault("round-trips-unlearned", "ResendTimer", "if (waited > vain) { vain = waited; }", ""),
    _fault("probes-are-bursts", "StartCursor", "if (meta.progress.probes == 1) {", "if (false) {"),
    _fault("old-acks-hold-for-ever", "ResendTimer", "            comes = 0;\n", ""),
    _fault("timer-of-another-epoch", "ResendTimer", "{ word = 0; }", "{ }"),
    _fault("progress-goes-on-counting-down", "ResendTimer", "time = 0;\n                counts_down = 0;", "time = 0;"),
)
"""The faults, the modules that they are in, and what is put in whose place."""

FIRST = {
    "StartCursor": ("test_mw_hop",),
    "Retransmission": ("test_mw_hop",),
    "HoldPacket": ("test_mw_hop",),
    "ResendTimer": ("test_mw_timer", "test_mw_hop"),
}
"""Modules of scenarios that are likely to detect the faults of a module."""
