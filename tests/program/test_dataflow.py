"""Modules declare what they read and write: checked on the typed IR, for all kinds of programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p4gen import builder
from p4gen.builder import build
from p4gen.dataflow import accesses, undeclared, unused
from p4gen.errors import FailedError
from p4gen.p4.compile import compile_text
from p4gen.papers.epic.conformance.matrix import every_program
from p4gen.papers.epic.spec import EpicSpec, Fold, Mode, Variant
from p4gen.program import Composition, compose, render
from p4gen.program.compilation import compile_spec
from p4gen.vocabulary import ProgramSpec

SPECS = [
    *(spec for mode in Mode for spec in every_program(mode)[::29]),
    *(EpicSpec(mode=Mode.III, lanes=8, fan_in=4, variant=variant) for variant in Variant),
    EpicSpec(mode=Mode.III, lanes=8, fan_in=4, fold=Fold.ORDERED),
]


def without(composition: Composition, module: str, **lost: str) -> Composition:
    """The composition with a module that forgets to declare something."""
    found = {m.name: m for m in composition.modules}
    for name, value in lost.items():
        fields: dict[str, Any] = {name: tuple(v for v in getattr(found[module], name) if v != value)}
        found[module] = replace(found[module], **fields)
    return replace(composition, modules=tuple(found.values()))


@pytest.mark.long
def test_every_module_declares_what_it_reads_and_writes_and_nothing_else() -> None:
    declared: set[tuple[str, str]] = set()
    used: set[tuple[str, str]] = set()
    for spec in SPECS:
        composition = compose(spec)
        program = compile_text(render(composition).text).program
        assert undeclared(composition, program) == [], spec.program
        dropping = {reason for found in accesses(program).values() for reason in found.drops}
        assert dropping == {reason.index for reason in composition.drops}, spec.program
        mine = {(m.name, name) for m in composition.modules for name in (*m.needs, *m.may_need, *m.changes)}
        declared |= mine
        used |= mine - unused(composition, program)
    assert declared == used


@pytest.mark.parametrize(
    ("module", "lost", "said"),
    [
        ("CheckOrder", {"may_need": "passes"}, "CheckOrder reads progress.passes"),
        ("SetIcrc", {"needs": "hdr.aeth"}, "SetIcrc reads hdr.aeth"),
        ("TrackInvocation", {"changes": "code"}, "TrackInvocation writes invocation.code"),
        ("MakeAck", {"changes": "hdr.payload"}, "MakeAck writes hdr.payload"),
        ("RecycleBuffer", {"needs": "epoch"}, None),  # CheckDuplicate, whose control it is within, declares it too
    ],
)
def test_what_is_not_declared_is_found(module: str, lost: dict[str, str], said: str | None) -> None:
    composition = compose(EpicSpec(mode=Mode.III, lanes=8))
    program = compile_text(render(composition).text).program
    found = undeclared(without(composition, module, **lost), program)
    assert found == ([f"{said}, which it does not declare"] if said else [])


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
    assert undeclared(composition, compile_text(text).program) == [
        "FindContext drops for Forward_no_route, which it does not declare"
    ]


def test_a_build_refuses_a_module_that_does_not_say_what_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(spec: ProgramSpec) -> Composition:
        return without(compose(spec), "FindContext", needs="context")

    monkeypatch.setattr(builder, "compose", forgetful)
    with pytest.raises(FailedError, match="modules do not say what they do") as caught:
        build(EpicSpec(lanes=8), tmp_path, use_p4c=False)
    assert "FindContext reads lookup.context, which it does not declare" in str(caught.value)
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
