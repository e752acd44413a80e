"""Faults in how programs of static groups compute the ICRC: by spans of the payload, in both gresses."""

from __future__ import annotations

from typing import Final

from p4gen.ptf.mutations import Mutation

PROGRAM: Final = "icrc"
"""The program that they are seeded into."""
TESTS: Final = ("test_validation", "test_reliability", "test_tree", "test_headers", "test_control", "test_arithmetic")
_SENT = "hdr.icrc.crc = least_first.get({ crc[7:0], crc[15:8], crc[23:16], crc[31:24] });"
_DATA = "crc = crc32_of_payload.get({\n                LRH_ONES,"

SET: Final = (
    # Of Mode II's list.
    Mutation("icrc-stale", "SetIcrc", _SENT, "", PROGRAM),
    # Their own.
    Mutation("icrc-greatest-byte-first", "SetIcrc", _SENT, "hdr.icrc.crc = crc;", PROGRAM),
    Mutation("icrc-without-payload", "SetIcrc", "        crc = crc ^ meta.icrc.payload_crc;\n", "", PROGRAM),
    Mutation("icrc-of-payload-alone", "SetIcrc", "        crc = crc ^ meta.icrc.payload_crc;\n",
             "        crc = meta.icrc.payload_crc;\n", PROGRAM),
    Mutation("icrc-before-translation", "IncEgress",
             "        translate_header.apply(hdr, meta, eg_intr_md, eg_prsr_md);    // line 26\n"
             "        set_icrc.apply(hdr, meta);\n",
             "        set_icrc.apply(hdr, meta);\n"
             "        translate_header.apply(hdr, meta, eg_intr_md, eg_prsr_md);\n", PROGRAM),
    Mutation("payload-not-summed", "SumPayload", "payload_crc.apply(payload, meta.icrc.payload_crc);", "", PROGRAM),
    Mutation("sum-not-bridged", "IncIngress", "hdr.bridge.payload_crc = meta.icrc.payload_crc;",
             "hdr.bridge.payload_crc = 0;", PROGRAM),
    Mutation("kind-not-bridged", "IncIngress", "hdr.bridge.kind = meta.lookup.kind;",
             "hdr.bridge.kind = kind_t.DATA;", PROGRAM),
    Mutation("sum-not-parsed", "EgressParser", "meta.icrc.payload_crc = hdr.bridge.payload_crc;",
             "meta.icrc.payload_crc = 0;", PROGRAM),
    Mutation("payload-not-parsed-in-egress", "EgressParser", "            kind_t.DATA:    parse_payload;\n", "",
             PROGRAM),
    Mutation("control-not-parsed-in-egress", "EgressParser", "            kind_t.CONTROL: parse_immediate;\n", "",
             PROGRAM),
    Mutation("answer-not-parsed-in-egress", "EgressParser", "            kind_t.ANSWER:  parse_aeth;\n", "", PROGRAM),
    Mutation("one-zero-too-many", "InvariantCrc", "w0\n            });\n        } else if (hdr.imm",
             "w0, 8w0\n            });\n        } else if (hdr.imm", PROGRAM),
    Mutation("local-route-header-of-zeros", "InvariantCrc", _DATA, _DATA.replace("LRH_ONES", "64w0"), PROGRAM),
    Mutation("immediate-not-covered", "InvariantCrc", "hdr.immediate.value\n", "32w0\n", PROGRAM),
    Mutation("syndrome-not-covered", "InvariantCrc", "hdr.aeth.syndrome,\n", "8w0,\n", PROGRAM),
    Mutation("crc-not-reflected", "PayloadCrc", "(32w0x04C11DB7, true,", "(32w0x04C11DB7, false,", PROGRAM),
    Mutation("crc-from-ones", "PayloadCrc", "false, false, 32w0, 32w0)", "false, false, 32w0xffffffff, 32w0)", PROGRAM),
    Mutation("another-polynomial", "PayloadCrc", "32w0x04C11DB7", "32w0x1EDC6F41", PROGRAM),
    Mutation("lane-not-covered", "PayloadCrc", "            payload.lane_5,\n", "            32w0,\n", PROGRAM),
)  # fmt: skip
"""Faults of all programs that set the ICRC."""
CHECK: Final = (
    # Of Mode II's list.
    Mutation("corruption-laundered", "CheckIcrc", "if (sent != expected)", "if (false)", PROGRAM),
    # Their own.
    Mutation("icrc-read-greatest-byte-first", "CheckIcrc",
             "{ hdr.icrc.crc[7:0], hdr.icrc.crc[15:8], hdr.icrc.crc[23:16], hdr.icrc.crc[31:24] }", "{ hdr.icrc.crc }",
             PROGRAM),
    Mutation("payload-unchecked", "CheckIcrc", "    action add() { expected = expected ^ payload; }",
             "    action add() { expected = sent; }", PROGRAM),
    Mutation("first-fault-forgotten", "CheckIcrc", "        if (meta.drop == drop_t.NONE) {\n            if (sent",
             "        if (true) {\n            if (sent", PROGRAM),
    Mutation("unchecked", "IncIngress", "            check_icrc.apply(hdr, meta);\n", "", PROGRAM),
    Mutation("refused-and-classified", "CheckIcrc", "meta.drop = drop_t.CheckIcrc_bad_icrc;", "", PROGRAM),
)  # fmt: skip
"""Faults of those that also check it."""
SPANS: Final = (
    Mutation("span-not-covered", "PayloadCrc", "        add_1();\n", "", PROGRAM),
    Mutation("span-not-moved", "PayloadCrc", "            512w0\n", "            8w0\n", PROGRAM),
)
"""Faults of those whose payload is of two spans."""
