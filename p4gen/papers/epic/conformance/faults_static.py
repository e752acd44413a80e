"""Faults to seed into programs of static groups: Mode II's list in their form, and what only these programs have.

A fault of Mode II's list keeps its text where the templates are the same, has another one in ``FORMS``, or none, for
the reason that ``NONE`` gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from p4gen.papers.epic.capabilities import capabilities
from p4gen.papers.epic.conformance import faults_fold, faults_ii
from p4gen.papers.epic.conformance import faults_tna_icrc as icrc
from p4gen.papers.epic.conformance.faults_tna import OWN
from p4gen.papers.epic.conformance.faults_tna_slots import OWNERS, SLOTS
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.tofino import tells_stale
from p4gen.ptf.mutations import Mutation, Seeding
from p4gen.vocabulary import Icrc

_DATA = "(0, _, 0, 0x7fff &&& 0x7fff, 0, kind_t.DATA, _, DATA_LENGTH + 20): NoAction();"
FORMS: Final = (
    Mutation("shared-slots", "ClassifyTraffic", "meta.flow.slot = meta.lookup.own_slot + base;",
             "meta.flow.slot = meta.lookup.own_slot;"),
    Mutation("half-the-buffer", "LookupTable", "(slot_t)hdr.bth.psn[15:0] & mask;",
             "(slot_t)hdr.bth.psn[15:0] & (mask >> 1);"),
    Mutation("any-length", "ValidatePacket", _DATA, _DATA.replace("DATA_LENGTH + 20", "_")),
    Mutation("any-version", "ValidatePacket", _DATA, _DATA.replace("(0, _, 0", "(0, _, _")),
    Mutation("any-partition", "ValidatePacket", _DATA, _DATA.replace("0x7fff &&& 0x7fff", "_")),
    Mutation("any-ip-checksum", "ValidatePacket",
             "(0, 1, _, _, _, _, _, _): refuse(drop_t.ValidatePacket_bad_ip_checksum);", ""),
    Mutation("complete-at-once", "CheckDuplicate", "meta.buffer.arrived == meta.flow.source_mask",
             "meta.buffer.arrived != 0"),
    Mutation("sum-wraps", "AggregateData", "held |+| element", "held + element"),
    Mutation("arp-replies-answered", "AnswerArp", "if (requests.apply().hit) { neighbours.apply(); }",
             "neighbours.apply();"),
    Mutation("one-address-for-all", "TranslateHeader", "meta.lookup.edge = eg_intr_md.egress_rid;", ""),
    Mutation("everything-is-claimed", "LookupTable", "action ordinary() { meta.lookup.kind = kind_t.ORDINARY; }",
             "action ordinary() { }"),
    Mutation("slot-off-by-one", "LookupTable", "(slot_t)hdr.bth.psn[15:0] & mask;",
             "((slot_t)hdr.bth.psn[15:0] & mask) + 1;"),
    Mutation("no-duplicate-check", "CheckDuplicate", "meta.buffer.slot_use = slot_use_t.REPEAT;",
             "meta.buffer.slot_use = slot_use_t.MERGE;"),
    Mutation("duplicate-unanswered", "CheckDuplicate", "meta.buffer.complete = 1;",
             "meta.buffer.complete = 1;\n            if (meta.buffer.slot_use == slot_use_t.REPEAT) "
             "{ meta.drop = drop_t.CheckDuplicate_duplicate; }"),
    Mutation("old-data-added", "AggregateData", "(slot_use_t.FRESH, kind_t.DATA): begin();",
             "(slot_use_t.FRESH, kind_t.DATA): merge();"),
    Mutation("sum-unsigned", "AggregateData", "held |+| element", "(lane_t)((bit<32>)held |+| (bit<32>)element)"),
    Mutation("repeat-returns-own-data", "AggregateData", "(slot_use_t.REPEAT, kind_t.DATA): repeat();", ""),
    Mutation("result-not-replicated", "ReplicateData",
             "                ig_tm_md.mcast_grp_a = meta.flow.out_group;             // line 25",
             "                ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;"),
    Mutation("ack-to-another-port", "ReflectAck",
             "apply {\n        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;",
             "apply {\n        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port ^ 1;"),
    Mutation("checksum-not-mended", "Forward", "if (next_hops.apply().hit) { checksums.apply(); }",
             "next_hops.apply();"),
    Mutation("ttl-never-expires", "Forward", "hdr.ipv4.ttl == 0 || hdr.ipv4.ttl == 1", "false"),
    Mutation("ip-checksum-stale", "EgressDeparser", "if (hdr.ipv4.isValid()) {\n            hdr.ipv4.checksum",
             "if (false) {\n            hdr.ipv4.checksum"),
    Mutation("drops-uncounted", "IncIngress",
             "drops.count((bit<8>)meta.drop);\n            ig_dprsr_md.drop_ctl = 1;", "ig_dprsr_md.drop_ctl = 1;"),
    Mutation("unknown-flow-ignored", "IncIngress", "meta.drop = drop_t.ClassifyTraffic_no_flow;", ""),
)  # fmt: skip
"""Faults of the list where the templates differ. Those of a slot's access are in ``faults_tna_slots``."""
NONE: Final[Mapping[str, str]] = {
    "dynamic": "dynamic",
    "floats": "floats",
    "least of floats": "floats",
    "gbn": "in_order",
    "pipelines": "pipelines",
    "TrackInvocation": "announcements",
    "FindContext": "what may be announced is in the keys of flows, not in the program",
    "CombineAcks": "broadcast",
    "any-opcode-mix": "mixed_opcode",
    "last-ack-request-wins": "ack_request",
    "tag-not-counted": "padding",
    "trailing-bytes": "padding",
    "idle-slot-is-newer": "announcements",
    "broadcast-takes-no-slot": "broadcast",
    "announced-though-not-served": "announcements",
    "overflow-uncounted": "overflows",
    "nak-becomes-ack": "egress does not parse the AETH",
    "unknown-pattern-ignored": "patterns",
    "up-is-down": "which way an edge leads is in the entries of flows, not in the program",
    "nothing-is-down": "which way an edge leads is in the entries of flows, not in the program",
    "control-is-an-answer": "which way an edge leads is in the entries of flows, not in the program",
    "answers-from-below-are-from-above": "which way an edge leads is in the entries of flows, not in the program",
    "answers-are-not-combined": "broadcast",
    "notifications-are-combined": "broadcast",
    "broadcast-never-begins": "broadcast",
    "stale-starts-afresh": "stale",
    "early-starts-afresh": "early",
    "early-for-ever": "early",
    "early-moves-the-slot": "early",
    "complete-is-forgotten": "early",
    "wrap-forgotten": "stale",
}
"""Why a fault has no form, by its name, its module, or its program: a capability's name, or a reason."""


def seeding(spec: EpicSpec) -> Seeding:
    """The faults of a program of static groups."""
    narrow = spec.architecture.egress_bytes > 0
    of_icrc = (*icrc.SET, *icrc.CHECK, *(() if narrow else icrc.SPANS))
    forms = {fault.name: fault for fault in (*FORMS, *_of_slots(spec), *of_icrc)}
    reasons = dict(_without(spec, forms))
    listed = [forms.pop(fault.name, fault) for fault in faults_ii.MODE_II if fault.name not in reasons]
    every = (*listed, *forms.values(), *OWN, *faults_fold.FOLDED)
    tests = faults_ii.SEEDING.first
    first = {**tests, **{module: (*FIRST, *tests.get(module, ())) for module in ("CheckDuplicate", "ClassifyTraffic")}}
    return replace(
        faults_ii.SEEDING,
        mutations=every,
        programs={
            "plain": faults_ii.PROGRAMS["plain"],
            icrc.PROGRAM: faults_ii.SIZE | {"icrc": Icrc.RECOMPUTE, "lanes": 8 if narrow else 32},
            "folded": faults_fold.PROGRAM,
        },
        tests={icrc.PROGRAM: icrc.TESTS, "folded": faults_fold.TESTS},
        first={**first, "EgressParser": ("test_reliability",), "EgressDeparser": ("test_reliability",)},
        left_out=reasons,
    )


FIRST: Final = ("test_static_slots", "test_static_groups")


def _of_slots(spec: EpicSpec) -> tuple[Mutation, ...]:
    return OWNERS if tells_stale(spec) else SLOTS


def _without(spec: EpicSpec, forms: Mapping[str, Mutation]) -> Iterator[tuple[str, str]]:
    """The names of faults of the list that have no form, and why."""
    why = {each.name: each.reason for each in capabilities(spec)}
    for fault in faults_ii.MODE_II:
        if fault.name in forms:
            continue
        for key in (fault.name, fault.program, fault.module):
            if key in NONE:
                yield fault.name, why.get(NONE[key], NONE[key])
                break
