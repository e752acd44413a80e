"""Generated text: byte-stable, readable, and traceable to its templates."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from p4gen.inc import compose
from p4gen.render import manifest, render
from p4gen.spec import DType, Icrc, Op, Overflow, ProgramSpec

SPECS = [
    ProgramSpec(),
    ProgramSpec(lanes=8, dtype=DType.UINT32, op=Op.MIN),
    ProgramSpec(lanes=256, op=Op.MAX),
    ProgramSpec(lanes=16, overflow=Overflow.WRAP, icrc=Icrc.IGNORE),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.program)
def test_two_renderings_are_byte_identical(spec: ProgramSpec) -> None:
    assert render(compose(spec)) == render(compose(spec))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.program)
def test_text_is_tidy(spec: ProgramSpec) -> None:
    text = render(compose(spec)).text
    lines = text.split("\n")
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert "\t" not in text
    assert "\x00" not in text
    assert "{%" not in text
    assert [line for line in lines if line != line.rstrip()] == []
    assert [line for line in lines if len(line) > 130] == []


def test_a_64_lane_program_fits_on_1500_lines() -> None:
    assert render(compose(ProgramSpec())).text.count("\n") <= 1500


def test_every_module_is_a_control_of_its_name() -> None:
    composition = compose(ProgramSpec())
    text = render(composition).text
    for module in composition.modules:
        assert len(re.findall(rf"^control {module.name}\(", text, re.MULTILINE)) == 1


def test_line_directives_lead_to_the_template() -> None:
    """What follows a directive is what stands on that line of the template, expressions aside."""
    text = render(compose(ProgramSpec())).text
    directives = re.findall(r'^#line (\d+) "templates/(.*)"\n(.*)$', text, re.MULTILINE)
    assert len(directives) >= 15
    for number, template, following in directives:
        source = (files("p4gen") / "templates" / template).read_text(encoding="utf-8").split("\n")[int(number) - 1]
        if "{{" not in source:
            assert following == source.rstrip()


def test_origins_name_the_template_of_every_line() -> None:
    rendered = render(compose(ProgramSpec()))
    assert len(rendered.origins) == rendered.text.count("\n")
    row = next(i for i, line in enumerate(rendered.text.split("\n")) if "slots.write(" in line)
    template, number = rendered.origins[row]
    assert template == "modules/check_duplicate.p4.j2"
    source = (files("p4gen") / "templates" / template).read_text(encoding="utf-8").split("\n")
    assert "slots.write(" in source[number - 1]


def test_the_manifest_counts_every_register_and_drop() -> None:
    composition = compose(ProgramSpec())
    rendered = render(composition)
    content = manifest(composition, rendered)
    bits = [register["bits"] for module in content["modules"] for register in module["registers"]]
    assert sum(bits) == content["state_bits"] == composition.state_bits
    declared = re.findall(r"^    (\w+)_(\w+) = (\d+),?$", rendered.text, re.MULTILINE)
    for drop in content["drops"]:
        assert re.search(rf"{drop['module']}_{drop['reason']} = {drop['index']}\b", rendered.text)
    assert declared


def test_without_icrc_the_program_does_not_hash_a_payload() -> None:
    text = render(compose(ProgramSpec(icrc=Icrc.IGNORE))).text
    assert "crc32" not in text
