"""The lint: fields of headers that a program may have taken away, of which p4c warns."""

from __future__ import annotations

import pytest
from p4_programs import FIRST, compiled, ingress, places

from p4gen.p4.lint.rules import lint

SUB = """action gone() { hdr.h.setInvalid(); } action kept() { meta.x = 1; }
    table t { key = { meta.x : exact; } actions = { gone; kept; NoAction; } }"""

CLEAN = [
    "meta.x = hdr.h.a;",
    "if (hdr.h.isValid()) { meta.x = hdr.h.a; } meta.x = hdr.h.b;",
    "hdr.h.setInvalid(); hdr.h.setValid(); hdr.h.a = 1;",
    "if (meta.flag) { hdr.h.setInvalid(); } else { meta.x = hdr.h.a; }",
    "if (meta.flag) { hdr.h.setInvalid(); return; } meta.x = hdr.h.a;",
    "if (meta.flag) { hdr.h.setInvalid(); exit; } meta.x = hdr.h.a;",
    "if (meta.flag) { hdr.h.setInvalid(); } if (hdr.h.isValid()) { meta.x = hdr.h.a; }",
    "if (meta.flag) { hdr.h.setInvalid(); } if (!hdr.h.isValid()) { meta.x = 1; } else { meta.x = hdr.h.a; }",
    "if (meta.flag) { hdr.h.setInvalid(); } if (meta.x == 1 && hdr.h.isValid()) { meta.x = hdr.h.a; }",
    "if (meta.flag) { hdr.h.setInvalid(); } if (hdr.h.isValid() && hdr.h.a == 1) { meta.x = 2; }",
    "if (meta.flag) { hdr.h.setInvalid(); } if (!hdr.h.isValid() || hdr.h.a == 1) { meta.x = 2; }",
    "if (meta.flag) { hdr.h.setInvalid(); } hdr.h.setValid(); hdr.h.a = 1;",
    "h_t mine = hdr.h; meta.x = mine.a; hdr.h.setInvalid(); meta.x = mine.b;",
    "h_t mine = hdr.h; hdr.h.setInvalid(); hdr.h = mine; meta.x = hdr.h.a;",
]
BROKEN = [
    ("hdr.h.setInvalid(); meta.x = hdr.h.a;", "which is invalid"),
    ("hdr.h.setInvalid(); hdr.h.a = 1;", "which is invalid"),
    ("if (meta.flag) { hdr.h.setInvalid(); } meta.x = hdr.h.a;", "which may be invalid"),
    ("if (meta.flag) { hdr.h.setInvalid(); } hdr.h.a[3:0] = 1;", "which may be invalid"),
    ("if (meta.flag) { hdr.h.setInvalid(); } if (!meta.flag) { meta.x = hdr.h.a; }", "which may be invalid"),
    ("if (meta.flag) { hdr.h.setInvalid(); } if (hdr.h.isValid() || hdr.h.a == 1) { meta.x = 2; }", "which is invalid"),
    (
        "if (meta.flag) { hdr.h.setInvalid(); } else { hdr.h.setValid(); } meta.x = hdr.h.a + 1;",
        "'a' of header 'hdr.h'",
    ),
    ("t.apply(); meta.x = hdr.h.a;", "which may be invalid"),
    ("if (t.apply().hit) { meta.x = hdr.h.a; }", "which may be invalid"),
    ("switch (meta.x) { 1: { hdr.h.setInvalid(); } } meta.x = hdr.h.a;", "which may be invalid"),
    ("h_t mine; mine.setValid(); mine = hdr.h; hdr.h.setInvalid(); mine = hdr.h; meta.x = mine.a;", "header 'mine'"),
]


@pytest.mark.parametrize("body", CLEAN)
def test_clean(body: str) -> None:
    assert not lint(compiled(ingress(body, SUB)).program)


@pytest.mark.parametrize(("body", "message"), BROKEN)
def test_broken(body: str, message: str) -> None:
    (found,) = lint(compiled(ingress(f"\n{body}", SUB)).program)
    assert message in found.message
    assert places([found])[0][0] == FIRST + SUB.count("\n") + 3


CONTROLS = """control Takes(inout headers given) { apply { given.h.setInvalid(); } }
control Uses(in headers given, inout metadata meta) { apply { meta.x = given.h.a; } }
"""


@pytest.mark.parametrize(
    ("body", "broken"),
    [
        ("uses.apply(hdr, meta);", False),
        ("uses.apply(hdr, meta); takes.apply(hdr);", False),
        ("takes.apply(hdr); uses.apply(hdr, meta);", True),
        ("if (meta.flag) { takes.apply(hdr); } if (hdr.h.isValid()) { uses.apply(hdr, meta); }", False),
        ("if (meta.flag) { takes.apply(hdr); } uses.apply(hdr, meta);", True),
    ],
)
def test_controls_are_followed_in_their_order(body: str, broken: bool) -> None:
    """Mode I's StartCursor was right alone, and applied behind Retransmission, which takes the AETH away."""
    text = ingress(body, "Takes() takes; Uses() uses;").replace("control I(", f"{CONTROLS}control I(")
    found = lint(compiled(text).program)
    assert [problem.message for problem in found] == (
        [f"'a' of header 'hdr.h', which {'may be' if 'if' in body else 'is'} invalid here"] if broken else []
    )
