"""What modules read, write and drop, found on the typed IR of all kinds of programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4gen import builder
from p4gen.builder import build
from p4gen.errors import FailedError
from p4gen.p4.compile import compile_text
from p4gen.papers.epic.conformance.matrix import every_program
from p4gen.papers.epic.spec import EpicSpec, Fold, Mode, Variant
from p4gen.program import compose, render
from p4gen.program.compilation import compile_spec
from p4gen.program.dataflow import accesses, problems

SPECS = [
    *(spec for mode in Mode for spec in every_program(mode)[::29]),
    *(EpicSpec(mode=Mode.III, lanes=8, fan_in=4, variant=variant) for variant in Variant),
    EpicSpec(mode=Mode.III, lanes=8, fan_in=4, fold=Fold.ORDERED),
]


@pytest.mark.long
def test_modules_fit_together_and_every_declared_drop_is_in_the_program() -> None:
    for spec in SPECS:
        composition = compose(spec)
        program = compile_text(render(composition).text).program
        assert problems(composition, program) == [], spec.program
        dropping = {reason for found in accesses(program).values() for reason in found.drops}
        assert dropping == {reason.index for reason in composition.drops}, spec.program


def moved(spec: EpicSpec, line: str, before: str) -> str:
    """The text of a program in whose ingress a line stands in front of another one."""
    text = render(compose(spec), line_directives=False).text
    assert text.count(line) == 1
    text = text.replace(line, "")
    assert text.count(before) == 1
    return text.replace(before, line + before)


def test_a_field_that_nothing_has_written_yet_is_found() -> None:
    spec = EpicSpec(lanes=8)
    text = render(compose(spec), line_directives=False).text
    (line,) = [each + "\n" for each in text.split("\n") if "classify_traffic.apply" in each]
    text = moved(spec, line, "        lookup_table.apply(")
    found = problems(compose(spec), compile_text(text).program)
    assert "ClassifyTraffic reads lookup.kind, which nothing writes before it" in found
    assert all(line.startswith("ClassifyTraffic reads ") for line in found)


TWICE = """
    struct part_t {{ bit<8> first; bit<8> second; bit<8> third; }}
    struct headers_t {{ }}
    struct metadata_t {{ part_t part; }}
    parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{
        state start {{ transition accept; }}
    }}
    control Check(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
    control Inner(inout bit<8> value) {{
        action add() {{ value = value + 1; }}
        apply {{ add(); }}
    }}
    control Module(inout metadata_t meta) {{
        Inner() inner;
        apply {{
            bit<8> own = 0;
            {applications}
        }}
    }}
    control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{
        Module() module;
        apply {{ module.apply(meta); }}
    }}
    control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
    control D(packet_out packet, in headers_t hdr) {{ apply {{ }} }}
    V1Switch(P(), Check(), I(), E(), Check(), D()) main;
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("meta.part.first", "meta.part.second"),
        ("meta.part.first", "own", "meta.part.second"),
        ("own", "meta.part.first", "meta.part.second", "own"),
        ("own",),
    ],
)
def test_a_control_applied_again_has_its_new_arguments(arguments: tuple[str, ...]) -> None:
    applications = " ".join(f"inner.apply({argument});" for argument in arguments)
    text = "#include <core.p4>\n#include <v1model.p4>\n" + TWICE.format(applications=applications)
    module = accesses(compile_text(text).program)["module"]
    assert module.reads == module.writes == {a.removeprefix("meta.") for a in arguments if a != "own"}


def test_a_reason_of_another_module_is_found() -> None:
    composition = compose(EpicSpec(lanes=8))
    text = render(composition).text.replace("drop_t.FindContext_not_served;", "drop_t.Forward_no_route;")
    assert problems(composition, compile_text(text).program) == [
        "FindContext drops for Forward_no_route, which it does not declare"
    ]


def test_a_build_refuses_modules_that_do_not_fit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "problems", lambda *_: ["FindContext reads lookup.context"])
    with pytest.raises(FailedError, match="modules do not fit together") as caught:
        build(EpicSpec(lanes=8), tmp_path, use_p4c=False)
    assert "FindContext reads lookup.context" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_arguments_actions_keys_and_inner_controls_count() -> None:
    """``lowest`` is an argument, ``slot`` is set by an action, ``code`` is a key, lanes are controls of their own."""
    program = compile_spec(EpicSpec(mode=Mode.III, lanes=8)).program
    found = accesses(program)
    assert "progress.acked" in found["receive_ack"].writes
    assert "flow.slot" in found["classify_traffic"].writes
    assert "invocation.code" in found["classify_traffic"].reads
    assert {"hdr.payload", "flow.slot"} <= found["aggregate_data"].reads
    assert "hdr.icrc" in found["check_icrc"].reads
