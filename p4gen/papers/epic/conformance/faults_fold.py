"""Faults of what only programs have that fold payloads: the way of a packet through several pipes, and back."""

from __future__ import annotations

from typing import Final

from p4gen.papers.epic.conformance.faults_ii import SIZE
from p4gen.ptf.mutations import Mutation

PROGRAM: Final[dict[str, object]] = {**SIZE, "payload_pipes": 2}
TESTS: Final = ("test_static_fold", "test_aggregation", "test_reliability", "test_vlan")


def _fault(name: str, module: str, find: str, replacement: str) -> Mutation:
    return Mutation(name, module, find, replacement, "folded")


FOLDED: Final = (
    _fault("visit-not-counted", "FoldPayload", "hdr.fold.visits = visits;", ""),
    _fault("first-visit-not-counted", "FoldPayload", "hdr.fold.visits = 1;", "hdr.fold.visits = 0;"),
    _fault("no-way-back", "FoldPayload", "ways.apply();",
           "if (meta.lookup.visits == 0) { ways.apply(); } else { hdr.fold.setInvalid(); }"),
    _fault("part-is-not-put-back", "PacketParser", "hdr.payload.setValid(); transition accept;", "transition accept;"),
    _fault("part-goes-on", "FoldPayload", "hdr.payload.setInvalid();\n        hdr.fold.setValid();",
           "hdr.fold.setValid();"),
    _fault("part-of-another-slot", "ClassifyTraffic", "meta.flow.slot = meta.lookup.own_slot + base;",
           "meta.flow.slot = (meta.lookup.own_slot + base) ^ (slot_t)(meta.lookup.visits >> 1);"),
    _fault("part-of-this-packet", "AggregateData", "(slot_use_t.REPEAT, kind_t.DATA): repeat();", ""),
    _fault("repetition-ends-in-its-pipe", "FoldPayload",
           "meta.fold.goes_on = 1;\n        meta.drop = drop_t.NONE;", "meta.fold.goes_on = 1;"),
    _fault("every-result-is-a-repetition", "FoldPayload", "hdr.fold.again = hdr.fold.again & again;", ""),
    _fault("no-result-is-a-repetition", "FoldPayload", "hdr.fold.again = again;", "hdr.fold.again = 0;"),
    _fault("sender-forgotten", "FoldPayload", "hdr.fold.sender = ig_intr_md.ingress_port;", "hdr.fold.sender = 0;"),
    _fault("sender-is-another-pipe", "ReplicateData", "ig_tm_md.ucast_egress_port = meta.lookup.sender;",
           "ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;"),
    _fault("fold-leaves", "FoldPayload", "action end() { hdr.fold.setInvalid(); }", "action end() { }"),
    _fault("through-egress-on-its-way", "IncIngress", " || meta.fold.goes_on == 1", ""),
    _fault("result-on-its-way", "IncIngress", " && meta.fold.goes_on == 0) {\n                        replicate",
           ") {\n                        replicate"),
    _fault("control-messages-go-on", "IncIngress",
           "if (meta.lookup.kind == kind_t.DATA) {\n                        fold",
           "if (true) {\n                        fold"),
    _fault("last-part-without-icrc", "PacketParser", "packet.extract(hdr.payload); transition parse_icrc;",
           "packet.extract(hdr.payload); transition accept;"),
    _fault("tag-not-parsed-on-its-way", "PacketParser", "            ETHERTYPE_VLAN: last_vlan;\n", ""),
    _fault("tag-not-parsed-on-its-way-back", "PacketParser", "            ETHERTYPE_VLAN: back_vlan;\n", ""),
)  # fmt: skip
