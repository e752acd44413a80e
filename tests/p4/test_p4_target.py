"""What BMv2 cannot do is told apart from what the language forbids."""

from __future__ import annotations

import re

import pytest
from p4_programs import FIRST, compiled, ingress

TABLE = "action a() {} table t { key = { hdr.h.a : exact; } actions = { a; NoAction; } }"
COMPUTE = "control C(inout headers hdr, inout metadata meta) { apply {} }"
EMIT = "apply { pkt.emit(hdr); }"


@pytest.mark.parametrize(
    "body",
    [
        "t.apply(); hdr.h.a = 1;",
        "if (meta.flag) { t.apply(); } else { t.apply(); } hdr.h.a = 1;",
        "if (t.apply().hit) { hdr.h.a = 1; }",
    ],
)
def test_possible(body: str) -> None:
    assert not compiled(ingress(body, TABLE)).beyond_bmv2


@pytest.mark.parametrize(
    "body",
    [
        "t.apply(); t.apply();",
        "if (meta.flag) { t.apply(); hdr.h.a = 1; } else { t.apply(); }",
        "if (meta.flag) { if (t.apply().hit) { hdr.h.a = 1; } } else { t.apply(); }",
    ],
)
def test_a_table_has_one_successor(body: str) -> None:
    (found,) = compiled(ingress(body, TABLE)).beyond_bmv2
    assert "several places" in found.message
    assert getattr(found.where, "line", None) == FIRST + 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (COMPUTE, COMPUTE.replace("{}", "{ hdr.h.a = 1; }"), "only calls of update_checksum"),
        (COMPUTE, COMPUTE.replace("{}", "{ if (hdr.h.a == 1) {} }"), "only calls of update_checksum"),
        (EMIT, "apply { if (hdr.h.a == 1) { pkt.emit(hdr); } }", "branches and loops"),
        ("header h_t { bit<8> a;", "header h_t { bit<7> a;", "39 bits"),
    ],
)
def test_blocks_that_do_one_thing(old: str, new: str, message: str) -> None:
    text = ingress("")
    assert old in text
    (found,) = compiled(text.replace(old, new)).beyond_bmv2
    assert re.search(message, found.message)
    assert found.source_line is not None


def test_checksum_calls_are_allowed() -> None:
    call = "{ update_checksum(true, { hdr.h.a }, hdr.h.c, HashAlgorithm.csum16); }"
    assert not compiled(ingress("").replace(COMPUTE, COMPUTE.replace("{}", call))).beyond_bmv2
