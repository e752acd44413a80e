"""Faults to seed into Themis's programs; the scenarios must notice each."""

from __future__ import annotations

from p4gen.ptf.mutations import Mutation, Seeding

SIZE = {"mode": "themis", "paths": 4, "path_sets": 4, "connections": 4, "queue": 16, "queue_banks": 4, "ports": 8}
PROGRAMS: dict[str, dict[str, object]] = {
    "plain": SIZE,
    "ack": {**SIZE, "blocked": "ack"},
    "classes": {name: value for name, value in SIZE.items() if not name.startswith("queue")} | {"evidence": "classes"},
    "cm": {**SIZE, "cm": "copy"},
    "s3": {**SIZE, "mode": "themis-s", "tiers": 3},
    "b3": {**SIZE, "tiers": 3},
    "d3": {**SIZE, "mode": "themis-d", "tiers": 3},
}

SPRAYING = (
    Mutation("spray-by-qp", "FindPath", "bth.psn[7:0]: ternary", "bth.dest_qp[7:0]: ternary"),
    Mutation("no-path-set-sprayed", "FindPath", ".miss) { meta.flow.kind = kind_t.ORDINARY; }", ".miss) {}"),
    Mutation(
        "base-forgotten", "SprayPath", "choice = choice + (bit<16>)meta.path.path;", "choice = (bit<16>)meta.path.path;"
    ),
    Mutation("base-twice", "SprayPath", "choice = choice + (bit<16>)", "choice = choice + choice + (bit<16>)"),
    Mutation("mask-off-by-one", "SprayPath", "if (choice >= choices)", "if (choice > choices)"),
    Mutation("nacks-sprayed", "SprayPath", "meta.flow.kind == kind_t.SPRAYED", "meta.flow.kind != kind_t.ORDINARY"),
    Mutation("answers-sprayed", "FindFlow", "if (is_request(hdr.bth.opcode) == 1) {", "if (true) {"),
    Mutation("read-responses-sprayed", "FindFlow", "if (opcode <= READ_REQUEST)", "if (opcode <= 0x10)"),
    Mutation("ud-sprayed", "FindFlow", "if (opcode <= SEND_ONLY_INVALIDATE)", "if (true)"),
    Mutation("resync-sprayed", "FindFlow", "if (opcode == RESYNC) { request = 0; }", ""),
    Mutation("atomics-not-sprayed", "FindFlow", "if (opcode >= COMPARE_SWAP) {", "if (false) {"),
    Mutation("all-but-writes", "FindFlow", "if (is_write < writes_only)", "if (false)"),
    Mutation("sends-are-writes", "FindFlow", "if (hdr.bth.opcode >= WRITE_FIRST) {", "if (true) {"),
)

QUEUE = (
    Mutation("tail-stuck", "RecordPsn", "next = next + 1;", ""),
    Mutation("tail-skips", "RecordPsn", "next = next + 1;", "next = next + 2;"),
    Mutation("full-one-early", "RecordPsn", "if (filled != QUEUE)", "if (filled != QUEUE - 1)"),
    Mutation(
        "banks-swapped", "RecordPsn", "(banks_t)1 << (bit<8>)place[1:0];", "(banks_t)1 << (bit<8>)(place[1:0] ^ 1);"
    ),
    Mutation("rows-mixed", "RecordPsn", "((bit<32>)place >> 2)", "((bit<32>)place >> 3)"),
    Mutation("queues-shared", "RecordPsn", "visit.row = meta.flow.connection * ROWS + ", "visit.row = "),
    Mutation("tails-shared", "RecordPsn", "tails.read(tail, meta.flow.connection);", "tails.read(tail, 0);"),
    Mutation("tail-epoch-ignored", "RecordPsn", "!= meta.flow.epoch) { filled = 0; }", "!= meta.flow.epoch) {}"),
    Mutation("filled-ignored", "RecordPsn", "count_t left = filled |-|", "count_t left = QUEUE |-|"),
    Mutation("oldest-read-twice", "RecordPsn", "here = here & (ALL_BANKS <<", "here = here | (ALL_BANKS <<"),
    Mutation("newest-row-skipped", "RecordPsn", "meta.queue.visited = 0;", "meta.queue.visited = QUEUE_BANKS;"),
    Mutation("walk-one-row-short", "RecordPsn", "if (left <= in_row) {", "if (left <= in_row + QUEUE_BANKS) {"),
    Mutation(
        "one-row-again-and-again",
        "RecordPsn",
        "place = meta.queue.newest - 1 - meta.queue.visited[3:0];",
        "place = meta.queue.newest - 1;",
    ),
    Mutation(
        "compare-unsigned", "RecordPsn", "} else if (ahead[15:15] == 0) {", "} else if (held[15:0] > visit.psn) {"
    ),
    Mutation(
        "equal-is-larger",
        "RecordPsn",
        "if (ahead == 0) {\n                    queue.arrived",
        "if (false) {\n                    queue.arrived",
    ),
    Mutation(
        "nack-writes-queue",
        "RecordPsn",
        "short_psn_t ahead = held[15:0] - visit.psn;",
        "short_psn_t ahead = held[15:0] - visit.psn;\n                psns.write(visit.row, visit.path ++ visit.psn);",
    ),
    Mutation(
        "any-path-is-the-same",
        "RecordPsn",
        "if (held[17:16] == visit.path) { queue.same_path = 1; }",
        "queue.same_path = 1;",
    ),
    Mutation(
        "first-larger-only",
        "RecordPsn",
        "queue.larger = 1;",
        "queue.larger = 1;\n                    queue.same_path = 0;",
    ),
    Mutation(
        "late-before-larger",
        "RecordPsn",
        "queue.late = queue.late | queue.arrived;",
        "queue.late = queue.late | ~queue.arrived;",
    ),
    Mutation(
        "oldest-bank-first",
        "RecordPsn",
        "bank_3.apply(visit, here[3:3], meta.queue);\n        bank_2.apply(visit, here[2:2], meta.queue);",
        "bank_2.apply(visit, here[2:2], meta.queue);\n        bank_3.apply(visit, here[3:3], meta.queue);",
    ),
)

JUDGING = (
    Mutation("late-check-missing", "JudgeNack", "if (meta.queue.late == 1) {", "if (false) {"),
    Mutation(
        "verdict-inverted", "JudgeNack", "else if (meta.queue.same_path == 1)", "else if (meta.queue.same_path == 0)"
    ),
    Mutation("no-evidence-blocked", "JudgeNack", "verdict = verdict_t.NO_EVIDENCE;", "verdict = verdict_t.UNKNOWN;"),
    Mutation("last-hop-unknown", "JudgeNack", "verdict = verdict_t.LAST_HOP;", "verdict = verdict_t.UNKNOWN;"),
    Mutation("late-is-armed", "JudgeNack", "verdict = verdict_t.LATE; ", "verdict = verdict_t.UNKNOWN; "),
    Mutation("rnr-blocked", "FindFlow", "if (hdr.aeth.syndrome == SYNDROME_NAK)", "if (hdr.aeth.syndrome[5:5] == 1)"),
    Mutation(
        "fatal-naks-blocked", "FindFlow", "if (hdr.aeth.syndrome == SYNDROME_NAK)", "if (hdr.aeth.syndrome[7:5] == 3)"
    ),
    Mutation("rnr-is-an-ack", "FindFlow", "else if (hdr.aeth.syndrome[7:5] != 0)", "else if (false)"),
    Mutation("bad-icrc-believed", "CheckAnswer", "if (hdr.icrc.crc != expected)", "if (false)"),
    Mutation(
        "bad-checksum-believed",
        "CheckAnswer",
        "if (std_meta.checksum_error != 0) { meta.flow.kind = kind_t.ORDINARY; }\n        if (std_meta.ingress_port",
        "if (std_meta.ingress_port",
    ),
    Mutation("any-port-believed", "CheckAnswer", "if (std_meta.ingress_port != meta.flow.port)", "if (false)"),
    Mutation(
        "spoilt-requests-believed",
        "CheckRequest",
        "if (std_meta.checksum_error != 0) { meta.flow.kind = kind_t.ORDINARY; }\n    }",
        "}",
    ),
    Mutation(
        "payloads-not-checked", "VerifyIpv4Checksum", "hdr.bth.isValid() && !hdr.icrc.isValid()", "hdr.arp.isValid()"
    ),
    Mutation("checksums-of-answers-only", "VerifyIpv4Checksum", "(hdr.bth.isValid(), {", "(hdr.aeth.isValid(), {"),
    Mutation("any-source-believed", "FindFlow", "if (hdr.ipv4.src_addr != peer)", "if (false)"),
)

CLASSES = tuple(
    Mutation(name, module, before, after, "classes")
    for name, module, before, after in (
        (
            "classes-shared",
            "RecordClass",
            "meta.flow.connection * PATHS + (bit<32>)meta.path.path",
            "meta.flow.connection",
        ),
        ("classes-of-all", "RecordClass", "meta.flow.connection * PATHS + ", ""),
        ("class-epoch-ignored", "RecordClass", "if (known[39:32] != meta.flow.epoch) { first = 1; }", ""),
        ("path-set-ignored", "RecordClass", "if (known[31:24] != meta.flow.path_set) { first = 1; }", ""),
        ("path-set-not-kept", "RecordClass", "meta.flow.epoch ++ meta.flow.path_set ++", "meta.flow.epoch ++ 8w0 ++"),
        ("nack-is-recorded", "RecordClass", "if ((records & newer) == 1)", "if (newer == 1)"),
        ("class-goes-back", "RecordClass", "if ((records & newer) == 1)", "if (records == 1)"),
        ("class-unsigned", "RecordClass", "newer | ~ahead[23:23];", "newer | (bth.psn > known[23:0] ? 1w1 : 0);"),
        ("old-gap-kept", "RecordClass", "if (first == 1) {", "if (false) {"),
        (
            "first-has-no-gap",
            "RecordClass",
            "start = bth.psn - FAR;\n                end = bth.psn - (psn_t)meta",
            "start = bth.psn;\n                end = bth.psn - (psn_t)meta",
        ),
        ("every-step-is-a-gap", "RecordClass", "if (ahead > (psn_t)meta.path.stride) {", "if (true) {"),
        ("no-gap", "RecordClass", "if (ahead > (psn_t)meta.path.stride) {", "if (false) {"),
        (
            "gap-one-late",
            "RecordClass",
            "if (ahead > (psn_t)meta.path.stride) {",
            "if (ahead >= (psn_t)meta.path.stride) {",
        ),
        ("gap-of-one", "RecordClass", "start = known[23:0];", "start = bth.psn - (psn_t)meta.path.stride - 1;"),
        (
            "gap-ends-early",
            "RecordClass",
            "start = known[23:0];\n                    end = bth.psn - (psn_t)meta.path.stride;",
            "start = known[23:0];\n                    end = start;",
        ),
        (
            "gap-stays-open",
            "RecordClass",
            "} else if (inside == 1) {\n                start = bth.psn;",
            "} else if (false) {",
        ),
        (
            "any-copy-closes",
            "RecordClass",
            "} else if (inside == 1) {\n                start",
            "} else {\n                start",
        ),
        ("gap-is-never-old", "RecordClass", "else if (age[23:16] != 0)", "else if (false)"),
        (
            "start-is-missing",
            "RecordClass",
            "= to_start[23:23] & ~to_end[23:23];",
            "= (to_start == 0 ? 1w1 : to_start[23:23]) & ~to_end[23:23];",
        ),
        ("end-has-come", "RecordClass", "& ~to_end[23:23];", "& (to_end == 0 ? 1w0 : ~to_end[23:23]);"),
        ("orders-shared", "RecordClass", "order.read(passed, meta.flow.connection);", "order.read(passed, 0);"),
        ("order-epoch-ignored", "RecordClass", "if (passed[79:72] != meta.flow.epoch) {", "if (false) {"),
        ("newest-goes-back", "RecordClass", "if (below[23:23] == 1) {", "if (true) {"),
        ("order-unsigned", "RecordClass", "= ~below[23:23];", "= largest > bth.psn ? 1w1 : 0;"),
        ("nack-is-larger", "RecordClass", "if (below != 0) { meta.classes.larger", "if (true) { meta.classes.larger"),
        ("newest-is-late", "RecordClass", "} else if (below != 0) {", "} else {"),
        ("all-are-late", "RecordClass", "meta.classes.late = ~to_late[23:23];", "meta.classes.late = 1;"),
        ("none-are-late", "RecordClass", "meta.classes.late = ~to_late[23:23];", "meta.classes.late = 0;"),
        ("late-stays", "RecordClass", "if (to_late[23:16] != 0)", "if (false)"),
        ("late-not-kept", "RecordClass", "if (to_late[23:23] == 1) { late = bth.psn; }", ""),
        ("late-goes-back", "RecordClass", "if (to_late[23:23] == 1) { late", "if (true) { late"),
        ("unsure-stays", "RecordClass", "if (to_unsure[23:16] != 0)", "if (false)"),
        ("unsure-not-kept", "RecordClass", "if (replaced == 1) {", "if (false) {"),
        ("unsure-of-closed-gaps", "RecordClass", "if (replaced == 1) {", "if (newer == 1) {"),
        ("unsure-goes-back", "RecordClass", "if (to_unsure[23:23] == 1)", "if (true)"),
        ("all-unsure", "RecordClass", "before & ~to_unsure[23:23]", "before"),
        (
            "after-the-gap-unsure",
            "RecordClass",
            "~newer & before & ~to_unsure[23:23]",
            "~newer & ~inside & ~to_unsure[23:23]",
        ),
        (
            "newer-has-come",
            "RecordClass",
            "meta.classes.arrived = ~newer & ~inside;",
            "meta.classes.arrived = ~inside;",
        ),
        (
            "newer-is-missing",
            "RecordClass",
            "meta.classes.missing = ~newer & inside;",
            "meta.classes.missing = newer | inside;",
        ),
        ("stride-lost", "FindPath", "meta.path.stride = stride;", ""),
        ("stride-is-paths", "FindPath", "meta.path.stride = stride;", "meta.path.stride = 4;"),
        ("forgotten-is-blocked", "JudgeNack", "if (meta.classes.forgotten == 1)", "if (false)"),
        ("nothing-larger-matters", "JudgeNack", "if (meta.classes.larger == 0)", "if (false)"),
        ("class-verdict-inverted", "JudgeNack", "if (meta.classes.missing == 1)", "if (meta.classes.missing == 0)"),
        ("unknown-is-late", "JudgeNack", "if (meta.classes.arrived == 0)", "if (false)"),
        ("last-hop-is-late", "JudgeNack", "if (meta.classes.late == 1)", "if (true)"),
        ("late-is-last-hop", "JudgeNack", "if (meta.classes.late == 1)", "if (false)"),
        ("late-arms-too", "BlockedNack", "if (event == verdict_t.UNKNOWN) {", "if (blocks == 0) {"),
        ("class-never-armed", "BlockedNack", "state = state_t.ARMED;", ""),
        ("late-passes", "BlockedNack", "if (event == verdict_t.LATE || event ==", "if (event =="),
        ("unknown-passes", "BlockedNack", "LATE || event == verdict_t.UNKNOWN)", "LATE)"),
        (
            "class-block-stays",
            "BlockedNack",
            "DISARMED;\n                counts = 1;\n                state = state_t.IDLE;",
            "DISARMED;\n                counts = 1;",
        ),
        (
            "class-compensates-twice",
            "BlockedNack",
            "COMPENSATED;\n                counts = 1;\n                state = state_t.IDLE;",
            "COMPENSATED;\n                counts = 1;",
        ),
        ("new-verdict-keeps-block", "BlockedNack", "counts = 1;\n            state = state_t.IDLE;", "counts = 1;"),
    )
)
"""Of programs that judge by classes."""

BLOCKING = (
    Mutation(
        "all-blocked",
        "BlockedNack",
        "if (event == verdict_t.LATE || event == verdict_t.UNKNOWN || event == verdict_t.ARRIVED)",
        "if (event != verdict_t.UNDECIDED)",
    ),
    Mutation(
        "all-forwarded",
        "BlockedNack",
        "if (event == verdict_t.LATE || event == verdict_t.UNKNOWN || event == verdict_t.ARRIVED)",
        "if (false)",
    ),
    Mutation("never-armed", "BlockedNack", "state = state_t.ARMED;", "state = state_t.IDLE;"),
    Mutation(
        "armed-on-forward",
        "BlockedNack",
        "} else if (event != verdict_t.UNKNOWN) {\n                    state = state_t.IDLE;",
        "} else if (event != verdict_t.UNKNOWN) {\n                    state = state_t.ARMED;",
    ),
    Mutation(
        "never-disarmed",
        "BlockedNack",
        "if (meta.flow.kind == kind_t.ACK || ahead == 0)",
        "if (meta.flow.kind == kind_t.ACK)",
    ),
    Mutation(
        "acks-disarm-nothing", "BlockedNack", "if (meta.flow.kind == kind_t.ACK || ahead == 0)", "if (ahead == 0)"
    ),
    Mutation("any-class-compensates", "BlockedNack", "} else if (path == meta.path.path) {", "} else {"),
    Mutation(
        "class-by-distance",
        "BlockedNack",
        "} else if (path == meta.path.path) {",
        "} else if (ahead == 2 || ahead == 3) {",
    ),
    Mutation("older-compensates", "BlockedNack", "state != state_t.IDLE && ahead[23:23] == 0", "state != state_t.IDLE"),
    Mutation(
        "compensates-twice",
        "BlockedNack",
        "event = verdict_t.COMPENSATED;\n                    counts = 1;\n                    state = state_t.IDLE;",
        "event = verdict_t.COMPENSATED;\n                    counts = 1;",
    ),
    Mutation(
        "blocked-epoch-ignored",
        "BlockedNack",
        "!= meta.flow.epoch) { state = state_t.IDLE; }",
        "!= meta.flow.epoch) {}",
    ),
    Mutation("blocks-shared", "BlockedNack", "blocked.read(word, meta.flow.connection);", "blocked.read(word, 0);"),
    Mutation("msn-not-kept", "BlockedNack", "msns.write(meta.flow.connection, hdr.aeth.msn);", ""),
    Mutation("verdicts-shared", "BlockedNack", "verdicts.count(meta.flow.connection * 16 + ", "verdicts.count("),
    Mutation("ack-of-epsn", "BlockedNack", "hdr.bth.psn = hdr.bth.psn - 1;", "", "ack"),
    Mutation("ack-icrc-stale", "BlockedNack", "meta.nack.changed = 1;", "", "ack"),
    Mutation("blocked-stays-a-nack", "BlockedNack", "hdr.aeth.syndrome = SYNDROME_ACK;", "", "ack"),
)


BETWEEN_PASSES = (
    Mutation("new-psns-are-compared", "RecordPsn", " |-| (count_t)(next - meta.queue.newest) |-| meta", " |-| meta"),
    Mutation("rows-move", "RecordPsn", "place = meta.queue.newest - 1 -", "place = next - 1 -"),
    Mutation("overtaking-unseen", "BlockedNack", "state = state_t.OVERTAKEN;", ""),
    Mutation("overtaken-is-unknown", "BlockedNack", "} else if (state == state_t.OVERTAKEN) {", "} else if (false) {"),
    Mutation("newer-nack-unseen", "BlockedNack", "if (ahead != 0) {\n", "if (false) {\n"),
    Mutation(
        "ack-between-passes-unseen",
        "BlockedNack",
        "} else if (state == state_t.IDLE) {\n                    event",
        "} else if (false) {\n                    event",
    ),
    Mutation(
        "judged-anew-in-each-pass",
        "BlockedNack",
        "if (meta.flow.again == 0) {\n                state = state_t.JUDGED",
        "if (true) {\n                state = state_t.JUDGED",
    ),
)
"""What comes between two passes of a NACK counts for it, or does not."""

COMPENSATION = (
    Mutation("psn-of-trigger", "MakeNack", "hdr.bth.psn = meta.nack.psn;", ""),
    Mutation("qp-of-responder", "MakeNack", "hdr.bth.dest_qp = meta.flow.requester;", ""),
    Mutation("msn-zero", "MakeNack", "hdr.aeth.msn = meta.nack.msn;", "hdr.aeth.msn = 0;"),
    Mutation(
        "addresses-not-swapped",
        "MakeNack",
        "hdr.ipv4.dst_addr = hdr.ipv4.src_addr;\n        hdr.ipv4.src_addr = nic;",
        "",
    ),
    Mutation("source-port-of-trigger", "MakeNack", "hdr.udp.src_port = meta.flow.answer_port;", ""),
    Mutation("dscp-of-trigger", "MakeNack", "hdr.ipv4.dscp = meta.flow.answer_tos[7:2];", ""),
    Mutation("mark-of-trigger", "MakeNack", "hdr.ipv4.ecn = meta.flow.answer_tos[1:0];", ""),
    Mutation("ttl-of-trigger", "MakeNack", "hdr.ipv4.ttl = 64;", ""),
    Mutation("length-of-trigger", "MakeNack", "hdr.ipv4.total_length = ACK_LENGTH + 20;", ""),
    Mutation("pad-of-trigger", "MakeNack", "hdr.bth.pad_count = 0;", ""),
    Mutation("ack-request-of-trigger", "MakeNack", "hdr.bth.ack_request = 0;", ""),
    Mutation("solicited-as-trigger", "MakeNack", "hdr.bth.solicited = 0;", ""),
    Mutation("udp-checksum-stale", "MakeNack", "hdr.udp.checksum = 0;", ""),
    Mutation("icrc-stale", "SetIcrc", "hdr.icrc.crc = icrc;", ""),
    Mutation("not-truncated", "IncEgress", "truncate(ACK_FRAME);", ""),
    Mutation("tag-not-counted", "IncEgress", "truncate(ACK_FRAME + 4);", "truncate(ACK_FRAME + 0);"),
    Mutation(
        "data-swallowed",
        "IncIngress",
        "(CloneType.I2E, NACK_SESSION, KEPT);",
        "(CloneType.I2E, NACK_SESSION, KEPT); meta.drop = drop_t.BlockedNack_blocked;",
    ),
    Mutation(
        "own-nack-filtered", "IncIngress", "if (meta.nack.changed == 1) { meta.flow.kind = kind_t.ORDINARY; }", ""
    ),
    Mutation("one-nack-for-ever", "IncIngress", "if (meta.nack.changed == 0) {", "if (true) {"),
)

PORTS = (
    Mutation("map-adds", "MapPath", "hdr.udp.src_port ^ delta", "hdr.udp.src_port + delta", "s3"),
    Mutation("map-of-next-path", "MapPath", "meta.path.path: exact", "meta.path.path + 1: exact", "s3"),
    Mutation("all-mapped", "MapPath", "if (meta.flow.kind == kind_t.SPRAYED) { path_map", "if (true) { path_map", "b3"),
    Mutation("port-checksum-stale", "MapPath", "hdr.udp.checksum == 0 ? 16w0 : checksum", "hdr.udp.checksum", "s3"),
    Mutation("checksum-invented", "MapPath", "hdr.udp.checksum == 0 ? 16w0 : checksum", "checksum", "s3"),
    Mutation("checksum-of-none", "MapPath", "checksum == 0 ? 16w0xffff : checksum;", "checksum;", "s3"),
    Mutation("mark-not-set", "MapPath", "hdr.bth.reserved1 | 1", "hdr.bth.reserved1", "s3"),
    Mutation("mark-counted-twice", "MapPath", "hdr.bth.reserved1[0:0] == 1 ? 16w0 : 16w0x0100", "16w0x0100", "s3"),
    Mutation("mark-kept", "RestorePort", "hdr.bth.reserved1 & 0xfe", "hdr.bth.reserved1", "d3"),
    Mutation("unmarked-restored", "RestorePort", "if (hdr.bth.reserved1[0:0] == 1) {", "if (true) {", "d3"),
    Mutation("port-not-restored", "RestorePort", "hdr.udp.src_port = port;", "", "d3"),
    Mutation(
        "restored-checksum-stale", "RestorePort", "hdr.udp.checksum == 0 ? 16w0 : checksum", "hdr.udp.checksum", "d3"
    ),
)

HANDSHAKES = (
    Mutation("cm-not-copied", "CopyCm", "action copy() { meta.cm.copied = 1; }", "action copy() { }", "cm"),
    Mutation("cm-of-any-class", "CopyCm", "if (hdr.mad.management_class == CM_CLASS)", "if (true)", "cm"),
    Mutation("cm-to-any-qp", "CopyCm", "if (hdr.bth.dest_qp == MANAGEMENT_QP)", "if (true)", "cm"),
    Mutation("cm-by-any-port", "CopyCm", "std_meta.ingress_port: exact", "std_meta.ingress_port & 4: exact", "cm"),
    Mutation(
        "cm-swallowed",
        "IncIngress",
        "(CloneType.I2E, CM_SESSION, KEPT);",
        "(CloneType.I2E, CM_SESSION, KEPT); meta.drop = drop_t.BlockedNack_blocked;",
        "cm",
    ),
    Mutation("cm-becomes-a-nack", "IncEgress", "if (meta.cm.copied == 0) {", "if (true) {", "cm"),
    Mutation("no-nack-beside-cm", "IncEgress", "if (meta.cm.copied == 0) {", "if (false) {", "cm"),
)

SEEDING = Seeding(
    (*SPRAYING, *QUEUE, *JUDGING, *CLASSES, *BLOCKING, *BETWEEN_PASSES, *COMPENSATION, *PORTS, *HANDSHAKES),
    PROGRAMS,
    first={
        "CopyCm": ("test_connections",),
        "FindPath": ("test_spray",),
        "SprayPath": ("test_spray",),
        "FindFlow": ("test_spray", "test_ends"),
        "RecordPsn": ("test_psn_queue",),
        "RecordClass": ("test_classes", "test_psn_queue"),
        "JudgeNack": ("test_psn_queue", "test_classes"),
        "CheckAnswer": ("test_ends",),
        "CheckRequest": ("test_ends",),
        "VerifyIpv4Checksum": ("test_ends",),
        "BlockedNack": ("test_compensation", "test_psn_queue"),
        "MakeNack": ("test_compensation",),
        "SetIcrc": ("test_compensation",),
        "IncEgress": ("test_compensation",),
        "IncIngress": ("test_compensation",),
        "MapPath": ("test_path_map",),
        "RestorePort": ("test_path_map",),
    },
)
