"""Generated text: byte-stable, readable, and traceable to its templates."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from p4gen import generate
from p4gen.papers.epic.spec import Congestion, EpicSpec, Fold, Mode, Variant
from p4gen.program import compose, render
from p4gen.resources import resource
from p4gen.vocabulary import DType, Icrc, Op, Overflow, Reliability

SPECS = [
    EpicSpec(),
    EpicSpec(lanes=8, dtype=DType.UINT32, op=Op.MIN),
    EpicSpec(lanes=256, op=Op.MAX),
    EpicSpec(lanes=16, overflow=Overflow.WRAP, icrc=Icrc.IGNORE),
    EpicSpec(lanes=32, op=Op.DYNAMIC, pipelines=2, reliability=Reliability.GBN),
    EpicSpec(mode=Mode.I, lanes=8, pipelines=2),
    EpicSpec(mode=Mode.I, lanes=8, op=Op.MAX, fold=Fold.ARRIVAL),
    EpicSpec(mode=Mode.III),
    EpicSpec(mode=Mode.III, lanes=256, op=Op.DYNAMIC, pipelines=4, reliability=Reliability.SACK),
    EpicSpec(mode=Mode.III, lanes=8, reliability=Reliability.SR, congestion=Congestion.NONE, icrc=Icrc.IGNORE),
    *(EpicSpec(mode=Mode.III, lanes=8, pipelines=2, variant=variant) for variant in Variant),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.program)
def test_two_renderings_are_byte_identical(spec: EpicSpec) -> None:
    assert render(compose(spec)) == render(compose(spec))


@pytest.mark.long
def test_other_hash_values_give_the_same_text() -> None:
    """Sets of strings have another order in each process."""
    lines = [
        "from p4gen.families import load_spec",
        "from p4gen.program import compose, render",
        "for fields in ({'mode': 'II'}, {'mode': 'III'}, {'mode': 'themis'}, {'mode': 'II', 'arch': 't2na'}):",
        "    composition = compose(load_spec(None, fields))",
        "    print(render(composition).text)",
    ]
    texts = {
        subprocess.run(
            [sys.executable, "-c", "\n".join(lines)],
            env={**os.environ, "PYTHONHASHSEED": str(value)}, stdout=subprocess.PIPE, check=True,
        ).stdout
        for value in range(1, 4)
    }  # fmt: skip
    assert len(texts) == 1
    assert texts.pop().count(b"V1Switch(") == 3


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.program)
def test_text_is_tidy(spec: EpicSpec) -> None:
    text = render(compose(spec)).text
    lines = text.split("\n")
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert "\t" not in text
    assert "\x00" not in text
    assert "{%" not in text
    assert [line for line in lines if line != line.rstrip()] == []
    assert [line for line in lines if len(line) > 130] == []


@pytest.mark.parametrize("pipelines", [1, 2, 4])
@pytest.mark.parametrize(
    ("mode", "reliability"),
    [(Mode.II, "sr"), (Mode.II, "gbn"), (Mode.III, "gbn"), (Mode.III, "sr"), (Mode.III, "sack")],
)
def test_a_64_lane_program_fits_on_2000_lines(mode: Mode, reliability: str, pipelines: int) -> None:
    fields = {"mode": mode, "reliability": reliability, "pipelines": pipelines}
    lines = len(render(compose(EpicSpec.model_validate(fields))).origins)
    assert lines <= 2000


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.program)
def test_every_module_is_a_control_of_its_name(spec: EpicSpec) -> None:
    composition = compose(spec)
    text = render(composition).text
    for module in composition.modules:
        assert len(re.findall(rf"^control {module.name}\(", text, re.MULTILINE)) == 1


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.program)
def test_every_field_of_metadata_is_used(spec: EpicSpec) -> None:
    composition = compose(spec)
    text = render(composition).text
    unused = {
        field.name
        for part in composition.metadata
        for field in part.fields
        if len(re.findall(rf"\bmeta\.{part.name}\.{field.name}\b", text)) < 2
    }
    # The control plane says of every edge whether it is a rank's; only who is notified depends on it.
    allowed = set() if spec.notifies else {"first_hop"}
    if spec.variant is Variant.PSN_RECYCLING:
        allowed.add("slot_mask")  # it checks no range
    assert unused <= allowed


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.program)
def test_every_drop_reason_is_given_somewhere(spec: EpicSpec) -> None:
    composition = compose(spec)
    text = render(composition).text
    assert [d.symbol for d in composition.drops if f"= drop_t.{d.symbol};" not in text] == []
    given = set(re.findall(r"= drop_t\.(\w+);", text)) - {"NONE"}
    assert given == {d.symbol for d in composition.drops}


def test_only_programs_with_several_pipelines_speak_of_them() -> None:
    assert "meta.lookup.pipeline" not in render(compose(EpicSpec(mode=Mode.III))).text
    assert "meta.lookup.pipeline" in render(compose(EpicSpec(mode=Mode.III, pipelines=2))).text


@pytest.mark.parametrize("mode", Mode)
def test_line_directives_lead_to_the_template(mode: Mode) -> None:
    """What follows a directive is what stands on that line of the template, expressions aside."""
    text = render(compose(EpicSpec(mode=mode))).text
    directives = re.findall(r'^#line (\d+) "templates/(.*)"\n(.*)$', text, re.MULTILINE)
    assert len(directives) >= 15
    for number, template, following in directives:
        source = (resource("templates") / template).read_text(encoding="utf-8").split("\n")[int(number) - 1]
        if "{{" not in source:
            assert following == source.rstrip()


def test_origins_name_the_template_of_every_line() -> None:
    rendered = render(compose(EpicSpec()))
    assert len(rendered.origins) == rendered.text.count("\n")
    lines = rendered.text.split("\n")
    # What the architecture has written, and text of the template itself.
    written = ("slots.write(", 'write("word")'), ("slots.read(", "bit<5> opcode = ")
    for text, origin in (*written, ("bitmap_t seen = ", "bitmap_t seen = ")):
        template, number = rendered.origins[next(i for i, line in enumerate(lines) if text in line)]
        assert template == "epic/check_duplicate.p4.j2"
        source = (resource("templates") / template).read_text(encoding="utf-8").split("\n")
        assert origin in source[number - 1]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.program)
def test_the_manifest_counts_every_register_and_drop(spec: EpicSpec) -> None:
    composition = compose(spec)
    rendered = render(composition)
    content = generate(composition.spec).manifest
    bits = [register["bits"] for module in content["modules"] for register in module["registers"]]
    assert sum(bits) == content["state_bits"] == composition.state_bits
    declared = re.findall(r"^    (\w+)_(\w+) = (\d+),?$", rendered.text, re.MULTILINE)
    for drop in content["drops"]:
        assert re.search(rf"{drop['module']}_{drop['reason']} = {drop['index']}\b", rendered.text)
    assert declared


def test_without_icrc_the_program_does_not_hash_a_payload() -> None:
    text = render(compose(EpicSpec(icrc=Icrc.IGNORE))).text
    assert "crc32" not in text


def test_the_manifest_says_how_often_the_program_wants_ticks() -> None:
    one, two, three = (compose(EpicSpec(mode=mode)) for mode in Mode)
    assert generate(two.spec).manifest["ticks"] is None
    assert generate(one.spec).manifest["ticks"] == generate(three.spec).manifest["ticks"]
    assert generate(three.spec).manifest["ticks"] == {"every_us": 20, "opcode": "0xc0", "port": 510}


@pytest.mark.parametrize("variant", Variant)
def test_every_wrong_design_reads_otherwise(variant: Variant) -> None:
    wrong, right = (render(compose(EpicSpec(mode=Mode.III, variant=which))).text for which in (variant, None))
    assert wrong.partition("#include")[2] != right.partition("#include")[2]


def test_templates_compare_no_enum_with_text() -> None:
    """A misspelt member is an error, a misspelt text is just not equal."""
    values = {str(v) for kind in (Mode, DType, Op, Overflow, Icrc, Reliability, Congestion, Variant) for v in kind}
    compared = re.compile(r'(?:[=!]=|\bin) *\(?(?:"([^"]*)"|\'([^\']*)\')')
    for template in resource("templates").rglob("*.j2"):
        found = {one or other for one, other in compared.findall(template.read_text(encoding="utf-8"))}
        assert not found & values, template.name
