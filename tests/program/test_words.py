"""Layouts of words: what they refuse, that unpacking undoes packing, and that docs/state.md has what they say.

``python tests/program/test_words.py`` writes the tables of that document.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen import generate
from p4gen.layout import Field, Word
from p4gen.papers.epic.spec import EpicSpec, Fold, Mode
from p4gen.papers.epic.words import receive, reorder_window, slot
from p4gen.program import compose, render
from p4gen.vocabulary import Op, Reliability

DOCUMENT = Path(__file__).parents[2] / "docs" / "state.md"
SPECS = [
    EpicSpec(mode=mode, op=op, reliability=reliability)
    for mode in Mode
    for op in (Op.SUM, Op.DYNAMIC)
    for reliability in (Reliability.SR, Reliability.GBN)
    if mode is not Mode.I
] + [EpicSpec(mode=Mode.I, op=Op.MAX, fold=fold) for fold in Fold]
each_spec = pytest.mark.parametrize(
    "spec", SPECS, ids=lambda spec: f"{spec.mode}-{spec.op}-{spec.reliability or spec.fold}"
)

PARTS = Word(Field("upper", 3, "the upper part"), Field("lower", 5, "the lower one"))
WORD = Word(Field("flag", 1, "a flag"), Field("number", 8, "a number", PARTS), Field("rest", 7, "the rest"))


def test_slices_are_counted_from_the_least_significant_bit() -> None:
    assert [WORD[name] for name in ("flag", "number", "upper", "lower", "rest")] == [
        "15:15", "14:7", "14:12", "11:7", "6:0"
    ]  # fmt: skip
    assert WORD.bits == 16


def test_comments_have_meanings_and_bits() -> None:
    assert WORD.note == "{a flag 15, a number 14..7, the rest 6..0}"
    assert WORD.place("lower") == "the lower one 11..7"


def test_a_field_without_a_meaning_is_shown_by_its_parts() -> None:
    word = Word(Field("both", 8, "", PARTS), Field("rest", 1, "the rest"))
    assert word.note == "{the upper part 8..6, the lower one 5..1, the rest 0}"
    assert "| `both` | 8:1 | the upper part, the lower one |" in word.table


def test_a_word_is_put_together_in_its_own_order() -> None:
    assert WORD.joined(rest="c", number="b", flag="1w0", unused="x") == "1w0 ++ b ++ c"
    with pytest.raises(ValueError, match="nothing is given for number, rest"):
        WORD.joined(flag="1w0")


def test_values_are_shown_by_name() -> None:
    assert WORD.describe(0x8000 | 42 << 7 | 9) == "flag=1 number=0x2a rest=9"


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ([], "none of them empty"),
        ([Field("a", 1, ""), Field("a", 1, "")], "none of them a"),
        ([Field("x", 8, "", PARTS), Field("lower", 1, "")], "none of them lower"),
        ([Field("bits", 1, "")], "none of them bits"),
    ],
)
def test_a_word_refuses_names_that_templates_could_not_tell_apart(fields: list[Field], cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        Word(*fields)


def test_a_field_refuses_widths_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="0 bits"):
        Field("a", 0, "")
    with pytest.raises(ValueError, match="9 bits, its parts 8"):
        Field("a", 9, "", PARTS)


def test_what_does_not_fit_is_refused() -> None:
    assert WORD.pack(flag=1, number=255, rest=127) == 0xFFFF
    for values in ({"flag": 2, "number": 0, "rest": 0}, {"flag": 0, "number": -1, "rest": 0}):
        with pytest.raises(ValueError, match="does not fit"):
            WORD.pack(**values)
    for values in ({"flag": 0, "number": 0}, {"flag": 0, "number": 0, "rest": 0, "upper": 0}):
        with pytest.raises(ValueError, match="the fields are flag, number, rest"):
            WORD.pack(**values)
    for value in (-1, 1 << 16):
        with pytest.raises(ValueError, match="16 bits"):
            WORD.unpack(value)


@st.composite
def _words(draw: st.DrawFn) -> Word:
    widths = draw(st.lists(st.integers(1, 70), min_size=1, max_size=9))
    return Word(*(Field(f"f{i}", bits, "") for i, bits in enumerate(widths)))


@given(word=_words(), data=st.data())
def test_packing_and_unpacking_are_inverse(word: Word, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, (1 << word.bits) - 1))
    fields = word.unpack(value)
    assert word.pack(**fields) == value
    # The fields are next to each other, and their slices hold what they hold.
    joined = "".join(f"{fields[field.name]:0{field.bits}b}" for field in word.fields)
    assert int(joined, 2) == value
    for field in word.fields:
        high, low = word.ends(field.name)
        assert joined[word.bits - 1 - high : word.bits - low] == f"{fields[field.name]:0{field.bits}b}"


def test_one_field_of_a_word_is_replaced() -> None:
    value = WORD.pack(flag=1, number=42, rest=9)
    assert WORD.unpack(WORD.replaced(value, number=7)) == {"flag": 1, "number": 7, "rest": 9}
    assert WORD.mask("flag", "lower") == 0b1_00011111_0000000


@each_spec
def test_widths_depend_on_the_spec(spec: EpicSpec) -> None:
    in_order = spec.loss_recovery.in_order
    assert slot(spec).bits == (104 if spec.mode.augmented else 72)
    numbers = 5 if spec.op is Op.DYNAMIC else 0
    window = 0 if not spec.mode.augmented or in_order else reorder_window(spec)
    assert receive(spec).bits == 57 + numbers + window


@each_spec
def test_registers_of_the_program_are_as_wide_as_their_layouts(spec: EpicSpec) -> None:
    composition = compose(spec)
    text = render(composition, line_directives=False).text
    for name, word in composition.words.items():
        assert re.findall(rf"register<bit<(\d+)>>\(\w+\) {name};", text) == [str(word.bits)]


@each_spec
def test_every_field_is_read_by_the_program(spec: EpicSpec) -> None:
    """A field that no slice of the program takes is none, or has other bits in the P4 text."""
    composition = compose(spec)
    text = render(composition, line_directives=False).text
    for module in composition.modules:
        for word in (register.word for register in module.keeps):
            for field in word.fields if word is not None else ():
                taken = word[field.name] if word is not None else ""
                assert f"[{taken}]" in text, (module.name, field.name)


def test_the_manifest_has_the_fields() -> None:
    composition = compose(EpicSpec())
    content = generate(composition.spec).manifest
    registers = {r["name"]: r for module in content["modules"] for r in module["registers"]}
    slots = registers["slots"]
    assert [(f["name"], f["bits"]) for f in slots["fields"]][:2] == [("epoch", 8), ("psn", 24)]
    assert sum(f["bits"] for f in slots["fields"]) == slots["width"]
    (immediate,) = (f for f in registers["newest.announcement"]["fields"] if f["name"] == "immediate")
    assert [f["name"] for f in immediate["fields"]] == ["collective", "numbers", "root", "packets"]
    assert registers["lane_*.partial"]["fields"] == []


def tables() -> str:
    """The tables of docs/state.md: all layouts of programs that keep the most, and the registers that have them."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for mode in Mode:
        for reliability, other, order in (
            (Reliability.SR, Reliability.GBN, "packets in any order"),
            (Reliability.GBN, Reliability.SR, "packets in order"),
        ):
            if mode.stores and reliability is Reliability.GBN:
                continue  # it has no other
            fields = {"mode": mode, "op": Op.DYNAMIC, "reliability": reliability}
            # Mode I takes packets in order, and has one op.
            spec = EpicSpec(mode=mode) if mode.stores else EpicSpec.model_validate(fields)
            others = compose(spec.model_copy(update={"reliability": other})).layouts
            for module in compose(spec).modules:
                for register in module.keeps:
                    word = register.word
                    if word is not None:
                        title = f"Mode {mode}, {module.name}"
                        if word != others[register.short]:
                            title += f", {order}"
                        text = f"{word.bits} bits.\n\n{word.table}"
                        found.setdefault((title, text), {})[register.name] = register.purpose
    return "\n".join(
        f"### {title}\n\n{'; '.join(f'`{name}`: {purpose}' for name, purpose in registers.items())}. {text}"
        for (title, text), registers in found.items()
    )


START, END = "<!-- tables -->\n", "<!-- end of tables -->\n"


def test_docs_state_md_is_up_to_date() -> None:
    text = DOCUMENT.read_text()
    assert text.partition(START)[2].partition(END)[0].strip() == tables().strip(), (
        "docs/state.md: the tables are not what the layouts say; python tests/program/test_words.py writes them"
    )


if __name__ == "__main__":
    head, _, rest = DOCUMENT.read_text().partition(START)
    DOCUMENT.write_text(f"{head}{START}\n{tables()}\n{END}{rest.partition(END)[2]}")
