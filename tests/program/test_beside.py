"""Two families in one program: Themis beside EPIC, for the packets that EPIC only routes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p4gen import generate
from p4gen.builder import build
from p4gen.cli.options import arguments_of
from p4gen.errors import InputError
from p4gen.families import load_spec, parse_spec
from p4gen.groups import configure
from p4gen.p4 import p4c
from p4gen.p4.compile import compile_text
from p4gen.p4.lint.rules import lint
from p4gen.papers.epic import program as epic
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.papers.themis.spec import Mode as Half
from p4gen.papers.themis.spec import ThemisSpec
from p4gen.program import compose, render
from p4gen.program.dataflow import problems
from p4gen.vocabulary import ProgramSpec

SMALL: dict[str, Any] = {"lanes": 8, "window": 2, "message": 2, "fan_in": 4, "ports": 8}
FEW: dict[str, Any] = {"paths": 4, "queue": 16, "queue_banks": 4, "connections": 4}

CLASSES = {"evidence": "classes", "queue": None, "queue_banks": None}


def both(mode: Mode = Mode.III, half: Half = Half.BOTH, *, guest: dict[str, Any] | None = None, **own: Any) -> EpicSpec:
    fields = {name: value for name, value in (FEW | (guest or {})).items() if value is not None}
    return EpicSpec(mode=mode, **SMALL | own, beside=ThemisSpec(mode=half, **fields))


PROGRAMS = [
    *(both(mode, half) for mode in Mode for half in Half),
    *(both(mode, icrc="ignore") for mode in Mode),
    *(both(mode, Half.SOURCE, pipelines=4) for mode in Mode),
    *(both(reliability=name) for name in ("sr", "sack")),
    both(Mode.II, op="dynamic"),
    *(both(guest=fields) for fields in ({"tiers": 3}, {"blocked": "ack"}, {"variant": "late-compensation"})),
    both(guest={"variant": "destructive-queue"}),
    both(guest=CLASSES),
    both(Mode.II, guest=CLASSES),
]


@pytest.mark.sample(8)
@pytest.mark.parametrize("spec", PROGRAMS, ids=lambda spec: spec.program)
def test_programs_of_both_compile_and_keep_the_rules(spec: EpicSpec) -> None:
    composition = compose(spec)
    rendered = render(composition)
    compiled = compile_text(rendered.text, "program.p4")
    assert compiled.warnings == ()
    assert lint(compiled.program, spec.pipelines) == []
    assert problems(composition, compiled.program) == []


@pytest.mark.skipif(p4c.find() is None, reason=f"{p4c.COMPILER} is not on PATH")
@pytest.mark.parametrize("spec", PROGRAMS[:6], ids=lambda spec: spec.program)
def test_p4c_accepts_programs_of_both_and_agrees_on_p4info(spec: EpicSpec, tmp_path: Path) -> None:
    assert build(spec, tmp_path).p4c is not None
    ours, theirs = (tmp_path / spec.program / f"{spec.program}{end}.txtpb" for end in (".p4info", ".p4c.p4info"))
    assert ours.read_text() == theirs.read_text()


@pytest.mark.parametrize("mode", Mode)
def test_each_familys_modules_are_there_with_their_own_texts(mode: Mode) -> None:
    """EPIC's modules have the text that they have alone; Themis's differ in names that EPIC has, too."""
    spec = both(mode)
    alone = EpicSpec(mode=mode, **SMALL), ThemisSpec(**FEW, ports=8)
    names = [[module.name for module in compose(one).modules] for one in (spec, *alone)]
    assert set(names[0]) == set(names[1]) | set(names[2])
    assert [name for name in names[0] if name in names[1]] == names[1]
    text, before = (render(compose(one), line_directives=False).text for one in (spec, alone[0]))
    controls, old = (_controls(one) for one in (text, before))
    assert {name for name in old if controls[name] != old[name]} == {
        "IncIngress", "IncEgress", "VerifyIpv4Checksum", "UpdateIpv4Checksum", "Forward",
    }  # fmt: skip
    assert "meta.connection.kind == rc_kind_t.NACK" in text


def _controls(text: str) -> dict[str, str]:
    parts = text.split("\ncontrol ")[1:]
    return {part.split("(")[0]: part.split("\n}\n")[0] for part in parts}


def test_the_manifest_names_both() -> None:
    spec = both()
    composition = compose(spec)
    found = generate(composition.spec).manifest
    assert found["program"] == "modeiii_sum_int32_x8_beside_themis_n4_q4x16k4w16"
    assert (found["spec"]["mode"], found["spec"]["beside"]["mode"]) == ("III", "themis")
    assert found["themis"]["memory"]["paper"] == 2 * 4 + (20 + 16) * 4
    assert found["ticks"] is not None
    (tails,) = [r for m in found["modules"] for r in m["registers"] if r["name"] == "tails"]
    assert (tails["entries"], tails["bits"]) == (4, 4 * (8 + 5 + 4))
    assert {"CheckOrder", "BlockedNack"} <= {drop["module"] for drop in found["drops"]}
    alone = generate(EpicSpec()).manifest
    assert "beside" not in alone["spec"]


def test_a_file_and_a_command_line_describe_the_same_program(tmp_path: Path) -> None:
    file = tmp_path / "both.yaml"
    file.write_text("mode: III\nports: 8\nbeside: {mode: themis-d, queue: 64, connections: 7}\n")
    flag = {"mode": "III", "ports": 8, "beside": "themis-d:queue=64,connections=7"}
    spec = load_spec(flags=flag)
    assert load_spec(file) == spec
    assert spec.beside is not None
    assert (spec.beside.ports, spec.beside.program) == (8, "themis_d_n16_q7x64k16w16")
    assert parse_spec(spec.model_dump(mode="json")) == spec
    words = arguments_of(spec)
    assert words[words.index("--beside") + 1] == "themis-d:connections=7,queue=64"
    assert load_spec(file, {"beside": "none"}) == load_spec(flags={"mode": "III", "ports": 8})


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        (
            {"beside": "themis", "pipelines": 2},
            "pipelines: error: pipelines = 2: themis: a connection's packets arrive",
        ),
        ({"beside": "themis:queue=5"}, "beside: error: beside: queue = 5: must be"),
        ({"beside": "themis:queues=8"}, "beside: error: beside: unknown field 'queues'; did you mean 'queue'?"),
        ({"beside": "themis:ports=9"}, "beside: error: beside: ports is a field of the whole program"),
        ({"beside": "themsi"}, "beside: error: family = 'themsi': there is no such family; did you mean 'themis'?"),
        ({"beside": 7}, "beside: error: beside = 7: must be a family's mode or name, or its fields"),
        ({"beside": "epic"}, "beside: error: beside"),
    ],
)
def test_a_family_that_is_described_wrongly_is_refused(fields: dict[str, Any], cause: str) -> None:
    with pytest.raises(InputError) as refused:
        load_spec(flags={"mode": "III", **fields})
    assert str(refused.value).startswith(cause)


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        (
            ThemisSpec(beside=EpicSpec()),
            "programs of the family epic cannot be beside those of another one",
        ),
        (both(half=Half.SOURCE, guest={"spread": "random"}), "themis: spread random applies to all requests"),
        (both(guest={"cm": "copy"}), "themis: cm copy needs headers that the parsers of other families do not know"),
    ],
)
def test_families_that_do_not_go_together_are_refused(spec: ProgramSpec, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        compose(spec)


def test_a_switch_has_the_clone_sessions_of_both() -> None:
    """Cursors and NACKs share a session, whose port does not matter."""
    assert [session.session_id for session in configure(both(), []).clone_sessions] == [511]
    assert configure(EpicSpec(), []).clone_sessions == ()


def test_a_family_that_leaves_no_packets_has_none_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = "epic/tna/egress_ii.p4.j2"
    monkeypatch.setattr(epic, "FACET", replace(epic.FACET, flows=lambda _: (alone, alone)))
    with pytest.raises(InputError, match="programs of the family epic leave no packets to a family beside it"):
        compose(both(Mode.II))
