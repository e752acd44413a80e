"""Faults to seed into Themis's programs for architectures whose registers have few actions."""

from __future__ import annotations

from p4gen.ptf.mutations import Mutation, Seeding

_SIZE = {"mode": "themis", "paths": 4, "path_sets": 4, "connections": 4, "ports": 8}

_FAULTS = (
    Mutation("spray-by-qp", "FindPath", "bth.psn[7:0]: ternary", "bth.dest_qp[7:0]: ternary"),
    Mutation("base-forgotten", "SprayPath", "choice = choice + meta.path.path;", "choice = meta.path.path;"),
    Mutation("nacks-sprayed", "SprayPath", "meta.flow.kind == kind_t.SPRAYED", "meta.flow.kind != kind_t.ORDINARY"),
    Mutation("all-but-writes", "FindPath", "(_, transport_t.REQUEST, _, 1, _, _, _, _): ordinary();", ""),
    Mutation("strangers-believed", "FindFlow", "meta.flow.stranger = 1;", ""),
    Mutation("any-port-believed", "CheckAnswer", "meta.flow.bad_port = 1;", ""),
    Mutation("any-icrc-believed", "CheckAnswer", "meta.flow.bad_icrc = 1;", ""),
    Mutation("no-stride", "FindPath", "meta.path.previous = meta.path.serial - meta.path.stride;",
             "meta.path.previous = meta.path.serial - NEXT;"),
    Mutation("late-mark-one-short", "FindPath", "meta.path.late_mark = meta.path.serial - NEXT;",
             "meta.path.late_mark = meta.path.serial;"),
    Mutation("epoch-ignored", "RecordClass", "if (word.owner == (int<32>)meta.flow.of_class) { known = word.psn; }\n"
             "            if (word.owner != (int<32>)meta.flow.of_class || word.psn - meta.path.serial < 0)",
             "known = word.psn;\n            if (word.psn - meta.path.serial < 0)"),
    Mutation("nothing-late", "RecordClass", "meta.path.late_mark = meta.path.serial; }", "}"),
    Mutation("gaps-not-filled", "RecordClass", "(_, _, _): fills();", "(_, _, _): follows();"),
    Mutation("gaps-not-opened", "RecordClass", "(_, _, 0x80000000 &&& 0x80000000): opens();", ""),
    Mutation("gap-for-ever", "RecordClass", "meta.path.doubt_mark = open.execute(", "open.execute("),
    Mutation("verdict-lost-is-late", "JudgeNack", "(_, _, _, 1, 0, _, _): judge(verdict_t.LOST);", ""),
    Mutation("verdict-late-passes", "JudgeNack", "(_, _, _, _, _, _, 1): judge(verdict_t.LATE);", ""),
    Mutation("doubt-ignored", "JudgeNack", "(_, _, _, 0, _, 1, _): judge(verdict_t.NO_EVIDENCE);", ""),
    Mutation("never-disarmed", "BlockedNack", "owner = word.owner;\n                word.owner = 0;",
             "owner = word.owner;"),
    Mutation("any-class-compensates", "BlockedNack", "if (word.owner == (int<32>)meta.flow.of_class && word.psn",
             "if (word.psn"),
    Mutation("older-compensates", "BlockedNack", "of_class && word.psn - meta.path.serial <= 0) {", "of_class) {"),
    Mutation("msn-zero", "BlockedNack", "msn = (bit<32>)hdr.aeth.msn;", "msn = 0;"),
    Mutation("addresses-not-swapped", "MakeNack", "hdr.ipv4.dst_addr = hdr.ipv4.src_addr;", ""),
    Mutation("syndrome-of-an-ack", "MakeNack", "hdr.aeth.syndrome = SYNDROME_NAK;", "hdr.aeth.syndrome = 0;"),
    Mutation("icrc-stale", "IncEgress", "set_icrc.apply(hdr);", ""),
)  # fmt: skip


def _queue(name: str, module: str, find: str, replace: str) -> Mutation:
    return Mutation(name, module, find, replace, program="queue")


_OF_QUEUE = (
    _queue("tail-stuck", "RecordPsn", "word.place = word.place + 1;", "word.place = word.place;"),
    _queue("tail-epoch-ignored", "RecordPsn", "if (word.owner == meta.flow.owner) { at = word.place; }",
           "at = word.place;"),
    _queue("path-not-compared", "JudgeNack", "(1, 1, 0x00000000 &&& 0x80000000): tell(LARGER);",
           "(1, 1, 0x00000000 &&& 0x80000000): tell(LARGER | SAME_PATH);"),
    _queue("its-path-unseen", "JudgeNack", "(1, 1, 0x00000000 &&& 0x800000ff): tell(LARGER | SAME_PATH);", ""),
    _queue("epsn-unseen", "JudgeNack", "(1, 1, 0): tell(ARRIVED);", ""),
    _queue("seen-forgotten", "RecordPsn", "hdr.next.seen = meta.judgement.seen;", "hdr.next.seen = 0;"),
    _queue("newest-row-whole", "RecordPsn", "(0, 1, _, _): read(0x03, 0);", "(0, 1, _, _): read(0x0f, 0);"),
    _queue("row-skipped", "RecordPsn", "hdr.next.row = meta.queue.row - 4;", "hdr.next.row = meta.queue.row - 8;"),
    _queue("overwritten-counts", "RecordPsn", "(1, 1, _, 16 &&& 0xfffffffc): read(0x0c, 1);",
           "(1, 1, _, 16 &&& 0xfffffffc): read(0x0f, 1);"),
    _queue("walk-one-row-short", "RecordPsn", "(1, _, _, 0 &&& 0xfffffff0): read(0x0f, 0);",
           "(1, _, _, 0 &&& 0xfffffff0): read(0x0f, 1);"),
    _queue("late-untold", "JudgeNack", "(_, _, LATE &&& LATE): judge(verdict_t.LATE);", ""),
    _queue("lost-is-unknown", "JudgeNack", "(_, _, SAME_PATH &&& SAME_PATH): judge(verdict_t.LOST);", ""),
    _queue("port-forgotten", "IncIngress", "hdr.next.port = (bit<16>)ig_tm_md.ucast_egress_port;", ""),
    _queue("never-armed", "BlockedNack", "word.psn = word.psn + 1;", ""),
    _queue("decided-waits", "JudgeNack", "meta.judgement.verdict = verdict;\n        meta.flow.of_class = 0;",
           "meta.judgement.verdict = verdict;"),
    _queue("path-unknown", "FindPath", "meta.path.mine[7:0] = path[7:0];", ""),
    _queue("own-nack-walks", "EgressParser", "hdr.mark.walking = 0;", "hdr.mark.walking = 1;"),
)  # fmt: skip

_FIRST = {
    "FindFlow": ("test_ends", "test_spray"),
    "FindPath": ("test_spray", "test_classes", "test_psn_queue"),
    "RecordPsn": ("test_psn_queue",),
    "SprayPath": ("test_spray", "test_psn_queue"),
    "CheckAnswer": ("test_ends",),
    "RecordClass": ("test_classes",),
    "JudgeNack": ("test_classes", "test_psn_queue"),
    "BlockedNack": ("test_compensation",),
    "MakeNack": ("test_compensation",),
    "IncEgress": ("test_compensation",),
}


def seeding(arch: str) -> Seeding:
    """The faults of programs for an architecture."""
    plain = {**_SIZE, "arch": arch}
    queue = {**plain, "queue": 16, "queue_banks": 4}
    return Seeding((*_FAULTS, *_OF_QUEUE), {"plain": plain, "queue": queue}, first=_FIRST)
