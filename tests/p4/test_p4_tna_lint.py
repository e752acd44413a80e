"""The lint of TNA programs: what a chip cannot do, where, and by which number."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_p4_tna_samples import checkout
from tna_programs import ACTION, HEAD, LOCAL, PARAMS, REGISTER, TAIL, compiled, ingress, program

from p4gen.chips.tna.lint import lint
from p4gen.errors import Pos
from p4gen.p4.compile import compile_file

RUN = "meta.y = add.execute(meta.x);"


def on(body: str, word: str = "bit<32>", result: str = "bit<32>", name: str = "act") -> str:
    """A register of ``word`` and an action on it with this body."""
    return f"Register<{word}, bit<16>>(64) cell;\n" + more(body, word, result, name)


def more(body: str, word: str = "bit<32>", result: str = "bit<32>", name: str = "act") -> str:
    """One more action on that register."""
    return (
        f"RegisterAction<{word}, bit<16>, {result}>(cell) {name} = {{\n"
        f"void apply(inout {word} value, out {result} rv) {{\n{body}\n}} }};\n"
    )


CALL = "meta.y = act.execute(meta.x);"
TWO = """Register<bit<32>, bit<16>>(4) r; Register<bit<32>, bit<16>>(4) s;
RegisterAction<bit<32>, bit<16>, bit<32>>(r) on_r = { void apply(inout bit<32> value) { value = value + 1; } };
RegisterAction<bit<32>, bit<16>, bit<32>>(s) on_s = { void apply(inout bit<32> value) { value = value + 1; } };
"""
RESULTS = TWO.replace("inout bit<32> value) { value", "inout bit<32> value, out bit<32> rv) { rv = value; value")
"""The same with results."""
FIVE = "Register<bit<32>, bit<16>>(64) cell;\n" + "".join(more("rv = value;", name=f"a{n}") for n in range(5))
CONSTANTS = "Register<bit<32>, bit<16>>(64) cell;\n" + "".join(
    more(f"value = value + {100 + n}; if (value == {200 + n}) {{ rv = 1; }}", name=f"a{n}") for n in range(3)
)

WRONG: dict[str, tuple[str, str, str, int]] = {
    # what is wrong: declarations, body of apply, message, line after the declarations' first
    "twice": (ACTION, RUN + RUN, "register 'Ig.reg' is accessed twice in one pass of ingress; 1 access is possible", 4),
    "twice by two actions": (
        on("rv = value;") + more("value = 0; rv = 0;", name="clear"),
        CALL + "if (meta.flag) { hdr.h.d = clear.execute(3); }",
        "register 'Ig.cell' is accessed twice in one pass of ingress; 1 access is possible",
        10,
    ),
    "five actions": (
        FIVE,
        "if (hdr.h.a == 0) { meta.y = a0.execute(0); } else { meta.y = a1.execute(0); }",
        "register 'Ig.cell' has 5 actions on it; 4 are possible",
        17,
    ),
    "a word of 24 bits": (
        on("rv = 0;", "bit<24>"),
        CALL,
        "register 'Ig.cell' has words of type bit<24>; Tofino has words of one or two equal fields of 8, 16, 32 bits,"
        " of 64 bits, or of 1 bit",
        0,
    ),
    "three comparisons": (
        on("if (value == 1) { rv = 1; } else if (value == hdr.h.d) { rv = 2; } else if (value > 3) { rv = 4; }"),
        CALL,
        "'Ig.act.apply' makes 3 different comparisons; a stateful ALU of Tofino makes 2",
        3,
    ),
    "a shift": (on("value = value << 1; rv = value;"), CALL, "a stateful ALU cannot shift the word", 3),
    "a slice": (on("if (value[7:0] == 1) { rv = 1; }"), CALL, "a stateful ALU cannot compare a slice of the word", 3),
    "two operations": (
        on("value = (value + hdr.h.d) ^ meta.y; rv = value;"),
        CALL,
        "a stateful ALU does 1 operation in a statement, or 2 whose results are combined by |",
        3,
    ),
    "a local": (
        on("bool same = value == hdr.h.d;\nif (same) { value = 1; }\nif (!same) { value = 2; }\nrv = value;"),
        CALL,
        "a local variable of type bool in an action on a register of bit<32>; a stateful ALU has only such as its"
        " words",
        3,
    ),
    "constants": (
        CONSTANTS,
        "meta.y = a0.execute(0);",
        "actions on register 'Ig.cell' have 6 parameters, and constants that are not -8 to 7; 4 are possible",
        11,
    ),
    "a condition on a bit": (
        on("rv = value; if (meta.flag) { value = 1; }", "bit<1>", "bit<1>"),
        "hdr.h.a[0:0] = act.execute(meta.x);",
        "an action on a register of single bits cannot have a condition",
        3,
    ),
    "two indices": (
        TWO + "action both() { on_r.execute(meta.x); on_s.execute(hdr.h.c); }",
        "both();",
        "action 'Ig.both' addresses 'Ig.r' and 'Ig.s' by different indices; an action has 1 for each register or meter",
        3,
    ),
    "two results": (
        RESULTS + "action both() { meta.y = on_r.execute(meta.x); hdr.h.d = on_s.execute(meta.x); }",
        "both();",
        "action 'Ig.both' stores results of more than 1 access to registers",
        3,
    ),
    "all or none": (
        TWO + "action both() { on_r.execute(meta.x); on_s.execute(meta.x); }\naction one() { on_r.execute(meta.x); }\n"
        "table t { key = { hdr.h.a : exact; } actions = { both; one; } }",
        "t.apply();",
        "action 'Ig.one' of table 'Ig.t' uses a register or meter but not 'Ig.s', which other actions of the table use;"
        " an action uses all of them or none",
        4,
    ),
    "by size": (
        "",
        "if (hdr.h.c > 1000) { hdr.h.a = 1; }",
        "a gateway compares 12 bits by size; these are 16",
        1,
    ),
    "by size, no constant": (
        "",
        "if (hdr.h.a > hdr.h.b) { hdr.h.a = 1; }",
        "a gateway compares by size only with constants; Tofino subtracts in actions",
        1,
    ),
    "words of two signs": (
        on("rv = value.second;", "mixed"),
        CALL,
        "register 'Ig.cell' has words of type mixed; Tofino has words of one or two equal fields of 8, 16, 32 bits,"
        " of 64 bits, or of 1 bit",
        0,
    ),
    "a mask of a field": (
        on("if ((value & hdr.h.d) == 0) { value = 1; } rv = value;"),
        CALL,
        "a stateful ALU masks what it compares only with constants",
        3,
    ),
    "a predicate of two comparisons": (
        on("rv = (bit<32>)this.predicate(value == 1 && hdr.h.d == 2);"),
        CALL,
        "each argument of predicate() is one comparison",
        3,
    ),
    "two sources of a result": (
        on("if (value.first == 1) { rv = value.second; }\nelse { rv = hdr.h.d; } value.first = hdr.h.d;", "pair"),
        CALL,
        "a result has two sources; with words of two fields, a stateful ALU gives one or 0",
        4,
    ),
    "three operands": (
        on("if (hdr.h.a ++ hdr.h.b ++ hdr.h.c == 1) { value = hdr.h.d; } else { value = meta.y; } rv = value;"),
        CALL,
        "'Ig.act.apply' reads 96 bits of fields; a stateful ALU takes 64",
        2,
    ),
    "an operation in an operation": (
        "action do() { hdr.h.d = meta.y ^ hdr.h.d ^ (bit<32>)meta.y; }",
        "do();",
        "action 'Ig.do' does '^' with the result of '^'; a stage does 1 operation",
        0,
    ),
    "a mask in an operation": (
        "action do() { hdr.h.d = (meta.y & 0xff) | hdr.h.d; }",
        "do();",
        "action 'Ig.do' does '|' with the result of '&'; a stage does 1 operation",
        0,
    ),
    "a shift in an operation": (
        "action do() { hdr.h.d = (meta.y << 2) + hdr.h.d; }",
        "do();",
        "action 'Ig.do' does '+' with the result of '<<'; a stage does 1 operation",
        0,
    ),
    "operations one after the other in an action": (
        "action do() { hdr.h.d = hdr.h.d + 1; hdr.h.d = hdr.h.d + 1; }",
        "do();",
        "action 'Ig.do' does '+' with the result that it has just computed; a stage does 1 operation",
        0,
    ),
    "what p4c puts into an operation": (
        "table t { key = { hdr.h.a : exact; } actions = { NoAction; } }",
        "meta.y = hdr.h.d ^ 5; t.apply();\nhdr.h.d = meta.y ^ hdr.h.d;",
        "a statement does '^' with the result of '^'; a stage does 1 operation",
        2,
    ),
    "what p4c puts into a condition": (
        "",
        "meta.y = meta.y2 + hdr.h.d; if (meta.y == 5) { hdr.h.a = 1; }",
        "a gateway compares fields; this is the result of '+'",
        1,
    ),
    "a sum in a condition": (
        "",
        "if (meta.y + hdr.h.d == 5) { hdr.h.a = 1; }",
        "a gateway compares fields; this is the result of '+'",
        1,
    ),
    "a mask of a field in a condition": (
        "",
        "if ((meta.y & hdr.h.d) == 0) { hdr.h.a = 1; }",
        "a gateway masks only with constants; an action can combine fields before",
        1,
    ),
    "two wide comparisons": (
        "",
        "if (meta.y == 5 && hdr.h.d == 7) { hdr.h.a = 1; }",
        "a condition takes 64 bits; a gateway takes 4 bytes and 12 bits",
        1,
    ),
    "fields and a constant": (
        "",
        "if (meta.y == hdr.h.d && hdr.h.c == 7) { hdr.h.a = 1; }",
        "a condition takes 48 bits; a gateway takes 4 bytes and 12 bits",
        1,
    ),
    "an index that a default action computes": (
        f"{ACTION}\naction count() {{ meta.y = add.execute(meta.x[7:0] ++ meta.x[15:8]); }}\n"
        "table t { key = { hdr.h.a : exact; } actions = { count; } const default_action = count; }",
        "t.apply();",
        "the default action of table 'Ig.t' computes an index of 'Ig.reg', which takes an entry",
        5,
    ),
    "a wide range": (
        "table t { key = { hdr.h.d[23:0] : range; } actions = { NoAction; } }",
        "t.apply();",
        "table 'Ig.t' matches a range of 24 bits; Tofino matches 20",
        0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_breaks_a_limit_is_said_with_its_place(name: str) -> None:
    local, body, message, line = WRONG[name]
    found = lint(compiled(ingress(body, local)).program)
    assert [d.message for d in found] == [message]
    assert isinstance(found[0].where, Pos)
    assert found[0].where.line == LOCAL + line
    assert found[0].severity == ("warning" if name.startswith("twice") else "error")


RIGHT = {
    "one access": (ACTION, RUN),
    "another branch": (ACTION, f"if (hdr.h.a == 1) {{ {RUN} }} else {{ {RUN} }}"),
    "conditions that exclude each other": (ACTION, f"if (hdr.h.a == 1) {{ {RUN} }} if (hdr.h.a == 2) {{ {RUN} }}"),
    "read, then write": (REGISTER, "meta.y = reg.read(meta.x); reg.write(meta.x, 5);"),
    "a pair": (on("rv = value.first; value.second = hdr.h.d;", "pair"), CALL),
    "a comparison and its negation": (
        on("if (value == 1) { rv = value; } if (value != 1) { value = 0; } if (value < 6) { value = value + 1; }"),
        CALL,
    ),
    "operations combined by or": (on("value = (value & hdr.h.d) | (value ^ hdr.h.d); rv = 0;"), CALL),
    "one address": (TWO + "action both() { on_r.execute(meta.x); on_s.execute(meta.x); }", "both();"),
    "an address for each table": (TWO, "on_r.execute(meta.x); on_s.execute(hdr.h.c);"),
    "the highest bits": ("", "if (hdr.h.d >= 0x80000000) { hdr.h.a = 1; } if (hdr.h.c[11:0] > 100) { hdr.h.a = 2; }"),
    "a mask of a constant": (on("if ((value & 0xff) == 1) { value = hdr.h.d; } rv = value;"), CALL),
    "one source of a result, or 0": (
        on("if (value.first == 1) { rv = value.second; } else { rv = 0; } value.first = hdr.h.d;", "pair"),
        CALL,
    ),
    "two sources in a word of one field": (on("if (value == 1) { rv = value; } else { rv = hdr.h.d; }"), CALL),
    "a local that is read once": (on("bool same = value == hdr.h.d; rv = value; if (same) { value = 1; }"), CALL),
    "two operands": (on("if (meta.y == 1) { value = hdr.h.d; } else { value = meta.y; } rv = value;"), CALL),
    "a copy in an operation": ("action do() { meta.y = hdr.h.d; hdr.h.d = meta.y ^ meta.y2; }", "do();"),
    "a copy of a result": ("action do() { meta.y = hdr.h.d ^ meta.y2; hdr.h.d = meta.y; }", "do();"),
    "what one instruction does": ("action do() { meta.y = ~hdr.h.d & meta.y2; }", "do();"),
    "what is read before it is written": ("action do() { meta.y = hdr.h.d ^ meta.y2; hdr.h.d = meta.y2; }", "do();"),
    "operations in two stages": ("", "meta.y = meta.y + hdr.h.d; hdr.h.d = meta.y ^ meta.y2;"),
    "an operation in a branch": ("", "if (hdr.h.a == 1) { meta.y = meta.y2 ^ hdr.h.d; } hdr.h.d = meta.y ^ meta.y2;"),
    "operations in two actions": (
        "action one() { meta.y = meta.y2 ^ hdr.h.d; } action two() { hdr.h.d = meta.y ^ meta.y2; }",
        "one(); two();",
    ),
    "a result of a register in an operation": (ACTION, "hdr.h.d = add.execute(meta.x) ^ meta.y;"),
    "operations in a hash": ("action do() { @in_hash { hdr.h.d = meta.y ^ hdr.h.d ^ meta.y2; } }", "do();"),
    "a condition on what adds to itself": ("", "meta.y = meta.y + hdr.h.d; if (meta.y == 5) { hdr.h.a = 1; }"),
    "alternatives": ("", "if (meta.y == 5 || hdr.h.d == 7) { hdr.h.a = 1; }"),
    "alternatives of equal fields": ("", "if (meta.y == hdr.h.d || meta.y2 == hdr.h.d) { hdr.h.a = 1; }"),
    "four bytes and twelve bits": ("", "if (meta.y == 5 && hdr.h.c[11:0] == 7) { hdr.h.a = 1; }"),
    "equal fields and twelve bits": ("", "if (meta.y == hdr.h.d && hdr.h.c[11:0] == 7) { hdr.h.a = 1; }"),
    "a range of five nibbles": ("table t { key = { hdr.h.d[19:0] : range; } actions = { NoAction; } }", "t.apply();"),
    "equality of 32 bits": ("", "if (hdr.h.d == meta.y) { hdr.h.a = 1; }"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_a_chip_can_do_is_not_complained_of(name: str) -> None:
    local, body = RIGHT[name]
    assert lint(compiled(ingress(body, local)).program) == []


def parsed(states: str, arch: str = "tna") -> str:
    """A program whose parser of ingress goes on with these states."""
    text = ingress("hdr.h.c = meta.x;", arch=arch)
    return text.replace("pkt.extract(hdr.h);\n        transition accept;\n    }", f"pkt.extract(hdr.h);\n{states}", 1)


@pytest.mark.parametrize(
    ("states", "severity"),
    [
        # All states behind the first one assign it again, but a packet may end without.
        ("meta.x = 1; transition select(hdr.h.a) { 1: two; default: accept; } }\n"
         "state two { meta.x = 2; transition accept; }", "error"),
        # One of them does not, so that p4c only warns.
        ("meta.x = 1; transition select(hdr.h.a) { 1: two; default: three; } }\n"
         "state two { meta.x = 2; transition accept; } state three { meta.y = 1; transition accept; }", "warning"),
        # What is always assigned again is not assigned at all before.
        ("meta.x = 1; transition two; }\nstate two { meta.x = 2; transition accept; }", None),
        # Zero is what was there.
        ("meta.x = 0; transition select(hdr.h.a) { 1: two; default: accept; } }\n"
         "state two { meta.x = 2; transition accept; }", None),
        # The bits of both are those of the second.
        ("meta.x = 1; transition select(hdr.h.a) { 1: two; default: accept; } }\n"
         "state two { meta.x = 3; transition accept; }", None),
        ("meta.x = 1; meta.x = 2; transition accept; }", None),
    ],
)  # fmt: skip
def test_a_parser_of_tofino_joins_what_it_assigns(states: str, severity: str | None) -> None:
    found = lint(compiled(parsed(states)).program)
    message = "a field is assigned again behind another assignment in the parser; Tofino gives the bits of both"
    assert [(d.message, d.severity) for d in found] == ([(message, severity)] if severity else [])
    assert lint(compiled(parsed(states, "t2na")).program) == []


def test_tofino_2_does_more_in_a_stateful_alu() -> None:
    local, body, _, _ = WRONG["three comparisons"]
    assert lint(compiled(ingress(body, local, "t2na")).program) == []
    wide = on("rv = 0;", "bit<128>")
    assert lint(compiled(ingress(CALL, wide, "t2na")).program) == []
    assert len(lint(compiled(ingress(CALL, wide)).program)) == 1


def test_a_line_directive_leads_to_the_template() -> None:
    local, body, message, _ = WRONG["a shift"]
    text = ingress(body, local.replace("value = value << 1", '\n#line 12 "modules/slot.p4.j2"\nvalue = value << 1'))
    made = compiled(text)
    (found,) = made.placed(lint(made.program))
    assert f"error: {message}" in str(found)
    assert "modules/slot.p4.j2:12:1: note: this line was generated from here" in str(found)


def deep(arch: str, count: int) -> str:
    """A program whose egress parser takes ``count`` headers of 32 bytes beside its first ones."""
    head = HEAD.replace("struct headers {{ h_t h;", "header w_t {{ bit<256> w; }}\nstruct headers {{ h_t h; w_t[8] w;")
    taken = "".join(f"pkt.extract(hdr.w[{n}]);" for n in range(count))
    head = head.replace("pkt.extract(eg_intr_md); pkt.extract(hdr.h);", f"pkt.extract(eg_intr_md); {taken}")
    return head.format(arch=arch) + f"control Ig({PARAMS}) {{ apply {{ }} }}" + TAIL


def test_the_parser_of_egress_takes_160_bytes_on_tofino() -> None:
    assert lint(compiled(deep("tna", 4)).program) == []
    (found,) = lint(compiled(deep("tna", 5)).program)
    assert found.severity == "error"
    free = deep("tna", 5).replace("header h_t", '@command_line("--disable-parse-max-depth-limit")\nheader h_t')
    assert lint(compiled(free).program) == []
    assert "a path through the parser of egress takes" in found.message
    assert found.message.endswith("; Tofino has 160")
    assert lint(compiled(deep("t2na", 8)).program) == []


def test_a_register_of_both_gresses_is_refused() -> None:
    text = program(
        f"{REGISTER}\ncontrol Ig({PARAMS}) {{ apply {{ meta.y = reg.read(1); }} }}",
        tail=TAIL.replace("Eg()", "Eg2()"),
    )
    eg = HEAD[HEAD.index("control Eg(") : HEAD.index("control EgD(")].format(arch="tna")
    eg = eg.replace("control Eg(", "control Eg2(").replace("apply {}", "apply { meta.y = reg.read(2); }")
    text = text.replace("\nPipeline(", eg + "\nPipeline(")
    (found,) = lint(compiled(text).program)
    assert found.message == "register 'reg' is accessed in ingress and in egress; each gress needs its own"


def test_a_key_fits_into_the_crossbars() -> None:
    local = "table t {{ key = {{ {} }} actions = {{ NoAction; }} }}"
    keys = "".join(f'hdr.w[{n}].w : ternary @name("k{n}"); ' for n in range(3))
    text = (
        deep("tna", 0)
        .replace("apply { }\n", "apply { }")
        .replace("{ apply { } }", "{ " + local.format(keys) + " apply { t.apply(); } }", 1)
    )
    (found,) = lint(compiled(text).program)
    assert found.message == "table 'Ig.t' has a ternary key of 96 bytes; a stage of Tofino takes 66"
    assert lint(compiled(text.replace("ternary", "exact")).program) == []


# --- others' programs ----------------------------------------------------------------------------


def test_p4cs_samples_break_no_rule() -> None:
    root = checkout("P4C_TESTDATA", "../backends/p4tools/modules/testgen/targets/tofino/test/p4-programs").resolve()
    paths = sorted([*root.glob("*.p4"), *root.glob("tofino1_only/*.p4")])
    assert len(paths) > 40
    found = {path.name: lines for path in paths if (lines := linted(path, root))}
    # p4c refuses this one, too, for the same reason.
    assert found.pop("switch_tofino_x1.p4") == ["a path through the parser of egress takes 181 bytes; Tofino has 160"]
    assert found == {}


def linted(path: Path, root: Path) -> list[str]:
    """The errors, not the warnings, that the lint finds in a program for Tofino."""
    found = lint(compile_file(path, ["__TARGET_TOFINO__=1"], [root]).program)
    return [d.message for d in found if d.severity == "error"]
