"""No input whatsoever ends in anything but ``InputError``."""

from __future__ import annotations

import contextlib
import os
import re

import pytest
import tna_programs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from p4_programs import ingress

from p4gen.errors import InputError
from p4gen.p4.compile import compile_text
from p4gen.p4.parse.lexer import KEYWORDS

# More by setting the variable; the project's own figure is 100,000 over all runs.
EXAMPLES = int(os.environ.get("P4GEN_FUZZ", "300"))

SEED = ingress(
    """bit<8> v; t.apply(); switch (t.apply().action_run) { a: { hdr.h.a = v |+| 3; } default: {} }
    if (hdr.h.isValid() && meta.x < 2) { hdr.h = { 1, 2, 3, -4 }; } else { s.apply(meta.x); }
    for (bit<8> i in 8w0 .. 8w3) { hdr.stack[1].a = i; continue; }
    hash(meta.y, HashAlgorithm.crc32, 32w0, { hdr.h.a, hdr.h.c[7:0] }, 32w10); r.read(v, (bit<32>)meta.x);
    meta = { y = 1, ... }; hdr.stack.push_front(1); f<bit<8>>(meta.x); exit;""",
    """Sub(5) s; register<bit<8>>(16) r; const bit<8> N = 3 << 2;
    action a(inout bit<8> x, @id(2) bit<8> y) { x = y; return; }
    @name("tt") table t {
        key = { hdr.h.a : ternary; hdr.h.b : lpm @name("b"); }
        actions = { a(hdr.h.a); @defaultonly NoAction; }
        entries = { priority = 3: (1 &&& 7, _) : a(hdr.h.a, N); }
        size = 10; default_action = NoAction();
    }""",
).replace(
    "control I(",
    """T f<T>(inout T x) { x = x; return x; }
enum bit<4> kind { A = 1, B } typedef tuple<bit<8>, kind> pair; header_union u { h_t one; h_t two; }
type bit<9> port; struct g<T> { T x; } error { Mine }
control Sub(inout bit<8> x)(bit<8> n) { apply { x = n ++ 0; } }
parser Q(packet_in p, out headers h) { value_set<bit<8>>(2) vs;
  state start { p.extract(h.h); verify(h.h.a == 1, error.Mine);
    transition select(h.h.a, p.lookahead<bit<8>>()) { (vs, 1 .. 3): start; (1 &&& 2, _): accept; } } }
control I(""",
    1,
)
_TOKEN = re.compile(r'"[^"]*"|\w+|\s+|[^\w\s]')
TOKENS = _TOKEN.findall(SEED)
WORDS = sorted(
    {t for t in TOKENS if t.strip()}
    | KEYWORDS
    | {
        "&&&",
        "..",
        "...",
        "{#}",
        "++",
        "|+|",
        "8w255",
        "4s7",
        "0x",
        "@",
        "#if",
        "#define X(a) a",
        '"',
        "/*",
        "?",
        "_",
        "é",
    }
)


TNA = tna_programs.ingress(
    "meta.y = add.execute(meta.x) + sum.get({ hdr.h.a, 3w1 }); t.apply();",
    """Register<pair, bit<16>>(16, { 1, 2 }) r; DirectRegister<bit<8>>() own; RegisterParam<bit<32>>(3) p;
    RegisterAction<pair, bit<16>, bit<32>>(r) add = {
        void apply(inout pair v, out bit<32> rv) { v.first = p.read(); rv = this.predicate(v.second == 1); } };
    DirectRegisterAction<bit<8>, bit<8>>(own) next = { void apply(inout bit<8> v) { v = v + 1; } };
    CRCPolynomial<bit<32>>(32w7, true, false, false, 32w0, 32w1) poly; Hash<bit<32>>(HashAlgorithm_t.CUSTOM, poly) sum;
    ActionProfile(64) m; ActionSelector(m, Hash<bit<8>>(HashAlgorithm_t.CRC8), SelectorMode_t.FAIR, 8, 16) s;
    action a(PortId_t port) { tm.ucast_egress_port = port; next.execute(); }
    table t {
        key = { hdr.h.a : exact; hdr.h.b : selector; } actions = { a; @defaultonly NoAction; }
        registers = own; implementation = s; idle_timeout = true; size = 16;
    }""",
)


def compiles_or_is_refused(text: str) -> None:
    with contextlib.suppress(InputError):
        compiled = compile_text(text, "fuzz.p4")
        assert compiled.p4info is not None
        assert compiled.beyond_targets is not None


def test_the_unmutated_program_reaches_the_checker() -> None:
    compiles_or_is_refused(SEED)
    assert compile_text(TNA).p4info.action_profiles


EDIT = st.tuples(
    st.sampled_from(["replace", "delete", "insert", "swap", "repeat"]),
    st.integers(0, 999),
    st.integers(0, 999),
    st.sampled_from(WORDS),
)


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(EDIT, min_size=1, max_size=6))
@pytest.mark.long
def test_mutations_of_a_program(edits: list[tuple[str, int, int, str]]) -> None:
    compiles_or_is_refused(mutated(SEED, edits))


@settings(max_examples=EXAMPLES // 3, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(EDIT, min_size=1, max_size=6))
def test_mutations_of_a_tna_program(edits: list[tuple[str, int, int, str]]) -> None:
    head, text = TNA.split("control Ig(", 1)
    compiles_or_is_refused(f"{head}control Ig({mutated(text, edits)}")


def mutated(text: str, edits: list[tuple[str, int, int, str]]) -> str:
    tokens = _TOKEN.findall(text)
    for kind, i, j, word in edits:
        i, j = i % len(tokens), j % len(tokens)  # noqa: PLW2901 - earlier edits have moved the ends
        match kind:
            case "replace":
                tokens[i] = word
            case "delete":
                del tokens[i]
            case "insert":
                tokens.insert(i, f" {word} ")
            case "swap":
                tokens[i], tokens[j] = tokens[j], tokens[i]
            case "repeat":
                tokens[i:i] = tokens[i : i + j % 20]
    return "".join(tokens)


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_random_tokens(words: list[str]) -> None:
    compiles_or_is_refused(" ".join(words))


@settings(max_examples=EXAMPLES)
@given(st.text(max_size=200))
def test_random_text(text: str) -> None:
    compiles_or_is_refused(text)
