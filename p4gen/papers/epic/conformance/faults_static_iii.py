"""Faults to seed into programs of Mode III for static groups: Mode III's list in their form, and a few of their own.

A fault of the list keeps its text where the templates are the same (``SAME``), has another one in ``FORMS``, or none,
for the reason that ``NONE`` gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from p4gen.papers.epic.capabilities import capabilities
from p4gen.papers.epic.conformance import faults_iii
from p4gen.papers.epic.spec import EpicSpec
from p4gen.ptf.mutations import Mutation, Seeding

SAME: Final = frozenset(
    {"any-source", "any-port", "cnp-not-parsed", "lane-misplaced", "tag-taken-off", "arp-answer-to-all",
     "udp-checksum-kept", "dscp-zeroed", "any-qp", "everybody-is-a-rank", "outputs-are-all", "credit-given",
     "answers-are-marked", "incomplete-is-resent", "one-packet-bursts", "incomplete-goes-out",
     "syndrome-forgotten", "answer-asks", "answers-keep-marks"}
)  # fmt: skip
_DATA = "(0, _, 0, 0x7fff &&& 0x7fff, 0, kind_t.DATA, _, DATA_LENGTH + 20): NoAction();"
_TAKEN = "if (word.epoch == meta.flow.epoch && word.psn == meta.flow.tag) {"
_ADVANCE = "        }\n    };\n    RegisterAction<progress_t, bit<16>, int<32>>(psn_start) advance"
FORMS: Final = (
    Mutation("shared-slots", "ClassifyTraffic",
             "meta.flow.slot = meta.lookup.own_slot + base;                 // line 22",
             "meta.flow.slot = meta.lookup.own_slot;"),
    Mutation("half-the-buffer", "LookupTable", "(slot_t)hdr.bth.psn[15:0] & mask;",
             "(slot_t)hdr.bth.psn[15:0] & (mask >> 1);"),
    Mutation("any-length", "ValidatePacket", _DATA, _DATA.replace("DATA_LENGTH + 20", "_")),
    Mutation("any-version", "ValidatePacket", _DATA, _DATA.replace("(0, _, 0", "(0, _, _")),
    Mutation("any-partition", "ValidatePacket", _DATA, _DATA.replace("0x7fff &&& 0x7fff", "_")),
    Mutation("any-ip-checksum", "ValidatePacket",
             "(0, 1, _, _, _, _, _, _): refuse(drop_t.ValidatePacket_bad_ip_checksum);", ""),
    Mutation("epoch-ignored", "ClassifyTraffic", "meta.flow.mark = meta.flow.mark + (bit<32>)epoch;", ""),
    Mutation("epoch-is-one", "ClassifyTraffic", "meta.flow.epoch = epoch;", "meta.flow.epoch = 1;"),
    Mutation("complete-at-once", "CheckDuplicate",
             "arrived[3:0] == meta.flow.source_mask[3:0]", "arrived[3:0] != 0"),
    Mutation("last-ack-request-wins", "CheckDuplicate", "if (arrived[31:31] == 1) { bth.ack_request = 1; }", ""),
    Mutation("sum-wraps", "AggregateData", "held |+| element", "held + element"),
    Mutation("arp-replies-answered", "AnswerArp", "if (requests.apply().hit) { neighbours.apply(); }",
             "neighbours.apply();"),
    Mutation("one-address-for-all", "TranslateHeader", "meta.lookup.edge = eg_intr_md.egress_rid;", ""),
    Mutation("ticks-from-anywhere", "PacketParser", "            TICK_PORT: parse_ticking;\n            default:"
             " parse_malformed;", "            default: parse_ticking;"),
    Mutation("cursors-from-anywhere", "PacketParser", "(RECIRCULATION_PORT, opcode_t.CURSOR):  parse_cursor;",
             "(_, opcode_t.CURSOR):  parse_cursor;"),
    Mutation("one-pipe", "ClassifyTraffic", "meta.flow.pipe = pipe;", "meta.flow.pipe = 0;"),
    Mutation("range-too-small", "CheckRange", "meta.range.offset & meta.flow.outside;",
             "(meta.range.offset + 0x100) & meta.flow.outside;"),
    Mutation("any-range", "CheckRange", "meta.range.offset & meta.flow.outside;", "0;"),
    Mutation("range-never-moves", "CheckRange", "kind_t.COUNTED: move();", ""),
    Mutation("range-epoch-ignored", "CheckRange",
             "            if (word.epoch == meta.flow.epoch) { result = word.psn; }\n" + _ADVANCE,
             "            result = word.psn;\n" + _ADVANCE),
    Mutation("never-sent-is-believed", "TrackSent", "meta.drop = drop_t.TrackSent_never_sent;", ""),
    Mutation("sent-is-not-kept", "TrackSent", "                word.psn = meta.flow.next;\n", ""),
    Mutation("gap-after-not-ready", "CheckOrder", "        raise.execute(meta.lookup.edge);\n        meta.drop = ",
             "        meta.drop = "),
    Mutation("duplicates-unanswered", "CheckOrder",
             "CheckOrder_duplicate;\n        meta.order.answers = 1;", "CheckOrder_duplicate;"),
    Mutation("nak-storm", "CheckOrder", "if (before != epoch) {", "if (true) {"),
    Mutation("no-nak", "CheckOrder", "if (before != epoch) {", "if (false) {"),
    Mutation("second-gap-silent", "CheckOrder", "        clear.execute(meta.lookup.edge);\n", ""),
    Mutation("gaps-accepted", "CheckOrder", "(0, 0, _): accept();", "(0 &&& 0x80000000, 0, _): accept();"),
    Mutation("ack-for-all", "CheckOrder", "meta.order.answers = bth.ack_request;", "meta.order.answers = 1;"),
    Mutation("ack-too-far", "CheckOrder", "meta.order.answer = turn - ONE_PSN;", "meta.order.answer = turn;"),
    Mutation("nak-too-early", "CheckOrder",
             "drop_t.CheckOrder_gap;\n        meta.order.answer = turn;",
             "drop_t.CheckOrder_gap;\n        meta.order.answer = turn - ONE_PSN;"),
    Mutation("old-ack-wins", "ReceiveAck", "if (word.psn - through < 0) { word.psn = through; }",
             "word.psn = through;"),
    Mutation("nak-acknowledges-its-own", "ReceiveAck", "else { meta.progress.through = meta.flow.tag; }",
             "else { meta.progress.through = meta.flow.next; }"),
    Mutation("fastest-decides", "ReceiveAck", "distance_0 = min(distance_0, distance_1);",
             "distance_0 = max(distance_0, distance_1);"),
    Mutation("acks-of-others", "ReceiveAck", "(kind_t.CHECKED, 0, 1): compare();",
             "(kind_t.CHECKED, 0, 1): receive();"),
    Mutation("ticks-forgotten", "ResendTimer", "{ word.ticks = word.ticks + 1; }", "{ word.ticks = 1; }"),
    Mutation("no-back-off", "ResendTimer", "            17: resend();", "            4: resend();"),
    Mutation("messages-uncounted", "CountMessages", "else { word.psn = word.psn + 1; }", "else { }"),
    Mutation("packets-counted", "CountMessages", "(1, opcode_t.SEND_FIRST): goes_on();", ""),
    Mutation("middles-counted", "CountMessages", "(1, opcode_t.SEND_MIDDLE): goes_on();", ""),
    Mutation("duplicates-counted", "CountMessages", "const default_action = goes_on;", "const default_action = ends;"),
    Mutation("msn-epoch-ignored", "CountMessages",
             "if (word.epoch != meta.flow.epoch) { word.psn = 1; } else { word.psn = word.psn + 1; }",
             "word.psn = word.psn + 1;"),
    Mutation("tick-skips-one", "StartCursor", "hdr.bth.psn = meta.path.oldest[31:8];",
             "hdr.bth.psn = meta.path.oldest[31:8] + 1;"),
    Mutation("naks-ignored", "StartCursor", "(kind_t.COUNTED, SYNDROME_NAK, _): resend();", ""),
    Mutation("all-answers-resend", "StartCursor", "(kind_t.COUNTED, SYNDROME_NAK, _): resend();",
             "(kind_t.COUNTED, _, _): resend();"),
    Mutation("cursor-takes-any-slot", "CheckDuplicate",
             "if (word.tag == meta.flow.mark) { result = word.arrived; }", "result = word.arrived;"),
    Mutation("resent-without-ackreq", "Retransmission", "hdr.bth.ack_request = 1;                   ", "//"),
    Mutation("opcode-forgotten", "Retransmission", "hdr.bth.opcode = opcode_t.SEND_FIRST;",
             "hdr.bth.opcode = opcode_t.SEND_ONLY;"),
    Mutation("immediate-forgotten", "Retransmission", "{ word = hdr.immediate.value; }", "{ word = 0; }"),
    Mutation("resent-to-port-zero", "Retransmission", "ig_tm_md.ucast_egress_port = meta.lookup.port;",
             "ig_tm_md.ucast_egress_port = 0;"),
    Mutation("completing-ack-lost", "SendAck", "if (meta.order.answers == 1) {",
             "if (meta.order.answers == 1 && meta.buffer.complete == 0) {"),
    Mutation("answers-to-the-next-port", "SendAck", "meta.answer.copy_session = meta.lookup.session;",
             "meta.answer.copy_session = meta.lookup.session + 1;"),
    Mutation("cursor-stands-still", "Retransmission", "meta.answer.copy_psn = hdr.bth.psn + 1;",
             "meta.answer.copy_psn = hdr.bth.psn + 2;"),
    Mutation("resent-keeps-marks", "StartCursor", f"hdr.bth.reserved1 = 0;{40 * ' '}// FECN", "// FECN"),
    Mutation("answer-keeps-its-psn", "MakeAck", "hdr.bth.psn = meta.answer.copy_psn;\n        hdr.aeth", "hdr.aeth"),
)  # fmt: skip
"""Faults of the list where the templates differ."""
OWN: Final = (
    Mutation("origin-forgotten", "SendAck", "meta.order.answer - meta.flow.origin", "meta.order.answer"),
    Mutation("unchecked-is-counted", "StartCursor", "(kind_t.ANSWER, _, _): check();",
             "(kind_t.ANSWER, _, _): count();"),
    Mutation("checked-from-anywhere", "PacketParser", "(RECIRCULATION_PORT, opcode_t.CHECKED): parse_checked;",
             "(_, opcode_t.CHECKED): parse_checked;"),
    Mutation("counted-too-early", "StartCursor", "hdr.aeth.msn = meta.progress.lowest[31:8];",
             "hdr.aeth.msn = meta.progress.through[31:8];"),
    Mutation("new-epoch-takes-any-psn", "CheckOrder", "word.epoch != meta.flow.epoch && meta.flow.tag == 0",
             "word.epoch != meta.flow.epoch"),
    Mutation("taken-out-of-range", "CheckOrder", "const default_action = out_of_range;",
             "const default_action = in_range;"),
    Mutation("turn-not-kept", "CheckOrder", _TAKEN + "\n                word.psn = word.psn + ONE_PSN;", _TAKEN),
    Mutation("far-is-near", "ReceiveAck", "FAR       = 0x7fffffff;", "FAR       = -0x80000000;"),
    Mutation("rest-is-sent", "EgressParser", "(form_t.ANSWER, ETHERTYPE_IPV4): parse_rest;", ""),
    Mutation("answer-without-icrc", "MakeAck", "        hdr.icrc.setValid();\n", ""),
    Mutation("cursors-addressed", "IncEgress", "if (meta.path.form == form_t.CURSOR) {", "if (false) {"),
    Mutation("mirrored-as-a-result", "SendAck", "meta.answer.copy_form = form_t.ANSWER;", ""),
    Mutation("recirculated-through-egress", "IncIngress",
             "meta.lookup.kind == kind_t.ORDINARY || meta.path.goes_round == 1", "meta.lookup.kind == kind_t.ORDINARY"),
    Mutation("result-not-noted", "Retransmission", "kind_t.CONTROL: note();", ""),
    Mutation("idle-timer-runs", "ResendTimer", "const default_action = idles;", "const default_action = waits;"),
)  # fmt: skip
"""Faults that only these programs can have."""
NONE: Final[Mapping[str, str]] = {
    "sr": "selective",
    "sack": "selective",
    "dynamic": "op dynamic has too many actions for a register",
    "ordered": "fold ordered accesses a register for each edge of each lane in a pass",
    "pipelines": "several pipelines need recirculation between them",
    "TrackInvocation": "announcements",
    "FindContext": "what may be announced is in the keys of flows, not in the program",
    "NotifyCongestion": "notifications",
    "RelayNotification": "where notifications go is in the entries of flows, not in the program",
    "ResendTimer": "timers",
    "CheckIcrc": "icrc",
    "SetIcrc": "icrc",
    "RecycleBuffer": "left_over",
    "any-opcode-mix": "mixed_opcode",
    "any-control-mix": "announcements",
    "announcement-not-kept": "announcements",
    "invalid-unanswered": "mixed_opcode",
    "tag-not-counted": "padding",
    "nothing-stands-still": "patterns",
    "all-stands-still": "patterns",
    "direction-ignored": "which way an edge leads is in the entries of flows, not in the program",
    "range-off-by-one": "the bits beyond the range are in the entries of flows, not in the program",
    "wrap-forgotten-in-range": "answers recirculate in order, so that psnStart is set without a comparison",
    "range-starts-at-the-acked": "PSNs are kept that are one behind the acknowledged ones",
    "old-ack-moves-the-range-too-far": "patterns",
    "old-ack-moves-the-range-by-one-too-far": "patterns",
    "end-is-one-later": "patterns",
    "other-range-stays": "patterns",
    "sent-before-the-wrap-counts": "patterns",
    "cursor-sends-the-unsent": "patterns",
    "one-pipe-sends": "one register has the words of both pipes",
    "announced-though-refused": "announcements",
    "announcements-not-needed": "announcements",
    "announced-off-by-one": "announcements",
    "switches-are-notified": "notifications",
    "nobody-is-notified": "notifications",
    "no-becn": "notifications",
    "cursor-takes-the-tag-back": "no tag is remembered: cursors and ticks have their own",
    "resent-with-the-ticks-ecn": "notifications",
    "naks-start-the-timer": "timers",
    "probes-are-bursts": "timers",
    "answer-with-payload": "the session cuts an answer's payload off",
}
"""Why a fault has no form, by its name, its module, or its program: a capability's name, or a reason."""
FIRST: Final = ("test_iii_order", "test_iii_range")


def seeding(spec: EpicSpec) -> Seeding:
    """The faults of such a program."""
    forms = {fault.name: fault for fault in FORMS}
    reasons = dict(_without(spec, forms))
    listed = [forms.get(fault.name, fault) for fault in faults_iii.MODE_III if fault.name not in reasons]
    first = faults_iii.SEEDING.first
    return replace(
        faults_iii.SEEDING,
        mutations=(*listed, *OWN),
        programs={"plain": faults_iii.PROGRAMS["plain"]},
        tests={},
        first={
            **first,
            "ClassifyTraffic": ("test_iii_generations", "test_iii_range"),
            "CheckDuplicate": (*FIRST, "test_iii_generations", "test_iii_retransmission"),
            "PacketParser": ("test_iii_retransmission", "test_iii_collectives"),
            "EgressParser": FIRST,
            "IncEgress": ("test_iii_retransmission",),
            "IncIngress": FIRST,
        },
        left_out=reasons,
    )


def _without(spec: EpicSpec, forms: Mapping[str, Mutation]) -> Iterator[tuple[str, str]]:
    """The names of faults of the list that have no form, and why."""
    why = {each.name: each.reason for each in capabilities(spec)}
    for fault in faults_iii.MODE_III:
        if fault.name not in forms and fault.name not in SAME:
            found = next(key for key in (fault.name, fault.program, fault.module) if key in NONE)
            yield fault.name, why.get(NONE[found], NONE[found])
