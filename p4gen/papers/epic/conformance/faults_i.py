"""Faults to seed into Mode I's programs: those of Mode III's modules that it has, and those of its own modules."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from p4gen.papers.epic.conformance import faults_floats
from p4gen.papers.epic.conformance.faults_iii import MODE_III
from p4gen.papers.epic.conformance.faults_iii import SEEDING as MODE_III_SEEDING
from p4gen.ptf.mutations import Mutation, Seeding

SIZE = {"mode": "I", "lanes": 8, "window": 2, "message": 2, "slots": 8, "groups": 2, "fan_in": 4, "ports": 8}

PROGRAMS: dict[str, dict[str, object]] = {
    "plain": {**SIZE},
    "pipelines": {**SIZE, "pipelines": 2},
    "arrival": {**SIZE, "overflow": "wrap", "fold": "arrival"},
    **{name: SIZE | fields for name, fields in faults_floats.FOLDED_PROGRAMS.items()},
}

ELSEWHERE = {
    "sum-wraps": ("FoldData", "(lane_t)((int<32>)held |+| (int<32>)held_1)", "held + held_1"),
    "lane-misplaced": ("StoreData", "lane_3.apply(payload.lane_3,", "lane_3.apply(payload.lane_2,"),
    "range-never-moves": ("CheckMessages", "{ advances = 1; }", "{ advances = 0; }"),
    "range-starts-at-the-acked": (
        "CheckMessages",
        "candidate = meta.progress.acked + 1;",
        "candidate = meta.progress.acked;",
    ),
    "range-off-by-one": (
        "CheckMessages",
        "(slot_t)last > meta.flow.slot_mask",
        "(slot_t)last > meta.flow.slot_mask + 1",
    ),
    "range-too-small": ("CheckMessages", "(slot_t)last > meta.flow.slot_mask", "(slot_t)last >= meta.flow.slot_mask"),
    "wrap-forgotten-in-range": (
        "CheckMessages",
        "if (precedes(candidate, start) == 0) { start",
        "if (candidate > start) { start",
    ),
    "range-epoch-ignored": (
        "CheckMessages",
        "if (word[31:24] != meta.invocation.epoch) { start",
        "if (word == 0) { start",
    ),
    "never-sent-is-believed": ("EmitMessage", "if (behind > REMEMBERED) {", "if (false) {"),
    "one-pipe-sends": (
        "EmitMessage",
        "if (meta.flow.pipe == 0) { aggregation.apply(meta, completes",
        "if (true) { aggregation.apply(meta, completes",
    ),
    "resent-to-port-zero": (
        "Retransmission",
        "std_meta.egress_spec = meta.lookup.port;\n            }\n            if (hdr.bth.psn",
        "std_meta.egress_spec = 0;\n            }\n            if (hdr.bth.psn",
    ),
    "answer-with-payload": ("MakeAck", "\n        hdr.payload.setInvalid();", ""),
    "naks-start-the-timer": ("StartCursor", "6w0 ++ emits ++ ticks; ", "6w0 ++ emits ++ 1w1; "),
}
"""Faults of Mode III as they are in Mode I, by name: module, what stands there, what stands in its place."""

NOT_HERE = {
    "nothing-stands-still": "no edge's numbers depend on another's",
    "all-stands-still": "no edge's numbers depend on another's",
    "old-ack-moves-the-range-too-far": "an answer speaks for the same edges whatever the collective",
    "old-ack-moves-the-range-by-one-too-far": "the same",
    "end-is-one-later": "the same",
    "other-range-stays": "a pipe's range moves by its own answers",
    "sent-is-not-kept": "EmitMessage keeps what is next",
    "sent-before-the-wrap-counts": "a pipe does not idle while others go on",
    "cursor-sends-the-unsent": "EmitMessage sees what has been sent",
    "last-ack-request-wins": "a result asks for an ACK at the end of its message, whoever asked before",
    "announcements-forgotten": "a context serves one collective, whatever is announced",
    "no-nak": "what is ahead of the range is answered with an RNR NAK",
    "incomplete-goes-out": "results do not leave with a contribution",
}
"""Faults of Mode III that have no form in Mode I, and why."""

_own = partial(Mutation, program="plain")
_MESSAGES, _ORDER, _STORES = "test_i_messages", "test_i_order", "test_iii_stores"

MODE_I: tuple[Mutation, ...] = (
    _own(
        "forward-before-whole",
        "EmitMessage",
        "if (hdr.bth.opcode == opcode_t.SEND_FIRST) { ends = 0; }",
        "if (false) { }",
    ),
    _own("middle-releases", "EmitMessage", "else if (hdr.bth.opcode == opcode_t.SEND_MIDDLE) { ends = 0; }", ""),
    _own(
        "last-packet-not-counted", "EmitMessage", "{ completes = meta.buffer.complete & ends; }", "{ completes = 0; }"
    ),
    _own("incomplete-is-whole", "EmitMessage", "{ completes = meta.buffer.complete & ends; }", "{ completes = ends; }"),
    _own("ready-not-advanced", "EmitMessage", "{ whole = psn; }", "{ whole = ready + 1; }"),
    _own("next-skips-one", "EmitMessage", "next + (psn_t)turn;", "next + (psn_t)turn + (psn_t)turn;"),
    _own("emitter-stands-still", "EmitMessage", "next + (psn_t)turn;", "next;"),
    _own("emission-epoch-ignored", "EmitMessage", "if (word[55:48] != meta.invocation.epoch) {", "if (word == 0) {"),
    _own(
        "emission-begins-at-zero",
        "EmitMessage",
        "next = meta.invocation.first_psn;\n            ready",
        "next = 0;\n            ready",
    ),
    _own("emits-what-is-not-next", "EmitMessage", "if (psn != next) { turn = 0; }", ""),
    _own("emits-twice", "EmitMessage", "& precedes(hdr.bth.psn, next) & ~meta.lookup.emits;", ";"),
    _own("emits-out-of-order", "EmitMessage", "completes & precedes(ready, next);", "completes;"),
    _own("no-cursor-starts", "EmitMessage", "completes & precedes(ready, next);", "0;"),
    _own(
        "tick-ignores-what-is-due", "EmitMessage", "(meta.lookup.emits | hdr.aeth.syndrome[0:0])", "(meta.lookup.emits)"
    ),
    _own("one-packet-of-a-message", "EmitMessage", "hdr.aeth.msn = ready; ", ""),
    _own("no-ackreq-at-the-end", "EmitMessage", "hdr.bth.ack_request = ends;", "hdr.bth.ack_request = 0;"),
    _own("ackreq-on-every-packet", "EmitMessage", "hdr.bth.ack_request = ends;", ""),
    _own("emission-goes-to-one", "Retransmission", "if (meta.emission.turn == 1) { ", "if (false) { "),
    _own("resent-to-all", "Retransmission", "if (meta.emission.turn == 1) { ", "if (true) { "),
    _own("results-to-those-who-answer", "ClassifyTraffic", "meta.flow.result_group = result_group;", ""),
    _own("cursors-are-answers", "ClassifyTraffic", "{ answers = ~meta.lookup.emits; }", "{ answers = 1; }"),
    _own("cursors-are-contributions", "ClassifyTraffic", "{ answers = ~meta.lookup.emits; }", "{ answers = 0; }"),
    _own("emitter-begins-at-the-end", "StartCursor", "hdr.bth.psn = meta.emission.next;", ""),
    _own("emitter-keeps-the-payload", "StartCursor", "            hdr.payload.setInvalid();", ""),
    _own("emitter-keeps-the-immediate", "StartCursor", "            hdr.immediate.setInvalid();", ""),
    _own("store-to-edge-zero", "StoreData", "bitmap_t sender = meta.lookup.edge_bit;", "bitmap_t sender = 1;"),
    _own("fold-skips-last-edge", "FoldData", "if (sources[3:3] == 1) {", "if (false) {"),
    _own("fold-adds-non-source", "FoldData", "if (sources[3:3] == 1) {", "if (true) {"),
    _own(
        "resend-reads-next-slot",
        "StoreData",
        "slot_t at = meta.flow.slot;",
        "slot_t at = meta.flow.slot + (slot_t)meta.order.accepted;",
    ),
    _own("saturation-counted-again", "StoreData", "full = full & meta.emission.turn; ", ""),
    _own(
        "edge-first-psn-shared",
        "FindPosition",
        "if (meta.lookup.kind == kind_t.DATA) { bth.psn = bth.psn - meta.lookup.first_received; }",
        "if (meta.lookup.kind == kind_t.DATA) { }",
    ),
    _own(
        "announcements-not-numbered",
        "FindPosition",
        "else if (meta.lookup.kind == kind_t.CONTROL) { bth.psn = bth.psn - meta.lookup.first_received; }",
        "",
    ),
    _own(
        "answers-not-numbered",
        "FindPosition",
        "else if (meta.lookup.kind == kind_t.ANSWER) { bth.psn = bth.psn - meta.lookup.first_sent; }",
        "",
    ),
    _own(
        "answers-numbered-as-requests",
        "FindPosition",
        "bth.psn - meta.lookup.first_sent;",
        "bth.psn - meta.lookup.first_received;",
    ),
    _own("psn-not-translated", "TranslateHeader", "hdr.bth.psn = hdr.bth.psn + first_sent;", ""),
    _own(
        "translation-off-by-one",
        "TranslateHeader",
        "hdr.bth.psn = hdr.bth.psn + first_sent;",
        "hdr.bth.psn = hdr.bth.psn + first_sent + 1;",
    ),
    _own("answers-not-translated", "TranslateHeader", "hdr.bth.psn = hdr.bth.psn + first_received;", ""),
    _own("cnp-with-a-psn", "TranslateHeader", "else if (hdr.bth.opcode != opcode_t.CNP) {", "else {"),
    _own("rnr-never", "CheckOrder", "} else if (meta.range.ahead == 1) {", "} else if (false) {"),
    _own("room-for-a-packet-is-enough", "CheckMessages", "{ last = last + (MESSAGE - 1); }", "{ }"),
    _own(
        "every-packet-needs-room-for-a-message",
        "CheckMessages",
        "if (bth.opcode == opcode_t.SEND_FIRST) { last",
        "{ last",
    ),
    _own(
        "one-range-for-both-pipes",
        "CheckMessages",
        "if (meta.flow.pipe == 0) { aggregation.apply(meta, adv",
        "if (true) { aggregation.apply(meta, adv",
    ),
    _own(
        "fold-in-another-order", "StoreData", "held_0, held_1, held_2, held_3,\n", "held_1, held_2, held_3, held_0,\n"
    ),
    _own(
        "immediate-on-every-packet", "Retransmission", "if (hdr.bth.opcode == opcode_t.SEND_ONLY_IMM) {", "if (true) {"
    ),
    _own(
        "last-marked-middle",
        "CheckDuplicate",
        "bth.opcode = (opcode_t)(3w0 ++ word[36:32]);",
        "bth.opcode = (opcode_t)(3w0 ++ (word[36:32] == 2 ? 5w1 : word[36:32]));",
    ),
    _own(
        "down-cut-through",
        "EmitMessage",
        "if (hdr.bth.opcode == opcode_t.SEND_FIRST) { ends = 0; }",
        "if (hdr.bth.opcode == opcode_t.SEND_FIRST) { ends = meta.flow.pipe; }",
    ),
    _own(
        "down-store-shared",
        "StoreData",
        "slot_t at = meta.flow.slot;",
        "slot_t at = meta.flow.slot & meta.flow.slot_mask;",
    ),
    _own(
        "whole-bit-of-another-edge",
        "CheckDuplicate",
        "} else {\n            arrived = arrived | meta.lookup.edge_bit;",
        "} else {\n            arrived = arrived | meta.lookup.edge_bit | (meta.lookup.edge_bit << 1);",
    ),
    _own(
        "rnr-forgets-psn",
        "CheckOrder",
        "meta.order.syndrome = SYNDROME_RNR;",
        "meta.order.syndrome = SYNDROME_RNR; next = next + 1;",
    ),
    _own(
        "arrival-keeps-the-last",
        "AggregateData",
        "if (slot_use == slot_use_t.MERGE) {",
        "if (false) {",
        program="arrival",
    ),
)


def _of_mode_iii() -> tuple[Mutation, ...]:
    """Mode III's faults of the modules that both have, for programs that both have."""
    own = {fault.name for fault in MODE_I}
    made = []
    for fault in MODE_III:
        if fault.name in NOT_HERE or fault.name in own or fault.program not in ("plain", "pipelines"):
            continue
        elsewhere = ELSEWHERE.get(fault.name)
        if elsewhere is None:
            made.append(fault)
        else:
            module, find, put = elsewhere
            made.append(replace(fault, module=module, find=find, replace=put))
    return tuple(made)


SEEDING = Seeding(
    (*_of_mode_iii(), *MODE_I, *faults_floats.FOLDED_FAULTS),
    PROGRAMS,
    tests={
        "pipelines": MODE_III_SEEDING.tests["pipelines"],
        "arrival": ("test_iii_order", _MESSAGES),
        **faults_floats.FOLDED_TESTS,
    },
    first={
        **MODE_III_SEEDING.first,
        "FindPosition": (_ORDER,),
        "TranslateHeader": (_ORDER, *MODE_III_SEEDING.first["TranslateHeader"]),
        "CheckMessages": (_MESSAGES, "test_iii_range"),
        "EmitMessage": (_MESSAGES, "test_iii_retransmission"),
        "StoreData": (_MESSAGES, _STORES, "test_iii_collectives"),
        "FoldData": (_STORES, _MESSAGES),
        "ClassifyTraffic": (_MESSAGES,),
        "StartCursor": (_MESSAGES, "test_iii_retransmission"),
        "Retransmission": (_MESSAGES, "test_iii_retransmission"),
    },
)
"""Where to look for who notices them."""
